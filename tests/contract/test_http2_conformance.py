"""HTTP/2 as RFC 9113 and HPACK as RFC 7541 have it: frames that come, and what must be answered.

A row for each case that the test suite h2spec has, by its section there (those of RFC 7540, whose
rules RFC 9113 kept or made weaker). Where a rule leaves a choice, each of its answers is right: a
stream error may end the connection, and a connection error may be a close without a word.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from tests import http2
from tests.http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
)
from tests.running import Server, running_server

PATIENCE = 5.0  # seconds, of which a right answer takes a few thousandths
CODES = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
    "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
    "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)  # fmt: skip
PADDED, WITH_PRIORITY = 0x8, 0x20
ENABLE_PUSH, MAX_FRAME_SIZE, UNKNOWN_SETTING = 0x2, 0x5, 0xFF
UNKNOWN_CODE = (255).to_bytes(4)
MOST = (1 << 31) - 1
MAX_FRAME = 16384

HEALTH = "/grpc.health.v1.Health/Check"
FIELDS = http2.grpc_fields(HEALTH)
BLOCK = http2.block(FIELDS)
# Method and scheme by their index, :authority in Huffman's code: www.example.com, as in RFC 7541.
SHORT_BLOCK = bytes.fromhex("83 86 41 8c f1e3c2e5f23a6ba0ab90f4ff") + http2.block(
    [(name, value) for name, value in FIELDS if name not in {":method", ":scheme", ":authority"}]
)
MESSAGE = bytes(5)
OPENED = frame(HEADERS, END_HEADERS, 1, BLOCK)
ENDED = frame(DATA, END_STREAM, 1, MESSAGE)
IN_PIECES = frame(DATA, 0, 1, MESSAGE[:2]) + frame(DATA, END_STREAM, 1, MESSAGE[2:])
CALL = OPENED + ENDED
PRIORITIZED = END_HEADERS | WITH_PRIORITY
BEGUN = frame(HEADERS, 0, 1, BLOCK[:20])  # a block that is not at its end
ON_ITSELF = (1).to_bytes(4) + b"\x10"  # a priority that depends on stream 1
LONG_MESSAGE = b"\0" + (MAX_FRAME - 5).to_bytes(4) + b"\x0a" + http2.integer(MAX_FRAME - 8, 7)
SEEN = frame(PING, content=b"all seen")

SIZES = b"\x20\x3f\xe1\x1f"  # nothing, then as much as the settings of a server have at first

Accepted = frozenset[str]
Step = tuple[bytes, Accepted]


def connection_error(*codes: str) -> Accepted:
    """Return the words for a connection that is ended."""
    return frozenset({"closed", *(f"GOAWAY {code}" for code in codes)})


def stream_error(*codes: str) -> Accepted:
    """Return the words for a stream that is ended, or its connection."""
    return connection_error(*codes) | {f"RST_STREAM {code}" for code in codes}


PROTOCOL_ERROR = connection_error("PROTOCOL_ERROR")
FRAME_SIZE_ERROR = connection_error("FRAME_SIZE_ERROR")
# The library h2 calls what it cannot decode a protocol error; the connection ends either way, which
# is what keeps the tables of both sides in step.
COMPRESSION_ERROR = connection_error("COMPRESSION_ERROR", "PROTOCOL_ERROR")
FLOW_CONTROL_ERROR = connection_error("FLOW_CONTROL_ERROR")
MALFORMED = stream_error("PROTOCOL_ERROR")
STREAM_CLOSED = stream_error("STREAM_CLOSED")
SAID_GOODBYE = connection_error("NO_ERROR", "PROTOCOL_ERROR")  # where frames come after a GOAWAY
ANSWERED = frozenset({"a message"})
ENDED_WELL = frozenset({"end of stream"})
GOES_ON = frozenset({"PING all seen"})
CLOSED = frozenset({"closed"})


def ignored(sent: bytes) -> Step:
    """Return the step of a frame that changes nothing: what comes after it is answered."""
    return sent + SEEN, GOES_ON


def ignored_or(sent: bytes, accepted: Accepted) -> Step:
    """Return the step of a frame that may be ignored."""
    return sent + SEEN, GOES_ON | accepted


def headers(fields: Sequence[tuple[str, str]], flags: int = END_HEADERS) -> bytes:
    """Return a frame of headers on stream 1."""
    return frame(HEADERS, flags, 1, http2.block(fields))


def request(**changed: str | None) -> bytes:
    """Return a call whose pseudo-headers are changed or left out."""
    fields = [(name, changed.get(name.removeprefix(":"), value)) for name, value in FIELDS]
    return headers([(name, value) for name, value in fields if value is not None]) + ENDED


def with_fields(*more: tuple[str, str], first: bool = False) -> bytes:
    """Return a call with more headers, at the end or before all others."""
    return headers([*more, *FIELDS] if first else [*FIELDS, *more]) + ENDED


def with_block(more: bytes, *, first: bool = False) -> bytes:
    """Return a call with more bytes in its header block."""
    return frame(HEADERS, END_HEADERS, 1, more + BLOCK if first else BLOCK + more) + ENDED


def setting(name: int, value: int) -> bytes:
    """Return one setting, as a frame has it."""
    return struct.pack(">HI", name, value)


def settings(*pairs: tuple[int, int]) -> bytes:
    """Return a frame of settings."""
    return frame(SETTINGS, content=b"".join(setting(*pair) for pair in pairs))


def window(size: int) -> bytes:
    """Return the settings that give each stream a window."""
    return settings((INITIAL_WINDOW_SIZE, size))


def update(count: int, stream: int = 0) -> bytes:
    """Return a frame that gives back so much window."""
    return frame(WINDOW_UPDATE, 0, stream, count.to_bytes(4))


def page(method: str, flags: int = END_STREAM) -> bytes:
    """Return a request for a page that needs no token."""
    fields = [(":method", method), (":scheme", "http"), (":path", "/healthz")]
    return headers([*fields, (":authority", "localhost")], END_HEADERS | flags)


CASES: dict[str, Sequence[Step]] = {
    # What every server can do.
    "generic 1: a connection begins with settings": [ignored(b"")],
    "generic 2: PRIORITY on an idle stream": [(frame(PRIORITY, 0, 1, bytes(5)) + CALL, ANSWERED)],
    "generic 2: WINDOW_UPDATE after the end of a request": [(CALL + update(1, 1), ANSWERED)],
    "generic 2: PRIORITY after the end of a request": [
        (CALL + frame(PRIORITY, 0, 1, bytes(5)), ANSWERED)
    ],
    "generic 2: RST_STREAM after the end of a request": [
        ignored(CALL + frame(RST_STREAM, 0, 1, http2.CANCEL))
    ],
    "generic 2: PRIORITY on a closed stream": [
        (CALL, ENDED_WELL),
        ignored(frame(PRIORITY, 0, 1, bytes(5))),
    ],
    "generic 3.1: DATA": [(CALL, ANSWERED)],
    "generic 3.1: DATA in pieces": [
        (OPENED + IN_PIECES, ANSWERED)
    ],
    "generic 3.1: DATA with padding": [
        (OPENED + frame(DATA, END_STREAM | PADDED, 1, b"\6" + MESSAGE + bytes(6)), ANSWERED)
    ],
    "generic 3.2: HEADERS with padding": [
        (frame(HEADERS, END_HEADERS | PADDED, 1, b"\6" + BLOCK + bytes(6)) + ENDED, ANSWERED)
    ],
    "generic 3.2: HEADERS with a priority": [
        (frame(HEADERS, PRIORITIZED, 1, bytes(4) + b"\xff" + BLOCK) + ENDED, ANSWERED)
    ],
    "generic 3.3: PRIORITY of many kinds": [
        ignored(
            b"".join(
                frame(PRIORITY, 0, stream, depends.to_bytes(4) + bytes([weight]))
                for stream, depends, weight in ((1, 0, 0), (3, 1, 255), (5, 1 << 31 | 1, 7))
            )
        )
    ],
    "generic 3.4: RST_STREAM": [ignored(OPENED + frame(RST_STREAM, 0, 1, http2.CANCEL))],
    "generic 3.5: SETTINGS": [(window(65535), frozenset({"SETTINGS ACK"}))],
    "generic 3.8: GOAWAY": [ignored_or(frame(GOAWAY, content=bytes(8)), SAID_GOODBYE)],
    "generic 3.9: WINDOW_UPDATE": [(update(1) + OPENED + update(1, 1) + ENDED, ANSWERED)],
    "generic 3.10: CONTINUATION": [
        (BEGUN + frame(CONTINUATION, END_HEADERS, 1, BLOCK[20:]) + ENDED, ANSWERED)
    ],
    "generic 3.10: CONTINUATION, many": [
        (
            BEGUN
            + frame(CONTINUATION, 0, 1, BLOCK[20:40])
            + frame(CONTINUATION, 0, 1)
            + frame(CONTINUATION, END_HEADERS, 1, BLOCK[40:])
            + ENDED,
            ANSWERED,
        )
    ],
    "generic 4: GET": [(page("GET"), frozenset({"status 200"}))],
    "generic 4: HEAD": [(page("HEAD"), frozenset({"status 200"}))],
    "generic 4: trailers of a request": [
        (
            OPENED
            + frame(DATA, 0, 1, MESSAGE)
            + headers([("x-test", "ok")], END_HEADERS | END_STREAM),
            ANSWERED,
        )
    ],
    "generic 5: a header by its index, and texts in Huffman's code": [
        (frame(HEADERS, END_HEADERS, 1, SHORT_BLOCK) + ENDED, ANSWERED)
    ],
    "generic 5: a header to keep, by the index of its name": [
        (with_block(b"\x7a" + http2.text("agent")), ANSWERED)
    ],
    "generic 5: a header to keep": [
        (with_block(http2.block([("x-test", "ok")], kept=True) + b"\xbe"), ANSWERED)
    ],
    "generic 5: a header not to keep, by the index of its name": [
        (with_block(b"\x0f\x2b" + http2.text("agent")), ANSWERED)
    ],
    "generic 5: a header never to keep": [
        (with_block(b"\x10" + http2.text("x-test") + http2.text("ok")), ANSWERED)
    ],
    "generic 5: a header never to keep, by the index of its name": [
        (with_block(b"\x1f\x2b" + http2.text("agent")), ANSWERED)
    ],
    "generic 5: another size of the table": [(with_block(b"\x20", first=True), ANSWERED)],
    "generic 5: two other sizes of the table": [(with_block(SIZES, first=True), ANSWERED)],
    # Frames.
    "4.1: a frame of an unknown type": [ignored(frame(0x16, content=bytes(8)))],
    "4.1: undefined flags": [ignored(frame(PING, 0x16 & ~ACK, content=b"flagged."))],
    "4.1: the reserved bit of a stream": [ignored(frame(PING, 0, 1 << 31, b"reserved"))],
    "4.2: DATA of 16,384 bytes": [
        (OPENED + frame(DATA, END_STREAM, 1, LONG_MESSAGE.ljust(MAX_FRAME, b"x")), ENDED_WELL)
    ],
    "4.2: DATA longer than that": [
        (OPENED + frame(DATA, 0, 1, bytes(MAX_FRAME + 1)), stream_error("FRAME_SIZE_ERROR"))
    ],
    "4.2: HEADERS longer than that": [
        (frame(HEADERS, END_HEADERS, 1, BLOCK.ljust(MAX_FRAME + 1, b"\x88")), FRAME_SIZE_ERROR)
    ],
    "4.3: a block that is none": [
        (frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), COMPRESSION_ERROR)
    ],
    "4.3: PRIORITY within a block": [(BEGUN + frame(PRIORITY, 0, 1, bytes(5)), PROTOCOL_ERROR)],
    "4.3: HEADERS of another stream within a block": [
        (BEGUN + frame(HEADERS, END_HEADERS, 3, BLOCK), PROTOCOL_ERROR)
    ],
    # Streams.
    "5.1: DATA on an idle stream": [(frame(DATA, END_STREAM, 1, MESSAGE), PROTOCOL_ERROR)],
    "5.1: RST_STREAM on an idle stream": [(frame(RST_STREAM, 0, 1, http2.CANCEL), PROTOCOL_ERROR)],
    "5.1: WINDOW_UPDATE on an idle stream": [(update(100, 1), PROTOCOL_ERROR)],
    "5.1: CONTINUATION on an idle stream": [
        (frame(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL_ERROR)
    ],
    "5.1: DATA after the end of a request": [(CALL + ENDED, STREAM_CLOSED)],
    "5.1: HEADERS after the end of a request": [
        (CALL + OPENED, STREAM_CLOSED | MALFORMED)
    ],
    "5.1: CONTINUATION after the end of a request": [
        (CALL + frame(CONTINUATION, END_HEADERS, 1, BLOCK), STREAM_CLOSED | PROTOCOL_ERROR)
    ],
    "5.1: DATA after RST_STREAM": [
        ignored_or(OPENED + frame(RST_STREAM, 0, 1, http2.CANCEL) + ENDED, STREAM_CLOSED)
    ],
    "5.1: HEADERS after RST_STREAM": [
        ignored_or(
            OPENED + frame(RST_STREAM, 0, 1, http2.CANCEL) + OPENED, STREAM_CLOSED | PROTOCOL_ERROR
        )
    ],
    "5.1: CONTINUATION after RST_STREAM": [
        (
            OPENED
            + frame(RST_STREAM, 0, 1, http2.CANCEL)
            + frame(CONTINUATION, END_HEADERS, 1, BLOCK),
            STREAM_CLOSED | PROTOCOL_ERROR,
        )
    ],
    "5.1: DATA on a closed stream": [(CALL, ENDED_WELL), ignored_or(ENDED, STREAM_CLOSED)],
    "5.1: HEADERS on a closed stream": [
        (CALL, ENDED_WELL),
        ignored_or(OPENED, STREAM_CLOSED | PROTOCOL_ERROR),
    ],
    "5.1: CONTINUATION on a closed stream": [
        (CALL, ENDED_WELL),
        (frame(CONTINUATION, END_HEADERS, 1, BLOCK), STREAM_CLOSED | PROTOCOL_ERROR),
    ],
    "5.1.1: a stream with an even number": [
        (frame(HEADERS, END_HEADERS, 2, BLOCK), PROTOCOL_ERROR)
    ],
    "5.1.1: a stream with a lower number than one before": [
        (
            frame(HEADERS, END_HEADERS, 5, BLOCK) + frame(HEADERS, END_HEADERS, 3, BLOCK),
            PROTOCOL_ERROR | connection_error("STREAM_CLOSED"),
        )
    ],
    "5.1.2: more streams than were allowed": [
        (
            b"".join(frame(HEADERS, END_HEADERS, stream, BLOCK) for stream in range(1, 803, 2)),
            stream_error("PROTOCOL_ERROR", "REFUSED_STREAM", "ENHANCE_YOUR_CALM"),
        )
    ],
    "5.3.1: HEADERS that depend on themselves": [
        ignored_or(
            frame(HEADERS, PRIORITIZED, 1, ON_ITSELF + BLOCK) + ENDED, MALFORMED
        )
    ],
    "5.3.1: PRIORITY that depends on itself": [
        ignored_or(frame(PRIORITY, 0, 1, ON_ITSELF), MALFORMED)
    ],
    # Errors and extensions.
    "5.4.1: a connection is closed after its error": [(frame(PING, 0, 1, bytes(8)), CLOSED)],
    "5.5: a frame of an extension": [ignored(frame(0xFE, 0xFF, 1, bytes(8)))],
    "5.5: a frame of an extension within a block": [(BEGUN + frame(0xFE, 0, 1), PROTOCOL_ERROR)],
    # One kind of frame after the other.
    "6.1: DATA on stream 0": [(frame(DATA, END_STREAM, 0, MESSAGE), PROTOCOL_ERROR)],
    "6.1: DATA with more padding than bytes": [
        (OPENED + frame(DATA, END_STREAM | PADDED, 1, b"\6" + MESSAGE), PROTOCOL_ERROR)
    ],
    "6.2: HEADERS on stream 0": [(frame(HEADERS, END_HEADERS, 0, BLOCK), PROTOCOL_ERROR)],
    "6.2: HEADERS with more padding than bytes": [
        (frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + BLOCK[:200]), PROTOCOL_ERROR)
    ],
    "6.3: PRIORITY on stream 0": [(frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR)],
    "6.3: PRIORITY of another length": [
        (OPENED + frame(PRIORITY, 0, 1, bytes(4)), stream_error("FRAME_SIZE_ERROR"))
    ],
    "6.4: RST_STREAM on stream 0": [(frame(RST_STREAM, 0, 0, http2.CANCEL), PROTOCOL_ERROR)],
    "6.4: RST_STREAM of another length": [
        (OPENED + frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR)
    ],
    "6.5: SETTINGS that acknowledge and say something": [
        (
            frame(SETTINGS, ACK, 0, setting(INITIAL_WINDOW_SIZE, 1)),
            FRAME_SIZE_ERROR | PROTOCOL_ERROR,
        )
    ],
    "6.5: SETTINGS on a stream": [(frame(SETTINGS, 0, 1), PROTOCOL_ERROR)],
    "6.5: SETTINGS of another length": [(frame(SETTINGS, content=bytes(3)), FRAME_SIZE_ERROR)],
    "6.5.2: ENABLE_PUSH of 2": [(settings((ENABLE_PUSH, 2)), PROTOCOL_ERROR)],
    "6.5.2: INITIAL_WINDOW_SIZE too large": [(window(MOST + 1), FLOW_CONTROL_ERROR)],
    "6.5.2: MAX_FRAME_SIZE too small": [(settings((MAX_FRAME_SIZE, 16383)), PROTOCOL_ERROR)],
    "6.5.2: MAX_FRAME_SIZE too large": [(settings((MAX_FRAME_SIZE, 1 << 24)), PROTOCOL_ERROR)],
    "6.5.2: a setting that nobody knows": [ignored(settings((UNKNOWN_SETTING, 1)))],
    "6.5.3: of two values the last one holds": [
        (
            settings((INITIAL_WINDOW_SIZE, 100), (INITIAL_WINDOW_SIZE, 1)) + CALL,
            frozenset({"DATA of 1"}),
        )
    ],
    "6.5.3: SETTINGS are acknowledged": [(settings(), frozenset({"SETTINGS ACK"}))],
    "6.7: PING": [(frame(PING, content=b"12345678"), frozenset({"PING 12345678"}))],
    "6.7: PING that acknowledges": [ignored(frame(PING, ACK, content=b"unasked!"))],
    "6.7: PING on a stream": [(frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR)],
    "6.7: PING of another length": [(frame(PING, content=bytes(6)), FRAME_SIZE_ERROR)],
    "6.8: GOAWAY on a stream": [(frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR)],
    "6.9: WINDOW_UPDATE of nothing": [(update(0), PROTOCOL_ERROR)],
    "6.9: WINDOW_UPDATE of nothing on a stream": [(OPENED + update(0, 1), MALFORMED)],
    "6.9: WINDOW_UPDATE of another length": [
        (frame(WINDOW_UPDATE, content=bytes(3)), FRAME_SIZE_ERROR)
    ],
    "6.9.1: no more DATA than the window": [(window(1) + CALL, frozenset({"DATA of 1"}))],
    "6.9.1: a window too large": [(update(MOST) + update(MOST), FLOW_CONTROL_ERROR)],
    "6.9.1: a window of a stream too large": [
        (OPENED + update(MOST, 1) + update(MOST, 1), stream_error("FLOW_CONTROL_ERROR"))
    ],
    "6.9.2: a window that grows from nothing": [
        ignored(window(0) + CALL),
        (window(1), frozenset({"DATA of 1"})),
    ],
    "6.9.2: a window below nothing": [
        (window(3) + CALL, frozenset({"DATA of 3"})),
        ignored(window(2)),
        (update(2, 1), frozenset({"DATA of 1"})),
    ],
    "6.9.2: a window that settings make too large": [
        (OPENED + update(MOST - 65535, 1) + window(65536), FLOW_CONTROL_ERROR)
    ],
    "6.10: CONTINUATION, and another frame before its end": [
        (BEGUN + frame(CONTINUATION, 0, 1, BLOCK[20:]) + ENDED, PROTOCOL_ERROR)
    ],
    "6.10: CONTINUATION on stream 0": [
        (BEGUN + frame(CONTINUATION, END_HEADERS, 0, BLOCK[20:]), PROTOCOL_ERROR)
    ],
    "6.10: CONTINUATION after the end of the headers": [
        (OPENED + frame(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL_ERROR)
    ],
    "6.10: CONTINUATION after the last one": [
        (
            BEGUN
            + frame(CONTINUATION, END_HEADERS, 1, BLOCK[20:])
            + frame(CONTINUATION, END_HEADERS, 1, BLOCK),
            PROTOCOL_ERROR,
        )
    ],
    "6.10: CONTINUATION after DATA": [
        (
            OPENED + frame(DATA, 0, 1, MESSAGE) + frame(CONTINUATION, END_HEADERS, 1, BLOCK),
            PROTOCOL_ERROR,
        )
    ],
    "7: GOAWAY with an unknown code": [
        ignored_or(frame(GOAWAY, content=bytes(4) + UNKNOWN_CODE), SAID_GOODBYE)
    ],
    "7: RST_STREAM with an unknown code": [ignored(OPENED + frame(RST_STREAM, 0, 1, UNKNOWN_CODE))],
    # Requests.
    "8.1: HEADERS after DATA that do not end": [
        (OPENED + frame(DATA, 0, 1, MESSAGE) + headers([("x-test", "ok")]), MALFORMED)
    ],
    "8.1.2: a name in capitals": [(with_fields(("X-Test", "ok")), MALFORMED)],
    "8.1.2.1: an unknown pseudo-header": [(with_fields((":test", "ok"), first=True), MALFORMED)],
    "8.1.2.1: a pseudo-header of answers": [
        (with_fields((":status", "200"), first=True), MALFORMED)
    ],
    "8.1.2.1: a pseudo-header in trailers": [
        (
            OPENED
            + frame(DATA, 0, 1, MESSAGE)
            + headers([(":method", "POST")], END_HEADERS | END_STREAM),
            MALFORMED,
        )
    ],
    "8.1.2.1: a pseudo-header after another header": [
        (with_fields(("x-test", "ok"), first=True), MALFORMED)
    ],
    "8.1.2.2: a header of the connection": [(with_fields(("connection", "keep-alive")), MALFORMED)],
    "8.1.2.2: te that is not trailers": [(with_fields(("te", "trailers, deflate")), MALFORMED)],
    "8.1.2.3: an empty path": [(request(path=""), MALFORMED)],
    "8.1.2.3: no method": [(request(method=None), MALFORMED)],
    "8.1.2.3: no scheme": [(request(scheme=None), MALFORMED)],
    "8.1.2.3: no path": [(request(path=None), MALFORMED)],
    "8.1.2.3: two methods": [(with_fields((":method", "POST"), first=True), MALFORMED)],
    "8.1.2.3: two schemes": [(with_fields((":scheme", "http"), first=True), MALFORMED)],
    "8.1.2.3: two paths": [(with_fields((":path", HEALTH), first=True), MALFORMED)],
    "8.1.2.6: a length that is not that of DATA": [
        (with_fields(("content-length", "1")), MALFORMED)
    ],
    "8.1.2.6: a length that is not that of all DATA": [
        (
            headers([*FIELDS, ("content-length", "1")]) + IN_PIECES,
            MALFORMED,
        )
    ],
    "8.2: PUSH_PROMISE": [
        (OPENED + frame(PUSH_PROMISE, END_HEADERS, 1, (2).to_bytes(4) + BLOCK), PROTOCOL_ERROR)
    ],
    # HPACK.
    "hpack 2.3.3: an index of no header": [(with_block(b"\xc6"), COMPRESSION_ERROR)],
    "hpack 2.3.3: an index of no name": [
        (with_block(b"\x7f\x07" + http2.text("ok")), COMPRESSION_ERROR)
    ],
    "hpack 4.2: another size at the end of a block": [(with_block(b"\x20"), COMPRESSION_ERROR)],
    "hpack 5.2: more than seven bits of padding": [
        (with_block(b"\0\x82\x1f\xff" + http2.text("ok")), COMPRESSION_ERROR)
    ],
    "hpack 5.2: padding with zeros": [
        (with_block(b"\0\x81\x18" + http2.text("ok")), COMPRESSION_ERROR)
    ],
    "hpack 5.2: the end of a text within it": [
        (with_block(b"\0\x85\x1f\xff\xff\xff\xff" + http2.text("ok")), COMPRESSION_ERROR)
    ],
    "hpack 6.1: index 0": [(with_block(b"\x80"), COMPRESSION_ERROR)],
    "hpack 6.3: a size above that of the settings": [
        (with_block(b"\x3f\xe2\x1f", first=True), COMPRESSION_ERROR)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server, which must not stumble over any case."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def words(found: http2.Frame) -> Iterator[str]:
    """Yield what a frame says, in the words of the table."""
    if found.kind in {HEADERS, DATA}:
        yield from _words_of_answers(found)
    elif found.kind == GOAWAY:
        yield f"GOAWAY {_code(found.content[4:8])}"
    elif found.kind == RST_STREAM:
        yield f"RST_STREAM {_code(found.content)}"
    elif found.kind == PING:
        yield f"PING {found.content.decode()}" if found.flags & ACK else "PING asked"
    elif found.kind == SETTINGS:
        yield "SETTINGS ACK" if found.flags & ACK else "SETTINGS"


def _words_of_answers(found: http2.Frame) -> Iterator[str]:
    if found.kind == DATA:
        yield f"DATA of {len(found.content)}"
        if found.content:
            yield "a message"
    elif found.content.startswith(b"\x88"):
        yield "status 200"
    if found.flags & END_STREAM:
        yield "end of stream"


def _code(said: bytes) -> str:
    return CODES[int.from_bytes(said)]


def is_wrong(word: str, accepted: Accepted) -> bool:
    """Return whether a word rules out that a right one comes after it."""
    if accepted == CLOSED:
        return False
    if word.startswith("DATA of ") and any(right.startswith("DATA of ") for right in accepted):
        return word not in accepted
    is_error = word.startswith(("GOAWAY ", "RST_STREAM ")) and not word.endswith(" NO_ERROR")
    return is_error and accepted != CLOSED  # which follows whatever is said before


def heard(connection: http2.Connection, accepted: Accepted) -> Sequence[str]:
    """Return what the server says up to the first word that decides."""
    said = []
    for found in connection.frames():
        for word in words(found):
            said.append(word)
            if word in accepted or is_wrong(word, accepted):
                return said
    return [*said, "closed" if connection.is_over else "nothing more"]


@pytest.mark.parametrize("case", CASES)
def test_frames_are_answered_as_the_standards_say(server: Server, case: str) -> None:
    """After each case, another connection is answered as ever."""
    with http2.connected(server.port, PATIENCE) as connection:
        assert connection.settings()
        connection.send(frame(SETTINGS, ACK))
        for sent, accepted in CASES[case]:
            connection.send(sent)
            said = heard(connection, accepted)

            assert said[-1] in accepted, said
    with http2.connected(server.port, PATIENCE) as connection:
        connection.send(CALL)
        assert heard(connection, ENDED_WELL)[-1] in ENDED_WELL


def test_a_connection_begins_with_the_settings_of_the_server(server: Server) -> None:
    """3.5: they come before anything was asked."""
    with http2.connected(server.port, PATIENCE) as connection:
        assert next(connection.frames()).kind == SETTINGS


@pytest.mark.parametrize(
    "said", [b"INVALID CONNECTION PREFACE\r\n\r\n", http2.PREFACE[:-4] + b"XX\r\n"]
)
def test_a_preface_that_is_none_is_no_connection_over_http_2(server: Server, said: bytes) -> None:
    """3.5: it is refused, in words of HTTP/1.1 or by a close."""
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection:
        connection.sendall(said + frame(SETTINGS))
        heard = b""
        while data := connection.recv(4096):
            heard += data

    assert heard.startswith(b"HTTP/1.1 400 ") or not heard or heard[3] in {SETTINGS, GOAWAY}
