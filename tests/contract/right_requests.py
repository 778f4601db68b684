"""A right request of every operation, about what an organization holds.

A new operation gets its row here, and with it the tests of tenancy, permissions and stores' limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.examples import JWT

CONFIG = {
    "redirectUris": ["https://a.example/cb"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
    "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
    "appType": "OIDC_APP_TYPE_WEB",
    "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
    "postLogoutRedirectUris": ["https://a.example/out"],
    "additionalOrigins": ["https://a.example"],
    "clockSkew": "1s",
    "devMode": True,
}
SCRIPT = {"script": "function f() {}", "timeout": "1s", "allowedToFail": True}
ROLE = "a/b"
CUT = {"query": {"offset": 0, "limit": 10}, "queries": []}


@dataclass(frozen=True)
class Tenant:
    """Ids of what an organization holds; its project has a role of the key ``ROLE``."""

    organization: str
    project: str
    application: str
    provider: str
    action: str


NOTHING = Tenant("404", "404", "404", "404", "404")


def tenant_of(
    organization: str, make: Callable[[str, dict[str, Any]], Mapping[str, Any]]
) -> Tenant:
    """Make what an organization is to hold; ``make`` calls an operation, and returns its answer."""
    named = {"name": "held"}
    project = make("AddProject", named)["id"]
    make("AddProjectRole", {"projectId": project, "roleKey": ROLE, "displayName": "Manager"})
    return Tenant(
        organization,
        project,
        application=make("AddOIDCApp", {"projectId": project, **named})["appId"],
        provider=make("AddOrgJWTIDP", {**named, **JWT})["idpId"],
        action=make("CreateAction", {**named, **SCRIPT})["id"],
    )


def right_requests(tenant: Tenant, name: str) -> Mapping[str, dict[str, Any]]:
    """Return the fields of a call of each operation that has some; ``name`` is for new objects.

    Those of leases, batches and trees are in no organization.
    """
    app = {"projectId": tenant.project, "appId": tenant.application}
    role = {"projectId": tenant.project, "roleKey": ROLE}
    shown = {"displayName": "Manager", "group": "Shop"}
    named = {"name": name}
    provider = {**JWT, "audience": "https://a.example"}
    page = {"organizationId": tenant.organization}
    owed = {
        "organizationId": tenant.organization,
        "secrets": [{"id": tenant.application, "madeAt": "1"}],
    }
    return {
        "AddOrg": named,
        "ListOrgs": {**CUT, "sortingColumn": "ORG_FIELD_NAME_NAME"},
        "AddProject": named,
        "ListProjects": CUT,
        "GetProjectByID": {"id": tenant.project},
        "UpdateProject": {"id": tenant.project, **named, "projectRoleCheck": True},
        "AddProjectRole": {**role, "roleKey": name, **shown},
        "ListProjectRoles": {"projectId": tenant.project, **CUT},
        "UpdateProjectRole": {**role, **shown},
        "RemoveProjectRole": role,
        "AddOrgJWTIDP": {**named, **JWT},
        "ListOrgIDPs": {**CUT, "sortingColumn": "IDP_FIELD_NAME_NAME"},
        "GetOrgIDPByID": {"id": tenant.provider},
        "UpdateOrgIDP": {"idpId": tenant.provider, **named},
        "UpdateOrgIDPJWTConfig": {"idpId": tenant.provider, **JWT, "headerName": "x-new"},
        "RemoveOrgIDP": {"idpId": tenant.provider},
        "AddJWTProvider": {**named, **provider},
        "ListProviders": CUT,
        "GetProviderByID": {"id": tenant.provider},
        "UpdateJWTProvider": {"id": tenant.provider, **named, **provider},
        "DeleteProvider": {"id": tenant.provider},
        "AddOIDCApp": {"projectId": tenant.project, **named, **CONFIG},
        "ListApps": {"projectId": tenant.project, **CUT},
        "GetAppByID": app,
        "UpdateApp": {**app, **named},
        "UpdateOIDCAppConfig": {**app, **CONFIG},
        "RemoveApp": app,
        "RegenerateOIDCClientSecret": app,
        "CreateAction": {**named, **SCRIPT},
        "ListActions": {**CUT, "sortingColumn": "ACTION_FIELD_NAME_ID"},
        "GetAction": {"id": tenant.action},
        "UpdateAction": {"id": tenant.action, **named, **SCRIPT},
        "DeleteAction": {"id": tenant.action},
        "GetFlow": {"type": "1"},
        "SetTriggerActions": {"flowType": "1", "triggerType": "1", "actionIds": [tenant.action]},
        "ClearFlow": {"type": "1"},
        **{
            f"{verb}{noun}": target
            for verb in ("Deactivate", "Reactivate")
            for noun, target in (
                ("Project", {"id": tenant.project}),
                ("OrgIDP", {"idpId": tenant.provider}),
                ("App", app),
                ("Action", {"id": tenant.action}),
            )
        },
        "ListObjects": page,
        "ListObjectsAt": {**page, "ids": [tenant.action]},
        "ListRemovals": page,
        "ListChanges": page,
        "ListTokens": {},
        "GetObjectHistory": {"id": tenant.action},
        "RecordContext": {"id": tenant.action},
        "ListOwedSecrets": page,
        "ClaimSecrets": owed,
        "AcknowledgeSecrets": owed,
    }
