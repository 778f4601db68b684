"""Every operation of the service, once: permission, effect, handler and request.

Transports decode, look up here, call, encode; they decide nothing. Each row stands beside its
handler. The light operations read their fields themselves, and an unchanged plan needs no others.
The modules of the others have models, which take long to load: when one is first called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from reconciler.kinds.addresses import ADDRESSES
from reconciler.resources.call import WRITE_BATCH
from reconciler.service.operations import custody, history, inventory, leases, lists
from reconciler.service.operations.batch import write_batch
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields

_LIGHT: Mapping[str, Operation] = {
    row.name: row
    for row in (
        *inventory.ROWS,
        *history.ROWS,
        *lists.ROWS,
        *custody.ROWS,
        *leases.ROWS,
        # The engine carries out its orders, in as many commits as they take.
        Operation(WRITE_BATCH, "org.batch.write", Effect.COORDINATES, write_batch, Fields),
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
