"""The history of an object: what each event changed, and what a tree applied last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.diff import ACTIVE, CRITICAL, IGNORE, NAME, NEW, PREVENT_DELETE, FieldChange
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import fold
from reconciler.resources.references import REFERRED
from reconciler.state import Event, ObjectEvent, ObservedObject, Removal

_REGENERATED = ".secret.changed"
_OF_SECRETS = (_REGENERATED, ".secret.claimed")  # they say nothing of what a tree declared
_STATES = (".deactivated", ".reactivated")
# Values before any event that says another one. No event reports a field that stays empty, where
# an object is nothing but its fields.
AT_FIRST: Spec = {
    **NEW,
    **{
        name: value
        for kind in KINDS
        if KINDS[kind].gone_when_empty
        for name, value in DEFAULTS[kind].items()
    },
}
_NAMED = frozenset(REFERRED.values())
_MARKS = {"preventDelete": PREVENT_DELETE, "critical": CRITICAL}


@dataclass(frozen=True, slots=True)
class Step:
    """One event of an object, and what it made different.

    Attributes:
        fields: By the names that manifests use; the first event has every field.
        after: All fields after the event.
        secret: Whether the application was given another client secret.
        removed: Whether the object is no more.
    """

    event: ObjectEvent
    fields: tuple[FieldChange, ...]
    after: Spec
    secret: bool = False
    removed: bool = False


def steps_of(events: Sequence[ObjectEvent]) -> Iterator[Step]:
    """Yield what each event changed, oldest first."""
    before: Spec = {}
    for event in events:
        after = _fields_after(before, event)
        yield Step(
            event,
            tuple(
                FieldChange(name, before.get(name, True if name == ACTIVE else None), value)
                for name, value in after.items()
                if name not in before or before[name] != value
            ),
            after,
            secret="secret_hash" in event.payload or gives_secret(event),
            removed=event.type.endswith(".removed"),
        )
        before = after


class SinceApplied(NamedTuple):
    """An object's fields as a tree applied them last, and what altered them afterwards.

    Attributes:
        applied: By the names that manifests use.
        altered: The last event that gave a field another value, by its name.
    """

    applied: Spec
    altered: Mapping[str, ObjectEvent]


def since_applied(events: Sequence[ObjectEvent], tree: str) -> SinceApplied | None:
    """Return what a tree applied last and what happened since; None if it applied nothing."""
    altered: dict[str, ObjectEvent] = {}
    applied = None
    for step in steps_of(events):
        event = step.event
        if event.said("tree") == tree and not event.type.endswith(_OF_SECRETS):
            applied, altered = step.after, {}
        else:
            altered |= {field.name: event for field in step.fields}
    return None if applied is None else SinceApplied(applied, altered)


def altered_between(
    events: Sequence[ObjectEvent], first: int, last: int
) -> Mapping[str, ObjectEvent]:
    """Return the last event that gave a field another value, by its name.

    Only those from the sequence ``first`` to ``last`` count; ``events`` are all of the object.
    """
    return {
        field.name: step.event
        for step in steps_of(events)
        if first <= step.event.sequence <= last
        for field in step.fields
    }


def gives_secret(event: Event) -> bool:
    """Return whether an event replaced the client secret of an existing application."""
    return event.type.endswith(_REGENERATED)


def _fields_after(before: Spec, event: ObjectEvent) -> Spec:
    after = dict(before)
    name, spec = event.payload.get("name"), event.payload.get("spec")
    if isinstance(name, str):
        after[NAME] = name
    for written, shown in _MARKS.items():
        value = event.context.get(written)
        if isinstance(value, bool) and (value or shown in before):
            after[shown] = value
    ignored = event.context.get("ignore")
    if isinstance(ignored, str) and (ignored or IGNORE in before):
        after[IGNORE] = sorted({*ignored.split(",")} - {""})  # as the service keeps them
    if isinstance(spec, dict):
        after.update(spec)
    if event.type.endswith(_STATES):
        after[ACTIVE] = event.type.endswith(_STATES[1])
    return after


def names_in(events: Sequence[ObjectEvent]) -> frozenset[str]:
    """Return every name that an object has had, folded."""
    return frozenset(
        fold(name) for event in events if isinstance(name := event.payload.get("name"), str)
    )


def names_by_id(objects: Iterable[ObservedObject | Removal]) -> Mapping[str, str]:
    """Return the names of those objects that others refer to, or did, by id."""
    return {each.id: each.ref.name for each in objects if each.ref.kind in _NAMED}


def lacks_names(events: Sequence[ObjectEvent], names: Mapping[str, str]) -> bool:
    """Return whether events name an object that is not among ``names``, by id."""
    return not names.keys() >= {each for row in RULES.values() for each in row.ids_named(events)}


def with_specs(events: Sequence[ObjectEvent], names: Mapping[str, str]) -> Sequence[ObjectEvent]:
    """Return events of an object, each with its whole spec; names of others are by id."""
    for row in RULES.values():
        events = row.with_specs(events, names)
    return events
