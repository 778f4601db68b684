"""The fields of OIDC applications."""

from __future__ import annotations

from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import (
    NANOSECONDS,
    DurationRange,
    Field,
    choice,
    duration,
    flag,
    some_of,
    text,
    texts,
    variant,
)
from reconciler.resources.kinds import IN_PROJECT, ClientSecrets, KindRow

CLOCK_SKEW = DurationRange(5 * NANOSECONDS, r"^(?:[0-4](?:\.[0-9]{1,9})?|5(?:\.0{1,9})?)s$")

# The fields of the source document, then those of a ZITADEL.
_FIELDS: tuple[Field, ...] = (
    texts(
        "redirectUris",
        "Callback URIs of the authorization request, where the code or tokens go.",
        "https://shop.example.com/callback",
    ),
    some_of(
        "responseTypes",
        "Whether a code, an id_token token or just an id_token is returned. An empty list "
        "means the default.",
        "OIDC_RESPONSE_TYPE_CODE",
        "OIDC_RESPONSE_TYPE_ID_TOKEN",
        "OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN",
    ),
    some_of(
        "grantTypes",
        "The flows by which the application gains access. An empty list means the default.",
        "OIDC_GRANT_TYPE_AUTHORIZATION_CODE",
        "OIDC_GRANT_TYPE_IMPLICIT",
        "OIDC_GRANT_TYPE_REFRESH_TOKEN",
        "OIDC_GRANT_TYPE_DEVICE_CODE",
        "OIDC_GRANT_TYPE_TOKEN_EXCHANGE",
    )._replace(newer={"OIDC_GRANT_TYPE_TOKEN_EXCHANGE": "2.49, March 2024"}),  # zitadel#7516
    choice(
        "appType",
        "Paradigm of the application: web, browser or native.",
        "OIDC_APP_TYPE_WEB",
        "OIDC_APP_TYPE_USER_AGENT",
        "OIDC_APP_TYPE_NATIVE",
    ),
    choice(
        "authMethodType",
        "How the application passes its credentials. BASIC and POST come with a client secret.",
        "OIDC_AUTH_METHOD_TYPE_BASIC",
        "OIDC_AUTH_METHOD_TYPE_POST",
        "OIDC_AUTH_METHOD_TYPE_NONE",
        "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT",
    ),
    texts(
        "postLogoutRedirectUris",
        "URIs the service redirects to after a successful logout.",
        "https://shop.example.com/",
    ),
    choice("version", "OIDC version.", "OIDC_VERSION_1_0"),
    flag("devMode", "Development mode: some checks of the OIDC specification are not performed."),
    choice(
        "accessTokenType",
        "Type of the access token the service issues.",
        *("OIDC_TOKEN_TYPE_BEARER", "OIDC_TOKEN_TYPE_JWT"),
    ),
    flag(
        "accessTokenRoleAssertion",
        "Adds roles to the claims of the access token (of type JWT only) even if no scope asks "
        "for them.",
    ),
    flag(
        "idTokenRoleAssertion",
        "Adds roles to the claims of the id token even if no scope asks for them.",
    ),
    flag(
        "idTokenUserinfoAssertion",
        "Adds the claims of the profile, email, address and phone scopes to the id token even "
        "if an access token is issued. This violates the OIDC specification.",
    ),
    duration(
        "clockSkew",
        "Tolerated difference between clocks, 0s to 5s: decimal seconds with s. It is added to "
        "the exp claim and subtracted from iat, auth_time and nbf.",
        *("1s", "1.5s"),
        default="0s",
        limits=CLOCK_SKEW,
    ),
    texts(
        "additionalOrigins",
        "Origins, other than those of the redirect URIs, from which the API can be used: "
        "scheme, host and port only.",
        "https://app.example.com",
    ),
    flag(
        "skipNativeAppSuccessPage",
        "Skips the page that confirms a successful login on native applications and goes "
        "straight to the callback.",
    ),
    text(
        "backChannelLogoutUri",
        "Address to which the service posts a logout token when a session ends. The service "
        "must be able to resolve its host, and a newer one checks that again on every update.",
        "https://shop.example.com/backchannel-logout",
        longest=0,
    )._replace(default="", left_as_held=True, since="2.65, October 2024"),  # zitadel#8837, #9071
    variant(
        "loginVersion",
        "Login pages of the application: loginV1, or loginV2 with the baseUri of pages of your "
        "own. A new application without it has those that the service has for all.",
        {"loginV1": {}},
        {"loginV2": {"baseUri": "https://login.example.com"}},
        loginV1=(),
        loginV2=(
            text(
                "baseUri",
                "Where the pages are, if not those of the service.",
                "https://login.example.com",
                longest=0,
            )._replace(default=""),
        ),
    )._replace(since="2.68, December 2024"),
)

_APPS = f"{MANAGEMENT}/projects/{{projectId}}/apps"
_APP = f"{_APPS}/{{appId}}"

# Source 2.3 without the name, which is the resource's own. The service makes the client id. An
# update sends every field; a list that is left out is empty afterwards.
ROW = KindRow(
    "The configuration of an OIDC application. The client id is made by the service.",
    rank=2,
    schema="oidc-application",
    noun="application",
    plural="applications",
    owner=IN_PROJECT,
    has_state=True,
    fields=_FIELDS,
    secrets=ClientSecrets(has_client_secret, "authMethodType", "authMethodType BASIC or POST"),
    addresses={
        "AddOIDCApp": (f"POST {_APPS}/oidc",),
        "ListApps": (f"POST {_APPS}/_search",),
        "GetAppByID": (f"GET {_APP}",),
        "UpdateApp": (f"PUT {_APP}",),
        "UpdateOIDCAppConfig": (f"PUT {_APP}/oidc_config",),
        "DeactivateApp": (f"POST {_APP}/_deactivate",),
        "ReactivateApp": (f"POST {_APP}/_reactivate",),
        "RemoveApp": (f"DELETE {_APP}",),
        "RegenerateOIDCClientSecret": (f"POST {_APP}/oidc_config/_generate_client_secret",),
    },
)
