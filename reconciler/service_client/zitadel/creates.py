"""Creates on a ZITADEL, each of which looks for what it may have made already.

The server knows no idempotency keys. So a create whose answer was lost is looked for by its name
before it is tried again, after a pause in which its lists catch up.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from reconciler.errors import AlreadyExistsError, NotListedError, ServiceError
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.answers import id_of, sequence_of, text_of
from reconciler.service_client.orders import written
from reconciler.service_client.port import CreateOrder, Written
from reconciler.service_client.wire import AGAIN, Answer, Reply, WireRefusal, service_error
from reconciler.service_client.zitadel.objects import (
    Owner,
    application,
    items_of,
    plain_object,
)
from reconciler.service_client.zitadel.providers import ProviderCalls, ServerAge
from reconciler.service_client.zitadel.reading import OF_INSTANCE, PRESENT, named
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

_NO_ID = "0"  # of no object
LOOKS = 5  # for what a create may have made, until two in a row agree


def create_provider(order: CreateOrder, providers: ProviderCalls) -> Steps:
    """Make a provider, unless there is one of its name.

    The server would make a second one. The look narrows the gap in which another run, or one of
    ours that was killed, makes the first, and does not close it.
    """
    was_refused = False
    if providers.age is ServerAge.NEW:
        yield from _brought_up_to_date(order, providers)
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
    return (yield from create(order, providers.create(order), providers))


def create(order: CreateOrder, call: Call, providers: ProviderCalls) -> Steps:
    """Make an object; after a lost answer or a conflict, look for it before it is made again."""
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
        found = yield from _look(order, providers)
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
    order: CreateOrder, providers: ProviderCalls
) -> Generator[Step, Reply, ObservedObject | ServiceError | None]:
    """Look for what may have been made, until two looks in a row see the same."""
    name, owner = order.ref.name, order.organization_id
    if order.ref.kind is Kind.IDP_JWT_CONFIG:
        call = providers.named(name, owner)
    else:
        call = named(order.ref.kind, name, owner, order.project_id)
    before: list[str] | None = None
    pause = CATCH_UP
    for _ in range(LOOKS):
        yield pause
        pause = ONCE_MORE
        yield from _brought_up_to_date(order, providers)
        reply = yield call
        if isinstance(reply, WireRefusal) and call.operation == PRESENT and not reply.unsure:
            call = replace(call, operation=OF_INSTANCE)  # of an old server
            continue
        if isinstance(reply, WireRefusal):
            return unknown_result(reply.message)
        items = _of_the_name(order, reply, providers)
        ids = sorted(id_of(item) for item in items)
        # Lists lag behind writes. Two equal looks in a row are taken for the truth.
        if ids == before:
            if order.ref.kind is Kind.IDP_JWT_CONFIG:
                current = yield from providers.still_named(items, order)
                if isinstance(current, WireRefusal):
                    return unknown_result(current.message)
                items = current
            return _one_of(order, items, providers)
        before = ids
    return unknown_result(f"the service's lists contradict each other about {order.ref}")


def _brought_up_to_date(
    order: CreateOrder, providers: ProviderCalls
) -> Generator[Step, Reply, None]:
    """Read one object by an id: before that the server brings the list of its kind up to date.

    Actions and organizations have no such read.
    """
    owner = order.organization_id
    match order.ref.kind:
        case Kind.IDP_JWT_CONFIG:
            yield providers.get(_NO_ID, owner)
        case Kind.OIDC_APPLICATION:
            yield Call("GetAppByID", {"projectId": order.project_id, "appId": _NO_ID}, owner)
        case Kind.PROJECT:
            yield Call("GetProjectByID", {"id": _NO_ID}, owner)
        case _:
            pass


def _of_the_name(order: CreateOrder, reply: Answer, providers: ProviderCalls) -> list[JsonObject]:
    """Return the listed objects of the name that is to be made, of the same kind."""
    return [
        item
        for item in items_of(reply.fields)
        if fold(text_of(item, "name")) == fold(order.ref.name)
        and (order.ref.kind is not Kind.IDP_JWT_CONFIG or providers.is_ours(item))
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
    return observed_item(order, items[0], providers) if items else None


def observed_item(
    like: CreateOrder | ObservedObject, item: JsonObject, providers: ProviderCalls
) -> ObservedObject:
    """Return an item of a list, or of a read, as an object with the kind and owner of another."""
    owner, kind = Owner(like.organization_id, like.ref.organization), like.ref.kind
    match kind:
        case Kind.IDP_JWT_CONFIG:
            return providers.observed(item, owner)
        case Kind.OIDC_APPLICATION:
            return application(item, owner, Owner(like.project_id, like.ref.project))
        case Kind.ORGANIZATION:
            # The id is all that its list has to tell: an organization has no spec.
            details = item.get("details")
            sequence = sequence_of(details) if isinstance(details, dict) else 0
            return ObservedObject(like.ref, id_of(item), sequence, {}, like.organization_id)
        case _:
            return plain_object(kind, item, owner)


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
