"""Every operation of the service, once: methods, permission, request, handler.

Transports decode, look up here, call, encode; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.resources.call import WRITE_BATCH
from reconciler.service.operations.operation import Operation

ADMIN = "zitadel.admin.v1.AdminService"
MANAGEMENT = "zitadel.management.v1.ManagementService"


def _managed(
    name: str, permission: str, *runs: str, writes: bool, source: bool = False
) -> Operation:
    """Return a row of the management service, which most are."""
    module, handler, *request = runs
    grpc = (f"{MANAGEMENT}/{name}",)
    return Operation(name, grpc, permission, writes, module, handler, "".join(request), source)


def _own(name: str, permission: str, *runs: str, writes: bool) -> Operation:
    """Return a row of ours, which only JSON has."""
    module, handler = runs
    return Operation(name, (), permission, writes, module, handler)


_ROWS = (
    Operation(
        "Healthz",
        (f"{MANAGEMENT}/Healthz", f"{ADMIN}/Healthz"),
        permission="",
        writes=False,
        module="service_info",
        handler="healthz",
    ),
    # Organizations and projects.
    _managed(
        "AddOrg", "org.create",
        "organizations", "add_org", "AddOrgRequest", writes=True,
    ),
    Operation(
        "ListOrgs",
        (f"{ADMIN}/ListOrgs",),
        permission="org.read",
        writes=False,
        module="lists",
        handler="list_orgs",
    ),
    _managed(
        "GetMyOrg", "org.read",
        "service_info", "get_my_org", writes=False,
    ),
    _managed(
        "AddProject", "project.create",
        "organizations", "add_project", "AddProjectRequest", writes=True,
    ),
    _managed(
        "ListProjects", "project.read",
        "lists", "list_projects", writes=False,
    ),
    _managed(
        "GetProjectByID", "project.read",
        "organizations", "get_project", "GetProjectByIDRequest", writes=False,
    ),
    # Identity providers.
    _managed(
        "AddOrgJWTIDP", "org.idp.write",
        "identity_providers", "add_idp", "AddOrgJWTIDPRequest", writes=True,
    ),
    _managed(
        "ListOrgIDPs", "org.idp.read",
        "lists", "list_idps", writes=False,
    ),
    _managed(
        "GetOrgIDPByID", "org.idp.read",
        "identity_providers", "get_idp", "GetOrgIDPByIDRequest", writes=False,
    ),
    _managed(
        "UpdateOrgIDP", "org.idp.write",
        "identity_providers", "rename_idp", "UpdateOrgIDPRequest", writes=True,
    ),
    Operation(
        "UpdateOrgIDPJWTConfig",
        (f"{MANAGEMENT}/UpdateOrgIDPJWTConfig", f"{ADMIN}/UpdateIDPJWTConfig"),
        permission="org.idp.write",
        writes=True,
        module="identity_providers",
        handler="update_jwt_config",
        request="UpdateOrgIDPJWTConfigRequest",
        source=True,
    ),
    _managed(
        "RemoveOrgIDP", "org.idp.write",
        "identity_providers", "remove_idp", "RemoveOrgIDPRequest", writes=True,
    ),
    # Applications.
    _managed(
        "AddOIDCApp", "project.app.write",
        "applications", "add_oidc_app", "AddOIDCAppRequest", writes=True, source=True,
    ),
    _managed(
        "ListApps", "project.app.read",
        "lists", "list_apps", writes=False,
    ),
    _managed(
        "GetAppByID", "project.app.read",
        "applications", "get_app", "AppRequest", writes=False,
    ),
    _managed(
        "UpdateApp", "project.app.write",
        "applications", "rename_app", "UpdateAppRequest", writes=True,
    ),
    _managed(
        "UpdateOIDCAppConfig", "project.app.write",
        "applications", "update_config", "UpdateOIDCAppConfigRequest", writes=True,
    ),
    _managed(
        "RemoveApp", "project.app.delete",
        "applications", "remove_app", "AppRequest", writes=True,
    ),
    _managed(
        "RegenerateOIDCClientSecret",
        "project.app.write", "applications", "regenerate_secret", "AppRequest", writes=True,
    ),
    # Actions.
    _managed(
        "CreateAction", "org.action.write",
        "actions", "create_action", "CreateActionRequest", writes=True, source=True,
    ),
    _managed(
        "ListActions", "org.action.read",
        "lists", "list_actions", writes=False,
    ),
    _managed(
        "GetAction", "org.action.read",
        "actions", "get_action", "ActionRequest", writes=False,
    ),
    _managed(
        "UpdateAction", "org.action.write",
        "actions", "update_action", "UpdateActionRequest", writes=True,
    ),
    _managed(
        "DeleteAction", "org.action.delete",
        "actions", "delete_action", "ActionRequest", writes=True,
    ),
    # Our own, which only JSON has.
    _own("GetServiceInfo", "", "service_info", "get_service_info",
         writes=False),
    _own("ListObjects", "org.read",
         "inventory", "list_objects", writes=False),
    _own("GetObjectHistory", "org.read",
         "history", "get_object_history", writes=False),
    _own("ListRemovals", "org.read",
         "history", "list_removals", writes=False),
    _own("ListTrees", "org.read", "inventory", "list_trees", writes=False),
    _own("RecordContext", "org.context.write",
         "service_info", "record_context", writes=True),
    _own(WRITE_BATCH, "org.batch.write", "batch", "write_batch",
         writes=True),
    _own("ListOwedSecrets", "project.app.read",
         "owed_secrets", "list_owed_secrets", writes=False),
    _own("ClaimSecrets", "project.app.write",
         "owed_secrets", "claim_secrets", writes=True),
    _own("AcknowledgeSecrets", "project.app.write",
         "owed_secrets", "acknowledge_secrets", writes=True),
    _own("AcquireLease", "org.lease", "leases", "acquire_lease",
         writes=True),
    _own("RenewLease", "org.lease", "leases", "renew_lease", writes=True),
    _own("ReleaseLease", "org.lease", "leases", "release_lease",
         writes=True),
)  # fmt: skip

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}


def writes(operation: str) -> bool:
    """Return whether an operation may write; one that does not exist does not."""
    known = OPERATIONS.get(operation)
    return known is not None and known.writes
