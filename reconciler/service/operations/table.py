"""Every operation of the service, once: permission, effect, handler and request.

Transports decode, look up here, call, encode; they decide nothing. The operations in this module
read their fields themselves, and an unchanged plan needs no others. The rows of the others stand
beside their models, which take long to load: that happens when one of them is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from reconciler.resources.call import ADDRESSES, WRITE_BATCH
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.batch import write_batch
from reconciler.service.operations.custody import (
    acknowledge_secrets,
    claim_secrets,
    list_owed_secrets,
)
from reconciler.service.operations.inventory import (
    get_my_org,
    get_object_history,
    get_service_info,
    healthz,
    list_objects,
    list_removals,
    list_trees,
    record_context,
)
from reconciler.service.operations.leases import acquire_lease, release_lease, renew_lease
from reconciler.service.operations.lists import (
    list_actions,
    list_apps,
    list_idps,
    list_orgs,
    list_projects,
    list_providers,
)
from reconciler.service.operations.operation import ADMIN, MANAGEMENT, Effect, Operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading, Writing


def _read(
    name: str,
    permission: str,
    handler: Callable[[Reading, Fields], Answer],
    *grpc: str,
    needs_token: bool = True,
) -> Operation:
    methods = tuple(f"{service}/{name}" for service in grpc)
    return Operation(name, permission, Effect.READS, handler, grpc=methods, needs_token=needs_token)


def _write(
    name: str,
    permission: str,
    handler: Callable[[Writing, Fields], Answer],
    effect: Effect = Effect.COORDINATES,
) -> Operation:
    return Operation(name, permission, effect, handler)


_LIGHT: Mapping[str, Operation] = {
    row.name: row
    for row in (
        _read("Healthz", "", healthz, MANAGEMENT, ADMIN, needs_token=False),
        _read("ListOrgs", "org.read", list_orgs, ADMIN),
        _read("GetMyOrg", "org.read", get_my_org, MANAGEMENT),
        _read("ListProjects", "project.read", list_projects, MANAGEMENT),
        _read("ListOrgIDPs", "org.idp.read", list_idps, MANAGEMENT),
        _read("ListProviders", "org.idp.read", list_providers, MANAGEMENT),
        _read("ListApps", "project.app.read", list_apps, MANAGEMENT),
        _read("ListActions", "org.action.read", list_actions, MANAGEMENT),
        # Our own, which only JSON has.
        _read("GetServiceInfo", "", get_service_info),
        _read("ListObjects", "org.read", list_objects),
        _read("GetObjectHistory", "org.read", get_object_history),
        _read("ListRemovals", "org.read", list_removals),
        _read("ListTrees", "org.read", list_trees),
        _read("ListOwedSecrets", "project.app.read", list_owed_secrets),
        _write("RecordContext", "org.context.write", record_context, Effect.CHANGES),
        _write("ClaimSecrets", "project.app.write", claim_secrets),
        _write("AcknowledgeSecrets", "project.app.write", acknowledge_secrets),
        _write("AcquireLease", "org.lease", acquire_lease),
        _write("RenewLease", "org.lease", renew_lease),
        _write("ReleaseLease", "org.lease", release_lease),
        # The engine carries out its orders, in as many commits as they take.
        Operation(WRITE_BATCH, "org.batch.write", Effect.COORDINATES, write_batch),
    )
}


@cache
def operations() -> Mapping[str, Operation]:
    """Return every operation by name, in the order of their addresses. This loads the models."""
    from reconciler.service.operations import actions, applications, identity_providers

    rows = (*applications.ROWS, *identity_providers.ROWS, *actions.ROWS)
    known = {**_LIGHT, **{row.name: row for row in rows}}
    return {name: known[name] for name in ADDRESSES if name in known}


def operation_of(name: str) -> Operation | None:
    """Return the operation of a name; None for an unknown name."""
    return _LIGHT.get(name) or operations().get(name)


def writes(name: str) -> bool:
    """Return whether an operation may write; one that does not exist does not."""
    operation = operation_of(name)
    return operation is not None and operation.writes


def needs_token(name: str) -> bool:
    """Return whether an operation needs a valid token; one that does not exist does."""
    operation = operation_of(name)
    return operation is None or operation.needs_token
