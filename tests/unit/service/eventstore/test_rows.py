"""The chain of an organization's events: each is bound to all before it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.eventstore.rows import (
    ORIGIN,
    Author,
    Head,
    NewEvent,
    StoredEvent,
    StreamAt,
    chained,
    event_hash,
    first_head,
    next_sequence,
)
from tests.rows import each_row

STREAM, NEW, AUTHOR = StreamAt("7", "9", 2), NewEvent("action.added", '{"a":1}'), Author("ci", "{}")
NOW = 1_700_000_000_000_000


def an_event(head: Head | None = None, now: int = NOW) -> tuple[StoredEvent, Head]:
    return chained(head or first_head("7"), STREAM, NEW, AUTHOR, now)


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [(0, NOW, NOW), (NOW, NOW, NOW + 1), (NOW + 9, NOW, NOW + 10), (NOW - 1, NOW, NOW)],
)
def test_a_sequence_is_the_time_and_never_comes_twice(last: int, now: int, expected: int) -> None:
    """Where the clock stands still or goes back, it is one more than the last."""
    assert next_sequence(last, now) == expected


def test_the_first_event_follows_the_origin() -> None:
    event, head = an_event()

    assert (event.previous, event.version, event.sequence) == (ORIGIN, 3, NOW)
    assert (event.type, event.payload, event.writer, event.context) == (
        *NEW, AUTHOR.writer, AUTHOR.context,
    )  # fmt: skip
    assert head == Head("7", NOW, 1, event.hash)


def test_each_event_follows_the_one_before() -> None:
    first, head = an_event()
    second, end = an_event(head, NOW - 5)

    assert second.previous == first.hash
    assert second.sequence == NOW + 1
    assert second.recorded_at == NOW - 5, "what the clock said stays known"
    assert (end.events, end.hash) == (2, second.hash)


@each_row("field", StoredEvent._fields[1:10])
def test_every_field_is_covered_by_the_hash(field: str) -> None:
    """But for the place in the whole log, which a restored store gives anew."""
    event, _ = an_event()
    assert event_hash(event) == event.hash
    assert event_hash(event._replace(position=99)) == event.hash

    value = getattr(event, field)
    changed: dict[str, Any] = {field: value + 1 if isinstance(value, int) else f"{value}x"}
    other = event._replace(**changed)

    assert event_hash(other) != event.hash
    assert event_hash(event._replace(previous=bytes(31) + b"x")) != event.hash


def test_texts_cannot_be_moved_from_one_field_to_the_next() -> None:
    """Lengths come first, so that "ab" and "c" are not "a" and "bc"."""
    event, _ = an_event()

    assert event_hash(event._replace(type="ab", payload="c")) != event_hash(
        event._replace(type="a", payload="bc")
    )
