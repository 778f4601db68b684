"""Delivering client secrets that the service keeps until their delivery is acknowledged.

Claim, deliver, acknowledge, a batch at a time. A run that is cut short anywhere in between loses
nothing: what was not acknowledged is still owed, and the next run on any machine claims the same
secret again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.apply.lease import acknowledged, deliver_held
from reconciler.apply.outcome import Delivered
from reconciler.apply.sink import Delivery, Kept, SecretSink, Stops, never
from reconciler.diagnostics import Diagnostic
from reconciler.errors import LockHeldError, ReconcilerError, ServiceError
from reconciler.plan.model import Adopt, Plan, Update
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


def owed_for(sink: SecretSink | None, plan: Plan) -> Sequence[OwedSecret]:
    """Return what is owed to the tree, by the names that a sink is to keep it under.

    A sink that does not follow renames gets the secret of an application that the plan renames
    under its new name.
    """
    if sink is None or sink.follows:
        return plan.deliverable
    refs = {
        change.held.id: change.resource.ref
        for change in plan.changes
        if isinstance(change, Update | Adopt)
    }
    return [replace(each, ref=refs.get(each.id, each.ref)) for each in plan.deliverable]


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
        deliveries = [
            Delivery(secret.ref, result.client_id, result.client_secret)
            for secret, result in zip(batch, claimed, strict=True)
            if isinstance(result, Written) and result.client_secret
        ]
        _take_note(batch, claimed, deliver_held(sink, deliveries, service, stops), done)
        crashpoint("C16")
        in_sink = {each.id: each.ref for each in done.delivered if each.error is None}
        kept = [each for each in claimed if isinstance(each, Written) and each.id in in_sink]
        done.notes += acknowledged(service, {in_sink[each.id]: each for each in kept})
        crashpoint("C17")
    return done


def _take_note(
    batch: Sequence[OwedSecret],
    claimed: Sequence[Written | ServiceError],
    delivered: Sequence[Kept | ReconcilerError],
    done: Handover,
) -> None:
    """Add what became of each secret of a batch."""
    results = iter(delivered)
    for secret, claim in zip(batch, claimed, strict=True):
        result = next(results) if isinstance(claim, Written) else claim
        if isinstance(result, Kept):
            found = Delivered(secret.ref, secret.id, secret.client_id, result.at)
            done.delivered.append(found)
            done.notes += result.notes
            continue
        done.delivered.append(_failed(secret, result))
        if result is not claim:  # the sink or the lock failed, not this one claim
            done.broken = result


def _failed(secret: OwedSecret, failure: ReconcilerError) -> Delivered:
    return Delivered(secret.ref, secret.id, secret.client_id, error=failure)
