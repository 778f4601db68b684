"""Writing to a ZITADEL, step by step, each order for itself.

It knows no expected sequences. So an object is read just before it is written to, which narrows
the gap in which another writer can come between and does not close it.

It knows no idempotency keys either. So a create whose answer was lost is looked for by its name
before it is tried again, after a pause in which its lists catch up.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from reconciler.errors import (
    AlreadyExistsError,
    NotListedError,
    ObjectNotFoundError,
    ServiceError,
)
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.service_client.answers import unsound
from reconciler.service_client.orders import UPDATE_TRIES, is_shared, rebased, unchanged, written
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
from reconciler.service_client.zitadel.kinds import OF_INSTANCE, PRESENT, ZitadelKind
from reconciler.service_client.zitadel.objects import items_of
from reconciler.service_client.zitadel.steps import (
    CATCH_UP,
    FAILED,
    ONCE_MORE,
    TRIES,
    Look,
    Step,
    Steps,
    despite_conflicts,
    is_conflict,
    unknown_result,
)
from reconciler.state import ObservedObject, is_in_step

LOOKS = 5  # for what a create may have made, until two in a row agree


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
    for _ in range(UPDATE_TRIES - 1):
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

    The id of the refusal says so. Newer servers may have a slug instead, which is not known here:
    then the object itself is read.
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


def create(order: CreateOrder, kind: ZitadelKind) -> Steps:
    """Make an object, unless the server would make a second one of its name."""
    twins = () if kind.keeps_names_unique else (yield from _twins(order, kind))
    if isinstance(twins, WireRefusal):
        return service_error(twins)
    if found := _one_of(order, twins, kind):
        return found if isinstance(found, ServiceError) else _taken_over(order, found)
    return (yield from _made(order, kind))


def _twins(
    order: CreateOrder, kind: ZitadelKind
) -> Generator[Step, Reply, Sequence[JsonObject] | WireRefusal]:
    """Look for objects of the name; return the refusal where that cannot be done.

    The look narrows the gap in which another run, or one of ours that was killed, makes the first,
    and does not close it.
    """
    was_refused = False
    if kind.is_old is False:
        yield from kind.refresh(order)
    while not kind.is_old:
        reply = yield kind.named(order)
        if isinstance(reply, Answer):
            kind.answered()
            return (yield from _current(_of_the_name(order, reply, kind), order, kind))
        if not kind.can_ask_on(reply, was_refused=was_refused):
            return reply
        was_refused = True
    return ()


def _current(
    items: Sequence[JsonObject], order: CreateOrder, kind: ZitadelKind
) -> Generator[Step, Reply, Sequence[JsonObject] | WireRefusal]:
    """Read listed objects one by one; return those that exist and have the order's name.

    A list can show an object under a name that a rename or a delete has freed. The read of one
    object does not lag. Returns the refusal of one that cannot be read.
    """
    current: list[JsonObject] = []
    for item in items:
        reply = yield kind.get(order, kind.id_of(item))
        if isinstance(reply, WireRefusal):
            # A missing object has an error id. Without one, a proxy may have answered.
            if isinstance(service_error(reply), ObjectNotFoundError) and error_id(reply):
                continue
            return reply
        found = kind.read_in(reply.fields)
        if not isinstance(found, dict):
            raise unsound(kind.id_of(item), f"{kind.reads[1]} is not an object")
        if kind.is_called(found, order.ref.name):
            current.append(found)
    return current


def _of_the_name(order: CreateOrder, reply: Answer, kind: ZitadelKind) -> Sequence[JsonObject]:
    return [each for each in items_of(reply.fields) if kind.is_called(each, order.ref.name)]


def _made(order: CreateOrder, kind: ZitadelKind) -> Steps:
    """Make an object; after a lost answer or a conflict, look for it before it is made again."""
    (call,) = kind.writes(order)
    may_be_ours = is_taken = False
    for _ in range(TRIES):
        reply = yield call
        if isinstance(reply, Answer):
            return written(order, reply)
        may_be_ours = may_be_ours or (reply.unsure and not is_conflict(reply))
        # "Already exists" may be about the object that this create made, if its answer was lost,
        # or about one that an earlier run made and that lists did not show when it was planned.
        is_taken = reply.code == Code.ALREADY_EXISTS
        if not (reply.unsure or is_taken or is_conflict(reply)):
            return service_error(reply)
        found = yield from _look(order, kind)
        if found is not None:
            return found if isinstance(found, ServiceError) else _taken_over(order, found)
        if is_taken and not may_be_ours:
            return NotListedError(
                f"there is another {order.ref}, and the service's lists do not show it",
                remedy="An earlier run may have made it. Run `reconciler plan` again: once it "
                "shows, nothing has to be made.",
            )
        if reply.code in FAILED and not is_conflict(reply):
            return ServiceError(f"the service failed: {reply.message}", remedy=AGAIN)
    return unknown_result("the service was asked many times, and no answer came")


def _look(
    order: CreateOrder, kind: ZitadelKind
) -> Generator[Step, Reply, ObservedObject | ServiceError | None]:
    """Look for what may have been made, until two looks in a row see the same."""
    call = kind.named(order)
    before: list[str] | None = None
    pause = CATCH_UP
    for _ in range(LOOKS):
        yield pause
        pause = ONCE_MORE
        yield from kind.refresh(order)
        reply = yield call
        if isinstance(reply, WireRefusal) and call.operation == PRESENT and not reply.unsure:
            call = replace(call, operation=OF_INSTANCE)  # of an old server
            continue
        if isinstance(reply, WireRefusal):
            return unknown_result(reply.message)
        items = _of_the_name(order, reply, kind)
        if not items and (refusal := kind.kept_out(order, items_of(reply.fields))):
            return refusal
        ids = sorted(kind.id_of(item) for item in items)
        # Lists lag behind writes. Two equal looks in a row are taken for the truth.
        if ids == before:
            found = items if kind.keeps_names_unique else (yield from _current(items, order, kind))
            if isinstance(found, WireRefusal):
                return unknown_result(found.message)
            return _one_of(order, found, kind)
        before = ids
    return unknown_result(f"the service's lists contradict each other about {order.ref}")


def _one_of(
    order: CreateOrder, items: Sequence[JsonObject], kind: ZitadelKind
) -> ObservedObject | ServiceError | None:
    if len(items) > 1:
        ids = " and ".join(sorted(kind.id_of(item) for item in items))
        return ServiceError(
            f"there is more than one {order.ref}: ids {ids}",
            remedy="Check which of them is used, remove the others, and apply again.",
        )
    return kind.of_same_owner(order, items[0]) if items else None


def _taken_over(order: CreateOrder, found: ObservedObject) -> Written | ServiceError:
    """Return what was found as what was made; its secret was answered once and is not known.

    Another run may have made the same object a moment ago and have its secret, so none is made.
    """
    if not is_in_step(replace(order.resource, active=None), found):
        return AlreadyExistsError(
            f"there is another {order.ref} (id {found.id}), and it is not as declared",
            remedy="Run `reconciler plan` again to see it.",
        )
    return Written(found.id, found.sequence, found.client_id)
