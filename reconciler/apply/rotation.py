"""Giving one application a new client secret, delivered before it says done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.apply.healing import secret_order
from reconciler.apply.journal import Journal, secret_intent
from reconciler.apply.lease import acknowledged, deliver_held
from reconciler.apply.sink import Delivery, Kept, SecretSink, never
from reconciler.errors import REFUSED, ReconcilerError, ServiceError, UsageError
from reconciler.resources.crashpoint import crashpoint
from reconciler.resources.oidc import has_client_secret
from reconciler.service_client.port import ServiceClient
from reconciler.state import ObservedObject


def rotate(
    held: ObservedObject,
    service: ServiceClient,
    journal: Journal,
    sink: SecretSink,
    context: Mapping[str, Any],
) -> Kept:
    """Make a new secret, deliver it, and return its place. The old one ends at once.

    A service with custody keeps the new secret until its delivery is acknowledged, so that any
    later apply of the same tree delivers it where this run is cut short.

    Raises:
        UsageError: the application has no client secret.
        LocalFileError: the sink or the journal failed; the intent stays open.
        LockHeldError: another run took the lock before the delivery; the secret is owed.
        ServiceError: the service refused.
    """
    if not has_client_secret(held.spec):
        raise UsageError(
            f"{held.ref} signs in without a client secret",
            remedy="Only applications with authMethodType BASIC or POST have one.",
        )
    sink.prove([held.ref])
    intent = secret_intent(held.ref, held.id, service.run)
    journal.begin([intent])
    crashpoint("C2")
    (result,) = service.write([secret_order(held)], context)
    crashpoint("C6")
    if isinstance(result, ServiceError):
        if isinstance(result, REFUSED):
            journal.end([intent.key])
        raise result
    if result.client_secret is None:
        raise ServiceError(
            f"the service gave no secret for {held.ref}", remedy="Run the command again."
        )
    delivery = Delivery(held.ref, result.client_id, result.client_secret)
    (kept,) = deliver_held(sink, [delivery], service, never)
    if isinstance(kept, ReconcilerError):
        raise kept
    crashpoint("C10")
    notes = acknowledged(service, {held.ref: result})
    crashpoint("C18")
    journal.end([intent.key])
    return replace(kept, notes=(*kept.notes, *notes))
