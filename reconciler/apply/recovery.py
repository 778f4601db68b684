"""Recovery: ending what an interrupted run left open, without touching what it did not make.

Nothing is made or replaced here. A service with custody knows what is owed, and the journal only
spares it a question. A service that repeats its first answers gives the secret of a create again
for its key. With any other service the sink is asked: a secret that is not there is reported, and a
person decides.

The number of shards changes, and a run may be made without any. So a run also takes over what
journals of other shards leave open of its organizations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.apply.delivery import DeliveryResult, deliver_held
from reconciler.apply.journal import Intent, Journal, intents_in, left_open
from reconciler.apply.missing_secrets import not_in_sink
from reconciler.apply.outcome import Delivered
from reconciler.apply.sink import (
    Application,
    Delivery,
    Kept,
    NotGivenError,
    SecretSink,
    Stops,
    never,
)
from reconciler.apply.sink_sync import SINK_PURPOSES
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import (
    REFUSED,
    AccessDeniedError,
    AlreadyExistsError,
    ReconcilerError,
    ServiceError,
)
from reconciler.plan.model import signs_in_with_secret
from reconciler.resources.process import crashpoint
from reconciler.service_client.port import Context, CreateOrder, ServiceClient, Written
from reconciler.state import ObservedObject, ObservedState


class _Open(NamedTuple):
    """An intent whose secret may not be delivered, and the application it is about."""

    intent: Intent
    held: ObservedObject


class Recovery:
    """Ends what earlier runs left open."""

    def __init__(
        self,
        service: ServiceClient,
        journal: Journal,
        sink: SecretSink | None,
        context: Context,
        stops: Stops = never,
    ) -> None:
        """Take what recovery works with; the context is sent with every repeated call."""
        self._stops = stops
        self._service = service
        self._journal = journal
        self._sink = sink
        self._context = context
        self._recovered = DeliveryResult()

    def recover(
        self,
        observed: ObservedState,
        organizations: Collection[str],
        delivered: Collection[str] = (),
    ) -> DeliveryResult:
        """End every intent that an earlier run left open, or keep it for a run that can.

        ``delivered`` are the ids of the applications whose owed secret this run has delivered. An
        intent of an organization that was not observed is left as it is.

        Raises:
            ServiceError: the service cannot be reached; everything stays open for the next run.
            LocalFileError: a secret could not be delivered; it stays open likewise.
            LockHeldError: another run took the lock before a delivery; it stays open likewise.
        """
        owed = {secret.id: secret for secret in observed.owed if not secret.lost}
        by_id = {held.id: held for held in observed.objects.values()}
        ended: list[Intent] = []
        left: list[_Open] = []
        for intent in intents_in(self._journal.open_intents, organizations):
            if intent.purpose in SINK_PURPOSES:
                continue
            held = by_id.get(intent.id) if intent.id else observed.objects.get(intent.ref.key)
            if held is None or not intent.owes_secret or not signs_in_with_secret(held):
                # A create that never happened is made with a new key. A request that is still
                # under way carries the lease of its run, which has ended, and is refused.
                ended.append(intent)
            elif held.id not in owed:
                left.append(_Open(intent, held))
            elif held.id in delivered:
                ended.append(intent)
                if intent.run and owed[held.id].run != intent.run:
                    self._recovered.notes.append(_taken(held))
        self._journal.end([intent.key for intent in ended])
        if left:
            self._settle(left, has_custody=observed.custody)
        return self._recovered

    def _settle(self, left: Sequence[_Open], *, has_custody: bool) -> None:
        """End intents whose secret is not owed: another run made it, or it was delivered."""
        first = self._first_answers(left)
        found: list[tuple[_Open, Delivery]] = []
        done: list[_Open] = []
        unknown: list[_Open] = []
        for each in left:
            answer = first.get(each.intent.key)
            if isinstance(answer, Written):
                if _is_latest(answer, each.held) and answer.client_secret is not None:
                    secret = Delivery(each.held.ref, answer.client_id, answer.client_secret)
                    found.append((each, secret))
                elif has_custody or answer.id != each.held.id:
                    done.append(each)
                else:
                    unknown.append(each)
            elif isinstance(answer, AlreadyExistsError):
                # The service has never seen the key, or forgot it after a day.
                self._recovered.notes.append(_taken(each.held))
                done.append(each)
            else:
                (done if has_custody else unknown).append(each)
        done += self._asked_of_sink(unknown)
        failures = self._deliver(found, done)
        self._journal.end([each.intent.key for each in done])
        if failures:
            raise failures[0]

    def _asked_of_sink(self, unknown: Sequence[_Open]) -> Sequence[_Open]:
        """Report secrets that are not in the sink; return the intents that end with that."""
        if self._sink is None:
            self._recovered.notes += [_still_owed(each.held) for each in unknown]
            return ()
        for each in unknown:
            # A replaced secret cannot be told from the old one: both have the same client id.
            is_create = each.intent.purpose == "create"
            application = Application(each.held.ref, each.held.client_id)
            if not (is_create and self._sink.held([application])[0]):
                self._recovered.notes.append(not_in_sink(each.held.ref, is_error=True))
        return unknown

    def _deliver(
        self, found: Sequence[tuple[_Open, Delivery]], done: list[_Open]
    ) -> Sequence[ReconcilerError]:
        """Deliver the secrets that were answered again; add to ``done``; return the failures."""
        if not found:
            return ()
        if self._sink is None:
            self._recovered.notes += [_still_owed(each.held) for each, _ in found]
            return ()
        deliveries = [delivery for _, delivery in found]
        self._sink.prove([delivery.ref for delivery in deliveries])
        failures: list[ReconcilerError] = []
        results = deliver_held(self._sink, deliveries, self._service, self._stops)
        for (each, delivery), kept in zip(found, results, strict=True):
            if isinstance(kept, Kept):
                self._recovered.notes += [_delivered(each.held), *kept.notes]
                delivered = Delivered(delivery.ref, each.held.id, delivery.client_id, kept.at)
                self._recovered.delivered.append(delivered)
                done.append(each)
            elif not isinstance(kept, NotGivenError):  # after a signal the intent stays open
                failures.append(kept)
        return failures

    def _first_answers(self, left: Sequence[_Open]) -> Mapping[str, Written | ServiceError]:
        """Ask for the first answers again, by the keys with which the creates were sent.

        This cannot make a second object: the name is taken, and this run is the only writer.
        """
        if not self._service.keeps_answers:
            return {}
        creates = [each for each in left if each.intent.purpose == "create"]
        results = self._service.write([_create_again(*each) for each in creates], self._context)
        for result in results:
            if isinstance(result, ServiceError) and (
                not isinstance(result, REFUSED) or isinstance(result, AccessDeniedError)
            ):
                raise result  # a later run asks again
        return {each.intent.key: result for each, result in zip(creates, results, strict=True)}


def _is_latest(answer: Written, held: ObservedObject) -> bool:
    """Return whether an answered secret is still valid: the object had no event since.

    Any later event may have made a new secret.
    """
    return answer.id == held.id and answer.sequence == held.sequence


def _create_again(intent: Intent, held: ObservedObject) -> CreateOrder:
    return CreateOrder(
        ref=intent.ref,
        spec=intent.spec or {},
        key=intent.key,
        organization_id=held.organization_id,
        project_id=held.project_id,
        prevent_delete=intent.prevent_delete,
        critical=intent.critical,
    )


def _delivered(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-SECRET-DELIVERED",
        "a secret of an interrupted run was delivered",
        f"The client secret of {held.ref} was made by a run that was cut short; it is the "
        "same secret, and it is now in the sink.",
        ref=held.ref,
    )


def _taken(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-NAME-TAKEN",
        "another run made what an interrupted run was about to make",
        f"{held.ref} (id {held.id}) was made by another run, or more than a day ago. Its client "
        "secret is left as it is.",
        ref=held.ref,
    )


def _still_owed(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-SECRET-OWED",
        "a secret of an interrupted run was not delivered yet",
        f"The client secret of {held.ref} has no destination. Give --secrets-to and run the "
        "command again.",
        ref=held.ref,
    )


def take_over(journal: Journal, others: Iterable[Path], organizations: Collection[str]) -> None:
    """Move what other journals of the tree leave open of these organizations into this one.

    The caller holds the lock of the organizations, so no run that could still end them is under
    way. A crash in between leaves an intent in both, which is ended twice and done once.

    Raises:
        LockHeldError: such a journal is in use.
        LocalFileError: a journal cannot be read or written.
    """
    for path in others:
        if not intents_in(left_open(path), organizations):
            continue
        with Journal(path) as other:
            found = intents_in(other.open_intents, organizations)
            journal.begin(found)
            crashpoint("C14")
            other.end([intent.key for intent in found])
