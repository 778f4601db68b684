"""Bringing to an end what an interrupted run began: above all, secrets nobody has received yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconciler.apply.journal import Intent, Journal
from reconciler.apply.sink import Delivery, SecretSink
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.resources.oidc import has_client_secret
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import CreateOrder, SecretOrder, ServiceClient, Written
from reconciler.state import ObservedObject, ObservedState


class Owed(NamedTuple):
    """An application whose secret was begun and never confirmed as delivered."""

    intent: Intent
    held: ObservedObject


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
    unmade: dict[ResourceRef, Intent] = field(default_factory=dict)
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

    def heal(self, observed: ObservedState) -> Healed:
        """End every intent that an earlier run left open, or keep it for the run that follows.

        Raises:
            ServiceError: the service cannot be reached; everything stays open for the next run.
            LocalFileError: a secret could not be delivered; it stays open likewise.
        """
        owed: list[Owed] = []
        ended: list[str] = []
        by_id = {held.id: held for held in observed.objects.values()}
        for intent in self._journal.open_intents:
            held = by_id.get(intent.id) if intent.id else observed.objects.get(intent.ref.key)
            if held is None and intent.purpose == "create":
                self._healed.unmade[intent.ref.key] = intent
            elif held is not None and intent.owes_secret and has_client_secret(held.spec):
                owed.append(Owed(intent, held))
            else:
                ended.append(intent.key)
        self._journal.end(ended)
        if owed and self._sink is not None:
            self._deliver(owed, self._sink)
        return self._healed

    def _deliver(self, owed: Sequence[Owed], sink: SecretSink) -> None:
        sink.prove()
        answers = self._first_answers([one for one in owed if one.intent.purpose == "create"])
        lost = [one for one in owed if one.intent.key not in answers]
        for one in owed:
            told = _made_anew if one in lost else _delivered
            self._healed.notes.append(told(one.intent))
        answers.update(self._new_secrets(lost))
        sink.deliver([_delivery(one.held, answers[one.intent.key]) for one in owed])
        self._journal.end([one.intent.key for one in owed])

    def _first_answers(self, creates: Sequence[Owed]) -> dict[str, Written]:
        """Ask for the first answers again, by the keys with which the creates were sent."""
        answers: dict[str, Written] = {}
        results = self._service.write([_create_again(one) for one in creates], self._context)
        for one, result in zip(creates, results, strict=True):
            if isinstance(result, ServiceUnavailableError):
                raise result
            if isinstance(result, Written) and result.id == one.held.id and result.client_secret:
                answers[one.intent.key] = result
        return answers

    def _new_secrets(self, lost: Sequence[Owed]) -> Mapping[str, Written]:
        orders = [secret_order(one.held) for one in lost]
        made: dict[str, Written] = {}
        for one, result in zip(lost, self._service.write(orders, self._context), strict=True):
            if isinstance(result, ServiceError):
                raise result
            self._healed.sequences[one.held.id] = result.sequence
            made[one.intent.key] = result
        return made


def _create_again(owed: Owed) -> CreateOrder:
    intent, held = owed.intent, owed.held
    return CreateOrder(
        ref=intent.ref,
        spec=intent.spec or {},
        key=intent.key,
        organization_id=held.organization_id,
        project_id=held.project_id,
        prevent_delete=intent.prevent_delete,
    )


def secret_order(held: ObservedObject) -> SecretOrder:
    """Return the order that gives a held application a new secret."""
    return SecretOrder(held.ref, held.id, held.organization_id, held.project_id, held.client_id)


def _delivery(held: ObservedObject, written: Written) -> Delivery:
    if written.client_secret is None:
        raise AssertionError(f"{held.ref}: a secret was asked for and none came")
    return Delivery(held.ref, written.client_id, written.client_secret)


def _delivered(intent: Intent) -> Diagnostic:
    return warning(
        "HEAL-SECRET-DELIVERED",
        "a secret of an interrupted run was delivered",
        f"The client secret of {intent.ref} was made by a run that was cut short; it is the "
        "same secret, and it is now in the sink.",
        ref=intent.ref,
    )


def _made_anew(intent: Intent) -> Diagnostic:
    return warning(
        "HEAL-SECRET-NEW",
        "a secret of an interrupted run was made anew",
        f"The client secret of {intent.ref} was never confirmed as delivered and cannot be had "
        "again, so it was replaced; the new one is in the sink.",
        ref=intent.ref,
    )


def absent_secrets(observed: ObservedState, tree: str, sink: SecretSink) -> Iterator[Diagnostic]:
    """Yield a note on each application of a tree whose client secret the sink does not hold.

    Without a journal nobody can say whether it was ever delivered.
    """
    for held in observed.objects.values():
        if (
            held.ref.kind is Kind.OIDC_APPLICATION
            and tree in held.trees
            and has_client_secret(held.spec)
            and sink.holds(held.ref, held.client_id) is False
        ):
            yield warning(
                "SECRET-NOT-IN-SINK",
                "the sink does not hold the secret of an application",
                f"{held.ref} signs in with a secret that is not in this sink. If nobody has "
                "it, set authMethodType to NONE, apply, and set it back: that makes a new one.",
                ref=held.ref,
            )
