"""Addresses of the operations on actions."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_ACTIONS = f"{MANAGEMENT}/actions"

ADDRESSES = {
    "CreateAction": (f"POST {_ACTIONS}",),
    "ListActions": (f"POST {_ACTIONS}/_search",),
    "GetAction": (f"GET {_ACTIONS}/{{id}}",),
    "UpdateAction": (f"PUT {_ACTIONS}/{{id}}",),
    "DeactivateAction": (f"POST {_ACTIONS}/{{id}}/_deactivate",),
    "ReactivateAction": (f"POST {_ACTIONS}/{{id}}/_reactivate",),
    "DeleteAction": (f"DELETE {_ACTIONS}/{{id}}",),
}
