"""Domain events as the store keeps them: a type, and a payload of canonical JSON."""

from __future__ import annotations

import json
from typing import Any

from reconciler.service.domain.evolution import EVENTS, Event
from reconciler.service.eventstore.rows import NewEvent, StoredEvent

_ENCODE = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: equal values give equal texts.

    Raises:
        ValueError: the value is not JSON.
        TypeError: the value is not JSON.
    """
    return _ENCODE(value)


def encode(event: Event) -> NewEvent:
    """Return an event as it is appended."""
    payload = {name: getattr(event, name) for name in event.__slots__}
    return NewEvent(event.TYPE, canonical(payload))


def decode(stored: StoredEvent) -> Event:
    """Return the event that was appended.

    Raises:
        ValueError: this version writes no such event.
    """
    try:
        return EVENTS[stored.type](**json.loads(stored.payload))
    except (KeyError, TypeError) as error:
        raise ValueError(f"event {stored.sequence} is of an unknown form") from error
