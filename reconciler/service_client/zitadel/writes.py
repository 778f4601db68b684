"""Writing to a ZITADEL, step by step, each order for itself.

It knows no expected sequences. So an object is read just before it is written to, which narrows
the gap in which somebody else can write and does not close it.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from reconciler.errors import ServiceError
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import Call, Code
from reconciler.service_client.orders import TRIES, is_shared, rebased, unchanged, written
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import Answer, Reply, WireRefusal, error_id, service_error
from reconciler.service_client.zitadel.creates import create
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.steps import (
    Look,
    Step,
    Steps,
    despite_conflicts,
    unknown_result,
)
from reconciler.state import ObservedObject, is_in_step


def steps_of(order: Order, kind: ZitadelKind) -> Steps:
    """Return the steps that carry out an order, and give what came of it."""
    match order:
        case SecretOrder():
            return _new_secret(order, kind)
        case CreateOrder() if kind.lists:
            return create(order, kind)
        case _:
            return _write(order, kind)


def serial_key_of(order: Order, number: int) -> str:
    """Return what an order shares with those it must not be under way with.

    ZITADEL counts the events of a project and of an organization; two writers of one conflict.
    """
    at = order if isinstance(order, CreateOrder) else order.held
    if ZITADEL[order.ref.kind].has_own_sequence:
        return at.id if isinstance(at, ObservedObject) else f"new {number}"
    return at.project_id if at.ref.project else at.organization_id


def _new_secret(order: SecretOrder, kind: ZitadelKind) -> Steps:
    """Make a secret; where its answer is lost, make another, which ends the lost one."""
    (call,) = kind.writes(order)
    reply = yield from despite_conflicts(call)
    if isinstance(reply, ServiceError):
        return reply
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    result = written(order, reply)
    if isinstance(result, Written) and result.client_secret is None:
        return unknown_result("the service answered without the secret")
    return result


def _write(order: CreateOrder | UpdateOrder | DeleteOrder, kind: ZitadelKind) -> Steps:
    """Write an object; again where others meanwhile wrote only fields that are left as held."""
    result = yield from _write_once(order, kind)
    for _ in range(TRIES - 1):
        if not is_shared(order, result):
            break
        reply = yield kind.get(order.held, order.held.id)
        now = kind.as_read(order.held, reply.fields) if isinstance(reply, Answer) else None
        again = rebased(order, now, tree=None)
        if again is None:
            break
        order = again
        result = yield from _write_once(order, kind)
    return result


def _write_once(order: CreateOrder | UpdateOrder | DeleteOrder, kind: ZitadelKind) -> Steps:
    """Make the calls of an order in turn, if the object has not changed meanwhile."""
    at = order if isinstance(order, CreateOrder) else order.held
    calls, before = kind.writes(order), unchanged(order)
    look = None if _is_ours(order) else partial(_moved_on, at, before, kind)
    if calls and look is not None:
        moved = yield from look()
        if moved is not None:
            return moved
    result: Written | ServiceError = before
    for call in calls:
        reply = yield from _sent(call, order, look, kind)
        if isinstance(reply, ServiceError):
            return reply
        if reply is None or isinstance(order, DeleteOrder) or kind.is_unseen(call):
            continue
        result = written(order, reply)
        if isinstance(result, Written) and look is not None:
            # Each call moves the sequence on; the next one is checked against the new one. What
            # has no sequence of its own differs by what was just written, and is not checked.
            look = partial(_moved_on, at, result, kind) if kind.lists else None
    return result


def _is_ours(order: CreateOrder | UpdateOrder | DeleteOrder) -> bool:
    """Return whether an earlier write of the same run changed the object.

    Reads of what was made a moment ago lag, so that it would look as if it were missing.
    """
    if isinstance(order, CreateOrder):
        return False
    return order.is_moved or (isinstance(order, UpdateOrder) and order.is_new)


def _sent(
    call: Call,
    order: CreateOrder | UpdateOrder | DeleteOrder,
    look: Look | None,
    kind: ZitadelKind,
) -> Generator[Step, Reply, Answer | ServiceError | None]:
    """Make one call; None where it changes nothing: an error there, none here."""
    reply = yield from despite_conflicts(call, look)
    if not isinstance(reply, WireRefusal):
        return reply
    is_done = yield from _changes_nothing(reply, order, kind)
    return None if is_done else service_error(reply)


def _changes_nothing(
    refusal: WireRefusal, order: CreateOrder | UpdateOrder | DeleteOrder, kind: ZitadelKind
) -> Generator[Step, Reply, bool]:
    """Return whether a refusal says that the object is as asked already.

    Ids tell. Newer servers may have a slug instead, which tells nothing that is known here: then
    the object itself is read.
    """
    if error_id(refusal) in kind.not_changed:
        return True
    if isinstance(order, DeleteOrder):
        # Not found after a lost answer: that try has removed it.
        return refusal.unsure and refusal.code == Code.NOT_FOUND
    is_slug = refusal.code == Code.PRECONDITION_FAILED and "slug" in refusal.details
    if not (is_slug and kind.lists and isinstance(order, UpdateOrder)):
        return False
    reply = yield kind.get(order.held, order.held.id)
    now = kind.as_read(order.held, reply.fields) if isinstance(reply, Answer) else None
    return now is not None and is_in_step(order.resource, now)


def _moved_on(
    at: CreateOrder | ObservedObject, before: Written, kind: ZitadelKind
) -> Generator[Step, Reply, ServiceError | None]:
    """Read an object just before it is written to; return why that must not be."""
    reply = yield kind.get(at, before.id)
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    # Another writer may still come between this read and the write: there is no If-Match.
    return kind.moved_on(at, before.sequence, reply.fields)
