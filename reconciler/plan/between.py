"""What changed on a service between two moments, as a plan that cannot be applied.

Objects are told apart by their ids: a rename is an update, and an object that was deleted and made
again is two changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reconciler.diagnostics import OnePlace, SourceLocation
from reconciler.plan.causes import event_as_cause
from reconciler.plan.diff import CREDENTIAL, OWNER, field_changes
from reconciler.plan.history import altered_between, gives_secret
from reconciler.plan.model import (
    Cause,
    CauseKind,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Update,
    held_of,
    ref_of,
    word,
)
from reconciler.plan.ordering import in_order
from reconciler.resources.ref import ResourceRef
from reconciler.state import Event, FeedEvent, ObjectEvent, ObservedObject, ObservedState, Resource

_SAID = {
    "run": "run",
    "undo": "undo of run",
    **{key: key for key in ("commit", "revision", "plan", "reason")},
}
"""Keys of a context, and their words."""


class Moments(NamedTuple):
    """Two moments, as reports show them, and the sequences of both by names of organizations.

    Attributes:
        second: Empty for now.
    """

    first: str
    second: str
    begins: Mapping[str, int]
    ends: Mapping[str, int]

    def holds(self, organization: str, sequence: int) -> bool:
        """Return whether an event of an organization is between the two."""
        return self.begins[organization] < sequence <= self.ends[organization]


_OF_THE_SERVICE = OnePlace(SourceLocation("(service)"))
"""The source of what was read from a service: it has no place in a file."""


def changed_between(
    before: ObservedState,
    after: ObservedState,
    moments: Moments,
    events: Mapping[str, Sequence[FeedEvent]],
) -> Plan:
    """Return what changed between two states of one service.

    Args:
        before: What was held at the first moment.
        after: What was held at the second.
        moments: The two.
        events: What happened between the two, by the id of the object, oldest first.
    """
    held = {each.id: each for each in before.objects.values()}
    changes: list[Change] = []
    in_step = []
    for now in after.objects.values():
        then = held.pop(now.id, None)
        if then is None:
            changes.append(Create(as_declared(now)))
            continue
        owner = now.owner if now.owner and now.owner != then.owner else ""
        is_rotated = any(map(gives_secret, events.get(now.id, ())))
        update = Update(as_declared(now), then, new_secret=is_rotated, new_owner=owner)
        if field_changes(update):
            changes.append(update)
        else:
            in_step.append(now.ref)
    changes += map(Delete, held.values())
    ordered, _ = in_order(changes)
    names = {each.ref.organization for state in (before, after) for each in state.everything}
    ids = {each.ref: each.id for each in after.objects.values()}
    causes: dict[ResourceRef, dict[str, Cause]] = {}
    for change in ordered:
        was = held_of(change)
        told = events.get(was.id if was else ids[ref_of(change)], ())
        if not isinstance(change, Update) and told:
            # The first event made it, and the last one removed it.
            known = causes.setdefault(ref_of(change), {})
            known[word(change)] = _cause(told[-1 if was else 0])
    return Plan(
        scope=Scope(tree="", environment=moments.second),
        instance=after.instance,
        organizations=tuple(sorted(names)),
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        compared_with=moments.first,
        is_of_moments=True,
        causes=causes,
    )


def as_declared(held: ObservedObject) -> Resource:
    """Return an object as a resource that says all of it."""
    return Resource(
        held.ref,
        held.spec,
        frozenset(held.spec),
        _OF_THE_SERVICE,
        prevent_delete=bool(held.prevent_delete),
        critical=bool(held.critical),
        active=held.active,
        ignored=held.ignored or frozenset(),
    )


def with_field_causes(
    plan: Plan, histories: Mapping[str, Sequence[ObjectEvent]], moments: Moments
) -> Plan:
    """Return a comparison with who changed each field last, and why.

    Args:
        plan: What ``changed_between`` returned.
        histories: The events of the objects that were updated, by their ids.
        moments: The two that are compared.
    """
    causes = {ref: dict(known) for ref, known in plan.causes.items()}
    for change in plan.changes:
        if not isinstance(change, Update):
            continue
        held = change.held
        events = histories[held.id]
        within = [each for each in events if moments.holds(held.ref.organization, each.sequence)]
        if not within:
            continue
        altered = dict(altered_between(events, within[0].sequence, within[-1].sequence))
        for event in within:
            if gives_secret(event):
                altered[CREDENTIAL] = event
            if event.said("tree") == change.new_owner:
                altered.setdefault(OWNER, event)
        known = causes.setdefault(ref_of(change), {})
        for field in field_changes(change):
            known[field.name] = _cause(altered.get(field.name, within[-1]))
    return replace(plan, causes=causes)


def _cause(event: Event) -> Cause:
    said = {words: event.said(name) for name, words in _SAID.items()}
    why = ", ".join(f"{words} {text}" for words, text in said.items() if text)
    return event_as_cause(event)._replace(kind=CauseKind.EVENT, why=why)
