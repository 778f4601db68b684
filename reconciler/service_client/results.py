"""Replies of the wire as results of orders: what is known of an object once it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.resources.secret import Secret
from reconciler.service_client.observation import id_of, sequence_of, text_of
from reconciler.service_client.port import CreateOrder, Order, SecretOrder, Written
from reconciler.service_client.refusals import AGAIN, service_error
from reconciler.service_client.wire import Answer, WireRefusal


def unchanged(order: Order) -> Written:
    """Return the result of an order before any of its calls: what is known of the object."""
    match order:
        case CreateOrder():
            return Written("", 0)
        case SecretOrder():
            return Written(order.id, 0, order.client_id)
        case _:
            return Written(order.held.id, order.held.sequence, order.held.client_id)


def result_of(order: Order, reply: Answer | WireRefusal) -> Written | ServiceError:
    """Return the result of a call of an order.

    What was carried out and cannot be read is an error that says to run the command again.
    """
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    known, fields = unchanged(order), reply.fields
    try:
        return _written(known, fields)
    except ServiceError as failure:
        return ServiceUnavailableError(failure.problem, remedy=AGAIN)


def _written(known: Written, fields: Mapping[str, Any]) -> Written:
    """Return what a write answered. It was carried out, so nothing here is a refusal.

    Raises:
        ServiceError: the answer lacks what every answer has.
    """
    made = next((fields[name] for name in ("id", "appId", "idpId") if name in fields), known.id)
    secret, details = fields.get("clientSecret"), fields.get("details")
    problems = fields.get("complianceProblems", ())
    client_id = fields.get("clientId", known.client_id)
    return Written(
        id=id_of({"id": made}),
        sequence=sequence_of(details) if isinstance(details, dict) else known.sequence,
        client_id=text_of({"id": made, "clientId": client_id}, "clientId"),
        client_secret=Secret(secret) if isinstance(secret, str) and secret else None,
        problems=tuple(str(problem["key"]) for problem in problems),
    )
