"""An approved plan beside the plan of this moment: what differs, and what is done already.

Every event carries the digest of the plan that it was written for. So a change is done where the
object's last event carries the digest of the approved plan; for a delete and an emptied flow, the
event that removed it. A service that does not report writers leaves no such trace: there a
change counts as done where the object is as it was planned.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.plan.causes import cause_in_words, cause_of
from reconciler.plan.diff import is_not_sent
from reconciler.plan.digest import essence
from reconciler.plan.history import gives_secret
from reconciler.plan.model import (
    CauseKind,
    Change,
    Create,
    Delete,
    Plan,
    empties,
    held_of,
    ref_of,
    word,
)
from reconciler.resources.ref import ResourceRef
from reconciler.state import (
    DesiredState,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    Removal,
    is_in_step,
    is_owned_by,
)

UNKNOWN = "an unknown writer"


@dataclass(frozen=True, slots=True)
class Moved:
    """One object whose planned changes differ from those approved, and how."""

    ref: ResourceRef
    how: str

    def __str__(self) -> str:
        return f"{self.ref}: {self.how}"


def moved(
    approved: Plan, now: Plan, desired: DesiredState, observed: ObservedState
) -> tuple[Moved, ...]:
    """Return every object about which two plans differ, in the order of the approved one."""
    before, after = _by_ref(approved), _by_ref(now)
    in_step = {ref.key for ref in approved.in_step}
    found = [
        *(_change(old, after.get(key), desired, observed) for key, old in before.items()),
        *(
            _new(change, approved.scope.tree, in_step)
            for key, change in after.items()
            if key not in before
        ),
    ]
    known = {each.ref.key for each in found if each} | before.keys() | after.keys()
    return (*filter(None, found), *_in_step(approved, now, known))


def other_options(approved: Plan, now: Plan) -> tuple[str, ...]:
    """Return the options that are not as they were when a plan was approved, in words."""
    return tuple(
        _option(_FLAGS.get(name, f"--{name.replace('_', '-')}"), was)
        for name in type(approved.scope).__slots__
        if (was := getattr(approved.scope, name)) != getattr(now.scope, name)
    )


_FLAGS = {"environment": "--env"}


def _option(flag: str, value: object) -> str:
    if not value:
        return f"without {flag}"
    if isinstance(value, tuple):
        texts = (each.address if isinstance(each, ResourceRef) else each for each in value)
        return "with " + " ".join(f"{flag} {shlex.quote(each)}" for each in texts)
    return f"with {flag}" if value is True else f"with {flag} {value}"


def _by_ref(plan: Plan) -> Mapping[ResourceRef, Change]:
    return {ref_of(change).key: change for change in plan.changes}


def _change(
    old: Change, new: Change | None, desired: DesiredState, observed: ObservedState
) -> Moved | None:
    ref = ref_of(old)
    if new is None:
        return Moved(ref, _no_change_any_more(old, desired, observed))
    if essence(old) == essence(new):
        return None
    return Moved(ref, "; ".join(_differences(old, new)))


def _differences(old: Change, new: Change) -> Iterator[str]:
    was, held = held_of(old), held_of(new)
    if was is not None and held is None:
        yield f"gone from the service (it was id {was.id})"
    elif was is None and held is not None:
        yield f"the service holds it since, made by {_writer(held)}"
    elif was is not None and held is not None and was.id != held.id:
        yield f"another object has the name: id {was.id} then, {held.id} now"
    elif was is not None and held is not None and was.sequence != held.sequence:
        sequences = f"sequence {was.sequence} -> {held.sequence}"
        yield f"changed on the service since, by {_writer(held)} ({sequences})"
    if essence(old).after != essence(new).after:
        yield "declared differently"
    if word(old) != word(new):
        yield f"it was to {word(old)}, and is now to {word(new)}"


def _no_change_any_more(old: Change, desired: DesiredState, observed: ObservedState) -> str:
    ref, was = ref_of(old), held_of(old)
    held = observed.objects.get(ref.key)
    if isinstance(old, Delete):
        return "gone from the service" if held is None else "declared, or kept for another reason"
    if ref.key not in desired.resources:
        return "no longer declared"
    if held is None:
        return "gone from the service"
    if was is None or was.sequence != held.sequence:
        since = f"sequence {was.sequence if was else 'none'} -> {held.sequence}"
        return f"in step since, changed on the service by {held.changed_by or UNKNOWN} ({since})"
    return "declared as the service holds it"


def _new(change: Change, tree: str, known: Collection[ResourceRef]) -> Moved:
    ref = ref_of(change)
    how = f"new in the plan, to {word(change)}"
    if held_of(change) is None:
        gone = ref.key in known
        return Moved(ref, f"{how}: {'gone from the service' if gone else 'declared since'}")
    cause = cause_of(change, tree)
    if cause.kind is CauseKind.SERVICE:
        return Moved(ref, f"{how}: {cause_in_words(cause)}")
    if isinstance(change, Delete):
        return Moved(ref, f"{how}: {'no longer declared' if ref.key in known else 'made since'}")
    return Moved(ref, f"{how}: declared differently")


def _in_step(approved: Plan, now: Plan, known: set[ResourceRef]) -> Iterator[Moved]:
    """Yield what was in step and is not declared any more, and what is declared since."""
    before = {ref.key: ref for ref in approved.in_step}
    after = {ref.key: ref for ref in now.in_step}
    for key in before.keys() - after.keys() - known:
        yield Moved(before[key], "was in step, and is no longer declared")
    for key in after.keys() - before.keys() - known:
        yield Moved(after[key], "declared since, and in step")


def _writer(held: ObservedObject) -> str:
    return f"{held.changed_by} at {held.changed_at}" if held.changed_by else UNKNOWN


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of an earlier run of a plan in the history that the service keeps.

    Attributes:
        removed: Ids of the objects that the run removed; None where the service does not list them.
        renewed: Ids of the applications that the run gave a new client secret.
    """

    removed: frozenset[str] | None = frozenset()
    renewed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PartlyApplied:
    """An approved plan that an earlier run carried out in part.

    Attributes:
        done: How many of its changes are done.
        was_begun: Whether any of its changes is done, or half done.
        expected: The approved plan without what is done.
        left: The plan of now without what is done. Equal to ``expected`` unless something moved.
    """

    done: int
    was_begun: bool
    expected: Plan
    left: Plan


def written_for(observed: ObservedState, digest: str) -> int:
    """Return how many of the objects held were written last for the plan of this digest."""
    return sum(held.changed_for == digest for held in observed.everything)


def owners_of_gone(approved: Plan, observed: ObservedState) -> tuple[str, ...]:
    """Return the ids of organizations in which something that was to be removed is gone."""
    there = {held.id for held in observed.everything}
    gone = [
        change.held.organization_id
        for change in approved.changes
        if (isinstance(change, Delete) or empties(change)) and change.held.id not in there
    ]
    return tuple(dict.fromkeys(gone))


def perhaps_renewed(now: Plan, digest: str) -> tuple[str, ...]:
    """Return the ids of applications that an earlier run may have given a new secret already."""
    return tuple(
        change.held.id
        for change in now.changes
        if not isinstance(change, Create | Delete)
        and change.new_secret
        and change.held.changed_for == digest
    )


def traces_of(
    digest: str,
    removals: Sequence[Removal] | None,
    histories: Mapping[str, Sequence[ObjectEvent]],
) -> Traces:
    """Return what an earlier run of a plan left behind; ``removals`` is None if not told."""
    removed = None
    if removals is not None:
        removed = frozenset(each.id for each in removals if each.event.said("plan") == digest)
    renewed = frozenset(
        object_id
        for object_id, events in histories.items()
        if any(event.said("plan") == digest and gives_secret(event) for event in events)
    )
    return Traces(removed, renewed)


def partly_applied(
    approved: Plan, digest: str, now: Plan, observed: ObservedState, traces: Traces
) -> PartlyApplied:
    """Return what an earlier run of an approved plan has done, and what is left."""
    compared = _Comparison(digest, approved.scope.tree, observed, traces)
    planned = {ref_of(change).key: change for change in now.changes}
    done: list[Change] = []
    expected: list[Change] = []
    is_continued = False
    for old in approved.changes:
        new = planned.get(ref_of(old).key)
        if compared.is_done(old, new):
            done.append(old)
        elif compared.is_continued(old, new) and new is not None:
            expected.append(new)
            is_continued = True
        else:
            expected.append(old)
    keys = {ref_of(change).key for change in done}
    # An emptied flow is declared and not held.
    kept = [each for each in done if empties(each) or ref_of(each).key in observed.objects]
    in_step = map(ref_of, kept)
    also = [ref_of(change) for key, change in planned.items() if key in keys]
    return PartlyApplied(
        len(done),
        bool(done) or is_continued,
        replace(approved, changes=tuple(expected), in_step=(*approved.in_step, *in_step)),
        replace(
            now,
            changes=tuple(change for key, change in planned.items() if key not in keys),
            in_step=tuple(sorted((*now.in_step, *also))),
        ),
    )


class _Comparison:
    """Compares approved changes, one after the other, with the objects held now."""

    def __init__(self, digest: str, tree: str, observed: ObservedState, traces: Traces) -> None:
        self._digest = digest
        self._tree = tree
        self._traces = traces
        self._by_id = {held.id: held for held in observed.everything}
        self._by_key = observed.objects
        self._tells_writers = any(held.changed_by for held in observed.everything)

    def is_done(self, old: Change, new: Change | None) -> bool:
        """Return whether an approved change is done; ``new`` is the change planned there now."""
        if isinstance(old, Delete) or empties(old):
            removed = self._traces.removed
            gone = old.held.id not in self._by_id
            return gone and (removed is None or old.held.id in removed)
        held = self._held(old)
        if held is None:
            return False
        # The last event of an object with ignored fields may be another writer's.
        is_shared = bool(old.resource.ignored) and is_owned_by(held, self._tree)
        if self._tells_writers and held.changed_for != self._digest and not is_shared:
            return False
        return new is None or (held.id in self._traces.renewed and is_in_step(old.resource, held))

    def is_continued(self, old: Change, new: Change | None) -> bool:
        """Return whether a change was carried out in part.

        One change can be several calls, and lists that the service keeps are never done.
        """
        held = held_of(new) if new is not None else None
        if new is None or held is None or isinstance(old, Delete):
            return False
        only_kept = is_not_sent(new) and not is_not_sent(old)
        as_planned = not self._tells_writers and (only_kept or _is_half_emptied(old, held))
        if held.changed_for != self._digest and not as_planned:
            return False
        return held == self._held(old) and essence(old).after == essence(new).after

    def _held(self, old: Change) -> ObservedObject | None:
        if isinstance(old, Create):
            return self._by_key.get(old.resource.ref.key)
        return self._by_id.get(old.held.id)


def _is_half_emptied(change: Change, held: ObservedObject) -> bool:
    """Return whether an object that a change empties is as it was, less some of its lists."""
    if not empties(change):
        return False
    before = change.held.spec
    left = {name: values for name, values in held.spec.items() if values}
    return held.spec != before and all(before.get(each) == left[each] for each in left)
