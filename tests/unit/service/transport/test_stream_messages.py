"""Messages of gRPC on a stream: cut anyhow, passed on, held back, or replaced by a mark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.service.transport.stream_messages import Entry, Messages, Sizes, message_head
from tests.rows import each_row

SIZES = Sizes(small=4, longest=10, too_large=b"LL", no_room=b"RR")
SMALL = message_head(b"abcd") + b"abcd"
LONG = message_head(b"abcdefgh") + b"abcdefgh"
TOO_LONG = message_head(b"x" * 11) + b"x" * 11
LARGE, FULL = message_head(b"LL") + b"LL" + b"x" * 9, message_head(b"RR") + b"RR" + b"cdefgh"


def always(entry: Entry) -> Callable[[int], Entry]:
    return lambda _: entry


def passed(stream: bytes, size: int, entry: Entry = Entry.NOW) -> bytes:
    """Return what becomes of a stream that comes in pieces of a size."""
    messages = Messages(SIZES)
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))
    return b"".join(messages.take(piece, always(entry)) for piece in pieces)


@each_row("size", [1, 2, 3, 7, 100])
@each_row(
    ("stream", "entry", "expected"),
    [
        pytest.param(SMALL + SMALL, Entry.NEVER, SMALL + SMALL, id="small ones enter unasked"),
        pytest.param(LONG + SMALL, Entry.NOW, LONG + SMALL, id="a long one that may enter"),
        pytest.param(SMALL + LONG, Entry.NEVER, SMALL + FULL, id="a long one without room"),
        pytest.param(TOO_LONG, Entry.NOW, LARGE, id="one that is too long"),
        pytest.param(message_head(b""), Entry.NOW, message_head(b""), id="an empty one"),
    ],
)
def test_messages_are_followed_however_they_are_cut(
    stream: bytes, entry: Entry, expected: bytes, size: int
) -> None:
    assert passed(stream, size, entry) == expected


def test_half_a_head_is_not_passed_on() -> None:
    messages = Messages(SIZES)

    assert messages.take(SMALL[:4], always(Entry.NOW)) == b""
    assert messages.take(SMALL[4:], always(Entry.NOW)) == SMALL


def test_a_message_that_waits_is_refused_by_a_mark_in_its_place() -> None:
    messages = Messages(SIZES)
    content = messages.take(SMALL + LONG[:8], always(Entry.LATER))
    assert messages.kept == bytearray()
    assert messages.entry_at == len(SMALL)
    messages.kept = bytearray(content)

    messages.refuse()

    assert messages.kept == SMALL + message_head(b"RR") + b"RR" + b"c"
    assert messages.take(LONG[8:], always(Entry.NOW)) == b"defgh"


def test_a_head_says_the_length_of_a_plain_message() -> None:
    assert message_head(b"x" * 258) == b"\0\0\0\1\2"
