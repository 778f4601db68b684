"""Streams and long messages are seen in the bytes of HTTP/2, however they are cut."""

from __future__ import annotations

import pytest

from reconciler.service.transport.frames import CallerFrames, Frames, FramesError
from reconciler.service.transport.limits import MOST_KEPT
from reconciler.service.transport.stream_messages import Entry, Sizes
from tests import h2
from tests.rows import each_row
from tests.wires import frame as message

SMALL = 100
MARK = b"0123456789abcdef"
BUSY = b"fedcba9876543210"
SIZES = Sizes(SMALL, 1000, MARK, BUSY)
LONG = message(b"x" * 1000)
OPEN = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"block")
RESET = h2.frame(h2.RST_STREAM, 0, 1, bytes(4))


def pieces(stream: int, data: bytes, size: int) -> bytes:
    """Return data as frames of a size."""
    return b"".join(
        h2.frame(h2.DATA, 0, stream, data[start : start + size])
        for start in range(0, len(data), size)
    )


def entering(large: list[tuple[int, int]], entry: Entry = Entry.NOW) -> CallerFrames:
    """Return frames that note long messages, and answer each in the same way."""

    def note(stream: int, size: int) -> Entry:
        large.append((stream, size))
        return entry

    return CallerFrames(lambda _: None, note, SIZES)


def contents(data: bytes) -> dict[int, bytes]:
    """Return the bytes of DATA frames by stream, and those of all other frames as stream 0."""
    found: dict[int, bytes] = {0: b""}
    at = len(h2.PREFACE)
    assert data[:at] == h2.PREFACE
    while at < len(data):
        length, kind, stream = int.from_bytes(data[at : at + 3]), data[at + 3], data[at + 8]
        whole, at = data[at : at + 9 + length], at + 9 + length
        assert len(whole) == 9 + length <= 9 + 16_384
        if kind == h2.DATA:
            found[stream] = found.get(stream, b"") + whole[9:]
        else:
            found[0] += whole
    return found


def seen(data: bytes, cut: int) -> tuple[list[tuple[int, int]], int]:
    """Return the long messages that are seen in bytes that come in pieces, and the ends."""
    large: list[tuple[int, int]] = []
    ended: list[int] = []

    def note(stream: int, size: int) -> Entry:
        large.append((stream, size))
        return Entry.NOW

    frames = CallerFrames(ended.append, note, SIZES)
    sent = h2.PREFACE + h2.frame(h2.SETTINGS) + data
    passed = b"".join(frames.feed(sent[at : at + cut]) for at in range(0, len(sent), cut))
    begun = 4 if data.endswith(LONG[:4]) else 0  # the head of a message is passed on whole
    expected = contents(sent)
    if begun:
        expected[1] = expected[1][:-begun]
    assert {k: v for k, v in contents(passed).items() if v} == {
        k: v for k, v in expected.items() if v
    }
    return large, len(ended)


@each_row("cut", [1, 2, 9, 24, 50, 10_000])
@each_row(
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
    large: list[tuple[int, int]] = []
    frames = entering(large)
    frames.feed(h2.PREFACE + OPEN + pieces(1, LONG[:10], 64))
    frames.forget(1)
    frames.feed(pieces(1, b"\0\xff\xff\xff\xff" * 100, 64))

    assert large == [(1, 1000)]


@each_row("cut", [1, 4, 9, 12, 10_000])
@each_row("size", [1, 3, 5, 7, 600])
@each_row(("length", "entry", "mark"), [(1001, Entry.NOW, MARK), (300, Entry.NEVER, BUSY)])
def test_a_message_that_may_not_enter_is_passed_on_as_a_mark(
    length: int, entry: Entry, mark: bytes, size: int, cut: int
) -> None:
    """However its head is cut, and with as many bytes as before, for the window counts them."""
    large: list[tuple[int, int]] = []
    frames = entering(large, entry)
    sent = h2.PREFACE + OPEN + pieces(1, message(b"x" * length), size)
    passed = b"".join(frames.feed(sent[at : at + cut]) for at in range(0, len(sent), cut))

    assert contents(passed) == {0: OPEN, 1: message(mark) + b"x" * (length - len(mark))}
    assert large == ([] if entry is Entry.NOW else [(1, length)])


OTHER = OPEN.replace(b"\0\0\0\1", b"\0\0\0\3")


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_a_message_waits_alone_until_it_may_enter(cut: int) -> None:
    """Calls beside it go on, and not a byte of it is lost or out of its order."""
    frames = entering([], Entry.LATER)
    begun = h2.PREFACE + OPEN + OTHER + pieces(1, LONG[:300], 64)
    beside = pieces(3, message(b"y" * SMALL), 64)
    sent = begun + beside
    passed = b"".join(frames.feed(sent[at : at + cut]) for at in range(0, len(sent), cut))
    assert contents(passed) == {0: OPEN + OTHER, 3: message(b"y" * SMALL)}

    frames.enter(1)
    passed += frames.ready() + frames.feed(pieces(1, LONG[300:], 64))
    assert contents(passed)[1] == LONG


def test_a_message_enters_between_frames_and_not_within_a_block_of_headers() -> None:
    """Nothing may come between the parts of a block, so it is passed on whole."""
    frames = entering([], Entry.LATER)
    passed = frames.feed(h2.PREFACE + OPEN + pieces(1, LONG, 400))
    half = h2.frame(h2.HEADERS, 0, 3, b"block")
    rest = h2.frame(0x9, h2.END_HEADERS, 3, b"block")
    assert frames.feed(half[:11]) == b""
    frames.enter(1)
    passed += frames.ready()
    assert contents(passed) == {0: OPEN, 1: LONG}
    assert frames.feed(half[11:] + rest[:4]) == b""

    assert frames.feed(rest[4:]) == half + rest


def test_a_message_that_found_no_room_is_passed_on_as_a_mark() -> None:
    """What came of it before, and what comes later."""
    frames = entering([], Entry.LATER)
    passed = frames.feed(h2.PREFACE + OPEN + pieces(1, LONG[:12], 3))
    frames.enter(1, as_mark=True)
    passed += frames.ready() + frames.feed(pieces(1, LONG[12:], 64))

    assert contents(passed)[1] == message(BUSY) + LONG[5 + len(BUSY) :]


def test_the_end_of_a_stream_waits_with_its_message() -> None:
    """The last frame says that it is the last."""
    frames = entering([], Entry.LATER)
    frames.feed(h2.PREFACE + OPEN + h2.frame(h2.DATA, h2.END_STREAM, 1, LONG))
    frames.enter(1)

    assert frames.ready() == h2.frame(h2.DATA, h2.END_STREAM, 1, LONG)


def test_what_is_kept_of_a_call_has_an_end() -> None:
    """A caller that sends more than it may is refused, and no byte of its window is lost."""
    sizes = SIZES._replace(longest=10 * MOST_KEPT)
    frames = CallerFrames(lambda _: None, lambda *_: Entry.LATER, sizes)
    large = message(b"x" * (2 * MOST_KEPT))
    passed = frames.feed(h2.PREFACE + OPEN + pieces(1, large, 10_000))

    assert contents(passed)[1] == message(BUSY) + large[5 + len(BUSY) :]


def test_what_is_kept_of_a_call_that_ends_is_passed_on() -> None:
    """The gRPC server throws it away, and counts it in the window of the connection."""
    frames = entering([], Entry.LATER)
    passed = frames.feed(h2.PREFACE + OPEN + pieces(1, LONG, 64))
    assert frames.is_calling
    frames.forget(1)
    passed += frames.ready()

    assert contents(passed)[1] == LONG
    assert not frames.is_calling


def test_padding_is_refused() -> None:
    """It would have to be told from the message."""
    frames = entering([])

    with pytest.raises(FramesError):
        frames.feed(h2.PREFACE + OPEN + h2.frame(h2.DATA, 0x8, 1, b"\1x\0"))


def opened(stream: int, block: bytes = b"block") -> bytes:
    """Return the headers of a call, in two frames."""
    half = len(block) // 2
    return h2.frame(h2.HEADERS, 0, stream, block[:half]) + h2.frame(
        h2.CONTINUATION, h2.END_HEADERS, stream, block[half:]
    )


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_new_calls_wait_and_the_others_go_on(cut: int) -> None:
    """Their frames come in their order once they may begin, and nothing of them before."""
    places = [1]
    asked: list[int] = []

    def may_begin(stream: int) -> bool:
        asked.append(stream)
        return bool(places) and bool(places.pop())

    frames = CallerFrames(lambda _: None, lambda *_: Entry.NOW, SIZES, may_begin)
    ping, wider = h2.frame(h2.PING, 0, 0, bytes(8)), h2.frame(h2.WINDOW_UPDATE, 0, 0, bytes(4))
    first, second, third = (opened(stream) for stream in (1, 3, 5))
    said = {stream: pieces(stream, message(b"%d" % stream * 50), 30) for stream in (1, 3, 5)}
    sent = h2.PREFACE + first + second + ping + third + said[5] + said[1] + wider + said[3]
    passed = b"".join(frames.feed(sent[at : at + cut]) for at in range(0, len(sent), cut))

    begun = contents(passed)
    assert begun.pop(0) in {first + ping + wider, ping + wider + first}
    assert begun == {1: message(b"1" * 50)}
    assert frames.held_bytes == len(second + third + said[3] + said[5])
    assert frames.newest == 1

    places.append(1)
    assert frames.go_on() == second + said[3]
    assert frames.is_calling
    places.append(1)
    assert frames.go_on() == third + said[5]
    assert (frames.held_bytes, frames.newest) == (0, 5)
    assert asked[0] == 1
    assert asked[-1] == 5


def test_half_of_the_headers_of_a_call_take_no_place() -> None:
    """Nor do they end between those of another call, which would end the connection."""
    asked: list[int] = []

    def may_begin(stream: int) -> bool:
        asked.append(stream)
        return True

    frames = CallerFrames(lambda _: None, lambda *_: Entry.NOW, SIZES, may_begin)
    block = opened(1)
    for at in range(len(block) - 1):
        assert frames.feed((h2.PREFACE if not at else b"") + block[at : at + 1]) == (
            h2.PREFACE if not at else b""
        )
    assert asked == []
    assert frames.feed(block[-1:]) == block
    assert asked == [1]


def test_a_frame_that_goes_on_with_headers_waits_with_them() -> None:
    """Also where another call began meanwhile."""
    places = [1]
    frames = CallerFrames(
        lambda _: None, lambda *_: Entry.NOW, SIZES, lambda _: bool(places) and bool(places.pop())
    )
    third = opened(5)
    cut = third.index(h2.frame(h2.CONTINUATION, h2.END_HEADERS, 5, b"ock"))
    frames.feed(h2.PREFACE + OPEN + OTHER + third[:cut])
    places.append(1)
    assert frames.go_on() == OTHER
    assert frames.feed(third[cut:]) == b""
    places.append(1)
    assert frames.go_on() == third


def test_a_call_that_makes_room_lets_none_overtake_the_frames_before_it() -> None:
    """It is given up in bytes that are not passed on yet; headers are read in their order."""
    places = [1, 1]
    early: list[bytes] = []

    def given_up(_: int) -> None:
        places.append(1)
        early.append(frames.go_on())

    frames = CallerFrames(
        given_up, lambda *_: Entry.NOW, SIZES, lambda _: bool(places) and bool(places.pop())
    )
    assert frames.feed(h2.PREFACE + OPEN) == h2.PREFACE + OPEN
    third = OPEN.replace(b"\0\0\0\1", b"\0\0\0\5")

    assert frames.feed(OTHER + third + RESET) == OTHER + RESET + third
    assert early == [b""]


def test_a_call_that_waited_begins_between_frames() -> None:
    """What comes in meanwhile may be cut anywhere."""
    places: list[int] = []
    frames = CallerFrames(
        lambda _: None, lambda *_: Entry.NOW, SIZES, lambda _: bool(places) and bool(places.pop())
    )
    ping = h2.frame(h2.PING, 0, 0, bytes(8))
    assert frames.feed(h2.PREFACE + OPEN + ping[:12]) == h2.PREFACE + ping[:12]
    places.append(1)

    assert frames.go_on() == b""
    assert frames.feed(ping[12:] + ping[:3]) == ping[12:] + OPEN
    assert frames.feed(ping[3:]) == ping


def test_headers_at_the_end_of_a_call_may_not_pass_those_that_wait() -> None:
    """They could not be read without those, and no client of gRPC sends any."""
    places = [1]
    frames = CallerFrames(
        lambda _: None, lambda *_: Entry.NOW, SIZES, lambda _: bool(places) and bool(places.pop())
    )
    frames.feed(h2.PREFACE + OPEN + OTHER)

    with pytest.raises(FramesError):
        frames.feed(OPEN)


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
