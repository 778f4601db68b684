"""Moments of the past: ``--at``, ``--since`` and ``--until``, and the ids of runs.

A moment is a sequence of each organization: what happened up to it counts. That of a time is the
time itself. That of a run is the sequence before its first event in an organization.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reconciler.cli.parameter_types import MICROS, At
from reconciler.errors import NoHistoryError, ObjectNotFoundError, ServiceError, UsageError
from reconciler.plan.between import Moments
from reconciler.report.visible import visible
from reconciler.resources.ref import fold
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import UPGRADE, Head, ObservedState

SEARCHED_BEFORE = 86_400  # seconds that it may be behind that of the machine of a run


def new_context(tree: str, revision: str = "", plan: str = "") -> dict[str, str]:
    """Return what a run that begins now says of its writes; empty for no commit, and no plan.

    Its id begins with the time in milliseconds, so that only events since then are searched for it.
    """
    run = f"{int(time.time() * 1000):012x}{uuid.uuid4().hex[12:]}"
    return {"tree": tree, "revision": revision, "plan": plan, "run": run}


class Log(NamedTuple):
    """The organizations that a command looks at, and where the log of each one stands.

    Attributes:
        heads: Of these organizations.
        every: Those of every organization that the caller sees: a run may have written to others.
    """

    heads: tuple[Head, ...]
    every: tuple[Head, ...]


def log_of(reader: ReadOnlyService, organizations: Collection[str] = ()) -> Log:
    """Return the log of organizations, by their names; of all that the caller sees if none.

    Raises:
        NoHistoryError: the service keeps none.
        ObjectNotFoundError: there is no organization of a name.
    """
    heads = reader.heads()
    if heads is None:
        raise NoHistoryError(
            "the service does not show what it held before",
            remedy="Only the reconciler's own service does. Elsewhere keep snapshots: `reconciler "
            "export --snapshot FILE` saves what is held, and `reconciler plan --against FILE` "
            "compares with it.",
        )
    every = tuple(sorted(heads.organizations.values(), key=lambda head: head.name))
    missing = [name for name in organizations if fold(name) not in heads.organizations]
    if missing:
        raise ObjectNotFoundError(
            f"there is no organization {visible(missing[0])}",
            remedy="Correct the name, or use a token that may see it.",
        )
    asked = {fold(name) for name in organizations}
    return Log(tuple(head for head in every if not asked or fold(head.name) in asked), every)


def sequences_at(reader: ReadOnlyService, log: Log, at: At) -> Mapping[str, int]:
    """Return the sequence of a moment in each organization of a log, by its name.

    An organization that a run has not written to is taken as it was before the run's first event
    anywhere.

    Raises:
        ObjectNotFoundError: the caller sees no event of the run.
        UsageError: several writers or trees used the id of the run.
    """
    if not at.run:
        return {head.name: at.sequence for head in log.heads}
    first = _first_events(reader, log.every, at.run)
    earliest = min(first.values())
    return {head.name: first.get(head.name, earliest) - 1 for head in log.heads}


def organizations_of_run(reader: ReadOnlyService, run: str) -> tuple[str, ...]:
    """Return the names of the organizations that a run wrote to, in order.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees no event of the run.
        UsageError: several writers or trees used the id of the run.
    """
    return tuple(sorted(_first_events(reader, log_of(reader).every, run)))


def _first_events(reader: ReadOnlyService, heads: Collection[Head], run: str) -> Mapping[str, int]:
    """Return the sequence of a run's first event in each organization that has one, by name."""
    begins = max(0, int(run[:12], 16) * 1000 - SEARCHED_BEFORE * MICROS)
    first: dict[str, int] = {}
    authors = set()
    names = {head.id: head.name for head in heads if head.sequence > begins}
    for owner, events in reader.changes_of(dict.fromkeys(names, begins)):
        for event in events:
            if event.said("run") == run:
                first.setdefault(names[owner], event.sequence)
                authors.add((event.writer, event.said("tree")))
    if not authors:
        raise ObjectNotFoundError(
            f"there is no event of run {run}",
            remedy="`reconciler apply` shows the id of a run at its end, and `reconciler history "
            "--organization NAME` those of all. A token sees events of its own organizations only.",
        )
    if len(authors) > 1:
        named = "; ".join(
            f"{visible(writer)} for {f'tree {visible(tree)}' if tree else 'no tree'}"
            for writer, tree in sorted(authors)
        )
        raise UsageError(
            f"several writers used the id of run {run}: {named}",
            remedy="An id that others repeat names no moment. Give a time instead: `reconciler "
            "history --organization NAME` has that of each event.",
        )
    return first


def moments_of(reader: ReadOnlyService, log: Log, at: Sequence[At]) -> Moments:
    """Return two moments of a log, or one and now: what comes in meanwhile is left out.

    Raises:
        UsageError: the second is before the first.
    """
    first, *second = at
    begins = sequences_at(reader, log, first)
    if second:
        ends = sequences_at(reader, log, second[0])
    else:
        ends = {head.name: max(begins[head.name], head.sequence) for head in log.heads}
    if any(begins[name] > ends[name] for name in begins):
        raise UsageError(
            f"{first.text} is after {at[-1].text}", remedy="Give the earlier moment first."
        )
    return Moments(first.text, second[0].text if second else "", begins, ends)


def held_at(reader: ReadOnlyService, sequences: Mapping[str, int], at: At) -> ObservedState:
    """Return what organizations held at a moment, whose sequences are known by their names.

    Raises:
        ObjectNotFoundError: none of them existed yet.
        ServiceError: the service cannot be read, or contradicts itself.
    """
    observed = reader.observe_at(sequences)
    check_complete(observed)
    if not observed.objects:
        names = visible(", ".join(sequences) or "organizations")
        raise ObjectNotFoundError(
            f"{names} did not exist yet at {at.text}",
            remedy="Give a later moment: `reconciler history --organization NAME` shows the first "
            "event of an organization.",
        )
    return observed


def check_complete(observed: ObservedState) -> None:
    """Refuse a listing that is not complete."""
    if observed.incomplete:
        again = "" if observed.incomplete[0].endswith(UPGRADE) else "Run the command again. "
        raise ServiceError(
            f"the service's listing is not complete: {observed.incomplete[0]}",
            remedy=f"{again}Nothing was written, because an incomplete export would mislead.",
        )
