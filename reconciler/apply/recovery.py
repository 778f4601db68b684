"""Recovery: ending what an interrupted run left open, without touching what it did not make.

Nothing is made or replaced here. A service with custody knows what is owed, and the journal only
spares it a question. A service that repeats its first answers gives the secret of a create again
for its key. With any other the sink is asked: a missing secret is reported, and a person decides.

A secret in the sink follows its application's rename and goes with its delete. Each is an intent
before the change is sent, so that a run that is killed between the change and the file is ended
by the next one.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reconciler.apply.changes import ChangeRun, Delivered
from reconciler.apply.delivery import DeliveryResult, deliver_held, not_in_sink
from reconciler.apply.journal import Intent, Journal, intents_in
from reconciler.apply.sink import (
    Application,
    Delivery,
    Kept,
    Move,
    NotGivenError,
    SecretSink,
    Stops,
)
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import (
    REFUSED,
    AccessDeniedError,
    AlreadyExistsError,
    LocalFileError,
    ReconcilerError,
    ServiceError,
)
from reconciler.plan.model import Change, Create, Delete, signs_in_with_secret
from reconciler.resources.ref import Kind, ResourceRef, organization_ref
from reconciler.service_client.port import Context, CreateOrder, ServiceClient, Written
from reconciler.state import ObservedObject, ObservedState

_OF_THE_SINK = {"rename", "delete"}  # purposes of intents that ``SinkSync`` ends


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
        stops: Stops,
    ) -> None:
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
        by_id = {held.id: held for held in observed.everything}
        ended: list[Intent] = []
        left: list[_Open] = []
        for intent in intents_in(self._journal.open_intents, organizations):
            if intent.purpose in _OF_THE_SINK:
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
                if owed[held.id].run != intent.run:
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
            is_settled = has_custody
            if isinstance(answer, Written):
                # Any event since then may have made a new secret.
                is_latest = (answer.id, answer.sequence) == (each.held.id, each.held.sequence)
                if is_latest and answer.client_secret is not None:
                    secret = Delivery(each.held.ref, answer.client_id, answer.client_secret)
                    found.append((each, secret))
                    continue
                is_settled |= answer.id != each.held.id
            elif isinstance(answer, AlreadyExistsError):
                # The service has never seen the key, or forgot it after a day.
                self._recovered.notes.append(_taken(each.held))
                is_settled = True
            (done if is_settled else unknown).append(each)
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


class SinkSync:
    """Lets one sink follow the renames and deletes of one run; without a sink it does nothing."""

    def __init__(self, journal: Journal, sink: SecretSink | None) -> None:
        self._journal = journal
        self._sink = sink
        self._begun: dict[str, Intent] = {}
        self._ended: list[str] = []

    def intents(self, runs: Sequence[ChangeRun]) -> Sequence[Intent]:
        """Return what to record before changes are sent."""
        found = [_intent(run.change) for run in runs] if self._sink is not None else []
        self._begun = {intent.id: intent for intent in found if intent is not None}
        return tuple(self._begun.values())

    def follow(self, runs: Sequence[ChangeRun]) -> Sequence[Diagnostic]:
        """Let the sink follow what was carried out of these changes; return what was done.

        What may still have happened at the service stays open in the journal.
        """
        moves: list[tuple[Intent, ResourceRef]] = []
        gone: list[Intent] = []
        for run in runs:
            change, result = run.change, run.result
            if isinstance(change, Create) or change.held.id not in self._begun:
                continue
            intent = self._begun.pop(change.held.id)
            if isinstance(result, REFUSED):
                self._ended.append(intent.key)
            elif isinstance(result, Written) and isinstance(change, Delete):
                gone.append(intent)
            elif isinstance(result, Written) and not isinstance(change, Delete):
                moves.append((intent, change.resource.ref))
        return self._carry_out(moves, gone)

    def recover(self, observed: ObservedState, organizations: Collection[str]) -> list[Diagnostic]:
        """End what an earlier run left open in these organizations; return what was done.

        Raises:
            LocalFileError: the journal cannot be written.
        """
        by_id = {held.id: held for held in observed.everything}
        moves: list[tuple[Intent, ResourceRef]] = []
        gone: list[Intent] = []
        for intent in intents_in(self._journal.open_intents, organizations) if self._sink else ():
            if intent.purpose not in _OF_THE_SINK:
                continue
            held = by_id.get(intent.id)
            if held is not None and intent.purpose == "rename" and held.ref != intent.ref:
                moves.append((intent, held.ref))
            elif held is None and intent.purpose == "delete":
                # An incomplete listing, or a token that may not see the organization, proves
                # nothing: the intent stays open.
                organization = organization_ref(intent.ref.organization).key
                if not observed.incomplete and organization in observed.objects:
                    gone.append(intent)
            else:
                self._ended.append(intent.key)  # it never happened, or has been undone since
        notes = self._carry_out(moves, gone)
        self._journal.end(self.take_ended())
        return notes

    def take_ended(self) -> list[str]:
        """Return the keys of the intents that have ended, and forget them."""
        ended, self._ended = self._ended, []
        return ended

    def _carry_out(
        self, moves: Sequence[tuple[Intent, ResourceRef]], gone: Sequence[Intent]
    ) -> list[Diagnostic]:
        if self._sink is None or not (moves or gone):
            return []
        moved = self._sink.moved([Move(one.ref, ref, one.client_id) for one, ref in moves])
        removed = self._sink.removed([Application(one.ref, one.client_id) for one in gone])
        intents = [*(intent for intent, _ in moves), *gone]
        notes: list[Diagnostic] = []
        for intent, followed in zip(intents, [*moved, *removed], strict=True):
            if isinstance(followed, LocalFileError):
                notes.append(_not_followed(intent, followed))
            else:
                notes += followed
                self._ended.append(intent.key)
        return notes


def _intent(change: Change) -> Intent | None:
    """Return the intent of a change that the sink has to follow, or None."""
    if isinstance(change, Create):
        return None
    held = change.held
    # The secret may be in the sink from an earlier auth method that had one.
    if held.ref.kind is not Kind.OIDC_APPLICATION or not held.client_id:
        return None
    if not isinstance(change, Delete) and change.resource.ref == held.ref:
        return None
    return Intent(
        purpose="delete" if isinstance(change, Delete) else "rename",
        key=uuid.uuid4().hex,
        ref=held.ref,
        owes_secret=False,
        id=held.id,
        client_id=held.client_id,
    )


def _not_followed(intent: Intent, failure: LocalFileError) -> Diagnostic:
    done = "renamed" if intent.purpose == "rename" else "deleted"
    return warning(
        "SECRET-NOT-FOLLOWED",
        f"the sink did not follow an application that was {done}: {failure.problem}",
        f"The file of {intent.ref} is as it was; the next apply tries again. {failure.remedy}",
        ref=intent.ref,
    )
