"""Writing to a ZITADEL, step by step, each order for itself.

It knows no expected sequences. So an object is read just before it is written to, which narrows
the gap in which somebody else can write and does not close it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial

from reconciler.errors import ServiceError
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import Call, Code
from reconciler.service_client.answers import sequence_of
from reconciler.service_client.orders import unchanged, written
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import (
    AGAIN,
    Answer,
    Reply,
    WireRefusal,
    error_id,
    service_error,
)
from reconciler.service_client.zitadel.creates import create, observed
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.steps import (
    Step,
    Steps,
    changed_since,
    despite_conflicts,
    unknown_result,
)
from reconciler.state import ObservedObject, is_in_step


def steps_of(order: Order, kind: ZitadelKind) -> Steps:
    """Return the steps that carry out an order, and give what came of it."""
    if isinstance(order, SecretOrder):
        return _new_secret(order, kind)
    if own := kind.steps(order):
        return own
    match order:
        case CreateOrder():
            return create(order, kind)
        case UpdateOrder():
            return _update(order, kind)
        case DeleteOrder():
            return _delete(order, kind)


def serial_key_of(order: Order, number: int) -> str:
    """Return what an order shares with those it must not be under way with.

    ZITADEL counts the events of a project and of an organization; two writers of one conflict.
    """
    at = order.held if isinstance(order, UpdateOrder | DeleteOrder) else order
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


def _update(order: UpdateOrder, kind: ZitadelKind) -> Steps:
    held = order.held
    calls = kind.writes(order)
    result: Written | ServiceError = unchanged(order)
    if calls and not order.is_new:
        moved = yield from _moved_on(held, kind)
        if moved is not None:
            return moved
    # Each call moves the sequence on; the next one is checked against the new one.
    for call in calls:
        reply = yield from _sent(call, order, held, kind)
        if isinstance(reply, ServiceError):
            return reply
        if reply is not None and not kind.is_unseen(call):
            result = written(order, reply)
            if isinstance(result, Written):
                held = replace(held, sequence=result.sequence)
    return result


def _sent(
    call: Call, order: UpdateOrder, held: ObservedObject, kind: ZitadelKind
) -> Generator[Step, Reply, Answer | ServiceError | None]:
    """Make one call of an update; None where it changes nothing: an error there, none here."""
    # The reads of what was made a moment ago lag, so that it would look as if it were missing.
    check = None if order.is_new else partial(_moved_on, held, kind)
    reply = yield from despite_conflicts(call, check)
    if not isinstance(reply, WireRefusal):
        return reply
    is_done = yield from _changes_nothing(reply, order, kind)
    return None if is_done else service_error(reply)


def _changes_nothing(
    refusal: WireRefusal, order: UpdateOrder, kind: ZitadelKind
) -> Generator[Step, Reply, bool]:
    """Return whether a refusal says that the object is as declared already.

    Ids tell. Newer servers may have a slug instead, which tells nothing that is known here: then
    the object itself is read.
    """
    if error_id(refusal) in kind.not_changed:
        return True
    if refusal.code != Code.PRECONDITION_FAILED or "slug" not in refusal.details:
        return False
    reply = yield from _read(order.held, kind)
    if not isinstance(reply, dict):
        return False
    return is_in_step(order.resource, observed(order.held, reply, kind))


def _delete(order: DeleteOrder, kind: ZitadelKind) -> Steps:
    held = order.held
    moved = yield from _moved_on(held, kind)
    if moved is not None:
        return moved
    (call,) = kind.writes(order)
    reply = yield from despite_conflicts(call, partial(_moved_on, held, kind))
    if isinstance(reply, ServiceError):
        return reply
    # Not found after a lost answer: that try has removed it.
    if isinstance(reply, WireRefusal) and not (reply.unsure and reply.code == Code.NOT_FOUND):
        return service_error(reply)
    return unchanged(order)


def _moved_on(
    held: ObservedObject, kind: ZitadelKind
) -> Generator[Step, Reply, ServiceError | None]:
    """Read an object just before it is written to; return why that must not be."""
    found = yield from _read(held, kind)
    if isinstance(found, WireRefusal):
        return service_error(found)
    details = found.get("details") if isinstance(found, dict) else None
    if not isinstance(details, dict):
        return ServiceError("the service answered without details", remedy=AGAIN)
    # Another writer may still come between this read and the write: there is no If-Match.
    return changed_since(held.ref) if sequence_of(details) > held.sequence else None


def _read(held: ObservedObject, kind: ZitadelKind) -> Generator[Step, Reply, object]:
    """Read an object; return its fields, or the refusal."""
    reply = yield kind.get(held, held.id)
    return reply if isinstance(reply, WireRefusal) else kind.read_in(reply.fields)
