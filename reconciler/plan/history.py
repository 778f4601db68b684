"""An object's events, one after the other: what each changed, and what a tree left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reconciler.plan.diff import CRITICAL, NAME, PREVENT_DELETE, FieldChange
from reconciler.state import ObjectEvent

_REGENERATED = ".secret.changed"
_OF_SECRETS = (_REGENERATED, ".secret.claimed")  # they say nothing of what a tree declared
_MARKS = {"preventDelete": PREVENT_DELETE, "critical": CRITICAL}


@dataclass(frozen=True, slots=True)
class Step:
    """One event of an object, and what it made different.

    Attributes:
        fields: By the names that manifests use; the first event has every field.
        secret: Whether the application was given another client secret.
        removed: Whether the object is no more.
    """

    event: ObjectEvent
    fields: tuple[FieldChange, ...]
    secret: bool = False
    removed: bool = False


def steps_of(events: Sequence[ObjectEvent]) -> Iterator[Step]:
    """Yield what each event changed, oldest first."""
    before: Mapping[str, Any] = {}
    for event in events:
        after = _fields_after(before, event)
        yield Step(
            event,
            tuple(
                FieldChange(name, before.get(name), value)
                for name, value in after.items()
                if name not in before or before[name] != value
            ),
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

    applied: Mapping[str, Any]
    altered: Mapping[str, ObjectEvent]


def since_applied(events: Sequence[ObjectEvent], tree: str) -> SinceApplied | None:
    """Return what a tree applied last and what happened since; None if it applied nothing."""
    fields: Mapping[str, Any] = {}
    altered: dict[str, ObjectEvent] = {}
    applied = None
    for event in events:
        before, fields = fields, _fields_after(fields, event)
        if event.context.get("tree") == tree and not event.type.endswith(_OF_SECRETS):
            applied, altered = fields, {}
            continue
        for name, value in fields.items():
            if before.get(name) != value:
                altered[name] = event
    return None if applied is None else SinceApplied(applied, altered)


def gives_secret(event: ObjectEvent) -> bool:
    """Return whether an event replaced the client secret of an existing application."""
    return event.type.endswith(_REGENERATED)


def _fields_after(before: Mapping[str, Any], event: ObjectEvent) -> Mapping[str, Any]:
    after = dict(before)
    name, spec = event.payload.get("name"), event.payload.get("spec")
    if isinstance(name, str):
        after[NAME] = name
    for written, shown in _MARKS.items():
        value = event.context.get(written)
        if isinstance(value, bool) and (value or shown in before):
            after[shown] = value
    if isinstance(spec, dict):
        after.update(spec)
    return after
