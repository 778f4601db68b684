"""Keeping the sink in step: a secret follows its application's rename and goes with its delete.

Each is an intent in the journal before the change is sent, so that a run that is killed between
the change and the file is ended by the next one.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

from reconciler.apply.journal import Intent, Journal, intents_in
from reconciler.apply.sink import Application, Followed, Move, SecretSink
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import REFUSED, LocalFileError
from reconciler.plan.model import Change, Create, Delete
from reconciler.resources.ref import Kind, ResourceRef, organization_ref
from reconciler.service_client.port import Written
from reconciler.state import ObservedObject, ObservedState


class SinkSync:
    """Lets one sink follow the renames and deletes of one run; without a sink it does nothing."""

    def __init__(self, journal: Journal, sink: SecretSink | None) -> None:
        self._journal = journal
        self._sink = sink
        self._begun: dict[str, Intent] = {}
        self._ended: list[str] = []

    def intents(self, changes: Sequence[Change]) -> Sequence[Intent]:
        """Return what to record before changes are sent."""
        if self._sink is not None:
            self._begun = {
                change.held.id: intent
                for change in changes
                if not isinstance(change, Create) and (intent := _intent(change)) is not None
            }
        return tuple(self._begun.values())

    def follow(self, changes: Sequence[Change], results: Sequence[object]) -> Sequence[Diagnostic]:
        """Let the sink follow what was carried out of these changes; return what was done.

        What may still have happened at the service stays open in the journal.
        """
        moves: list[tuple[Intent, ResourceRef]] = []
        gone: list[Intent] = []
        for change, result in zip(changes, results, strict=True):
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
            if intent.purpose not in SINK_PURPOSES:
                continue
            held = by_id.get(intent.id)
            if held is not None and intent.purpose == "rename" and held.ref != intent.ref:
                moves.append((intent, held.ref))
            elif held is None and intent.purpose == "delete":
                gone += [intent] if _is_surely_gone(intent, observed) else []
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
            notes += self._noted(intent, followed)
        return notes

    def _noted(self, intent: Intent, followed: Followed) -> Sequence[Diagnostic]:
        if isinstance(followed, LocalFileError):
            return [_not_followed(intent, followed)]
        self._ended.append(intent.key)
        return followed


SINK_PURPOSES = frozenset({"rename", "delete"})


def _intent(change: Change) -> Intent | None:
    """Return the intent of a change that the sink has to follow, or None."""
    if isinstance(change, Create) or not _may_have_secret(change.held):
        return None
    held = change.held
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


def _may_have_secret(held: ObservedObject) -> bool:
    """Return whether a sink may have a secret of this object, be it of an earlier auth method."""
    return held.ref.kind is Kind.OIDC_APPLICATION and bool(held.client_id)


def _is_surely_gone(intent: Intent, observed: ObservedState) -> bool:
    """Return whether the object is missing because it was deleted.

    A listing that is incomplete, or a token that may not see the organization, proves nothing.
    """
    organization = organization_ref(intent.ref.organization).key
    return not observed.incomplete and organization in observed.objects


def _not_followed(intent: Intent, failure: LocalFileError) -> Diagnostic:
    done = "renamed" if intent.purpose == "rename" else "deleted"
    return warning(
        "SECRET-NOT-FOLLOWED",
        f"the sink did not follow an application that was {done}: {failure.problem}",
        f"The file of {intent.ref} is as it was; the next apply tries again. {failure.remedy}",
        ref=intent.ref,
    )
