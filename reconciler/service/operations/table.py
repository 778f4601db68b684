"""Every operation of the service, once: addresses, permission, request, handler.

Transports decode, look up here, call, encode; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.service.operations.operation import Operation

ADMIN = "zitadel.admin.v1.AdminService"
MANAGEMENT = "zitadel.management.v1.ManagementService"
_PROJECTS = "/management/v1/projects"
_APP = f"{_PROJECTS}/{{projectId}}/apps/{{appId}}"
_IDPS = "/management/v1/idps"
_ACTIONS = "/management/v1/actions"
_OWN = "/reconciler/v1"
_OWED = f"{_OWN}/organizations/{{organizationId}}/owed-secrets"


def _managed(
    name: str, http: str, permission: str, *runs: str, writes: bool, source: bool = False
) -> Operation:
    """Return a row of the management service, which most are."""
    module, handler, *request = runs
    grpc = (f"{MANAGEMENT}/{name}",)
    return Operation(
        name, grpc, (http,), permission, writes, module, handler, "".join(request), source
    )


def _own(name: str, http: str, permission: str, *runs: str, writes: bool) -> Operation:
    """Return a row of ours, which only JSON has."""
    module, handler = runs
    return Operation(name, (), (http,), permission, writes, module, handler)


_ROWS = (
    Operation(
        "Healthz",
        (f"{MANAGEMENT}/Healthz", f"{ADMIN}/Healthz"),
        ("GET /management/v1/healthz", "GET /admin/v1/healthz"),
        permission="",
        writes=False,
        module="service_info",
        handler="healthz",
    ),
    # Organizations and projects.
    _managed(
        "AddOrg", "POST /management/v1/orgs", "org.create",
        "organizations", "add_org", "AddOrgRequest", writes=True,
    ),
    Operation(
        "ListOrgs",
        (f"{ADMIN}/ListOrgs",),
        ("POST /admin/v1/orgs/_search",),
        permission="org.read",
        writes=False,
        module="lists",
        handler="list_orgs",
    ),
    _managed(
        "GetMyOrg", "GET /management/v1/orgs/me", "org.read",
        "service_info", "get_my_org", writes=False,
    ),
    _managed(
        "AddProject", f"POST {_PROJECTS}", "project.create",
        "organizations", "add_project", "AddProjectRequest", writes=True,
    ),
    _managed(
        "ListProjects", f"POST {_PROJECTS}/_search", "project.read",
        "lists", "list_projects", writes=False,
    ),
    _managed(
        "GetProjectByID", f"GET {_PROJECTS}/{{id}}", "project.read",
        "organizations", "get_project", "GetProjectByIDRequest", writes=False,
    ),
    # Identity providers.
    _managed(
        "AddOrgJWTIDP", f"POST {_IDPS}/jwt", "org.idp.write",
        "identity_providers", "add_idp", "AddOrgJWTIDPRequest", writes=True,
    ),
    _managed(
        "ListOrgIDPs", f"POST {_IDPS}/_search", "org.idp.read",
        "lists", "list_idps", writes=False,
    ),
    _managed(
        "GetOrgIDPByID", f"GET {_IDPS}/{{id}}", "org.idp.read",
        "identity_providers", "get_idp", "GetOrgIDPByIDRequest", writes=False,
    ),
    _managed(
        "UpdateOrgIDP", f"PUT {_IDPS}/{{idpId}}", "org.idp.write",
        "identity_providers", "rename_idp", "UpdateOrgIDPRequest", writes=True,
    ),
    Operation(
        "UpdateOrgIDPJWTConfig",
        (f"{MANAGEMENT}/UpdateOrgIDPJWTConfig", f"{ADMIN}/UpdateIDPJWTConfig"),
        (f"PUT {_IDPS}/{{idpId}}/jwt_config", "PUT /admin/v1/idps/{idpId}/jwt_config"),
        permission="org.idp.write",
        writes=True,
        module="identity_providers",
        handler="update_jwt_config",
        request="UpdateOrgIDPJWTConfigRequest",
        source=True,
    ),
    _managed(
        "RemoveOrgIDP", f"DELETE {_IDPS}/{{idpId}}", "org.idp.write",
        "identity_providers", "remove_idp", "RemoveOrgIDPRequest", writes=True,
    ),
    # Applications.
    _managed(
        "AddOIDCApp", f"POST {_PROJECTS}/{{projectId}}/apps/oidc", "project.app.write",
        "applications", "add_oidc_app", "AddOIDCAppRequest", writes=True, source=True,
    ),
    _managed(
        "ListApps", f"POST {_PROJECTS}/{{projectId}}/apps/_search", "project.app.read",
        "lists", "list_apps", writes=False,
    ),
    _managed(
        "GetAppByID", f"GET {_APP}", "project.app.read",
        "applications", "get_app", "AppRequest", writes=False,
    ),
    _managed(
        "UpdateApp", f"PUT {_APP}", "project.app.write",
        "applications", "rename_app", "UpdateAppRequest", writes=True,
    ),
    _managed(
        "UpdateOIDCAppConfig", f"PUT {_APP}/oidc_config", "project.app.write",
        "applications", "update_config", "UpdateOIDCAppConfigRequest", writes=True,
    ),
    _managed(
        "RemoveApp", f"DELETE {_APP}", "project.app.delete",
        "applications", "remove_app", "AppRequest", writes=True,
    ),
    _managed(
        "RegenerateOIDCClientSecret", f"POST {_APP}/oidc_config/_generate_client_secret",
        "project.app.write", "applications", "regenerate_secret", "AppRequest", writes=True,
    ),
    # Actions.
    _managed(
        "CreateAction", f"POST {_ACTIONS}", "org.action.write",
        "actions", "create_action", "CreateActionRequest", writes=True, source=True,
    ),
    _managed(
        "ListActions", f"POST {_ACTIONS}/_search", "org.action.read",
        "lists", "list_actions", writes=False,
    ),
    _managed(
        "GetAction", f"GET {_ACTIONS}/{{id}}", "org.action.read",
        "actions", "get_action", "ActionRequest", writes=False,
    ),
    _managed(
        "UpdateAction", f"PUT {_ACTIONS}/{{id}}", "org.action.write",
        "actions", "update_action", "UpdateActionRequest", writes=True,
    ),
    _managed(
        "DeleteAction", f"DELETE {_ACTIONS}/{{id}}", "org.action.delete",
        "actions", "delete_action", "ActionRequest", writes=True,
    ),
    # Our own, which only JSON has.
    _own("GetServiceInfo", f"GET {_OWN}/service", "", "service_info", "get_service_info",
         writes=False),
    _own("ListObjects", f"GET {_OWN}/organizations/{{organizationId}}/objects", "org.read",
         "everything", "list_objects", writes=False),
    _own("GetObjectHistory", f"GET {_OWN}/objects/{{id}}/history", "org.read",
         "everything", "get_object_history", writes=False),
    _own("ListRemovals", f"GET {_OWN}/organizations/{{organizationId}}/removals", "org.read",
         "removals", "list_removals", writes=False),
    _own("ListTrees", f"GET {_OWN}/trees", "org.read", "trees", "list_trees", writes=False),
    _own("RecordContext", f"POST {_OWN}/objects/{{id}}/context", "org.context.write",
         "service_info", "record_context", writes=True),
    _own("WriteBatch", f"POST {_OWN}/batch", "org.batch.write", "batch", "write_batch",
         writes=True),
    _own("ListOwedSecrets", f"GET {_OWED}", "project.app.read",
         "owed_secrets", "list_owed_secrets", writes=False),
    _own("ClaimSecrets", f"POST {_OWED}/_claim", "project.app.write",
         "owed_secrets", "claim_secrets", writes=True),
    _own("AcknowledgeSecrets", f"POST {_OWED}/_acknowledge", "project.app.write",
         "owed_secrets", "acknowledge_secrets", writes=True),
    _own("AcquireLease", f"POST {_OWN}/leases", "org.lease", "leases", "acquire_lease",
         writes=True),
    _own("RenewLease", f"PUT {_OWN}/leases", "org.lease", "leases", "renew_lease", writes=True),
    _own("ReleaseLease", f"DELETE {_OWN}/leases", "org.lease", "leases", "release_lease",
         writes=True),
)  # fmt: skip

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}


WRITE_BATCH = "WriteBatch"


def writes(operation: str) -> bool:
    """Return whether an operation may write; one that does not exist does not."""
    known = OPERATIONS.get(operation)
    return known is not None and known.writes
