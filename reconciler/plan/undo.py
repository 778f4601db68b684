"""The undo of a run: what its objects were before it, as a desired state.

Everything else is desired as it is held, so that the one planner changes only what the run wrote.
What the run made is declared nowhere: a leftover, which only ``--prune`` deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from reconciler.diagnostics import Diagnostic, error, note, warning
from reconciler.plan.between import as_declared
from reconciler.plan.history import gives_secret
from reconciler.plan.model import Change, Create, Delete, Plan
from reconciler.plan.ownership import DELETABLE
from reconciler.plan.references import renamed_in
from reconciler.plan.undone import undone_values
from reconciler.resources.ref import ResourceRef
from reconciler.resources.references import references
from reconciler.resources.undone import MOST_TEXT
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

_REMOVED = ".removed"
"""Ends the type of an event that removed an object."""

_RECORDS = ("organization.tree.", "organization.object.")
"""Begin the types of what an organization keeps of its trees and of objects that are gone."""


def is_change(event: FeedEvent) -> bool:
    """Return whether an event changed what an undo can take back.

    Records of an organization and new client secrets are no such changes.
    """
    is_record = event.type.startswith(_RECORDS)
    return event.type not in SIDE_EVENTS and not is_record and not gives_secret(event)


def takes_back(run: str, events: Iterable[FeedEvent]) -> Collection[str]:
    """Return a run and those that take it back: its undo, an undo of the undo of that, and so on.

    Each may have been cut off. ``events`` are all that were written since.
    """
    undone = {by: each.said("undo") for each in events if (by := each.said("run"))}
    found, brings_back = {run}, {run}
    while brings_back:
        undoing = {each for each, of in undone.items() if of in brings_back} - found
        found |= undoing
        brings_back = {each for each, of in undone.items() if of in undoing} - found
    return found


def stays_rotated(event: FeedEvent, run: str, ref: ResourceRef | None) -> Diagnostic:
    """Return a note that a run replaced a client secret: the old one cannot come back.

    ``ref`` is that of the application; None where it is gone.
    """
    return note(
        "UNDO-ROTATED",
        "a client secret stays rotated",
        f"Run {run} replaced the client secret of {ref or event.name}. The old secret ended "
        "then: an undo leaves the new one.",
        ref=ref,
    )


def changed_since(
    events: Mapping[str, Sequence[FeedEvent]],
    run: str,
    own: Collection[str],
    names: Mapping[str, ResourceRef],
    undone: Collection[str] = (),
) -> Mapping[str, Diagnostic]:
    """Return an error for each object that another changed since a run first wrote to it, by id.

    Args:
        events: Of each object that the run wrote to, by its id, oldest first.
        run: The run to undo.
        own: The run and those that take it back.
        names: Refs of the objects by their ids.
        undone: Runs that an undo took back since. What one of them had deleted was made again
            with another id, so that to undo it once more does not help.
    """
    found = {}
    for key, happened in sorted(events.items()):
        first = next(n for n, each in enumerate(happened) if each.said("run") == run)
        later = _standing(happened[first:], own)
        if later:
            last, ref = later[-1], names.get(key)
            by = last.said("run")
            what = f"run {by}" if by else f"{last.type} of {last.writer}"
            named = str(ref or last.name)
            first_undo = f"Undo run {by} first, or leave" if by else "Leave"
            if by in undone and last.type.endswith(_REMOVED):
                first_undo = "Its undo made another object of that name. Leave"
            keep = f": --keep {ref.address}" if ref else ""
            said = f"{named} was changed by {what} at {last.at}. {first_undo} the object out{keep}."
            found[key] = error(STALE, "an object was changed since", said, ref=ref)
    return found


def _standing(happened: Sequence[FeedEvent], own: Collection[str]) -> Sequence[FeedEvent]:
    """Return the changes by others that still stand; ``own`` runs do not count."""
    later: list[FeedEvent] = []
    gone = set()
    for each in happened:
        undoes = each.said("undo")
        if undoes and (undoes in gone or (later and later[-1].said("run") == undoes)):
            gone.add(undoes)
            later = [one for one in later if one.said("run") != undoes]
        elif each.said("run") not in own:
            later.append(each)
    return later


@dataclass(frozen=True, slots=True)
class BeforeAndNow:
    """The objects held before a run that is undone, and those held now.

    Attributes:
        again: Ids of what an undo of the run that was cut off has made again.
        prune: Whether what the run made is deleted.
        placeholder: A mark that says that the changes are those of an undo.
    """

    before: ObservedState
    now: ObservedState
    again: Collection[str]
    prune: bool
    placeholder: Undone

    def made(self, written: Collection[str]) -> Sequence[ObservedObject]:
        """Return what the run made of the objects of these ids, if it is still held."""
        ids = set(written) - {each.id for each in self.before.everything}
        return [each for each in self.now.everything if each.id in ids]

    def still_declared(
        self, written: Collection[str], declared: Collection[ResourceRef]
    ) -> Sequence[Diagnostic]:
        """Return a warning for each object that the run made and manifests declare.

        Organizations and projects are never deleted.

        Args:
            written: Ids of the objects that are undone.
            declared: Keys of what the manifests declare.
        """
        return tuple(
            warning(
                "UNDO-STILL-DECLARED",
                "what this undo deletes is still declared",
                f"The run made {each.ref}. Revert the commit, or take it out of the manifests.",
                ref=each.ref,
            )
            for each in self.made(written)
            if each.ref.key in declared and each.ref.kind in DELETABLE
        )

    def undoing(self, written: Collection[str]) -> tuple[DesiredState, Mapping[str, Diagnostic]]:
        """Return what an undo wants the service to hold, and why objects cannot go back, by id.

        ``written`` are the ids of the objects that are undone.
        """
        held = {each.id: each.ref for each in self.now.everything}
        comes = {
            each.id: _as_it_was(each, held, self.placeholder)
            for each in self.before.everything
            if each.id in written
        }
        # What refers to an object that gets its old name back must not ask for the present one.
        names = {held[key].key: each.ref.name for key, each in comes.items() if key in held}
        back = {each.ref.key for key, each in comes.items() if key not in held}
        stays = [
            (each.id, renamed_in(as_declared(each), names))
            for each in self.now.everything
            if each.id not in written and not (each.id in self.again and each.ref.key in back)
        ]
        made = {each.ref.key: each for each in self.made(written)}
        refused = {} if self.prune else dict(_unpruned(comes, made))
        resources: dict[ResourceRef, Resource] = {}
        for key, each in chain(stays, comes.items()):
            if each.ref.key in resources:
                why = "is now the name of another object. Rename or remove that one"
                refused[key] = _in_the_way(each.ref, "a name is taken", why)
            resources[each.ref.key] = each
        refused |= _lacking(comes, {*resources, *([] if self.prune else made)})
        if self.prune:
            refused |= _in_use([each for _, each in stays], made)
        organizations = tuple(sorted({each.organization for each in held.values()}))
        return DesiredState(resources, organizations), refused

    def undoing_part(
        self,
        refused: Mapping[str, Diagnostic],
        written: Collection[str],
        selects: Callable[[str], bool],
    ) -> tuple[DesiredState, Collection[str], Sequence[Diagnostic]]:
        """Return what the undo of a part wants, the ids of what is undone, and what refuses it.

        What is not selected and cannot go back stays as it is held. So does what the run made and
        is not selected: no object is deleted because another one needs its name.

        Args:
            refused: Errors about objects that were changed since, by their ids.
            written: Ids of the objects that the run wrote to.
            selects: Returns whether the object of an id is selected.
        """
        undone = set(written)
        made = (each.id for each in self.made(written))
        left = {key for key in chain(refused, made) if not selects(key)}
        while True:
            undone -= left
            desired, found = self.undoing(undone)
            found = {**found, **{key: each for key, each in refused.items() if key in undone}}
            left = {key for key in found if key in undone and not selects(key)}
            if not left:
                return desired, undone, tuple(each for _, each in sorted(found.items()))


def _unpruned(
    comes: Mapping[str, Resource], made: Mapping[ResourceRef, ObservedObject]
) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each name that is that of what the run made, which nothing deletes."""
    for key, each in comes.items():
        if each.ref.key in made:
            why = "is now the name of an object that the run made. Give --prune to delete that one"
            yield key, _in_the_way(each.ref, "a name is taken", why)


def _lacking(
    comes: Mapping[str, Resource], there: Collection[ResourceRef]
) -> Mapping[str, Diagnostic]:
    """Return an error for each object that named what is not there any more, by id."""
    found = {}
    for key, each in comes.items():
        gone = next((ref for ref in _named_by(each) if ref.key not in there), None)
        if gone is not None:
            said = (
                f"{each.ref} named {gone} before the run, and that is not held now. Leave the "
                f"object out: --keep {each.ref.address}."
            )
            found[key] = error(STALE, "what an object needs is gone", said, ref=each.ref)
    return found


def _in_use(
    stays: Iterable[Resource], made: Mapping[ResourceRef, ObservedObject]
) -> Mapping[str, Diagnostic]:
    """Return an error for each object that the run made and that others name by now, by id."""
    found = {}
    for each in stays:
        for ref in _named_by(each):
            if ref.key in made:
                held = made[ref.key]
                why = f"was made by the run, and {each.ref} names it since. Undo that change first"
                found[held.id] = _in_the_way(held.ref, "what would be deleted is in use", why)
    return found


def _in_the_way(ref: ResourceRef, summary: str, why: str) -> Diagnostic:
    """Return an error: an object cannot be undone yet; ``why`` says what to do first."""
    said = f"{ref} {why}, or leave the object out: --keep {ref.address}."
    return error(STALE, summary, said, ref=ref)


def _named_by(resource: Resource) -> Iterator[ResourceRef]:
    return (ref for ref, _ in references(resource.ref, resource.spec))


def _as_it_was(held: ObservedObject, ids: Collection[str], placeholder: Undone) -> Resource:
    pin = held.id if held.id in ids else ""
    return replace(
        as_declared(held), pinned_id=pin, undone=placeholder, owner=held.owner if pin else None
    )


def marked(plan: Plan, mark: Undone) -> Plan:
    """Return a plan whose changes leave the mark of an undo."""
    return replace(plan, changes=tuple(_marked(change, mark) for change in plan.changes))


def _marked(change: Change, mark: Undone) -> Change:
    values = undone_values(change)
    own = mark._replace(values=dict(values)) if values else None
    if isinstance(change, Delete):
        return replace(change, undone=own)
    if isinstance(change, Create):
        return Create(replace(change.resource, undone=own))
    earlier = change.held.undone
    if earlier is not None:
        own = _both(earlier, own) if own else earlier
    return replace(change, resource=replace(change.resource, undone=own))


def _both(earlier: Undone, mark: Undone) -> Undone:
    """Return a mark that keeps what an earlier undo of the object took back as well."""
    if earlier.values.keys() <= mark.values.keys():
        return mark
    return Undone(
        _joined(earlier.run, mark.run),
        _joined(earlier.of, mark.of),
        _joined(earlier.reason, mark.reason),
        {**earlier.values, **mark.values},
    )


def _joined(earlier: str, later: str) -> str:
    """Return two texts of a mark as one; the later one alone where there is no room."""
    texts = list(dict.fromkeys(text for text in (earlier, later) if text))
    both = ", ".join(texts)
    return both if len(both) <= MOST_TEXT else later
