"""Orders as calls: which operations of the service carry out an order, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
)

_CREATES: Mapping[Kind, str] = {
    Kind.ORGANIZATION: "AddOrg",
    Kind.PROJECT: "AddProject",
    Kind.IDP_JWT_CONFIG: "AddOrgJWTIDP",
    Kind.OIDC_APPLICATION: "AddOIDCApp",
    Kind.ACTION: "CreateAction",
}


def calls_of(order: Order, context: Mapping[str, Any], run: str = "") -> Sequence[Call]:
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


def _create(order: CreateOrder, context: Mapping[str, Any], run: str) -> Call:
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


def _update_nothing(order: UpdateOrder, context: Mapping[str, Any]) -> Sequence[Call]:
    """Return no call: organizations and projects have nothing that changes."""
    return ()


def _update_action(order: UpdateOrder, context: Mapping[str, Any]) -> Sequence[Call]:
    name = order.resource.ref.name
    if (order.held.ref.name, order.held.spec) == (name, order.resource.spec):
        return ()
    fields = {"id": order.held.id, "name": name, **_sent(order)}
    return (_update(order, context, "UpdateAction", fields),)


def _update_idp(order: UpdateOrder, context: Mapping[str, Any]) -> Sequence[Call]:
    target = {"idpId": order.held.id}
    return _renamed_and_configured(
        order, context, target, rename="UpdateOrgIDP", configure="UpdateOrgIDPJWTConfig"
    )


def _update_application(order: UpdateOrder, context: Mapping[str, Any]) -> Sequence[Call]:
    target = {"projectId": order.held.project_id, "appId": order.held.id}
    return _renamed_and_configured(
        order, context, target, rename="UpdateApp", configure="UpdateOIDCAppConfig"
    )


def _renamed_and_configured(
    order: UpdateOrder,
    context: Mapping[str, Any],
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


def _update(
    order: UpdateOrder, context: Mapping[str, Any], operation: str, fields: Mapping[str, Any]
) -> Call:
    return Call(
        operation,
        fields,
        organization=order.held.organization_id,
        expected_sequence=order.held.sequence,
        context=_context_text(context, order.resource.prevent_delete, order.resource.critical),
    )


_UPDATES: Mapping[Kind, Callable[[UpdateOrder, Mapping[str, Any]], Sequence[Call]]] = {
    Kind.IDP_JWT_CONFIG: _update_idp,
    Kind.OIDC_APPLICATION: _update_application,
    Kind.ACTION: _update_action,
}


def _delete(order: DeleteOrder, context: Mapping[str, Any]) -> Call:
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


def _context_text(context: Mapping[str, Any], prevent_delete: object, critical: object) -> str:
    return json.dumps({**context, "preventDelete": prevent_delete, "critical": critical})
