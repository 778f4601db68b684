"""Client secrets and the sink: delivering what is owed, reporting what is missing.

A sink may take minutes, and another run that has taken the lock meanwhile may have replaced the
secret. An older one must not be the last to reach a sink: only the one writer delivers.

A service with custody keeps each secret until its delivery is acknowledged: claim, deliver,
acknowledge, a batch at a time. What was not acknowledged is still owed, and the next run on any
machine claims the same secret again. A service without custody cannot be asked what was delivered;
the sink can, if it is of a kind that tells. Nothing is made or replaced for what it lacks.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.apply.changes import ChangeRun, Delivered, Outcome, Status
from reconciler.apply.journal import Intent, Journal, new_key
from reconciler.apply.sink import (
    Application,
    Delivery,
    Kept,
    NotGivenError,
    SecretSink,
    Stops,
    never,
)
from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.errors import (
    REFUSED,
    LocalFileError,
    LockHeldError,
    NotDeliveredError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import (
    Create,
    Delete,
    Plan,
    Rewrite,
    held_of,
    makes_secret,
    ref_of,
    signs_in_with_secret,
)
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import Context, SecretOrder, ServiceClient, Written
from reconciler.state import ObservedObject, ObservedState, OwedSecret

_WITH_SECRET = " or ".join(
    f"{row.plural} with {row.secrets.said_by}" for row in KINDS.values() if row.secrets
)


def deliver_held(
    sink: SecretSink, deliveries: Sequence[Delivery], service: ServiceClient, stops: Stops
) -> Sequence[Kept | ReconcilerError]:
    """Deliver secrets while the run is the one writer; return what became of each.

    A secret that was held back because the lock was lost has that failure in its place.
    """
    lost: list[ReconcilerError] = []
    one_at_a_time = threading.Lock()  # sinks call from threads of their own

    def has_lost_lock() -> bool:
        with one_at_a_time:
            if not lost:
                try:
                    service.renew()
                except (ServiceError, LockHeldError) as failure:
                    lost.append(failure)
            return bool(lost)

    if not deliveries or has_lost_lock():
        return lost * len(deliveries)
    results = sink.deliver(deliveries, lambda: stops() or has_lost_lock())
    return [lost[0] if lost and isinstance(each, NotGivenError) else each for each in results]


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
                f"a delivery was not acknowledged: {failure.problem}",
                f"{len(delivered)} client secret(s) are in the sink and still count as owed; the "
                "next apply delivers the same ones again.",
            )
        ]
    return ()


def _may_be_older(ref: ResourceRef, failure: ReconcilerError) -> Diagnostic:
    return error(
        "SECRET-DELIVERED-LATE",
        "a client secret was delivered after the lock was lost",
        f"{failure.problem}. That run may have replaced the client secret of {ref} before this run "
        f"delivered its own. See `reconciler history {ref.address}`: if the secret was replaced, "
        f"deliver the present one again or make a new one with --rotate-missing {ref.address}.",
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
        if isinstance(change, Rewrite)
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
            return done
        crashpoint("C15")
        deliveries = [
            Delivery(secret.ref, result.client_id, result.client_secret)
            for secret, result in zip(batch, claimed, strict=True)
            if isinstance(result, Written) and result.client_secret
        ]
        results = deliver_held(sink, deliveries, service, stops)
        in_sink = _take_note(batch, claimed, results, done)
        crashpoint("C16")
        done.notes += acknowledged(service, in_sink)
        crashpoint("C17")
    return done


def _take_note(
    batch: Sequence[OwedSecret],
    claimed: Sequence[Written | ServiceError],
    delivered: Sequence[Kept | ReconcilerError],
    done: DeliveryResult,
) -> Mapping[ResourceRef, Written]:
    """Add what became of each secret of a batch; return the claims of those in the sink."""
    in_sink = {}
    results = iter(delivered)
    for secret, claim in zip(batch, claimed, strict=True):
        if isinstance(claim, ServiceError):
            done.delivered.append(_failed(secret, claim))
            continue
        result = next(results)
        if isinstance(result, Kept):
            done.delivered.append(Delivered(secret.ref, secret.id, secret.client_id, result.at))
            done.notes += result.notes
            in_sink[secret.ref] = claim
        else:  # the sink or the lock failed, not this one claim: nothing more is tried
            done.delivered.append(_failed(secret, result))
            done.failure = result
    return in_sink


def _failed(secret: OwedSecret, failure: ReconcilerError) -> Delivered:
    return Delivered(secret.ref, secret.id, secret.client_id, error=failure)


def rotate(
    held: ObservedObject,
    service: ServiceClient,
    journal: Journal,
    sink: SecretSink,
    context: Context,
    *,
    custody: bool,
) -> Kept:
    """Make a new secret, deliver it, and return its place. The old one ends at once.

    Where this run is cut short, a later apply of the tree delivers what the ``custody`` of the
    service keeps; without custody, the journal lets it report what is missing.

    Raises:
        UsageError: the application has no client secret.
        LocalFileError: the sink or the journal failed before the secret was replaced.
        NotDeliveredError: the secret was replaced, and the sink did not take the new one.
        LockHeldError: another run took the lock before the delivery; the secret is owed.
        ServiceUnavailableError: the service did not answer; the secret may have been replaced.
        ServiceError: the service refused.
    """
    if not signs_in_with_secret(held):
        raise UsageError(
            f"{held.ref} signs in without a client secret",
            remedy=f"Only {_WITH_SECRET} have one.",
        )
    sink.prove([held.ref])
    intents = [] if custody else [Intent("secret", new_key(), held.ref, held.id)]
    keys = [intent.key for intent in intents]
    journal.begin(intents)
    crashpoint("C2")
    (result,) = service.write([SecretOrder(held)], context)
    crashpoint("C6")
    if isinstance(result, ServiceUnavailableError):
        raise _perhaps_replaced(result, custody=custody) from result
    if isinstance(result, ServiceError):
        if isinstance(result, REFUSED):
            journal.end(keys)
        raise result
    if result.client_secret is None:
        raise ServiceError(
            f"the service gave no secret for {held.ref}", remedy="Run the command again."
        )
    delivery = Delivery(held.ref, result.client_id, result.client_secret)
    (kept,) = deliver_held(sink, [delivery], service, never)
    if isinstance(kept, LocalFileError):
        raise _not_delivered(held, kept, custody=custody)
    if isinstance(kept, ReconcilerError):
        raise kept
    crashpoint("C10")
    notes = acknowledged(service, {held.ref: result})
    crashpoint("C18")
    # A secret that an earlier run may have lost is of no use any more.
    journal.end([intent.key for intent in journal.open_intents if _is_replaced(intent, held)])
    return replace(kept, notes=(*kept.notes, *notes))


def _perhaps_replaced(failure: ServiceError, *, custody: bool) -> ServiceUnavailableError:
    """Return the failure of a rotation, with what to do if it was carried out all the same."""
    owed = (
        "is owed: `reconciler secret deliver` delivers it. Running the command again replaces it "
        "once more."
    )
    gone = "is lost: run the command again for another."
    return ServiceUnavailableError(
        failure.problem,
        remedy="If the client secret was replaced all the same, the old one has ended and the new "
        f"one {owed if custody else gone}",
    )


def _not_delivered(
    held: ObservedObject, failure: LocalFileError, *, custody: bool
) -> NotDeliveredError:
    owed = "The new one is owed: `reconciler secret deliver` delivers it as well."
    gone = "This service keeps no secret: once the sink works, run the command again for another."
    return NotDeliveredError(
        f"the client secret of {held.ref} was replaced, and the new one is not in the sink: "
        f"{failure.problem}",
        remedy=f"The old one has ended. {f'{failure.remedy} {owed}' if custody else gone}",
    )


def _is_replaced(intent: Intent, held: ObservedObject) -> bool:
    """Return whether an intent is about the secret of an application, or an earlier one."""
    is_its_own = intent.id == held.id if intent.id else intent.ref.key == held.ref.key
    return intent.purpose == "secret" and is_its_own


def missing_secrets(
    applications: Sequence[Application], made: Collection[str], sink: SecretSink, *, required: bool
) -> Iterator[Diagnostic]:
    """Yield a finding about each application whose secret is not in the sink.

    It is an error where this run made the secret (``made`` are client ids), or where all of them
    are required; otherwise a warning, as the secret may be kept in another place.
    """
    answers = sink.held(applications)
    for application, is_held in zip(applications, answers, strict=True):
        if is_held is False:
            is_error = required or application.client_id in made
            yield not_in_sink(application.ref, is_error=is_error)
    unknown = sum(is_held is None for is_held in answers)
    if unknown and required:
        yield error(
            "SECRET-SINK-CANNOT-TELL",
            "the sink cannot say which secrets it holds",
            f"--require-secrets asks for {unknown} of them. Use a sink that can say it, make the "
            "files in its folder readable for this user, or leave the flag out.",
        )


def unanswered_secrets(runs: Sequence[ChangeRun], sink: SecretSink) -> Iterator[Diagnostic]:
    """Yield an error about each created application whose secret the service did not answer.

    That is so where an answer was lost and the service keeps none: the object was found, and no
    new secret is made for what another run may have made and delivered to the same sink.
    """
    for run in runs:
        result = run.result
        is_made = isinstance(run.change, Create) and makes_secret(run.change)
        if is_made and isinstance(result, Written) and result.client_secret is None:
            yield from lost_unless_held(Application(ref_of(run.change), result.client_id), sink)


def lost_unless_held(application: Application, sink: SecretSink) -> Iterator[Diagnostic]:
    """Yield an error about a secret that is lost unless the sink holds it."""
    (is_held,) = sink.held([application])
    if is_held is False:
        yield not_in_sink(application.ref, is_error=True)
    elif is_held is None:  # it only takes secrets, or has a file that it cannot read
        yield error(
            "SECRET-NOT-IN-SINK",
            "it is not known whether the sink holds the secret of an application",
            f"{application.ref} signs in with a secret that may be lost. Look for it in the sink, "
            "also in files that this user cannot read. If it is there, nothing needs to be done. "
            f"{_if_unused(application.ref)}",
            ref=application.ref,
        )


def not_in_sink(ref: ResourceRef, *, is_error: bool) -> Diagnostic:
    """Return the finding that the secret of an application is not in the sink."""
    return (error if is_error else warning)(
        "SECRET-NOT-IN-SINK",
        "the sink does not hold the secret of an application",
        f"{ref} signs in with a secret that is not in this sink. {_if_unused(ref)}",
        ref=ref,
    )


def _if_unused(ref: ResourceRef) -> str:
    return (
        "If no deployment has it, make a new one: "
        f"reconciler apply --rotate-missing {shlex.quote(ref.address)}"
    )


def declared_applications(
    plan: Plan, observed: ObservedState, outcomes: Sequence[Outcome]
) -> Sequence[Application]:
    """Return the declared applications that sign in with a secret, as they are after a run.

    Objects that share their name are left out.
    """
    shared = {double.ref.key for double in observed.name_clashes}
    found = [
        Application(ref, observed.objects[ref.key].client_id)
        for ref in plan.in_step
        if KINDS[ref.kind].secrets
        and ref.key not in shared
        and signs_in_with_secret(observed.objects[ref.key])
    ]
    for outcome in outcomes:
        change = outcome.change
        if isinstance(change, Delete):
            continue
        held = held_of(change)
        if outcome.status is Status.MADE:
            if signs_in_with_secret(change.resource):
                found.append(Application(change.resource.ref, outcome.client_id))
        elif held is not None and signs_in_with_secret(held):
            found.append(Application(held.ref, held.client_id))
    return found
