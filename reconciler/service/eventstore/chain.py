"""Numbering and chaining of events: the hash of each covers the hash before it.

The encoding that is hashed is unambiguous: the lengths of all parts first, then the parts. So
no two different events have the same encoding, whatever their texts contain.
"""

from __future__ import annotations

from hashlib import sha256

from reconciler.service.eventstore.rows import Author, Head, NewEvent, StoredEvent, StreamAt

ORIGIN = bytes(32)


def first_head(organization: str) -> Head:
    """Return the head of an organization that has no event yet."""
    return Head(organization, 0, 0, ORIGIN)


def next_sequence(last: int, now: int) -> int:
    """Return the time now, or one microsecond after the last if the clock did not advance."""
    return now if now > last else last + 1


def chained(
    head: Head, stream: StreamAt, new: NewEvent, author: Author, now: int
) -> tuple[StoredEvent, Head]:
    """Return the event as it follows a head, still without a position, and the head after it."""
    # The sequence is also what If-Match compares, so two events of an organization never share one,
    # whatever the clock does.
    sequence = next_sequence(head.sequence, now)
    version = stream.version + 1
    said = (
        stream.organization, sequence, stream.id, version, new.type, new.payload,
        author.context, author.writer, now,
    )  # fmt: skip
    digest = _digest(head.hash, said)
    return (
        StoredEvent(0, *said, head.hash, digest),
        Head(stream.organization, sequence, head.events + 1, digest),
    )


def event_hash(event: StoredEvent) -> bytes:
    """Return the hash that an event should carry."""
    return _digest(event.previous, event[1:10])


def _digest(previous: bytes, said: tuple[object, ...]) -> bytes:
    # For instance ("a", 1, "bc") becomes "1,1,2\na1bc", which ("a1", "b", "c") cannot become.
    parts = list(map(str, said))
    lengths = ",".join(map(str, map(len, parts)))
    text = f"{lengths}\n{''.join(parts)}"
    return sha256(previous + text.encode("utf-8", "surrogatepass")).digest()
