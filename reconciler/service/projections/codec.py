"""Domain events as the store keeps them: a type, and a payload of canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from reconciler.service.domain.evolution import EVENTS, Beside, Event
from reconciler.service.eventstore.rows import NewEvent, StoredEvent


class Encoded(NamedTuple):
    """An event as it is appended, and the text of the spec in it, which is not made twice."""

    event: NewEvent
    spec: str


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: equal values give equal texts.

    A number that is not finite becomes null: JSON has none, and no field is a number.

    Raises:
        TypeError: the value is not JSON, or is nested too deeply, or a number needs more than 64
            bits.
    """
    return _writer()(value).decode()


@cache
def _writer() -> Callable[[Any], bytes]:
    import orjson  # loading it takes a plan longer than it gains by it

    # Not what else it could write: nothing that keeps to itself becomes text by accident.
    strict = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    return partial(orjson.dumps, option=strict | orjson.OPT_SORT_KEYS)


def encode(event: Event | Beside) -> Encoded:
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
