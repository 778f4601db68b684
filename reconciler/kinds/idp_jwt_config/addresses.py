"""Addresses of the operations on identity providers."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_IDPS = f"{MANAGEMENT}/idps"

ADDRESSES = {
    "AddOrgJWTIDP": (f"POST {_IDPS}/jwt",),
    "ListOrgIDPs": (f"POST {_IDPS}/_search",),
    "GetOrgIDPByID": (f"GET {_IDPS}/{{id}}",),
    "UpdateOrgIDP": (f"PUT {_IDPS}/{{idpId}}",),
    "UpdateOrgIDPJWTConfig": (
        f"PUT {_IDPS}/{{idpId}}/jwt_config",
        "PUT /admin/v1/idps/{idpId}/jwt_config",
    ),
    "DeactivateOrgIDP": (f"POST {_IDPS}/{{idpId}}/_deactivate",),
    "ReactivateOrgIDP": (f"POST {_IDPS}/{{idpId}}/_reactivate",),
    "RemoveOrgIDP": (f"DELETE {_IDPS}/{{idpId}}",),
    "AddJWTProvider": (f"POST {_IDPS}/generic_jwt",),
    "ListProviders": (f"POST {_IDPS}/templates/_search",),
    "GetProviderByID": (f"GET {_IDPS}/templates/{{id}}",),
    "UpdateJWTProvider": (f"PUT {_IDPS}/generic_jwt/{{id}}",),
    "DeleteProvider": (f"DELETE {_IDPS}/templates/{{id}}",),
}
