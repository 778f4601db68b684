"""Addresses of the operations on flows."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_FLOWS = f"{MANAGEMENT}/flows"

ADDRESSES = {
    "GetFlow": (f"GET {_FLOWS}/{{type}}",),
    "SetTriggerActions": (f"POST {_FLOWS}/{{flowType}}/trigger/{{triggerType}}",),
    "ClearFlow": (f"POST {_FLOWS}/{{type}}/_clear",),
}
