"""Recovery: ending what an interrupted run left open, without touching what it did not make.

Nothing is made or replaced here. A service with custody knows what is owed, so no intent is about
its secrets. With any other the sink is asked: a missing secret is reported, and a person decides.

A secret in the sink follows its application's rename and goes with its delete: right after the
change, or in the next run where this one was killed in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from reconciler.apply.changes import ChangeRun
from reconciler.apply.delivery import not_in_sink
from reconciler.apply.journal import Intent, Journal, intents_in
from reconciler.apply.sink import Application, Move, SecretSink
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError
from reconciler.plan.model import ref_of, signs_in_with_secret
from reconciler.resources.ref import ResourceRef, organization_ref
from reconciler.service_client.port import Written
from reconciler.state import ObservedObject, ObservedState


class _Followed(NamedTuple):
    """A change that the sink has to follow; ``now`` is the new name, or None after a delete."""

    intent: Intent
    now: ResourceRef | None


def follow(sink: SecretSink | None, runs: Sequence[ChangeRun]) -> list[Diagnostic]:
    """Let the sink follow what was carried out of these changes; return what was done.

    An intent that it could not follow is taken from its change, and so stays open in the journal.
    """
    done = [
        _Followed(intent, ref_of(run.change) if intent.purpose == "rename" else None)
        for run in runs
        for intent in run.intents
        if intent.purpose in {"rename", "delete"} and isinstance(run.result, Written)
    ]
    notes, failed = _carry_out(sink, done)
    for run in runs:
        run.intents = [intent for intent in run.intents if intent.key not in failed]
    return notes


def recover(
    journal: Journal,
    sink: SecretSink | None,
    observed: ObservedState,
    organizations: Collection[str],
) -> list[Diagnostic]:
    """End what an earlier run left open in these organizations, or keep it for a run that can.

    Return what was done, and what a person must know.

    Raises:
        LocalFileError: the journal cannot be written.
    """
    by_id = {held.id: held for held in observed.everything}
    found = intents_in(journal.open_intents, organizations)
    stays: set[str] = set()
    done: list[_Followed] = []
    notes: list[Diagnostic] = []
    for intent in found:
        held = by_id.get(intent.id) if intent.id else observed.objects.get(intent.ref.key)
        match intent.purpose:
            case "secret" if held is not None and signs_in_with_secret(held):
                notes += _missing(intent, held, sink)
                if sink is None:
                    stays.add(intent.key)
            case "rename" | "delete" if sink is None:
                stays.add(intent.key)
            case "rename" if held is not None and held.ref != intent.ref:
                done.append(_Followed(intent, held.ref))
            case "delete" if held is None and _tells_all(observed, intent.ref):
                done.append(_Followed(intent, None))
            case "delete" if held is None:
                stays.add(intent.key)
            case _:  # it never happened, was undone since, or the plan of this run has the rest
                pass
    followed, failed = _carry_out(sink, done)
    journal.end([intent.key for intent in found if intent.key not in stays | failed])
    return [*followed, *notes]


def _tells_all(observed: ObservedState, ref: ResourceRef) -> bool:
    """Return whether what is not listed in the organization of a ref is not there.

    An incomplete listing, or a token that may not see the organization, proves nothing.
    """
    return not observed.incomplete and organization_ref(ref.organization).key in observed.objects


def _missing(intent: Intent, held: ObservedObject, sink: SecretSink | None) -> Iterator[Diagnostic]:
    """Yield a finding on a secret that an interrupted run may have made, unless the sink has it."""
    if sink is None:
        yield warning(
            "HEAL-SECRET-OWED",
            "a secret of an interrupted run was not delivered yet",
            f"The client secret of {held.ref} has no destination. Give --secrets-to and run the "
            "command again.",
            ref=held.ref,
        )
    # A replaced secret cannot be told from the old one: both have the same client id.
    elif intent.id or not sink.held([Application(held.ref, held.client_id)])[0]:
        yield not_in_sink(held.ref, is_error=True)


def _carry_out(
    sink: SecretSink | None, done: Sequence[_Followed]
) -> tuple[list[Diagnostic], set[str]]:
    """Let the sink follow; return what was done, and the keys of what it could not follow."""
    if sink is None or not done:
        return [], set()
    moves = [(one, Move(one.ref, now, one.client_id)) for one, now in done if now is not None]
    gone = [(one, Application(one.ref, one.client_id)) for one, now in done if now is None]
    moved = sink.moved([move for _, move in moves])
    removed = sink.removed([application for _, application in gone])
    intents = [intent for intent, _ in (*moves, *gone)]
    notes: list[Diagnostic] = []
    failed: set[str] = set()
    for intent, followed in zip(intents, [*moved, *removed], strict=True):
        if isinstance(followed, LocalFileError):
            notes.append(_not_followed(intent, followed))
            failed.add(intent.key)
        else:
            notes += followed
    return notes, failed


def _not_followed(intent: Intent, failure: LocalFileError) -> Diagnostic:
    done = "renamed" if intent.purpose == "rename" else "deleted"
    return warning(
        "SECRET-NOT-FOLLOWED",
        f"the sink did not follow an application that was {done}: {failure.problem}",
        f"The file of {intent.ref} is as it was; the next apply tries again. {failure.remedy}",
        ref=intent.ref,
    )
