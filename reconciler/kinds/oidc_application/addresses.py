"""Addresses of the operations on applications."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_APPS = f"{MANAGEMENT}/projects/{{projectId}}/apps"
_APP = f"{_APPS}/{{appId}}"

ADDRESSES = {
    "AddOIDCApp": (f"POST {_APPS}/oidc",),
    "ListApps": (f"POST {_APPS}/_search",),
    "GetAppByID": (f"GET {_APP}",),
    "UpdateApp": (f"PUT {_APP}",),
    "UpdateOIDCAppConfig": (f"PUT {_APP}/oidc_config",),
    "DeactivateApp": (f"POST {_APP}/_deactivate",),
    "ReactivateApp": (f"POST {_APP}/_reactivate",),
    "RemoveApp": (f"DELETE {_APP}",),
    "RegenerateOIDCClientSecret": (f"POST {_APP}/oidc_config/_generate_client_secret",),
}
