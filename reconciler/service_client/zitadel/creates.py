"""Creates on a ZITADEL, each of which looks for what it may have made already.

The server knows no idempotency keys. So a create whose answer was lost is looked for by its name
before it is tried again, after a pause in which its lists catch up.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from reconciler.errors import (
    AlreadyExistsError,
    NotListedError,
    ObjectNotFoundError,
    ServiceError,
)
from reconciler.resources.call import Code, JsonObject
from reconciler.service_client.answers import unsound
from reconciler.service_client.orders import written
from reconciler.service_client.port import CreateOrder, Written
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
    Step,
    Steps,
    is_conflict,
    unknown_result,
)
from reconciler.state import ObservedObject, is_in_step

LOOKS = 5  # for what a create may have made, until two in a row agree


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
