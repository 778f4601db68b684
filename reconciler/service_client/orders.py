"""Orders as calls of operations, and the replies to these calls as results of orders.

How each kind is called, and what its answers mean, its room says (``kinds.calls``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from reconciler.errors import PreconditionFailedError, ServiceError, ServiceUnavailableError
from reconciler.kinds.calls import CALLS
from reconciler.resources.call import Call
from reconciler.resources.secret import Secret
from reconciler.resources.undone import undone_text
from reconciler.service_client.answers import id_of, sequence_of, text_of
from reconciler.service_client.port import (
    Context,
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import AGAIN, Answer, Reply, WireRefusal, service_error
from reconciler.state import ObservedObject, Resource, completed, left_as_held

UPDATE_TRIES = 3
"""How often an update is sent at most while others write to fields that it leaves as held."""


def calls_of(order: Order, context: Context, run: str = "") -> Sequence[Call]:
    """Return the calls that carry out an order, one after the other.

    A secret that a call makes is kept by the service for this run until it is acknowledged.
    Each but the first expects the sequence that the one before it answered.
    """
    context = {**context, **order.despite}
    custody = ""
    sequence: int | None = None
    match order:
        case CreateOrder():
            context = _with_marks(context, order.resource)
            if CALLS[order.ref.kind].create:
                custody = run
            else:
                sequence = 0  # there must still be none
        case SecretOrder():
            custody = run
        case UpdateOrder() | DeleteOrder():
            sequence = None if order.is_moved else order.held.sequence
            context = _of_held(context, order)
    # Where nothing but marks changes, these are recorded.
    made = CALLS[order.ref.kind].calls(order) or [("RecordContext", {"id": unchanged(order).id})]
    text = json.dumps(context)
    return [
        Call(
            operation,
            fields,
            organization=order.organization_id,
            expected_sequence=sequence,
            context=text,
            custody=custody,
        )
        for operation, fields in made
    ]


def _of_held(context: Context, order: UpdateOrder | DeleteOrder) -> Context:
    if isinstance(order, UpdateOrder):
        return _with_marks(context, order.resource, order.held)
    return {**context, "undone": undone_text(order.undone)} if order.undone else context


def _with_marks(context: Context, wanted: Resource, held: ObservedObject | None = None) -> Context:
    marks = {"preventDelete": wanted.prevent_delete, "critical": wanted.critical}
    # A context is flat, so a list is one text.
    is_said = wanted.ignored or (held is not None and held.ignored)
    ignored = {"ignore": ",".join(sorted(wanted.ignored))} if is_said else {}
    # An ordinary write ends the mark of an undo, with an empty text.
    is_marked = wanted.undone or (held is not None and held.undone)
    undone = {"undone": undone_text(wanted.undone)} if is_marked else {}
    owner = {} if wanted.owner is None else {"owner": wanted.owner}
    return {**context, **marks, **ignored, **undone, **owner}


def unchanged(order: Order) -> Written:
    """Return the result of an order before any of its calls: what is known of the object."""
    match order:
        case CreateOrder():
            return Written(CALLS[order.ref.kind].known_id(order), 0)
        case SecretOrder():
            return Written(order.held.id, 0, order.held.client_id)
        case _:
            return Written(order.held.id, order.held.sequence, order.held.client_id)


# The words of a service of ours about a call that it does not have, in a batch and alone.
_UNKNOWN_CALLS = (
    "operation: must be a write that may be part of a batch",
    "there is nothing at this address",
    "this address has no such verb",
)
_UPGRADE = "The service is older than this tool and lacks a call that the plan needs: upgrade it."


def result_of(order: Order, reply: Reply) -> Written | ServiceError:
    """Return the result of a call of an order."""
    if not isinstance(reply, WireRefusal):
        return written(order, reply)
    if reply.message.endswith(_UNKNOWN_CALLS) and not reply.remedy:
        reply = replace(reply, remedy=_UPGRADE)
    return service_error(reply)


def written(order: Order, answer: Answer) -> Written | ServiceError:
    """Return what a write answered; an error says to run the command again."""
    # The write was carried out, even if its answer cannot be read. What it leaves out is known:
    # an update answers no id, and a new secret no client id.
    known, fields, kind = unchanged(order), answer.fields, CALLS[order.ref.kind]
    made = fields.get("id", fields.get(kind.id_field, known.id))
    secret, details = fields.get("clientSecret"), fields.get("details")
    client_id = fields.get("clientId", known.client_id)
    try:
        return Written(
            id=id_of({"id": made}),
            sequence=sequence_of(details) if isinstance(details, dict) else known.sequence,
            client_id=text_of({"id": made, "clientId": client_id}, "clientId"),
            client_secret=Secret(secret) if isinstance(secret, str) and secret else None,
        )
    except ServiceError as failure:
        return ServiceUnavailableError(failure.problem, remedy=AGAIN)


def is_shared(order: Order, result: Written | ServiceError) -> TypeGuard[UpdateOrder]:
    """Return whether an update was refused that leaves fields as held: others may write those."""
    if not isinstance(order, UpdateOrder) or not left_as_held(order.resource):
        return False
    return isinstance(result, PreconditionFailedError)


def rebased(order: UpdateOrder, now: ObservedObject | None, tree: object) -> UpdateOrder | None:
    """Return an update with the fields that it leaves as held taken from the object as it is now.

    None where anything else of the object changed that the update was decided on: that takes
    another plan. An earlier call of the same order may have written what is wanted already.
    Without ignored fields, a move that no field explains is a reason to plan again, too.
    """
    held, wanted, left = order.held, order.resource, left_as_held(order.resource)
    if now is None or now.sequence == held.sequence:
        return None
    judged: list[tuple[Any, ...]] = [
        (now.ref.name, held.ref.name, wanted.ref.name),
        (now.prevent_delete, held.prevent_delete, wanted.prevent_delete),
        (now.critical, held.critical, wanted.critical),
        (now.ignored, held.ignored, wanted.ignored),
        (now.owner, held.owner, tree if wanted.owner is None else wanted.owner),
        (now.has_secret, held.has_secret),
        (now.uncarried, held.uncarried),
    ]
    if wanted.active is not None:
        judged.append((now.active, held.active, wanted.active))
    judged += [
        (now.spec.get(name), held.spec.get(name), wanted.spec[name])
        for name in wanted.spec.keys() - left
    ]
    if any(found not in planned for found, *planned in judged):
        return None
    if not wanted.ignored and all(now.spec.get(name) == held.spec.get(name) for name in left):
        return None
    return replace(order, resource=completed(wanted, now), held=now)
