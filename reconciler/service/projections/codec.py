"""Domain events as the store keeps them: a type, and a payload of canonical JSON."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from reconciler.service.domain.evolution import EVENTS, Event
from reconciler.service.eventstore.rows import NewEvent, StoredEvent

_ENCODE = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    check_circular=False,  # a circle ends as a RecursionError
).encode


class Encoded(NamedTuple):
    """An event as it is appended, and the text of the spec in it, which is not made twice."""

    event: NewEvent
    spec: str


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: equal values give equal texts.

    Raises:
        ValueError: the value is not JSON.
        TypeError: the value is not JSON.
        RecursionError: the value is nested too deeply.
    """
    return _ENCODE(value)


def encode(event: Event) -> Encoded:
    """Return an event as it is appended.

    ``spec`` is the last name of every payload that has it, so its text can be put in.
    """
    fields = {name: getattr(event, name) for name in event.__slots__}
    spec = fields.pop("spec", None)
    rest = canonical(fields)
    if spec is None:
        return Encoded(NewEvent(event.TYPE, rest), "")
    text = canonical(spec)
    comma = "," if fields else ""
    return Encoded(NewEvent(event.TYPE, f'{rest[:-1]}{comma}"spec":{text}}}'), text)


def decode(stored: StoredEvent) -> Event:
    """Return the event that was appended.

    Raises:
        ValueError: this version writes no such event.
    """
    try:
        return EVENTS[stored.type](**json.loads(stored.payload))
    except (KeyError, TypeError) as error:
        raise ValueError(f"event {stored.sequence} is of an unknown form") from error
