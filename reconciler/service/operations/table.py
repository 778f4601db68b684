"""Every operation of the service, once: permission, effect, handler and request.

Transports decode, look up here, call, encode; they decide nothing. The rows of a kind stand in its
room, the others beside their handlers. An unchanged plan needs none with a form, whose models take
long to load: each is made when it is first checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.addresses import ADDRESSES
from reconciler.kinds.operations import OPERATIONS
from reconciler.resources.call import WRITE_BATCH
from reconciler.service.operations import custody, history, inventory, leases, trees, trust
from reconciler.service.operations.batch import write_batch
from reconciler.service.operations.form import Form
from reconciler.service.operations.operation import Effect, Operation

_ROWS = (
    *(row for rows in OPERATIONS.values() for row in rows),
    *inventory.ROWS,
    *history.ROWS,
    *custody.ROWS,
    *leases.ROWS,
    *trees.ROWS,
    *trust.ROWS,
    # The engine carries out its orders, in as many commits as they take.
    Operation(WRITE_BATCH, "org.batch.write", Effect.COORDINATES, write_batch),
)
_KNOWN = {row.name: row for row in _ROWS}
_OPERATIONS: Mapping[str, Operation] = {name: _KNOWN[name] for name in ADDRESSES if name in _KNOWN}


def operations() -> Mapping[str, Operation]:
    """Return every operation by name, in the order of their addresses."""
    return _OPERATIONS


def load_models() -> None:
    """Make the model of every request."""
    from reconciler.service.operations.models import model_of

    for row in _ROWS:
        if isinstance(row.request, Form):
            model_of(row.request)


def operation_of(name: str) -> Operation | None:
    """Return the operation of a name; None for an unknown name."""
    return _OPERATIONS.get(name)


def writes(name: str) -> bool:
    """Return whether an operation may write; one that does not exist does not."""
    operation = operation_of(name)
    return operation is not None and operation.writes


def needs_token(name: str) -> bool:
    """Return whether an operation needs a valid token; one that does not exist does."""
    operation = operation_of(name)
    return operation is None or operation.needs_token
