"""Delivering client secrets that the service keeps until their delivery is acknowledged.

Claim, deliver, acknowledge, a batch at a time. A run that is cut short anywhere in between loses
nothing: what was not acknowledged is still owed, and the next run on any machine claims the same
secret again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.apply.outcome import Delivered
from reconciler.apply.sink import Delivery, Kept, SecretSink, Stops, never
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError, LockHeldError, ReconcilerError, ServiceError
from reconciler.resources.crashpoint import crashpoint
from reconciler.service_client.port import ServiceClient, Written
from reconciler.state import OwedSecret


@dataclass(slots=True)
class Handover:
    """The result of delivering secrets that were owed.

    Attributes:
        delivered: Each secret that was tried, in the order given, with its place or its error.
        notes: Findings for a person.
        broken: The failure after which nothing more was tried; None where there was none.
    """

    delivered: list[Delivered] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    broken: ReconcilerError | None = None


def deliver_owed(
    owed: Sequence[OwedSecret],
    service: ServiceClient,
    sink: SecretSink,
    context: Mapping[str, Any],
    stops: Stops = never,
) -> Handover:
    """Deliver what the service keeps; return what became of it. Nothing is raised for a failure.

    The caller has proven the sink and is the one writer of the organizations.
    """
    done = Handover()
    for start in range(0, len(owed), service.batch_size):
        if done.broken or stops():
            break
        batch = owed[start : start + service.batch_size]
        try:
            service.renew()
            claimed = service.claim(batch, context)
        except (ServiceError, LockHeldError) as failure:
            done.broken = failure
            done.delivered += [_failed(secret, failure) for secret in batch]
            break
        crashpoint("C15")
        _deliver(batch, claimed, sink, done, stops)
        crashpoint("C16")
        in_sink = {each.id for each in done.delivered if each.error is None}
        kept = [each for each in claimed if isinstance(each, Written) and each.id in in_sink]
        done.notes += acknowledged(service, kept)
        crashpoint("C17")
    return done


def _deliver(
    batch: Sequence[OwedSecret],
    claimed: Sequence[Written | ServiceError],
    sink: SecretSink,
    done: Handover,
    stops: Stops,
) -> None:
    deliveries = [
        Delivery(secret.ref, result.client_id, result.client_secret)
        for secret, result in zip(batch, claimed, strict=True)
        if isinstance(result, Written) and result.client_secret
    ]
    results = iter(sink.deliver(deliveries, stops) if deliveries else ())
    for secret, claim in zip(batch, claimed, strict=True):
        result = next(results) if isinstance(claim, Written) else claim
        if isinstance(result, Kept):
            found = Delivered(secret.ref, secret.id, secret.client_id, result.at)
            done.delivered.append(found)
            done.notes += result.notes
            continue
        done.delivered.append(_failed(secret, result))
        if isinstance(result, LocalFileError):
            done.broken = result


def acknowledged(service: ServiceClient, delivered: Collection[Written]) -> Sequence[Diagnostic]:
    """End the custody of secrets that are in the sink; return a note where that failed."""
    if not delivered:
        return ()
    try:
        service.acknowledge(delivered)
    except ServiceError as failure:
        return (
            warning(
                "SECRET-NOT-ACKNOWLEDGED",
                f"the service was not told of a delivery: {failure.problem}",
                f"{len(delivered)} client secret(s) are in the sink and still count as owed; the "
                "next apply delivers the same ones again.",
            ),
        )
    return ()


def _failed(secret: OwedSecret, failure: ReconcilerError) -> Delivered:
    return Delivered(secret.ref, secret.id, secret.client_id, error=failure)
