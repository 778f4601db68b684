"""Streams and long messages are seen in the bytes of HTTP/2, however they are cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.service.transport.frames import CallerFrames, Frames, FramesError, Sizes
from tests import h2
from tests.wires import frame as message

SMALL = 100
MARK = b"0123456789abcdef"
SIZES = Sizes(SMALL, 5000, MARK)
LONG = message(b"x" * 1000)
OPEN = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"block")
RESET = h2.frame(h2.RST_STREAM, 0, 1, bytes(4))


def pieces(stream: int, data: bytes, size: int) -> bytes:
    """Return data as frames of a size."""
    return b"".join(
        h2.frame(h2.DATA, 0, stream, data[start : start + size])
        for start in range(0, len(data), size)
    )


def seen(data: bytes, cut: int, answered: Sequence[int] = ()) -> tuple[list[tuple[int, int]], int]:
    """Return the long messages that are seen in bytes that come in pieces, and the ends."""
    large: list[tuple[int, int]] = []
    ended: list[int] = []
    frames = CallerFrames(ended.append, lambda stream, size: large.append((stream, size)), SIZES)
    sent = h2.PREFACE + h2.frame(h2.SETTINGS) + data
    passed = b"".join(frames.feed(sent[at : at + cut]) for at in range(0, len(sent), cut))
    assert passed == sent
    return large, len(ended)


@pytest.mark.parametrize("cut", [1, 2, 9, 24, 50, 10_000])
@pytest.mark.parametrize(
    ("data", "large", "ends"),
    [
        pytest.param(OPEN + pieces(1, LONG, 10_000), [(1, 1000)], 0, id="in one frame"),
        pytest.param(OPEN + pieces(1, LONG, 3), [(1, 1000)], 0, id="in many frames"),
        pytest.param(OPEN + pieces(1, LONG[:7], 3), [(1, 1000)], 0, id="only begun"),
        pytest.param(OPEN + pieces(1, LONG[:4], 4), [], 0, id="without its whole head"),
        pytest.param(OPEN + pieces(1, LONG + LONG, 64), [(1, 1000)] * 2, 0, id="two messages"),
        pytest.param(OPEN + pieces(1, message(b"x" * SMALL), 64), [], 0, id="a small one"),
        pytest.param(OPEN + pieces(1, message(b"") * 3, 64), [], 0, id="empty ones"),
        pytest.param(OPEN + pieces(1, LONG, 64) + RESET, [(1, 1000)], 1, id="given up"),
        pytest.param(pieces(1, LONG, 64), [], 0, id="on no stream"),
        pytest.param(
            OPEN
            + OPEN.replace(b"\0\0\0\1", b"\0\0\0\3")
            + pieces(3, LONG, 64)
            + pieces(1, LONG, 8),
            [(3, 1000), (1, 1000)],
            0,
            id="two streams",
        ),
    ],
)
def test_long_messages_are_seen(
    data: bytes, large: list[tuple[int, int]], ends: int, cut: int
) -> None:
    """Once each, and every byte is passed on."""
    assert seen(data, cut) == (large, ends)


def test_a_stream_that_was_answered_is_followed_no_longer() -> None:
    """What still comes on it is the rest of a message, and begins none."""
    large: list[int] = []
    frames = CallerFrames(lambda _: None, lambda stream, _: large.append(stream), SIZES)
    frames.feed(h2.PREFACE + OPEN + pieces(1, LONG[:10], 64))
    frames.forget(1)
    frames.feed(pieces(1, b"\0\xff\xff\xff\xff" * 100, 64))

    assert large == [1]


@pytest.mark.parametrize("size", [5, 7, 3000])
def test_a_message_that_is_too_long_is_passed_on_as_a_mark(size: int) -> None:
    """As many bytes as before go on, and none of them makes the gRPC server take it in."""
    large: list[int] = []
    frames = CallerFrames(lambda _: None, lambda stream, _: large.append(stream), SIZES)
    start = h2.PREFACE + OPEN
    passed = frames.feed(start + pieces(1, message(b"x" * 6000), size))
    marked = message(MARK) + b"x" * (6000 - len(MARK))

    assert large == []
    assert passed == start + pieces(1, marked, size)


def test_padding_is_refused() -> None:
    """It would have to be told from the message."""
    frames = CallerFrames(lambda _: None, lambda *_: None, SIZES)

    with pytest.raises(FramesError):
        frames.feed(h2.PREFACE + OPEN + h2.frame(h2.DATA, 0x8, 1, b"\1x\0"))


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_the_ends_of_streams_are_seen_in_answers(cut: int) -> None:
    """By trailers, by data without more, and by a reset; not by a header block before them."""
    ended: list[int] = []
    frames = Frames(ended.append)
    sent = b"".join(
        [
            h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"x" * 20),
            h2.frame(h2.DATA, 0, 1, b"y" * 20),
            h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, b"z"),
            h2.frame(h2.DATA, h2.END_STREAM, 3),
            h2.frame(h2.RST_STREAM, 0, 5, bytes(4)),
            h2.frame(h2.PING, 1, 0, bytes(8)),
        ]
    )
    for at in range(0, len(sent), cut):
        frames.feed(sent[at : at + cut])

    assert ended == [1, 3, 5]
