"""Writing to a ZITADEL, step by step, each order for itself.

It knows no expected sequences. So an object is read just before it is written to, which narrows
the gap in which somebody else can write and does not close it.

Each order is a generator: it yields calls and pauses, and is sent the reply of each call.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, Code
from reconciler.resources.capabilities import BEYOND
from reconciler.resources.ref import ACTION_FLOW, Kind
from reconciler.service_client.answers import sequence_of
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
from reconciler.service_client.wire import (
    AGAIN,
    Answer,
    Reply,
    WireRefusal,
    error_id,
    service_error,
)
from reconciler.service_client.zitadel.asking import (
    Pause,
    Steps,
    changed_since,
    despite_conflicts,
    lost,
)
from reconciler.service_client.zitadel.creates import create, create_provider, observed_item
from reconciler.service_client.zitadel.flows import write_flow
from reconciler.service_client.zitadel.objects import Owner
from reconciler.service_client.zitadel.providers import ProviderCalls, is_provider
from reconciler.state import ObservedObject, is_in_step

# Ids of refusals that say that an update changes nothing: a success for us.
NOT_CHANGED = frozenset(
    {
        "Org-2k9fs",
        "INSTANCE-3n9gg",
        "Org-jf9w",
        "COMMAND-2m8vx",
        "COMMAND-1m88i",
        "COMMAND-2M0fs",
        "ACTION-dg4t2",
        "ORG-4VSdf",
        # The object is in that state already.
        *("COMMAND-dsh35", "COMMAND-1n8cM", "COMMAND-Dgj92", "COMMAND-J53zh"),
        *("COMMAND-mki55", "COMMAND-5M9bs", "Org-BBmd0", "Org-5Mo0d"),
    }
)


def steps_of(order: Order, context: Context, providers: ProviderCalls) -> Steps:
    """Return the steps that carry out an order, and give what came of it."""
    match order:
        case CreateOrder() | UpdateOrder() | DeleteOrder() if order.ref.kind is ACTION_FLOW:
            return write_flow(order)
        case CreateOrder(ref=ref) if is_provider(ref.kind):
            return create_provider(order, providers)
        case CreateOrder():
            (call,) = [_plain(call) for call in calls_of(order, context)]
            return create(order, call, providers)
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
        case CreateOrder(ref=ref) if ref.kind in {Kind.IDP_JWT_CONFIG, Kind.ACTION_FLOW}:
            return order.organization_id
        case CreateOrder():
            return f"new {number}"
        case SecretOrder():
            return order.project_id
        case UpdateOrder() | DeleteOrder():
            held = order.held
            if held.ref.kind in {Kind.ACTION, Kind.PROJECT}:
                return held.id
            return held.project_id or held.organization_id


def _new_secret(order: SecretOrder, context: Context) -> Steps:
    """Make a secret; where its answer is lost, make another, which ends the lost one."""
    (call,) = [_plain(call) for call in calls_of(order, context)]
    reply = yield from despite_conflicts(call)
    if not isinstance(reply, Answer):
        return _error_of(reply)
    result = written(order, reply)
    if isinstance(result, Written) and result.client_secret is None:
        return lost("the service answered without the secret")
    return result


def _update(order: UpdateOrder, context: Context, providers: ProviderCalls) -> Steps:
    held = order.held
    calls = _calls_of_update(order, context, providers)
    result: Written | ServiceError = unchanged(order)
    if calls and not order.is_new:
        moved = yield from _moved_on(held, providers)
        if moved is not None:
            return moved
    for call in calls:
        reply = yield from _sent(call, order, held, providers)
        if isinstance(reply, ServiceError):
            return reply
        if reply is not None and not providers.is_unseen(call):
            result = written(order, reply)
            if isinstance(result, Written):
                held = replace(held, sequence=result.sequence)
    return result


def _sent(
    call: Call, order: UpdateOrder, held: ObservedObject, providers: ProviderCalls
) -> Generator[Call | Pause, Reply, Answer | ServiceError | None]:
    """Make one call of an update; None where it changes nothing: an error there, none here."""
    # The reads of what was made a moment ago lag, so that it would look as if it were missing.
    check = None if order.is_new else partial(_moved_on, held, providers)
    reply = yield from despite_conflicts(call, check)
    if not isinstance(reply, WireRefusal):
        return reply
    is_done = yield from _changes_nothing(reply, order, providers)
    return None if is_done else service_error(reply)


def _changes_nothing(
    refusal: WireRefusal, order: UpdateOrder, providers: ProviderCalls
) -> Generator[Call | Pause, Reply, bool]:
    """Return whether a refusal says that the object is as declared already.

    Ids tell. Newer servers may have a slug instead, which tells nothing that is known here: then
    the object itself is read.
    """
    if error_id(refusal) in NOT_CHANGED:
        return True
    if refusal.code != Code.PRECONDITION_FAILED or "slug" not in refusal.details:
        return False
    held = order.held
    call, name = _read_call(held, providers)
    reply = yield call
    found = reply.fields.get(name) if isinstance(reply, Answer) else None
    if not isinstance(found, dict):
        return False
    owners = (
        Owner(held.organization_id, held.ref.organization),
        Owner(held.project_id, held.ref.project),
    )
    return is_in_step(order.resource, observed_item(held.ref, owners, found, providers))


def _calls_of_update(
    order: UpdateOrder, context: Context, providers: ProviderCalls
) -> Sequence[Call]:
    if is_provider(order.held.ref.kind):
        return providers.update(order)
    # Contexts are kept by our service alone.
    wanted = [call for call in calls_of(order, context) if call.operation != "RecordContext"]
    return [_plain(call) for call in wanted]


def _delete(order: DeleteOrder, context: Context, providers: ProviderCalls) -> Steps:
    held = order.held
    moved = yield from _moved_on(held, providers)
    if moved is not None:
        return moved
    if is_provider(held.ref.kind):
        call = providers.delete(held)
    else:
        (call,) = [_plain(call) for call in calls_of(order, context)]
    reply = yield from despite_conflicts(call, partial(_moved_on, held, providers))
    if isinstance(reply, ServiceError):
        return reply
    if isinstance(reply, WireRefusal) and not (reply.unsure and reply.code == Code.NOT_FOUND):
        return service_error(reply)
    return unchanged(order)


def _error_of(reply: WireRefusal | ServiceError) -> ServiceError:
    return reply if isinstance(reply, ServiceError) else service_error(reply)


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
        return changed_since(held.ref)
    return None


def _read_call(held: ObservedObject, providers: ProviderCalls) -> tuple[Call, str]:
    """Return the call that reads an object, and the name of the object in its answer."""
    if is_provider(held.ref.kind):
        return providers.get(held.id, held.organization_id), "idp"
    if held.ref.kind is Kind.ACTION:
        return Call("GetAction", {"id": held.id}, held.organization_id), "action"
    if held.ref.kind is Kind.PROJECT:
        return Call("GetProjectByID", {"id": held.id}, held.organization_id), "project"
    fields = {"projectId": held.project_id, "appId": held.id}
    return Call("GetAppByID", fields, held.organization_id), "app"


def _plain(call: Call) -> Call:
    """Return a call without what this service does not know.

    Fields beyond the source that are not set mean the same when they are left out, and a server
    may be too old for them.
    """
    beyond = BEYOND[Kind.OIDC_APPLICATION]
    fields = {name: value for name, value in call.fields.items() if value or name not in beyond}
    return Call(call.operation, fields, call.organization)
