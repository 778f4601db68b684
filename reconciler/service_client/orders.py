"""Orders as calls of operations, and the replies to these calls as results of orders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service_client.observation import id_of, sequence_of, text_of
from reconciler.service_client.port import (
    Context,
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.refusals import AGAIN, service_error
from reconciler.service_client.wire import Answer, Reply, WireRefusal
from reconciler.state import ObservedObject, is_in_step, is_owned_by

_CREATES: Mapping[Kind, str] = {
    Kind.ORGANIZATION: "AddOrg",
    Kind.PROJECT: "AddProject",
    Kind.IDP_JWT_CONFIG: "AddOrgJWTIDP",
    Kind.OIDC_APPLICATION: "AddOIDCApp",
    Kind.ACTION: "CreateAction",
}


def calls_of(order: Order, context: Context, run: str = "") -> Sequence[Call]:
    """Return the calls that carry out an order, one after the other.

    A secret that a call makes is kept by the service for this run until it is acknowledged.
    Each but the first expects the sequence that the one before it answered.
    """
    if order.reason:
        context = {**context, "reason": order.reason}
    match order:
        case CreateOrder():
            return (_create(order, context, run),)
        case UpdateOrder():
            update = _UPDATES.get(order.resource.ref.kind, _update_nothing)
            return update(order, context) or (
                _update(order, context, "RecordContext", {"id": order.held.id}),
            )
        case DeleteOrder():
            return (_delete(order, context),)
        case SecretOrder():
            fields = {"projectId": order.project_id, "appId": order.id}
            return (
                Call(
                    "RegenerateOIDCClientSecret",
                    fields,
                    organization=order.organization_id,
                    context=json.dumps(context),
                    custody=run,
                ),
            )


def _create(order: CreateOrder, context: Context, run: str) -> Call:
    fields: dict[str, Any] = {"name": order.ref.name, **order.spec}
    if order.ref.kind is Kind.OIDC_APPLICATION:
        fields["projectId"] = order.project_id
    return Call(
        _CREATES[order.ref.kind],
        fields,
        organization=order.organization_id,
        idempotency_key=order.key,
        context=_context_text(context, order.prevent_delete, order.critical),
        custody=run,
    )


def _update_nothing(order: UpdateOrder, context: Context) -> Sequence[Call]:
    """Return no call: organizations and projects have nothing that changes."""
    return ()


def _update_action(order: UpdateOrder, context: Context) -> Sequence[Call]:
    name = order.resource.ref.name
    if (order.held.ref.name, order.held.spec) == (name, order.resource.spec):
        return ()
    fields = {"id": order.held.id, "name": name, **_sent(order)}
    return (_update(order, context, "UpdateAction", fields),)


def _update_idp(order: UpdateOrder, context: Context) -> Sequence[Call]:
    target = {"idpId": order.held.id}
    return _renamed_and_configured(
        order, context, target, rename="UpdateOrgIDP", configure="UpdateOrgIDPJWTConfig"
    )


def _update_application(order: UpdateOrder, context: Context) -> Sequence[Call]:
    target = {"projectId": order.held.project_id, "appId": order.held.id}
    return _renamed_and_configured(
        order, context, target, rename="UpdateApp", configure="UpdateOIDCAppConfig"
    )


def _renamed_and_configured(
    order: UpdateOrder,
    context: Context,
    target: Mapping[str, str],
    *,
    rename: str,
    configure: str,
) -> Sequence[Call]:
    calls = []
    name = order.resource.ref.name
    if order.held.ref.name != name:
        calls.append(_update(order, context, rename, {**target, "name": name}))
    if order.held.spec != order.resource.spec:
        calls.append(_update(order, context, configure, {**target, **_sent(order)}))
    return calls


def _sent(order: UpdateOrder) -> dict[str, Any]:
    """Return every field of the update; the OIDC version is fixed when an application is made."""
    fields = {**order.held.carried, **order.resource.spec}
    fields.pop("version", None)
    return fields


def _update(order: UpdateOrder, context: Context, operation: str, fields: JsonObject) -> Call:
    return Call(
        operation,
        fields,
        organization=order.held.organization_id,
        expected_sequence=order.held.sequence,
        context=_context_text(context, order.resource.prevent_delete, order.resource.critical),
    )


_UPDATES: Mapping[Kind, Callable[[UpdateOrder, Context], Sequence[Call]]] = {
    Kind.IDP_JWT_CONFIG: _update_idp,
    Kind.OIDC_APPLICATION: _update_application,
    Kind.ACTION: _update_action,
}


def _delete(order: DeleteOrder, context: Context) -> Call:
    held = order.held
    removes: Mapping[Kind, tuple[str, Mapping[str, str]]] = {
        Kind.IDP_JWT_CONFIG: ("RemoveOrgIDP", {"idpId": held.id}),
        Kind.OIDC_APPLICATION: ("RemoveApp", {"projectId": held.project_id, "appId": held.id}),
        Kind.ACTION: ("DeleteAction", {"id": held.id}),
    }
    operation, fields = removes[held.ref.kind]
    return Call(
        operation,
        fields,
        organization=held.organization_id,
        expected_sequence=held.sequence,
        context=json.dumps(context),
    )


def _context_text(context: Context, prevent_delete: object, critical: object) -> str:
    return json.dumps({**context, "preventDelete": prevent_delete, "critical": critical})


def unchanged(order: Order) -> Written:
    """Return the result of an order before any of its calls: what is known of the object."""
    match order:
        case CreateOrder():
            return Written("", 0)
        case SecretOrder():
            return Written(order.id, 0, order.client_id)
        case _:
            return Written(order.held.id, order.held.sequence, order.held.client_id)


def result_of(order: Order, reply: Reply) -> Written | ServiceError:
    """Return the result of a call of an order."""
    return service_error(reply) if isinstance(reply, WireRefusal) else written(order, reply)


def written(order: Order, answer: Answer) -> Written | ServiceError:
    """Return what a write answered.

    It was carried out: an answer that cannot be read is an error that says to run the command
    again.
    """
    known, fields = unchanged(order), answer.fields
    made = next((fields[name] for name in ("id", "appId", "idpId") if name in fields), known.id)
    secret, details = fields.get("clientSecret"), fields.get("details")
    problems = fields.get("complianceProblems", ())
    client_id = fields.get("clientId", known.client_id)
    try:
        return Written(
            id=id_of({"id": made}),
            sequence=sequence_of(details) if isinstance(details, dict) else known.sequence,
            client_id=text_of({"id": made, "clientId": client_id}, "clientId"),
            client_secret=Secret(secret) if isinstance(secret, str) and secret else None,
            problems=tuple(str(each.get("key")) for each in problems if isinstance(each, dict)),
        )
    except ServiceError as failure:
        return ServiceUnavailableError(failure.problem, remedy=AGAIN)


# The first of an update's two calls: the fields are not sent yet.
_RENAMES_ALONE = frozenset({"UpdateApp", "UpdateOrgIDP"})


def confirmed_result(order: Order, call: Call, now: Mapping[str, ObservedObject]) -> Written | None:
    """Return what carrying out the call gave if the service now holds what it asked for."""
    if isinstance(order, DeleteOrder):
        gone = order.held.id not in now
        return Written(order.held.id, order.held.sequence, order.held.client_id) if gone else None
    if not isinstance(order, UpdateOrder):
        return None
    held = now.get(order.held.id)
    if held is None or not _is_as_asked(order, call, held):
        return None
    return Written(held.id, held.sequence, held.client_id)


def _is_as_asked(order: UpdateOrder, call: Call, held: ObservedObject) -> bool:
    wanted = order.resource
    if call.operation in _RENAMES_ALONE:
        wanted = replace(wanted, spec=order.held.spec)
    tree = json.loads(call.context).get("tree") if call.context else None
    return is_in_step(wanted, held) and (tree is None or is_owned_by(held, tree))
