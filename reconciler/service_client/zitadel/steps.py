"""Writing to a ZITADEL, step by step, each order for itself.

It knows no idempotency keys and no expected sequences. So a create whose answer was lost is
looked for by its name before it is tried again, after a pause in which its lists catch up; and
an object is read just before it is written to, which narrows the gap in which somebody else can
write and does not close it.

Each order is a generator: it yields calls and pauses, and is sent the reply of each call.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from reconciler.errors import (
    AlreadyExistsError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.observation import id_of, sequence_of, text_of
from reconciler.service_client.orders import calls_of, unchanged, written
from reconciler.service_client.port import (
    Context,
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.refusals import AGAIN, UNKNOWN, error_id, service_error
from reconciler.service_client.wire import NO_ANSWER, Answer, Reply, WireRefusal
from reconciler.service_client.zitadel.objects import Owner, action, application
from reconciler.service_client.zitadel.providers import ProviderCalls, is_provider
from reconciler.service_client.zitadel.reading import items_of, named
from reconciler.state import ObservedObject, is_in_step

TRIES = 8  # of one call
LOOKS = 5  # for what a create may have made, until two in a row agree
# Ids of refusals that say that an update changes nothing: a success for us.
NOT_CHANGED = frozenset(
    {
        "Org-2k9fs",
        "INSTANCE-3n9gg",
        "Org-jf9w",
        "COMMAND-2m8vx",
        "COMMAND-1m88i",
        "ACTION-dg4t2",
        "ORG-4VSdf",
    }
)
_FAILED = frozenset({UNKNOWN, Code.INTERNAL})
# Another writer was quicker. ZITADEL's own retries are over by then, and it answers what its
# database said, as an unknown error.
_CONFLICT = re.compile(r"events2_pkey|\b40001\b|\bCR000\b")


class Pause(NamedTuple):
    """Wait, in settling times, until lists have caught up with what was written."""

    settlings: float


CATCH_UP, ONCE_MORE = Pause(1.0), Pause(0.25)  # by experience with its lists

Steps: TypeAlias = Generator[Call | Pause, Reply, Written | ServiceError]


def steps_of(order: Order, context: Context, providers: ProviderCalls) -> Steps:
    """Return the steps that carry out an order, and give what came of it."""
    match order:
        case CreateOrder(ref=ref) if is_provider(ref.kind):
            return _create_provider(order, providers)
        case CreateOrder():
            (call,) = [_plain(call) for call in calls_of(order, context)]
            return _create(order, call, providers)
        case UpdateOrder():
            return _update(order, context, providers)
        case DeleteOrder():
            return _delete(order, context, providers)
        case SecretOrder():
            return _new_secret(order, context)


def serial_key_of(order: Order, number: int) -> str:
    """Return what an order shares with those it must not be under way with.

    ZITADEL counts the events of a project and of an organization; two writers of one conflict.
    """
    match order:
        case CreateOrder(ref=ref) if ref.kind is Kind.OIDC_APPLICATION:
            return order.project_id
        case CreateOrder(ref=ref) if ref.kind is Kind.IDP_JWT_CONFIG:
            return order.organization_id
        case CreateOrder():
            return f"new {number}"
        case SecretOrder():
            return order.project_id
        case UpdateOrder() | DeleteOrder():
            held = order.held
            if held.ref.kind is Kind.ACTION:
                return held.id
            return held.project_id or held.organization_id


def _create_provider(order: CreateOrder, providers: ProviderCalls) -> Steps:
    """Make a provider, unless there is one of its name.

    The server would make a second one. The look narrows the gap in which another run, or one of
    ours that was killed, makes the first, and does not close it.
    """
    was_refused = False
    while not providers.is_old:
        reply = yield providers.named(order.ref.name, order.organization_id)
        if isinstance(reply, Answer):
            providers.answered()
            items = yield from providers.still_named(_of_the_name(order, reply, providers), order)
            if isinstance(items, WireRefusal):
                return service_error(items)
            if found := _one_of(order, items, providers):
                return found if isinstance(found, ServiceError) else _taken_over(order, found)
            break
        if not providers.can_ask_on(reply, was_refused=was_refused):
            return service_error(reply)
        was_refused = True
    return (yield from _create(order, providers.create(order), providers))


def _create(order: CreateOrder, call: Call, providers: ProviderCalls) -> Steps:
    may_be_ours = False
    for _ in range(TRIES):
        reply = yield from _unless_conflict(call)
        if isinstance(reply, Answer):
            return written(order, reply)
        may_be_ours = may_be_ours or reply.unsure
        # "Already exists" after a lost answer may be about the object that this create made.
        if not reply.unsure and not (may_be_ours and reply.code == Code.ALREADY_EXISTS):
            return service_error(reply)
        found = yield from _look(order, providers)
        if isinstance(found, ServiceError):
            return found
        if found is not None:
            return _taken_over(order, found)
        if reply.code in _FAILED and not _CONFLICT.search(reply.message):
            return ServiceError(f"the service failed: {reply.message}", remedy=AGAIN)
    return _lost("the service was asked many times, and no answer came")


def _look(
    order: CreateOrder, providers: ProviderCalls
) -> Generator[Call | Pause, Reply, ObservedObject | ServiceError | None]:
    """Look for what may have been made, until two looks in a row see the same."""
    name, owner = order.ref.name, order.organization_id
    if is_provider(order.ref.kind):
        call = providers.named(name, owner)
    else:
        call = named(order.ref.kind, name, owner, order.project_id)
    before: list[str] | None = None
    pause = CATCH_UP
    for _ in range(LOOKS):
        yield pause
        pause = ONCE_MORE
        reply = yield call
        if isinstance(reply, WireRefusal):
            return _lost(reply.message)
        items = _of_the_name(order, reply, providers)
        ids = sorted(id_of(item) for item in items)
        # Lists lag behind writes. Two equal looks in a row are taken for the truth.
        if ids == before:
            if is_provider(order.ref.kind):
                current = yield from providers.still_named(items, order)
                if isinstance(current, WireRefusal):
                    return _lost(current.message)
                items = current
            return _one_of(order, items, providers)
        before = ids
    return _lost(f"the service's lists contradict each other about {order.ref}")


def _of_the_name(order: CreateOrder, reply: Answer, providers: ProviderCalls) -> list[JsonObject]:
    """Return the listed objects of the name that is to be made, of the same kind."""
    return [
        item
        for item in items_of(reply.fields)
        if fold(text_of(item, "name")) == fold(order.ref.name)
        and (not is_provider(order.ref.kind) or providers.is_ours(item))
    ]


def _one_of(
    order: CreateOrder, items: list[JsonObject], providers: ProviderCalls
) -> ObservedObject | ServiceError | None:
    if len(items) > 1:
        ids = " and ".join(sorted(id_of(item) for item in items))
        return ServiceError(
            f"there is more than one {order.ref}: ids {ids}",
            remedy="Check which of them is used, remove the others, and apply again.",
        )
    return _observed(order, items[0], providers) if items else None


def _observed(order: CreateOrder, item: JsonObject, providers: ProviderCalls) -> ObservedObject:
    owner = Owner(order.organization_id, order.ref.organization)
    match order.ref.kind:
        case Kind.ACTION:
            return action(item, owner)
        case Kind.IDP_JWT_CONFIG:
            return providers.observed(item, owner)
        case Kind.OIDC_APPLICATION:
            return application(item, owner, Owner(order.project_id, order.ref.project))
        case Kind.ORGANIZATION | Kind.PROJECT:
            details = item.get("details")
            sequence = sequence_of(details) if isinstance(details, dict) else 0
            return ObservedObject(order.ref, id_of(item), sequence, {}, order.organization_id)


def _taken_over(order: CreateOrder, found: ObservedObject) -> Written | ServiceError:
    """Return what was found as what was made; its secret was answered once and is not known.

    Another run may have made the same object a moment ago and have its secret, so none is made.
    """
    if not is_in_step(order, found):
        return AlreadyExistsError(
            f"there is another {order.ref} (id {found.id}), and it is not as declared",
            remedy="Run `reconciler plan` again to see it.",
        )
    return Written(found.id, found.sequence, found.client_id)


def _new_secret(order: SecretOrder, context: Context) -> Steps:
    """Make a secret; where its answer is lost, make another, which ends the lost one."""
    (call,) = [_plain(call) for call in calls_of(order, context)]
    reply = yield from _repeated(call)
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    result = written(order, reply)
    if isinstance(result, Written) and result.client_secret is None:
        return _lost("the service answered without the secret")
    return result


def _update(order: UpdateOrder, context: Context, providers: ProviderCalls) -> Steps:
    held = order.held
    if is_provider(held.ref.kind):
        calls = providers.update(order)
    else:
        # Contexts are kept by our service alone.
        wanted = [call for call in calls_of(order, context) if call.operation != "RecordContext"]
        calls = [_plain(call) for call in wanted]
    result: Written | ServiceError = unchanged(order)
    if calls:
        moved = yield from _moved_on(held, providers)
        if moved is not None:
            return moved
    for call in calls:
        reply = yield from _repeated(call)
        if isinstance(reply, Answer):
            result = written(order, reply)
        # An update that changes nothing is an error there and a success here.
        elif error_id(reply) not in NOT_CHANGED:
            return service_error(reply)
    return result


def _delete(order: DeleteOrder, context: Context, providers: ProviderCalls) -> Steps:
    held = order.held
    moved = yield from _moved_on(held, providers)
    if moved is not None:
        return moved
    if is_provider(held.ref.kind):
        call = providers.delete(held)
    else:
        (call,) = [_plain(call) for call in calls_of(order, context)]
    reply = yield from _repeated(call)
    if isinstance(reply, WireRefusal) and not (reply.unsure and reply.code == Code.NOT_FOUND):
        return service_error(reply)
    return unchanged(order)


def _moved_on(
    held: ObservedObject, providers: ProviderCalls
) -> Generator[Call | Pause, Reply, ServiceError | None]:
    """Read an object just before it is written to; return why that must not be."""
    call, name = _read_call(held, providers)
    reply = yield call
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    found = reply.fields.get(name)
    details = found.get("details") if isinstance(found, dict) else None
    if not isinstance(details, dict):
        return ServiceError("the service answered without details", remedy=AGAIN)
    # Another writer may still come between this read and the write: there is no If-Match.
    if sequence_of(details) > held.sequence:
        return PreconditionFailedError(
            f"{held.ref} has changed since it was planned",
            remedy="Run `reconciler plan` again and review.",
        )
    return None


def _read_call(held: ObservedObject, providers: ProviderCalls) -> tuple[Call, str]:
    """Return the call that reads an object, and the name of the object in its answer."""
    if is_provider(held.ref.kind):
        return providers.get(held.id, held.organization_id), "idp"
    if held.ref.kind is Kind.ACTION:
        return Call("GetAction", {"id": held.id}, held.organization_id), "action"
    fields = {"projectId": held.project_id, "appId": held.id}
    return Call("GetAppByID", fields, held.organization_id), "app"


def _repeated(call: Call) -> Generator[Call | Pause, Reply, Reply]:
    """Ask for something that is the same when it is done twice, until there is an answer."""
    was_unsure = False
    reply: Reply = WireRefusal(NO_ANSWER, "no answer came", unsure=True)
    for _ in range(TRIES):
        reply = yield from _unless_conflict(call)
        if isinstance(reply, Answer):
            return reply
        if not reply.unsure:
            return replace(reply, unsure=was_unsure and reply.code == Code.NOT_FOUND)
        was_unsure = True
        yield ONCE_MORE
    return reply


def _unless_conflict(call: Call) -> Generator[Call | Pause, Reply, Reply]:
    """Ask again while another writer is at the same project or organization."""
    reply = yield call
    for _ in range(TRIES):
        if isinstance(reply, Answer) or reply.code != Code.ABORTED:
            break
        yield ONCE_MORE
        reply = yield call
    return reply


def _plain(call: Call) -> Call:
    """Return a call without what this service does not know."""
    return Call(call.operation, call.fields, call.organization)


def _lost(message: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(message, remedy=AGAIN)
