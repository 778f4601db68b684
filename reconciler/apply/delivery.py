"""Delivering client secrets to the sink, only for as long as the run is the one writer.

A sink may take minutes. Where another run has taken the lock meanwhile, it may have replaced the
secrets that are still to be delivered: an older secret must not be the last to reach a sink.

A service with custody keeps each secret until its delivery is acknowledged: claim, deliver,
acknowledge, a batch at a time. A run that is cut short anywhere in between loses nothing: what was
not acknowledged is still owed, and the next run on any machine claims the same secret again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.apply.journal import Journal, secret_intent
from reconciler.apply.orders import secret_order
from reconciler.apply.outcome import Delivered
from reconciler.apply.sink import Delivery, Kept, NotGivenError, SecretSink, Stops, never
from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.errors import (
    REFUSED,
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    UsageError,
)
from reconciler.plan.model import Adopt, Plan, Update
from reconciler.resources.oidc import has_client_secret
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import Context, ServiceClient, Written
from reconciler.state import ObservedObject, OwedSecret


class Lease:
    """The lock of a run while secrets are delivered. Called, it tells whether to stop.

    Attributes:
        lost: Why the lock could not be renewed; None while the run is the one writer.
    """

    def __init__(self, service: ServiceClient, stops: Stops) -> None:
        """Take the service that is written to, and what else asks to stop."""
        self.lost: ReconcilerError | None = None
        self._service = service
        self._stops = stops
        self._one_at_a_time = threading.Lock()

    def __call__(self) -> object:
        """Return a true value once no further secret may be given to a sink."""
        return self._stops() or self.renewed() is not None

    def renewed(self) -> ReconcilerError | None:
        """Renew the lock where that is due; return why that failed.

        Sinks call from threads of their own, and the service is spoken to by one at a time.
        """
        with self._one_at_a_time:
            if self.lost is None:
                try:
                    self._service.renew()
                except (ServiceError, LockHeldError) as failure:
                    self.lost = failure
            return self.lost


def deliver_held(
    sink: SecretSink, deliveries: Sequence[Delivery], service: ServiceClient, stops: Stops
) -> Sequence[Kept | ReconcilerError]:
    """Deliver secrets while the run is the one writer; return what became of each.

    A secret that was held back because the lock was lost has that failure in its place.
    """
    lease = Lease(service, stops)
    if deliveries and (lost := lease.renewed()):
        return [lost for _ in deliveries]
    results = sink.deliver(deliveries, lease) if deliveries else ()
    return [
        lease.lost if lease.lost and isinstance(result, NotGivenError) else result
        for result in results
    ]


def acknowledged(
    service: ServiceClient, delivered: Mapping[ResourceRef, Written]
) -> Sequence[Diagnostic]:
    """End the custody of secrets that are in the sink; return a finding where that failed."""
    if not delivered:
        return ()
    try:
        service.renew()
        service.acknowledge(delivered.values())
    except (LockHeldError, PreconditionFailedError) as failure:
        return [_may_be_older(ref, failure) for ref in delivered]
    except ServiceError as failure:
        return [
            warning(
                "SECRET-NOT-ACKNOWLEDGED",
                f"the service was not told of a delivery: {failure.problem}",
                f"{len(delivered)} client secret(s) are in the sink and still count as owed; the "
                "next apply delivers the same ones again.",
            )
        ]
    return ()


def _may_be_older(ref: ResourceRef, failure: ReconcilerError) -> Diagnostic:
    return error(
        "SECRET-DELIVERED-LATE",
        "a client secret was delivered after the lock was lost",
        f"{failure.problem}. That run may have replaced the client secret of {ref} before this "
        "run delivered its own. See `reconciler history "
        f"{ref.address}`: if the secret was replaced, deliver the present one again or make a "
        f"new one with --rotate-missing {ref.address}.",
        ref=ref,
    )


@dataclass(slots=True)
class DeliveryResult:
    """The result of delivering secrets that earlier runs made.

    Attributes:
        notes: Findings for a person; an error is about a secret that may be lost.
        delivered: Each secret that was tried, in the order given, with its place or its error.
        failure: The failure after which nothing more was tried; None if there was none.
    """

    notes: list[Diagnostic] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    failure: ReconcilerError | None = None


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
    context: Context,
    stops: Stops = never,
) -> DeliveryResult:
    """Deliver what the service keeps; return what became of it. Nothing is raised for a failure.

    The caller has proven the sink and is the one writer of the organizations.
    """
    done = DeliveryResult()
    for start in range(0, len(owed), service.batch_size):
        if done.failure or stops():
            break
        batch = owed[start : start + service.batch_size]
        try:
            service.renew()
            claimed = service.claim(batch, context)
        except (ServiceError, LockHeldError) as failure:
            done.failure = failure
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
    done: DeliveryResult,
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
            done.failure = result


def _failed(secret: OwedSecret, failure: ReconcilerError) -> Delivered:
    return Delivered(secret.ref, secret.id, secret.client_id, error=failure)


def rotate(
    held: ObservedObject,
    service: ServiceClient,
    journal: Journal,
    sink: SecretSink,
    context: Context,
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
