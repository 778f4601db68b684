"""What is told over every transport: each operation, well and badly, at its limits and beyond."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconciler.service.operations.operation import Operation
from reconciler.service.operations.table import operations
from tests.wires import UNDEFINED

SHARED = [row for row in operations().values() if row.grpc]
JWT = {
    "jwtEndpoint": "https://login.example.com/jwt",
    "issuer": "https://login.example.com",
    "keysEndpoint": "https://login.example.com/keys",
    "headerName": "x-token",
}
URIS = {"redirectUris": ["https://shop.example.com/cb"]}
WHOLE_APP = {
    "redirectUris": ["https://shop.example.com/cb", "http://localhost/cb"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN", "OIDC_RESPONSE_TYPE_CODE"],
    "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
    "appType": "OIDC_APP_TYPE_USER_AGENT",
    "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE",
    "postLogoutRedirectUris": ["https://shop.example.com/"],
    "devMode": True,
    "accessTokenType": "OIDC_TOKEN_TYPE_JWT",
    "accessTokenRoleAssertion": True,
    "idTokenRoleAssertion": True,
    "idTokenUserinfoAssertion": True,
    "clockSkew": "1.500000001s",
    "additionalOrigins": ["https://app.example.com"],
    "skipNativeAppSuccessPage": True,
}
IGNORING_CASE = "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"
LONGEST, TOO_LONG = "\U0001f511" * 200, "\U0001f511" * 201


def _nowhere(row: Operation) -> dict[str, Any]:
    """Return what the addresses of an operation need."""
    return dict.fromkeys(re.findall(r"{(\w+)}", row.http[0]), "404")


class Id(NamedTuple):
    """The id that an earlier step brought, or that was there before."""

    name: str


@dataclass(frozen=True)
class Step:
    """One call, and what is expected of it over every transport.

    Attributes:
        code: 0 where it must succeed.
        names: The id in its answer gets this name for later steps.
        by: Name of a token, the text of one, or nothing at all.
    """

    operation: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    code: int = 0
    names: str = ""
    by: str | None = "editor"
    headers: Sequence[tuple[str, Any]] = ()
    address: int = 0
    writes: int = 0


def app(name: Any = "web", **fields: Any) -> dict[str, Any]:
    return {"projectId": Id("project"), "name": name, **fields}


def the_app(**fields: Any) -> dict[str, Any]:
    return {"projectId": Id("project"), "appId": Id("app"), **fields}


def ghost(**fields: Any) -> dict[str, Any]:
    return {"projectId": Id("project"), "appId": "404", **fields}


def role(key: Any = "a/b", **fields: Any) -> dict[str, Any]:
    return {"projectId": Id("project"), "roleKey": key, **fields}


def script(name: str = "greet", **fields: Any) -> dict[str, Any]:
    return {"name": name, "script": "function greet(ctx, api) {}", **fields}


def at(trigger: str, *actions: Any) -> dict[str, Any]:
    """Return the actions of a trigger of the flow of logins."""
    return {"flowType": "3", "triggerType": trigger, "actionIds": [*actions]}


def match(sequence: object) -> list[tuple[str, Any]]:
    return [("if-match", sequence)]


LABELLED = "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY"
STALE = match('"1"')
OTHER = [("x-service-orgid", Id("other"))]

STORY = {
    "health needs no token": Step("Healthz", by=None),
    "health of the other service": Step("Healthz", by=None, address=1),
    "the instance": Step("GetIAM"),
    "the instance for a viewer": Step("GetIAM", by="viewer"),
    "an organization": Step("AddOrg", {"name": "initech"}, by="admin", writes=1),
    "an organization of a taken name": Step("AddOrg", {"name": "ACME"}, 6, by="admin"),
    "an organization without a name": Step("AddOrg", {"name": ""}, 3, by="admin"),
    "an organization by an editor": Step("AddOrg", {"name": "x"}, 7),
    "all organizations": Step(
        "ListOrgs",
        {"query": {"asc": True}, "sortingColumn": "ORG_FIELD_NAME_NAME"},
        by="admin",
    ),
    "organizations by name": Step(
        "ListOrgs",
        {"queries": [{"nameQuery": {"name": "ACME", "method": IGNORING_CASE}}]},
        by="admin",
    ),
    "organizations by domain": Step(
        "ListOrgs", {"queries": [{"domainQuery": {"domain": "x"}}]}, 3, by="admin"
    ),
    "organizations by nothing": Step("ListOrgs", {"queries": [{}]}, 3, by="admin"),
    "organizations of an unknown state": Step(
        "ListOrgs", {"queries": [{"stateQuery": {"state": UNDEFINED}}]}, 3, by="admin"
    ),
    "organizations by an unknown method": Step(
        "ListOrgs", {"queries": [{"nameQuery": {"name": "a", "method": UNDEFINED}}]}, 3
    ),
    "organizations by an unknown column": Step("ListOrgs", {"sortingColumn": UNDEFINED}, 3),
    "organizations past all numbers": Step("ListOrgs", {"query": {"offset": str(2**64 - 1)}}, 3),
    "organizations that one may see": Step("ListOrgs"),
    "my organization": Step("GetMyOrg"),
    "no organization of mine": Step("GetMyOrg", by="admin", code=9),
    "another organization as mine": Step("GetMyOrg", headers=OTHER, code=5),
    "a project": Step("AddProject", {"name": "api"}, names="api", writes=1),
    "a project of a taken name": Step("AddProject", {"name": "API"}, 6),
    "a project with flags": Step(
        "AddProject",
        {"name": "shut", "projectRoleCheck": True, "privateLabelingSetting": LABELLED},
        names="shut",
        writes=1,
    ),
    "updating a project": Step(
        "UpdateProject",
        {"id": Id("shut"), "name": "open", "projectRoleAssertion": True, "hasProjectCheck": True},
        writes=2,
    ),
    "updating a project without a change": Step(
        "UpdateProject",
        {"id": Id("shut"), "name": "open", "projectRoleAssertion": True, "hasProjectCheck": True},
    ),
    "updating a stale project": Step(
        "UpdateProject", {"id": Id("shut"), "name": "x"}, 9, headers=STALE
    ),
    "renaming a project to a taken name": Step(
        "UpdateProject", {"id": Id("shut"), "name": "API"}, 6
    ),
    "updating a project with an unknown setting": Step(
        "UpdateProject", {"id": Id("shut"), "name": "x", "privateLabelingSetting": UNDEFINED}, 3
    ),
    "updating no project": Step("UpdateProject", {"id": "404", "name": "x"}, 5),
    "updating a project of others": Step(
        "UpdateProject", {"id": Id("shut"), "name": "x"}, 5, by="stranger"
    ),
    "reading a project with flags": Step("GetProjectByID", {"id": Id("shut")}),
    "a project with an unknown setting": Step(
        "AddProject", {"name": "x", "privateLabelingSetting": UNDEFINED}, 3
    ),
    "reading a project": Step("GetProjectByID", {"id": Id("api")}),
    "reading no project": Step("GetProjectByID", {"id": "404"}, 5),
    "reading a project of others": Step("GetProjectByID", {"id": Id("api")}, 5, by="stranger"),
    "projects": Step("ListProjects", {"query": {"limit": 1}}),
    "projects by owner": Step(
        "ListProjects",
        {"queries": [{"projectResourceOwnerQuery": {"resourceOwner": Id("organization")}}]},
    ),
    "projects of others": Step("ListProjects", {}, 5, headers=OTHER),
    "a provider": Step("AddOrgJWTIDP", {"name": "partner", **JWT}, names="idp", writes=1),
    "a provider of a taken name": Step("AddOrgJWTIDP", {"name": "Partner", **JWT}, 6),
    "a provider with an unknown style": Step(
        "AddOrgJWTIDP", {"name": "x", **JWT, "stylingType": UNDEFINED}, 3
    ),
    "a provider with a style that is not offered": Step(
        "AddOrgJWTIDP", {"name": "x", **JWT, "stylingType": "STYLING_TYPE_GOOGLE"}, 3
    ),
    "reading a provider": Step("GetOrgIDPByID", {"id": Id("idp")}),
    "reading no provider": Step("GetOrgIDPByID", {"id": "404"}, 5),
    "providers": Step(
        "ListOrgIDPs",
        {
            "query": {"asc": True, "limit": 10},
            "sortingColumn": "IDP_FIELD_NAME_NAME",
            "queries": [{"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_ORG"}}],
        },
    ),
    "providers by id": Step("ListOrgIDPs", {"queries": [{"idpIdQuery": {"id": Id("idp")}}]}),
    "providers of an unknown owner": Step(
        "ListOrgIDPs", {"queries": [{"ownerTypeQuery": {"ownerType": UNDEFINED}}]}, 3
    ),
    "renaming a provider": Step("UpdateOrgIDP", {"idpId": Id("idp"), "name": "p"}, writes=1),
    "renaming a provider too long": Step("UpdateOrgIDP", {"idpId": Id("idp"), "name": TOO_LONG}, 3),
    "renaming no provider": Step("UpdateOrgIDP", {"idpId": "404", "name": "p"}, 5),
    "updating a provider": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT, "issuer": "i"}, writes=1
    ),
    "updating it to the same": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT, "issuer": "i"}
    ),
    "updating it as an administrator": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT, "headerName": ""}, address=1, writes=1
    ),
    "updating it to the longest": Step(
        "UpdateOrgIDPJWTConfig",
        {"idpId": Id("idp"), **dict.fromkeys(JWT, LONGEST)},
        writes=1,
    ),
    **{
        f"updating it with {name} too long": Step(
            "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT, name: TOO_LONG}, 3
        )
        for name in JWT
    },
    **{
        f"updating it with {name} empty": Step(
            "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT, name: ""}, 3
        )
        for name in JWT
        if name != "headerName"
    },
    "providers of every kind": Step("ListProviders", {"query": {"limit": 10}}),
    "reading it by its present call": Step("GetProviderByID", {"id": Id("idp")}),
    "reading no provider by the present call": Step("GetProviderByID", {"id": "404"}, 5),
    "updating it with an audience": Step(
        "UpdateJWTProvider", {"id": Id("idp"), "name": "p", **JWT, "audience": "a"}, writes=1
    ),
    "updating it with the same audience": Step(
        "UpdateJWTProvider", {"id": Id("idp"), "name": "p", **JWT, "audience": "a"}
    ),
    "another provider": Step(
        "AddJWTProvider", {"name": "other", **JWT, "audience": "a"}, names="other", writes=1
    ),
    "another provider of a taken name": Step("AddJWTProvider", {"name": "Other", **JWT}, 6),
    "removing another provider": Step("DeleteProvider", {"id": Id("other")}, writes=1),
    "removing another provider again": Step("DeleteProvider", {"id": Id("other")}, 5),
    "updating what has moved on": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT}, 9, headers=STALE
    ),
    "updating no provider": Step("UpdateOrgIDPJWTConfig", {"idpId": "404", **JWT}, 5),
    "updating a provider of others": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT}, 5, by="stranger"
    ),
    "updating a provider as a viewer": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT}, 7, by="viewer"
    ),
    "updating a provider as nobody": Step(
        "UpdateOrgIDPJWTConfig", {"idpId": Id("idp"), **JWT}, 16, by=None
    ),
    "an application": Step("AddOIDCApp", app(**URIS), names="app", writes=1),
    "an application with everything said": Step("AddOIDCApp", app("spa", **WHOLE_APP), writes=1),
    "an application with nothing said": Step("AddOIDCApp", app("bare"), writes=1),
    "an application with a note": Step(
        "AddOIDCApp",
        app("mixed", redirectUris=["http://a"], grantTypes=WHOLE_APP["grantTypes"]),
        writes=1,
    ),
    "an application of a taken name": Step("AddOIDCApp", app("WEB"), 6),
    "an application without a name": Step("AddOIDCApp", app(""), 3),
    "an application of the longest name": Step("AddOIDCApp", app(LONGEST), writes=1),
    "an application of a name too long": Step("AddOIDCApp", app(TOO_LONG), 3),
    "an application in no project": Step("AddOIDCApp", {"projectId": "404", "name": "x"}, 5),
    "an application in a project of others": Step("AddOIDCApp", app("x"), 5, by="stranger"),
    "an application by a viewer": Step("AddOIDCApp", app("x"), 7, by="viewer"),
    **{
        f"an application with an unknown {name}": Step(
            "AddOIDCApp", app("x", **{name: [UNDEFINED] if name.endswith("s") else UNDEFINED}), 3
        )
        for name in (
            "appType", "authMethodType", "version", "accessTokenType", "responseTypes",
            "grantTypes",
        )
    },
    "an application with a grant that is not offered": Step(
        "AddOIDCApp", app("x", grantTypes=["OIDC_GRANT_TYPE_TOKEN_EXCHANGE"]), 3
    ),
    "an application with a login that is not offered": Step(
        "AddOIDCApp", app("x", loginVersion={"loginV1": {}}), 3
    ),
    "an application with a logout that is not offered": Step(
        "AddOIDCApp", app("x", backChannelLogoutUri="https://a"), 3
    ),
    "an application with the largest skew": Step("AddOIDCApp", app("s", clockSkew="5s"), writes=1),
    "an application with too large a skew": Step(
        "AddOIDCApp", app("x", clockSkew="5.000000001s"), 3
    ),
    "an application with a negative skew": Step("AddOIDCApp", app("x", clockSkew="-1s"), 3),
    "an application with a wrong origin": Step(
        "AddOIDCApp", app("x", additionalOrigins=["https://a/path"]), 3
    ),
    "an application whose grants do not cover its responses": Step(
        "AddOIDCApp", app("x", responseTypes=["OIDC_RESPONSE_TYPE_ID_TOKEN"]), 3
    ),
    "an application with NUL": Step("AddOIDCApp", app("x", redirectUris=["a\0b"]), 3),
    "reading an application": Step("GetAppByID", the_app()),
    "reading no application": Step("GetAppByID", ghost(), 5),
    "reading an application of others": Step("GetAppByID", the_app(), 5, by="stranger"),
    "applications": Step("ListApps", {"projectId": Id("project")}),
    "applications by name": Step(
        "ListApps",
        {
            "projectId": Id("project"),
            "query": {"offset": 0, "limit": 2, "asc": True},
            "queries": [{"nameQuery": {"name": "e", "method": "TEXT_QUERY_METHOD_CONTAINS"}}],
        },
    ),
    "applications of no project": Step("ListApps", {"projectId": "404"}, 5),
    "renaming an application": Step("UpdateApp", the_app(name="site"), writes=1),
    "renaming an application to a taken name": Step("UpdateApp", the_app(name="Spa"), 6),
    "renaming no application": Step("UpdateApp", ghost(name="x"), 5),
    "configuring an application": Step(
        "UpdateOIDCAppConfig", the_app(**WHOLE_APP), writes=1
    ),
    "configuring it to the same": Step("UpdateOIDCAppConfig", the_app(**WHOLE_APP)),
    "configuring it to the defaults": Step("UpdateOIDCAppConfig", the_app(), writes=1),
    "configuring it with an unknown word": Step(
        "UpdateOIDCAppConfig", the_app(appType=UNDEFINED), 3
    ),
    "configuring what has moved on": Step(
        "UpdateOIDCAppConfig", the_app(**URIS), 9, headers=STALE
    ),
    "configuring at no sequence": Step(
        "UpdateOIDCAppConfig", the_app(**URIS), 3, headers=match("1")
    ),
    "configuring no application": Step("UpdateOIDCAppConfig", ghost(), 5),
    "another secret": Step("RegenerateOIDCClientSecret", the_app(), writes=1),
    "another secret of no application": Step("RegenerateOIDCClientSecret", ghost(), 5),
    "another secret of what has moved on": Step(
        "RegenerateOIDCClientSecret", the_app(), 9, headers=STALE
    ),
    "an application once": Step(
        "AddOIDCApp", app("once"), headers=[("idempotency-key", "k1")], writes=1
    ),
    "the same again": Step("AddOIDCApp", app("once"), headers=[("idempotency-key", "k1")]),
    "another under the same key": Step(
        "AddOIDCApp", app("twice"), 9, headers=[("idempotency-key", "k1")]
    ),
    "a role": Step("AddProjectRole", role(displayName="Manager", group="Shop"), writes=1),
    "a role of a taken key": Step("AddProjectRole", role(displayName="x"), 6),
    "a role of the key in upper case": Step(
        "AddProjectRole", role("A/B", displayName="x"), writes=1
    ),
    "a role of the longest key": Step("AddProjectRole", role(LONGEST, displayName="x"), writes=1),
    "a role of too long a key": Step("AddProjectRole", role(TOO_LONG, displayName="x"), 3),
    "a role without a display name": Step("AddProjectRole", role("x", displayName=""), 3),
    "a role of too long a display name": Step("AddProjectRole", role("x", displayName=TOO_LONG), 3),
    "a role of no project": Step(
        "AddProjectRole", {**role("x", displayName="x"), "projectId": "404"}, 5
    ),
    "a role once": Step(
        "AddProjectRole", role("once", displayName="x"), headers=[("idempotency-key", "r1")],
        writes=1,
    ),
    "the same role again": Step(
        "AddProjectRole", role("once", displayName="x"), headers=[("idempotency-key", "r1")]
    ),
    "roles": Step("ListProjectRoles", {"projectId": Id("project"), "query": {"limit": 2}}),
    "roles by key": Step(
        "ListProjectRoles",
        {"projectId": Id("project"),
         "queries": [{"keyQuery": {"key": "a/B", "method": IGNORING_CASE}}]},
    ),
    "roles by display name": Step(
        "ListProjectRoles",
        {"projectId": Id("project"), "queries": [{"displayNameQuery": {"displayName": "Manager"}}]},
    ),
    "updating a role": Step("UpdateProjectRole", role(displayName="Lead"), writes=1),
    "updating a role to the same": Step("UpdateProjectRole", role(displayName="Lead")),
    "updating a role of an odd key": Step(
        "UpdateProjectRole", role(LONGEST, displayName="y"), writes=1
    ),
    "updating a stale role": Step("UpdateProjectRole", role(displayName="x"), 9, headers=STALE),
    "updating no role": Step("UpdateProjectRole", role("_search", displayName="x"), 5),
    "updating a role of others": Step(
        "UpdateProjectRole", role(displayName="x"), 5, by="stranger"
    ),
    "removing a stale role": Step("RemoveProjectRole", role(), 9, headers=STALE),
    "removing a role": Step("RemoveProjectRole", role(), writes=1),
    "removing a role again": Step("RemoveProjectRole", role(), 5),
    "the role again": Step("AddProjectRole", role(displayName="Manager"), writes=1),
    "an action": Step("CreateAction", script(), names="action", writes=1),
    "an action with everything said": Step(
        "CreateAction", script("all", timeout="1.5s", allowedToFail=True), writes=1
    ),
    "an action of no time": Step("CreateAction", script("none", timeout="0s"), writes=1),
    "an action of the longest time": Step("CreateAction", script("max", timeout="20s"), writes=1),
    "an action of too long a time": Step("CreateAction", script("x", timeout="20.000000001s"), 3),
    "an action of a negative time": Step("CreateAction", script("x", timeout="-0.5s"), 3),
    "an action of the longest script": Step(
        "CreateAction", script("long", script="\U0001f511" * 2000), writes=1
    ),
    "an action of too long a script": Step(
        "CreateAction", script("x", script="\U0001f511" * 2001), 3
    ),
    "an action without a script": Step("CreateAction", script("x", script=""), 3),
    "an action without a name": Step("CreateAction", script(""), 3),
    "an action of a taken name": Step("CreateAction", script("GREET"), 6),
    "an action by a viewer": Step("CreateAction", script("x"), 7, by="viewer"),
    "an action by nobody": Step("CreateAction", script("x"), 16, by=None),
    "an action by a stranger's word": Step("CreateAction", script("x"), 16, by="rct_nonsense"),
    "an action for others": Step("CreateAction", script("x"), 5, headers=OTHER),
    "an action for two organizations": Step(
        "CreateAction", script("x"), 3,
        headers=[("x-service-orgid", "1"), ("x-service-orgid", "2")],
    ),
    "an action for two names of one header": Step(
        "CreateAction", script("x"), 3,
        headers=[("x-service-orgid", "1"), ("x-zitadel-orgid", "2")],
    ),
    "an action for no organization in particular": Step(
        "CreateAction", script("mine"), headers=[("x-zitadel-orgid", "")], writes=1
    ),
    "an action with a context": Step(
        "CreateAction", script("told"),
        headers=[("x-reconciler-context", '{"tree":"default","revision":"r"}')], writes=1,
    ),
    "an action with a context that is none": Step(
        "CreateAction", script("x"), 3, headers=[("x-reconciler-context", "{")]
    ),
    "an action under no lease": Step(
        "CreateAction", script("x"), 10, headers=[("x-reconciler-lease", "1.x")]
    ),
    "reading an action": Step("GetAction", {"id": Id("action")}),
    "reading no action": Step("GetAction", {"id": "404"}, 5),
    "actions": Step(
        "ListActions",
        {
            "query": {"asc": True},
            "sortingColumn": "ACTION_FIELD_NAME_NAME",
            "queries": [{"actionStateQuery": {"state": "ACTION_STATE_ACTIVE"}}],
        },
    ),
    "actions by id": Step("ListActions", {"queries": [{"actionIdQuery": {"id": Id("action")}}]}),
    "actions of an unknown state": Step(
        "ListActions", {"queries": [{"actionStateQuery": {"state": UNDEFINED}}]}, 3
    ),
    "actions by an unknown column": Step("ListActions", {"sortingColumn": UNDEFINED}, 3),
    "updating an action": Step(
        "UpdateAction", {"id": Id("action"), **script("hello", timeout="2s")}, writes=2
    ),
    "updating an action to the same": Step(
        "UpdateAction", {"id": Id("action"), **script("hello", timeout="2s")}
    ),
    "updating an action that has moved on": Step(
        "UpdateAction", {"id": Id("action"), **script("x")}, 9, headers=STALE
    ),
    "updating no action": Step("UpdateAction", {"id": "404", **script("x")}, 5),
    "a flow that nothing was set in": Step("GetFlow", {"type": "3"}),
    "emptying a trigger that is empty": Step("SetTriggerActions", at("1")),
    "setting a trigger": Step("SetTriggerActions", at("1", Id("action")), writes=1),
    "setting it to the same": Step("SetTriggerActions", at("1", Id("action"))),
    "setting another trigger": Step("SetTriggerActions", at("3", Id("action")), writes=1),
    "setting a trigger of another flow": Step("SetTriggerActions", at("4", Id("action")), 3),
    "setting a trigger of no flow": Step("SetTriggerActions", {**at("1"), "flowType": "5"}, 3),
    "setting an action twice": Step("SetTriggerActions", at("1", Id("action"), Id("action")), 9),
    "setting no action": Step("SetTriggerActions", at("1", "404"), 9),
    "setting too many actions": Step("SetTriggerActions", at("1", *["404"] * 101), 3),
    "setting what has moved on": Step("SetTriggerActions", at("1"), 9, headers=STALE),
    "setting a trigger of others": Step("SetTriggerActions", at("1"), 5, headers=OTHER),
    "reading a flow": Step("GetFlow", {"type": "3"}),
    "reading no flow": Step("GetFlow", {"type": "5"}, 3),
    "reading a flow of others": Step("GetFlow", {"type": "3"}, 5, headers=OTHER),
    "emptying a trigger": Step("SetTriggerActions", at("1"), writes=1),
    "clearing a flow that has moved on": Step("ClearFlow", {"type": "3"}, 9, headers=STALE),
    "clearing a flow": Step("ClearFlow", {"type": "3"}, writes=1),
    "clearing it again": Step("ClearFlow", {"type": "3"}),
    "clearing no flow": Step("ClearFlow", {"type": "5"}, 3),
    "reading a cleared flow": Step("GetFlow", {"type": "3"}),
    "setting it once more": Step("SetTriggerActions", at("2", Id("action")), writes=1),
    "deactivating an action that has moved on": Step(
        "DeactivateAction", {"id": Id("action")}, 9, headers=STALE
    ),
    "deactivating no action": Step("DeactivateAction", {"id": "404"}, 5),
    **{
        f"{verb.lower()[:-1]}ing {what}{again}": Step(f"{verb}{noun}", fields, code, writes=writes)
        for verb in ("Deactivate", "Reactivate")
        for noun, what, fields in (
            ("Action", "an action", {"id": Id("action")}),
            ("App", "an application", the_app()),
            ("OrgIDP", "a provider", {"idpId": Id("idp")}),
            ("Project", "a project", {"id": Id("project")}),
        )
        for again, code, writes in (("", 0, 1), (" again", 9, 0))
    },
    "reading an action that was reactivated": Step("GetAction", {"id": Id("action")}),
    "deleting an action that has moved on": Step(
        "DeleteAction", {"id": Id("action")}, 9, headers=STALE
    ),
    "deleting an action": Step("DeleteAction", {"id": Id("action")}, writes=2),
    "reading the flow that it was part of": Step("GetFlow", {"type": "3"}),
    "deleting it again": Step("DeleteAction", {"id": Id("action")}, 5),
    "removing an application that has moved on": Step("RemoveApp", the_app(), 9, headers=STALE),
    "removing an application": Step("RemoveApp", the_app(), writes=1),
    "removing it again": Step("RemoveApp", the_app(), 5),
    "removing a provider that has moved on": Step(
        "RemoveOrgIDP", {"idpId": Id("idp")}, 9, headers=STALE
    ),
    "removing a provider": Step("RemoveOrgIDP", {"idpId": Id("idp")}, writes=1),
    "removing it once more": Step("RemoveOrgIDP", {"idpId": Id("idp")}, 5),
    **{
        f"{row.name} by {who}": Step(row.name, _nowhere(row), 16, by=by)
        for row in SHARED
        if row.needs_token
        for who, by in (("nobody", None), ("who has another's idea of a token", "Bearer x"))
    },
    **{
        f"{row.name} by a viewer": Step(row.name, _nowhere(row), 7, by="viewer")
        for row in SHARED
        if row.writes
    },
}  # fmt: skip
