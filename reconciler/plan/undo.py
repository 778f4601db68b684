"""The undo of a run: what its objects were before it, as a desired state.

Everything else is desired as it is held, so that the one planner changes only what the run wrote.
What the run made is declared nowhere: a leftover, which only ``--prune`` deletes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from reconciler.diagnostics import Diagnostic, error, note, warning
from reconciler.plan.between import as_declared
from reconciler.plan.history import gives_secret
from reconciler.plan.model import Change, Create, Delete, Plan
from reconciler.plan.undone import undone_values
from reconciler.resources.ref import ResourceRef
from reconciler.state import (
    DesiredState,
    FeedEvent,
    ObservedObject,
    ObservedState,
    Resource,
    Undone,
)

STALE = "UNDO-CHANGED-SINCE"
SIDE_EVENTS = frozenset({"application.secret.claimed"})
"""Types of the events that change nothing of an object: a delivery was acknowledged."""

_RECORDS = ("organization.tree.", "organization.object.")
"""Begin the types of what an organization keeps of its trees and of objects that are gone."""


_LEFT = ("Organization", "Project")
"""Kinds that are never deleted."""


def is_change(event: FeedEvent) -> bool:
    """Return whether an event changed what an undo can take back.

    Records of an organization and new client secrets are no such changes.
    """
    is_record = event.type.startswith(_RECORDS)
    return event.type not in SIDE_EVENTS and not is_record and not gives_secret(event)


def is_of(event: FeedEvent, run: str) -> bool:
    """Return whether a run wrote an event, or an undo of it, which may have been cut off."""
    return run in (event.context.get("run"), event.context.get("undo"))


def rotated_by(event: FeedEvent, run: str) -> Iterator[Diagnostic]:
    """Yield a note if a run replaced a client secret: the old one cannot come back."""
    if event.context.get("run") == run and gives_secret(event):
        yield note(
            "UNDO-ROTATED",
            "a client secret stays rotated",
            f"Run {run} replaced the client secret of {event.name}. The old secret ended "
            "then: an undo leaves the new one.",
        )


def changed_since(
    events: Mapping[str, Sequence[FeedEvent]], run: str, names: Mapping[str, ResourceRef]
) -> Sequence[Diagnostic]:
    """Return an error for each object that another changed since a run first wrote to it.

    Args:
        events: Of each object that the run wrote to, by its id, oldest first.
        run: The run to undo.
        names: Refs of the objects by their ids.
    """
    found = []
    for key, happened in sorted(events.items()):
        first = next(n for n, each in enumerate(happened) if each.context.get("run") == run)
        later = _standing(happened[first:], run)
        if later:
            last, ref = later[-1], names.get(key)
            by = last.context.get("run")
            what = f"run {by}" if by else f"{last.type} of {last.writer}"
            named = str(ref or last.name)
            first_undo = f"Undo run {by} first, or leave" if by else "Leave"
            keep = f": --keep {ref.address}" if ref else ""
            said = f"{named} was changed by {what} at {last.at}. {first_undo} the object out{keep}."
            found.append(error(STALE, "an object was changed since", said, ref=ref))
    return found


def _standing(happened: Sequence[FeedEvent], run: str) -> Sequence[FeedEvent]:
    """Return the changes by others that still stand; an undo of the run itself does not count."""
    later: list[FeedEvent] = []
    gone = set()
    for each in happened:
        undoes = each.context.get("undo")
        if undoes and (undoes in gone or (later and later[-1].context.get("run") == undoes)):
            gone.add(undoes)
            later = [one for one in later if one.context.get("run") != undoes]
        elif not is_of(each, run):
            later.append(each)
    return later


def still_declared(
    before: ObservedState,
    now: ObservedState,
    written: Collection[str],
    declared: Collection[ResourceRef],
) -> Sequence[Diagnostic]:
    """Return a warning for each object that a run made and manifests declare.

    Organizations and projects are never deleted.

    Args:
        before: What was held before the run.
        now: What is held.
        written: Ids of the objects that are undone.
        declared: Keys of what the manifests declare.
    """
    made = set(written) - {each.id for each in before.everything}
    return tuple(
        warning(
            "UNDO-STILL-DECLARED",
            "what this undo deletes is still declared",
            f"The run made {each.ref}. Revert the commit, or take it out of the manifests.",
            ref=each.ref,
        )
        for each in now.everything
        if each.id in made and each.ref.key in declared and each.ref.kind not in _LEFT
    )


def undoing(
    before: ObservedState,
    now: ObservedState,
    written: Collection[str],
    placeholder: Undone,
) -> tuple[DesiredState, Sequence[Diagnostic]]:
    """Return what an undo wants the service to hold, and an error for each name that is taken.

    Args:
        before: What was held before the run.
        now: What is held.
        written: Ids of the objects that are undone.
        placeholder: A mark that says that these are changes of an undo.
    """
    stays = [as_declared(each) for each in now.everything if each.id not in written]
    ids = {each.id for each in now.everything}
    comes = [_as_it_was(each, ids, placeholder) for each in before.everything if each.id in written]
    resources: dict[ResourceRef, Resource] = {}
    taken = []
    for each in chain(stays, comes):
        if each.ref.key in resources:
            said = f"{each.ref} is now the name of another object. Rename or remove that one."
            taken.append(error(STALE, "a name is taken", said, ref=each.ref))
        resources[each.ref.key] = each
    names = {each.ref.organization for each in now.everything}
    return DesiredState(resources, tuple(sorted(names))), taken


def _as_it_was(held: ObservedObject, ids: Collection[str], placeholder: Undone) -> Resource:
    pin = held.id if held.id in ids else ""
    return replace(
        as_declared(held), pinned_id=pin, undone=placeholder, owner=held.owner if pin else None
    )


def marked(plan: Plan, mark: Undone) -> Plan:
    """Return a plan whose changes leave the mark of an undo."""
    return replace(plan, changes=tuple(_marked(change, mark) for change in plan.changes))


def _marked(change: Change, mark: Undone) -> Change:
    values = dict(undone_values(change))
    own = mark._replace(values=values) if values else None
    if isinstance(change, Delete):
        return replace(change, undone=own)
    if isinstance(change, Create):
        return Create(replace(change.resource, undone=own))
    return replace(change, resource=replace(change.resource, undone=own))
