"""Recovery: ending what an interrupted run left open, without touching what it did not make.

Nothing is made or replaced here. A service with custody knows what is owed, so no intent is about
its secrets. With any other the sink is asked: a missing secret is reported, and a person decides.

A secret in the sink follows its application's rename and goes with its delete: right after the
change, or in the next run where this one was killed in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from reconciler.apply.changes import ChangeRun
from reconciler.apply.delivery import lost_unless_held, not_in_sink
from reconciler.apply.journal import Intent, Journal, intents_in
from reconciler.apply.sink import Application, Move, SecretSink
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError
from reconciler.plan.model import ref_of, signs_in_with_secret
from reconciler.resources.ref import ResourceRef, organization_ref
from reconciler.service_client.port import Written
from reconciler.state import ObservedObject, ObservedState

_Followed: TypeAlias = tuple[Intent, ResourceRef | None]
"""A change that the sink has to follow, and the new name; None after a delete."""

_Found: TypeAlias = tuple[Intent, ObservedObject | None]


def follow(sink: SecretSink | None, runs: Sequence[ChangeRun]) -> list[Diagnostic]:
    """Let the sink follow what was carried out of these changes; return what was done.

    An intent that it could not follow is taken from its change, and so stays open in the journal.
    """
    done = [
        (intent, ref_of(run.change) if intent.purpose == "rename" else None)
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
) -> tuple[list[Diagnostic], list[Intent]]:
    """End what an earlier run left open in these organizations, or keep it for a run that can.

    Returned are what was done and what a person must know, and the intents that end with this run
    and not before, as this run may be killed as well: their findings are yet to be shown, or the
    plan has the rest of them.

    Raises:
        LocalFileError: the journal cannot be written.
    """
    by_id = {held.id: held for held in observed.everything}
    found = [
        (intent, by_id.get(intent.id) if intent.id else observed.objects.get(intent.ref.key))
        for intent in intents_in(journal.open_intents, organizations)
    ]
    notes, left = _unfinished(found, sink)
    followed, stays = _followed(found, sink, observed)
    stays |= {intent.key for intent in left}
    # The others never happened, were undone since, or are at their end.
    journal.end([intent.key for intent, _ in found if intent.key not in stays])
    if sink is None:  # a run with a sink is to ask it
        left = [intent for intent in left if intent.purpose != "secret"]
    return [*followed, *notes], left


def _unfinished(
    found: Sequence[_Found], sink: SecretSink | None
) -> tuple[list[Diagnostic], list[Intent]]:
    """Return what a person must know of secrets, and the intents that are not at their end."""
    notes: list[Diagnostic] = []
    left: list[Intent] = []
    for intent, held in found:
        is_left = intent.purpose == "inactive" and held is not None and held.active
        if intent.purpose == "secret" and held is not None and signs_in_with_secret(held):
            told = [*_missing(intent, held, sink)]
            is_left = bool(told)
            notes += told
        if is_left:
            left.append(intent)
    return notes, left


def _followed(
    found: Sequence[_Found], sink: SecretSink | None, observed: ObservedState
) -> tuple[list[Diagnostic], set[str]]:
    """Let the sink follow renames and deletes; return what was done, and what stays open.

    The sink finds a secret by its client id. So the service is asked about that too: no journal can
    move or remove the secret of an application that is still there.
    """
    stays: set[str] = set()
    done: list[_Followed] = []
    clients = {held.client_id for held in observed.everything}
    for intent, held in found:
        match intent.purpose:
            case "rename" | "delete" if sink is None:
                stays.add(intent.key)
            case "rename" if held is not None and held.client_id == intent.client_id:
                if held.ref != intent.ref:
                    done.append((intent, held.ref))
            case "delete" if intent.client_id in clients:
                pass
            case "delete" if held is None and _tells_all(observed, intent.ref):
                done.append((intent, None))
            case "delete" if held is None:
                stays.add(intent.key)
    followed, failed = _carry_out(sink, done)
    return followed, stays | failed


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
    # A replaced secret cannot be distinguished from the old one: both have the same client id.
    elif intent.id:
        yield not_in_sink(held.ref, is_error=True)
    else:
        yield from lost_unless_held(Application(held.ref, held.client_id), sink)


def _carry_out(
    sink: SecretSink | None, done: Sequence[_Followed]
) -> tuple[list[Diagnostic], set[str]]:
    """Let the sink follow; return what was done, and the keys of what it could not follow."""
    if sink is None or not done:
        return [], set()
    done = sorted(done, key=lambda each: each[1] is None)  # renames first
    moves = [Move(intent.ref, now, intent.client_id) for intent, now in done]
    notes: list[Diagnostic] = []
    failed: set[str] = set()
    for (intent, _), followed in zip(done, sink.follow(moves), strict=True):
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
