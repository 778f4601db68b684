"""Domain events as the store keeps them, and an object's row, one event after the other.

The same function makes the row when an event is written and when rows are made anew from the
log: that is why both are equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

from reconciler.kinds.events import EVENTS
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Kind, fold_name
from reconciler.resources.undone import undone_of_text
from reconciler.service.domain.events import (
    Added,
    Changed,
    ContextRecorded,
    Deactivated,
    Event,
    Held,
    MarkEvent,
    Reactivated,
    Removed,
    Renamed,
    State,
    Unborn,
    type_of,
)
from reconciler.service.domain.state import evolve
from reconciler.service.eventstore.rows import (
    INACTIVE_MARK,
    NewEvent,
    ObjectName,
    ObjectRow,
    StoredEvent,
)

OF_EVERY_KIND: tuple[type[Event], ...] = (
    Added, Renamed, Changed, Deactivated, Reactivated, ContextRecorded, Removed,
)  # fmt: skip
_EVENTS: Mapping[str, tuple[Kind, type[Event]]] = {
    type_of(kind, event.VERB): (kind, event)
    for kind, row in EVENTS.items()
    for event in (*OF_EVERY_KIND, *row.own)
}
SIDE_EVENTS = frozenset(
    type_of(kind, side.VERB) for kind, row in EVENTS.items() for side in row.side
)
"""Types of the events that are about an object and change neither it nor its sequence."""

_INACTIVE = "inactive"
NO_MARKS = '{"owner":"","preventDelete":null,"trees":[]}'


def state_of(row: ObjectRow) -> Held:
    """Return what a row says an object's events add up to."""
    return Held(
        Kind(row.kind), row.id, row.organization, row.parent, row.name, json.loads(row.spec),
        row.client_id, row.secret_hash, is_active(row.marks),
    )  # fmt: skip


def next_row(row: ObjectRow | None, stored: StoredEvent, event: Event) -> ObjectRow | None:
    """Return an object's row after one more event; None once it is removed."""
    before: State = state_of(row) if row else Unborn(stored.stream, stored.organization)
    held = evolve(before, event)
    if not isinstance(held, Held):
        return None
    if row is not None and isinstance(event, MarkEvent):
        return _marked(row, stored, event)
    return ObjectRow(
        held.id,
        held.kind.value,
        held.organization,
        held.parent,
        held.name,
        fold_name(held.kind, held.name),
        canonical(held.spec),
        held.client_id,
        held.secret_hash,
        stored.version,
        stored.sequence,
        row.created if row else stored.sequence,
        stored.writer,
        stored.context,
        _next_marks(
            row.marks if row else NO_MARKS,
            stored.context,
            gives=event.GIVES_OWNER,
            active=held.active,
        ),
    )


def _marked(row: ObjectRow, stored: StoredEvent, event: MarkEvent) -> ObjectRow:
    marks: dict[str, Any] = json.loads(row.marks)
    event.marked(marks, stored.sequence, stored.writer)
    return row._replace(version=stored.version, marks=canonical(marks))


def project_of(row: ObjectRow | ObjectName) -> str:
    """Return the id of the project that owns an object; empty if an organization does."""
    return row.parent if row.parent != row.organization else ""


@lru_cache(maxsize=256)
def trees_of(marks: str) -> tuple[str, ...]:
    """Return the trees that the marks of a row name, in order."""
    return tuple(json.loads(marks)["trees"])


def is_active(marks: str) -> bool:
    """Return whether an object with these marks is active: those of an inactive one have a mark."""
    return INACTIVE_MARK not in marks


@lru_cache(maxsize=64)
def _next_marks(marks: str, context: str, *, gives: bool, active: bool) -> str:
    """Return the marks of an object after one more event. A whole apply has very few contexts.

    ``gives`` says whether the event makes the tree of its context the owner of the object, and
    ``active`` whether the object is active then: only one that is not has a mark of its state.
    """
    said: JsonObject = json.loads(context) if context else {}
    known: dict[str, Any] = json.loads(marks)
    tree = tree_of(context)
    if gives and tree:
        known["owner"] = _owner_of(said, tree)
        known["trees"] = sorted({*known["trees"], tree})
    for mark in ("preventDelete", "critical"):
        if isinstance(said.get(mark), bool):
            known[mark] = said[mark]
    if isinstance(said.get("ignore"), str):
        known["ignore"] = sorted({*said["ignore"].split(",")} - {""})
        if not known["ignore"]:  # most objects have none: their marks leave it out
            del known["ignore"]
    _mark_undone(known, said.get("undone"))
    known.pop(_INACTIVE, None)
    if not active:
        known[_INACTIVE] = True
    return canonical(known)


def _owner_of(said: JsonObject, tree: str) -> str:
    """Return the owner after a write: an undo gives an object back, maybe to no tree at all."""
    owner = said.get("owner")
    return owner if isinstance(owner, str) else tree


def _mark_undone(marks: dict[str, Any], said: object) -> None:
    """Keep the mark of an undo; an empty text ends it, and what is no mark is ignored."""
    undone = undone_of_text(said)
    if undone is not None:
        marks["undone"] = undone._asdict()
    elif said == "":
        marks.pop("undone", None)


@lru_cache(maxsize=64)
def tree_of(context: str) -> str:
    """Return the tree that a context names, or nothing."""
    tree = json.loads(context).get("tree") if context else ""
    return tree if isinstance(tree, str) else ""


def gives_owner(event_type: str) -> bool:
    """Return whether an event makes the tree of its context the owner of the object."""
    return _EVENTS[event_type][1].GIVES_OWNER


def gives_name(event_type: str) -> bool:
    """Return whether an event says the name of its object."""
    return "name" in _EVENTS[event_type][1].__slots__


def canonical(value: object) -> str:
    """Return the one JSON text of a value: equal values give equal texts.

    A number that is not finite becomes null: JSON has none, and no field is a number.

    Raises:
        TypeError: the value is not JSON, or is nested too deeply, or a number needs more than 64
            bits.
    """
    return fast_json(sorts=True)(value).decode()


@cache
def fast_json(*, sorts: bool) -> Callable[[object], bytes]:
    """Return a function that writes JSON in UTF-8; it ``sorts`` the names in objects, or does not.

    The function raises ``TypeError`` as ``canonical`` does.
    """
    import orjson  # loading it takes a plan longer than it gains by it

    # Disable orjson's implicit types, so that a Secret cannot be serialized by accident.
    strict = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    return partial(orjson.dumps, option=strict | orjson.OPT_SORT_KEYS if sorts else strict)


def encode(event: Event) -> NewEvent:
    """Return an event as it is appended. Empty fields are left out."""
    fields = {name: getattr(event, name) for name in event.__slots__}
    given = {name: value for name, value in fields.items() if value not in ("", {})}
    return NewEvent(event.type, canonical(given))


def decode(stored: StoredEvent) -> Event:
    """Return the event that was appended.

    Raises:
        ValueError: this version writes no such event.
    """
    try:
        kind, event = _EVENTS[stored.type]
        return event(kind, **json.loads(stored.payload))
    except (KeyError, TypeError) as error:
        raise ValueError(f"event {stored.sequence} is of an unknown form") from error
