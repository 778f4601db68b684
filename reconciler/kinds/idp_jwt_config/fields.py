"""The fields of JWT identity providers."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import text
from reconciler.resources.kinds import IN_ORGANIZATION, KindRow

_IDPS = f"{MANAGEMENT}/idps"

# Source 2.2. An update sends the whole configuration, and a field sent empty is empty afterwards.
# So no field of it has a default, not even headerName: a manifest that leaves it out must fail,
# not silently clear what the service holds. The audience is newer than the source.
ROW = KindRow(
    "Settings by which the service reads and verifies the JWTs of one identity provider.",
    rank=2,
    schema="idp-jwt-config",
    noun="identity provider",
    plural="identity providers",
    owner=IN_ORGANIZATION,
    has_state=True,
    fields=(
        text(
            "jwtEndpoint",
            "Endpoint from which the JWT can be extracted.",
            "https://login.partner.example.com/jwt",
            shortest=1,
            longest=200,
        ),
        text(
            "issuer",
            "Issuer that the JWT must name.",
            "https://login.partner.example.com",
            shortest=1,
            longest=200,
        ),
        text(
            "keysEndpoint",
            "Endpoint of the keys (JWK) that sign the JWT.",
            "https://login.partner.example.com/keys",
            shortest=1,
            longest=200,
        ),
        text(
            "headerName",
            "Header in which the JWT is sent; empty means `authorization`, and is refused by a "
            "ZITADEL.",
            *("authorization", "x-partner-token"),
            longest=200,
        )._replace(for_empty="authorization"),
        text(
            "audience",
            "Audience that the JWT must name in `aud`. Empty means that `aud` is not checked: a "
            "token that the issuer made for another application is accepted.",
            "https://login.acme.example.com",
            longest=200,
        )._replace(default=""),
    ),
    addresses={
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
    },
)
