"""Bringing to an end what an interrupted run began: above all, secrets nobody has received yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconciler.apply.journal import Intent, Journal
from reconciler.apply.sink import Application, Delivery, Kept, SecretSink
from reconciler.apply.upkeep import UPKEEP
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import REFUSED, AccessDeniedError, ReconcilerError, ServiceError
from reconciler.resources.oidc import has_client_secret
from reconciler.resources.ref import Kind, ResourceRef, fold
from reconciler.service_client.port import CreateOrder, SecretOrder, ServiceClient, Written
from reconciler.state import ObservedObject, ObservedState


class Owed(NamedTuple):
    """An application whose secret was begun, perhaps more than once, and never confirmed."""

    held: ObservedObject
    intents: Sequence[Intent]

    @property
    def keys(self) -> Sequence[str]:
        """Return what is at its end once the secret is delivered."""
        return [intent.key for intent in self.intents]


@dataclass(slots=True)
class Healed:
    """What healing found and did.

    Attributes:
        notes: What a person should know.
        unmade: Creates that never happened, by the key of their ref: their idempotency key is
            used again, in case the request is still under way.
        sequences: Sequences that healing moved on, by object id.
    """

    notes: list[Diagnostic] = field(default_factory=list)
    unmade: dict[ResourceRef, list[Intent]] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)


class Healer:
    """Ends what earlier runs left open."""

    def __init__(
        self,
        service: ServiceClient,
        journal: Journal,
        sink: SecretSink | None,
        context: Mapping[str, Any],
    ) -> None:
        """Take what healing works with; the context goes with what it writes."""
        self._service = service
        self._journal = journal
        self._sink = sink
        self._context = context
        self._healed = Healed()

    def heal(self, observed: ObservedState, organizations: Collection[str]) -> Healed:
        """End every intent that an earlier run left open, or keep it for the run that follows.

        An intent of an organization that was not observed is left as it is.

        Raises:
            ServiceError: the service cannot be reached; everything stays open for the next run.
            LocalFileError: a secret could not be delivered; it stays open likewise.
        """
        owed: dict[str, tuple[ObservedObject, list[Intent]]] = {}
        ended: list[str] = []
        by_id = {held.id: held for held in observed.objects.values()}
        seen = {fold(name) for name in organizations}
        for intent in self._journal.open_intents:
            if intent.ref.key.organization not in seen or intent.purpose in UPKEEP:
                continue
            held = by_id.get(intent.id) if intent.id else observed.objects.get(intent.ref.key)
            if held is None and intent.purpose == "create":
                self._healed.unmade.setdefault(intent.ref.key, []).append(intent)
            elif held is not None and _is_owed(intent, held):
                owed.setdefault(held.id, (held, []))[1].append(intent)
            else:
                ended.append(intent.key)
        self._journal.end(ended)
        if owed:
            self._settle([Owed(*one) for one in owed.values()])
        return self._healed

    def _settle(self, owed: Sequence[Owed]) -> None:
        if self._sink is None:
            self._healed.notes += [_still_owed(one.held) for one in owed]
            return
        self._sink.prove([one.held.ref for one in owed])
        first = self._first_answers(owed)
        deliveries, done, lost = [], [], []
        for one in owed:
            answers = [first[key] for key in one.keys if key in first]
            ours = [answer for answer in answers if answer.id == one.held.id]
            if len(answers) == len(one.intents) and not ours:
                done.append(one)  # what was made then is gone; what is held is somebody else's
            elif ours and _is_latest(ours[-1], one.held):
                deliveries.append(_delivery(one.held, ours[-1]))
                done.append(one)
                self._healed.notes.append(_delivered(one.held))
            elif _was_delivered(one, self._sink):
                done.append(one)
            else:
                lost.append(one)
        self._deliver(self._sink, deliveries, done, lost)

    def _deliver(
        self, sink: SecretSink, deliveries: list[Delivery], done: list[Owed], lost: Sequence[Owed]
    ) -> None:
        """Deliver the secrets that came again and new ones for those that did not."""
        failures: list[ReconcilerError] = []
        for one, result in zip(lost, self._new_secrets(lost), strict=True):
            if isinstance(result, ServiceError):
                failures.append(result)
                continue
            self._healed.sequences[one.held.id] = result.sequence
            self._healed.notes.append(_made_anew(one.held))
            deliveries.append(_delivery(one.held, result))
            done.append(one)
        undelivered: set[ResourceRef] = set()
        for delivery, kept in zip(deliveries, sink.deliver(deliveries), strict=True):
            if isinstance(kept, Kept):
                self._healed.notes += kept.notes
            else:
                undelivered.add(delivery.ref)
                failures.append(kept)
        ended = [one for one in done if one.held.ref not in undelivered]
        self._journal.end([key for one in ended for key in one.keys])
        if failures:
            raise failures[0]

    def _first_answers(self, owed: Sequence[Owed]) -> Mapping[str, Written]:
        """Ask for the first answers again, by the keys with which the creates were sent."""
        if not self._service.keeps_answers:
            return {}
        creates = [
            (intent, one.held)
            for one in owed
            for intent in one.intents
            if intent.purpose == "create"
        ]
        orders = [_create_again(intent, held) for intent, held in creates]
        answers: dict[str, Written] = {}
        results = self._service.write(orders, self._context)
        for (intent, _), result in zip(creates, results, strict=True):
            if isinstance(result, Written):
                answers[intent.key] = result
            elif not isinstance(result, REFUSED) or isinstance(result, AccessDeniedError):
                raise result  # another time it may come; a new secret would make it worthless
        return answers

    def _new_secrets(self, lost: Sequence[Owed]) -> Sequence[Written | ServiceError]:
        return self._service.write([secret_order(one.held) for one in lost], self._context)


def _is_owed(intent: Intent, held: ObservedObject) -> bool:
    return (
        intent.owes_secret
        and held.ref.kind is Kind.OIDC_APPLICATION
        and has_client_secret(held.spec)
    )


def _is_latest(answer: Written, held: ObservedObject) -> bool:
    """Say whether the secret in an answer still counts: nothing has happened to the object since.

    Whatever has happened may have been a new secret.
    """
    return answer.client_secret is not None and answer.sequence == held.sequence


def _was_delivered(one: Owed, sink: SecretSink) -> bool:
    """Say whether the secret of a create is in the sink, and only the journal did not say so.

    A secret that was asked for later tells nothing by being there: it may be the old one.
    """
    is_create = all(intent.purpose == "create" for intent in one.intents)
    return is_create and sink.holds(one.held.ref, one.held.client_id) is True


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


def secret_order(held: ObservedObject) -> SecretOrder:
    """Return the order that gives a held application a new secret."""
    return SecretOrder(held.ref, held.id, held.organization_id, held.project_id, held.client_id)


def _delivery(held: ObservedObject, written: Written) -> Delivery:
    if written.client_secret is None:
        raise AssertionError(f"{held.ref}: a secret was asked for and none came")
    return Delivery(held.ref, written.client_id, written.client_secret)


def _delivered(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-SECRET-DELIVERED",
        "a secret of an interrupted run was delivered",
        f"The client secret of {held.ref} was made by a run that was cut short; it is the "
        "same secret, and it is now in the sink.",
        ref=held.ref,
    )


def _made_anew(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-SECRET-NEW",
        "a secret of an interrupted run was made anew",
        f"The client secret of {held.ref} was never confirmed as delivered and cannot be had "
        "again, so it was replaced; the new one is in the sink.",
        ref=held.ref,
    )


def _still_owed(held: ObservedObject) -> Diagnostic:
    return warning(
        "HEAL-SECRET-OWED",
        "a secret of an interrupted run was not delivered yet",
        f"The client secret of {held.ref} has nowhere to go. Give --secrets-to and run the "
        "command again.",
        ref=held.ref,
    )


def absent_secrets(observed: ObservedState, tree: str, sink: SecretSink) -> Iterator[Diagnostic]:
    """Yield a note on each application of a tree whose client secret the sink does not hold.

    Without a journal nobody can say whether it was ever delivered.
    """
    ours = [
        held
        for held in observed.objects.values()
        if held.ref.kind is Kind.OIDC_APPLICATION
        and tree in held.trees
        and has_client_secret(held.spec)
    ]
    there = sink.held([Application(held.ref, held.client_id) for held in ours])
    for held, is_there in zip(ours, there, strict=True):
        if is_there is False:
            yield warning(
                "SECRET-NOT-IN-SINK",
                "the sink does not hold the secret of an application",
                f"{held.ref} signs in with a secret that is not in this sink. If nobody has "
                f"it, make a new one: reconciler secret rotate {held.ref.path}",
                ref=held.ref,
            )
