"""HTTP/2 on one connection: requests and answers, and what a connection may cost.

The other side is the client of the library ``h2``, over a connection in memory, or frames by hand.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes

from reconciler.service.transport import http2 as tested
from reconciler.service.transport.connections import Room
from reconciler.service.transport.http2 import Http2Protocol, Http2Server
from reconciler.service.transport.http_messages import CONNECTION
from reconciler.service.transport.limits import (
    CONNECTION_WINDOW,
    KIB,
    STREAM_WINDOW,
    STREAMS_OF_STRANGER,
    Limits,
)
from reconciler.service.transport.turns import Turn, Turns
from tests import http2
from tests.http2 import Frame, frame

LIMITS = Limits()
PREFACE = len(http2.PREFACE)
QUIET_PASSES = 20  # of the loop, after which nothing more is expected
GET = {":method": "GET", ":scheme": "http", ":authority": "example.com", ":path": "/x"}
POST = GET | {":method": "POST"}


class Wire(asyncio.Transport):
    """A connection in memory; what is written to it is kept."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.7", 4711), "sockname": ("192.0.2.1", 443)})
        self.written = b""
        self.is_held = self.is_aborted = self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def is_reading(self) -> bool:
        return not self.is_held

    def pause_reading(self) -> None:
        self.is_held = True

    def resume_reading(self) -> None:
        self.is_held = False

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True


@dataclass
class Heard:
    """What came on a stream."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    trailers: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False
    reset: ErrorCodes | None = None

    def note(self, event: Event) -> None:
        """Add what an event brings."""
        match event:
            case ResponseReceived():
                self.headers = {str(name): str(value) for name, value in event.headers}
                self.status = int(self.headers[":status"])
            case DataReceived():
                self.body += event.data
            case TrailersReceived():
                self.trailers = {str(name): str(value) for name, value in event.headers}
            case StreamEnded():
                self.is_whole = True
            case StreamReset():
                self.reset = ErrorCodes(event.error_code)
            case _:
                pass


Asked = Callable[[Any, Any, Any, Any], Awaitable[None]]  # scope, receive, send, connection


class App:
    """An application whose answers are functions by path; it notes the requests that it begins."""

    def __init__(self, **handlers: Asked) -> None:
        self.begun: list[str] = []
        self.scopes: list[dict[str, Any]] = []
        self._handlers = {"x": echo, **handlers}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append(scope["path"])
        self.scopes.append(scope)
        connection = scope["extensions"][CONNECTION]
        await self._handlers[scope["path"].strip("/")](scope, receive, send, connection)


async def whole(receive: Any) -> bytes:
    """Return the body of a request."""
    body, more = b"", True
    while more:
        event = await receive()
        assert event["type"] == "http.request"
        body += event["body"]
        more = event["more_body"]
    return body


async def respond(
    send: Any, body: bytes = b"", trailers: Sequence[tuple[bytes, bytes]] | None = None
) -> None:
    """Send an answer."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]}
    await send({**start, "trailers": trailers is not None})
    await send({"type": "http.response.body", "body": body, "more_body": False})
    if trailers is not None:
        await send({"type": "http.response.trailers", "headers": trailers})


async def echo(_: Any, receive: Any, send: Any, connection: Any) -> None:
    """Answer a caller with a token by its body."""
    connection.judged(is_known=True)
    await respond(send, await whole(receive))


async def open_to_all(_: Any, receive: Any, send: Any, connection: Any) -> None:
    """Answer anybody."""
    connection.judged(is_known=False)
    await respond(send, await whole(receive))


class Held:
    """Calls that are answered once a test lets them go."""

    def __init__(self, *, is_known: bool | None) -> None:
        self.go = asyncio.Event()
        self.ended: list[str] = []
        self._is_known = is_known

    async def __call__(self, _: Any, receive: Any, send: Any, connection: Any) -> None:
        if self._is_known is not None:
            connection.judged(is_known=self._is_known)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        connection.judged(is_known=True)
        await respond(send, await whole(receive))
        self.ended.append("answered")


class Peer:
    """A client and the connection of a server, in memory.

    Attributes:
        reads: Whether the client takes what is answered.
        frames: Those that are no part of an answer, as they came.
    """

    def __init__(self, app: App, limits: Limits = LIMITS) -> None:
        loop = asyncio.get_running_loop()
        self.room = Room(limits, loop.time)
        self.server = Http2Server(app, limits, Turns(loop), set(), set())
        self.wire = Wire()
        self.place = self.room.enter("192.0.2.7", self.wire.abort)
        self.protocol = Http2Protocol(self.server, self.place)
        self.client = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.reads = True
        self.frames: list[Frame] = []
        self.answers: dict[int, Heard] = {}
        self._left = b""
        self.client.initiate_connection()
        self.protocol.connection_made(self.wire)
        self.protocol.data_received(self.client.data_to_send()[PREFACE:])

    def ask(
        self, headers: Mapping[str, str] = GET, body: bytes | None = None, *, ends: bool = True
    ) -> int:
        """Begin a call; return its stream."""
        stream = self.client.get_next_available_stream_id()
        is_all = body is None and ends
        self.client.send_headers(stream, [*headers.items()], end_stream=is_all)
        if body is not None:
            self.client.send_data(stream, body, end_stream=ends)
        self.answers[stream] = Heard()
        return stream

    async def asked(self, headers: Mapping[str, str] = GET, body: bytes | None = None) -> Heard:
        """Carry out a call."""
        stream = self.ask(headers, body)
        await self.settle()
        return self.answers[stream]

    async def send(self, data: bytes) -> None:
        """Send frames by hand."""
        self.protocol.data_received(data)
        await self.settle()

    async def settle(self) -> None:
        """Pass on what both sides have to say, until they say nothing more."""
        quiet = 0
        while quiet < QUIET_PASSES:
            data = self.client.data_to_send()
            if data:
                self.protocol.data_received(data)
            await asyncio.sleep(0)
            came, self.wire.written = self.wire.written, b""
            self._take(came)
            waits = self.protocol._is_waiting and not self.protocol._is_over  # for its turn
            quiet = 0 if data or came or waits else quiet + 1

    def _take(self, data: bytes) -> None:
        data = self._left + data
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3]):
            end = 9 + int.from_bytes(data[:3])
            kind, flags, stream = data[3], data[4], int.from_bytes(data[5:9])
            if kind not in {http2.HEADERS, http2.DATA}:
                self.frames.append(Frame(kind, flags, stream, data[9:end]))
            if kind != http2.GOAWAY:  # after one, the library takes no further frame
                self._hear(data[:end])
            data = data[end:]
        self._left = data

    def _hear(self, data: bytes) -> None:
        for event in self.client.receive_data(data):
            heard = self.answers.get(getattr(event, "stream_id", 0))
            if heard is not None:
                heard.note(event)
            if isinstance(event, DataReceived) and self.reads:
                size = event.flow_controlled_length
                self.client.acknowledge_received_data(size, event.stream_id)

    def goaway(self) -> ErrorCodes | None:
        """Return why the server ends the connection, if it does."""
        found = [each for each in self.frames if each.kind == http2.GOAWAY]
        return ErrorCodes(int.from_bytes(found[-1].content[4:8])) if found else None


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(within())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a clock that a test sets."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(tested, "time", clock)
    return clock


# Requests and answers.


def test_a_request_is_what_an_application_takes() -> None:
    async def main() -> None:
        app = App()
        peer = Peer(app)
        heard = await peer.asked(GET | {":path": "/x?a=%20b", "authorization": "Bearer t"})

        assert (heard.status, heard.body, heard.is_whole) == (200, b"", True)
        (scope,) = app.scopes
        assert {name: scope[name] for name in ("method", "path", "raw_path", "query_string")} == {
            "method": "GET", "path": "/x", "raw_path": b"/x", "query_string": b"a=%20b",
        }  # fmt: skip
        assert scope["headers"] == [(b"host", b"example.com"), (b"authorization", b"Bearer t")]
        assert (scope["http_version"], scope["client"][0]) == ("2", "192.0.2.7")
        assert scope["extensions"].keys() == {"http.response.trailers", CONNECTION}

    run(main)


@pytest.mark.parametrize(
    ("body", "trailers"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"abc", None, id="a body"),
        pytest.param(b"abc", [(b"grpc-status", b"0")], id="a body and trailers"),
        pytest.param(b"", [(b"grpc-status", b"0")], id="trailers alone"),
        pytest.param(b"x" * 300 * KIB, None, id="a body longer than the windows"),
        pytest.param(b"x" * 300 * KIB, [(b"a", b"b")], id="and trailers"),
    ],
)
def test_an_answer_comes_as_it_was_sent(
    body: bytes, trailers: list[tuple[bytes, bytes]] | None
) -> None:
    async def answer(_: Any, receive: Any, send: Any, connection: Any) -> None:
        await respond(send, body, trailers)

    async def main() -> None:
        heard = await Peer(App(x=answer)).asked()

        assert (heard.status, heard.headers["x-a"]) == (200, "b")
        assert heard.body == body
        assert heard.trailers == {a.decode(): b.decode() for a, b in trailers or ()}
        assert heard.is_whole
        assert heard.reset is None

    run(main)


def test_an_answer_to_head_has_no_content() -> None:
    """Its headers are those of GET."""

    async def page(_: Any, receive: Any, send: Any, connection: Any) -> None:
        await respond(send, b"a page")

    async def main() -> None:
        heard = await Peer(App(x=page)).asked(GET | {":method": "HEAD"})

        assert (heard.status, heard.body, heard.is_whole) == (200, b"", True)

    run(main)


def resets_of(peer: Peer) -> list[tuple[int, int]]:
    """Return the streams that were reset, each with its code."""
    return [
        (each.stream, int.from_bytes(each.content))
        for each in peer.frames
        if each.kind == http2.RST_STREAM
    ]


async def refuse(_: Any, receive: Any, send: Any, connection: Any) -> None:
    """Answer before the request is whole."""
    await respond(send, b"no")


def test_an_answer_before_the_end_of_a_request_ends_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is left of the request is not read; the reset says that nothing is wrong.

    It comes a moment later: some clients discard an answer at a reset.
    """
    monkeypatch.setattr(tested, "LINGER_SECONDS", 0.01)

    async def main() -> None:
        peer = Peer(App(x=refuse, y=echo))
        stream = peer.ask(POST, b"half", ends=False)
        await peer.settle()

        assert (peer.answers[stream].body, peer.answers[stream].is_whole) == (b"no", True)
        async with asyncio.timeout(5):
            while not resets_of(peer):
                await asyncio.sleep(0.01)
                await peer.settle()
        assert resets_of(peer) == [(stream, 0)]
        assert (await peer.asked(POST | {":path": "/y"}, b"goes on")).body == b"goes on"

    run(main)


def test_a_request_that_ends_after_its_answer_is_not_reset() -> None:
    async def main() -> None:
        peer = Peer(App(x=refuse))
        stream = peer.ask(POST, b"half", ends=False)
        await peer.settle()
        peer.client.end_stream(stream)
        await peer.settle()
        peer.protocol._reset_early(stream)  # as its timer will
        await peer.settle()

        assert resets_of(peer) == []

    run(main)


def test_a_caller_that_resets_what_was_answered_early_may_begin_as_many_others() -> None:
    """To it the stream is over; the library would count it, and end the connection."""

    async def main() -> None:
        peer = Peer(App(x=refuse))
        for _ in range(STREAMS_OF_STRANGER):
            stream = peer.ask(POST, b"half", ends=False)
            await peer.settle()
            peer.client.reset_stream(stream)
            await peer.settle()

        assert peer.protocol._engine.open_inbound_streams == 0

    run(main)


def test_few_streams_wait_for_the_end_of_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others of a connection are reset at once, so that refused calls cost little."""
    monkeypatch.setattr(tested, "LINGER_SECONDS", 60)  # on a slow machine, too, none waits so long

    async def main() -> None:
        peer = Peer(App(x=refuse))
        streams = []
        for _ in range(STREAMS_OF_STRANGER + 2):
            streams.append(peer.ask(POST, b"half", ends=False))
            await peer.settle()

        first: dict[int, int] = {}
        for stream, code in resets_of(peer):  # content that comes later is told it is too late
            first.setdefault(stream, code)
        assert first == dict.fromkeys(streams[STREAMS_OF_STRANGER:], 0)

    run(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(GET | {":path": "/" + "x" * LIMITS.target_bytes}, 414, id="a long address"),
        pytest.param(GET | {":path": "/a b"}, 400, id="an address that is none"),
        pytest.param(GET | {f"x-{number}": "" for number in range(101)}, 431, id="many headers"),
        pytest.param(GET | {"x-long": "x" * LIMITS.head_bytes}, 431, id="long headers"),
    ],
)
def test_a_request_that_http_1_1_would_not_take_is_refused(
    headers: dict[str, str], status: int
) -> None:
    async def main() -> None:
        app = App()
        peer = Peer(app)

        assert (await peer.asked(headers)).status == status
        assert app.begun == []
        assert (await peer.asked()).status == 200

    run(main)


def test_an_application_that_fails_resets_its_call_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Any, receive: Any, send: Any, connection: Any) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        peer = Peer(App(fails=fail))

        heard = await peer.asked(GET | {":path": "/fails"})
        assert heard.reset == ErrorCodes.INTERNAL_ERROR
        assert (await peer.asked()).status == 200

    run(main)
    assert "a request over HTTP/2 failed" in caplog.text


# What a connection may cost.

CHEAP: Mapping[str, bytes] = {
    "PING": frame(http2.PING, content=bytes(8)),
    "an answer to PING": frame(http2.PING, http2.ACK, content=bytes(8)),
    "SETTINGS": frame(http2.SETTINGS),
    "an answer to SETTINGS": frame(http2.SETTINGS, http2.ACK),
    "WINDOW_UPDATE": frame(http2.WINDOW_UPDATE, content=(1).to_bytes(4)),
    "WINDOW_UPDATE of a call": frame(http2.WINDOW_UPDATE, 0, 1, (1).to_bytes(4)),
    "WINDOW_UPDATE of a call that is over": frame(http2.WINDOW_UPDATE, 0, 3, (1).to_bytes(4)),
    "RST_STREAM of a call that is over": frame(http2.RST_STREAM, 0, 3, http2.CANCEL),
    "PRIORITY": frame(http2.PRIORITY, 0, 1, bytes(5)),
    "empty DATA": frame(http2.DATA, 0, 1),
    "an unknown frame": frame(0x16),
}


@pytest.mark.parametrize("cheap", CHEAP)
def test_frames_that_carry_no_call_end_a_connection(cheap: str, clock: SimpleNamespace) -> None:
    """A few are usual, so it takes more than a few."""

    async def main() -> None:
        held = Held(is_known=False)
        peer = Peer(App(held=held, open=open_to_all))
        peer.ask(POST | {":path": "/held"}, ends=False)
        await peer.asked(GET | {":path": "/open"})
        await peer.send(CHEAP[cheap])
        assert peer.goaway() is None
        await peer.send(CHEAP[cheap] * 2 * tested.ALLOWANCE)

        assert peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM
        assert held.ended == ["cancelled"]
        assert peer.room.count == 0

    run(main)


def test_calls_that_are_reset_at_once_end_a_connection(clock: SimpleNamespace) -> None:
    """Rapid reset: headers are free, since a call has to be begun, but resets are not."""

    async def main() -> None:
        peer = Peer(App(held=Held(is_known=False)))
        for _ in range(tested.ALLOWANCE):
            if peer.goaway() is not None:
                break
            peer.client.reset_stream(peer.ask(GET | {":path": "/held"}), ErrorCodes.CANCEL)
            await peer.settle()

        assert peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM

    run(main)


@pytest.mark.parametrize(
    ("headers", "body"),
    [pytest.param(GET, None, id="calls"), pytest.param(POST, bytes(4 * KIB), id="content")],
)
def test_calls_and_content_pay_for_other_frames(
    headers: dict[str, str], body: bytes | None, clock: SimpleNamespace
) -> None:
    """A client that pings with every call is not sent away, however long it goes on."""

    async def main() -> None:
        peer = Peer(App())
        for _ in range(2 * tested.ALLOWANCE_OF_KNOWN):
            peer.client.ping(bytes(8))
            assert (await peer.asked(headers, body)).status == 200

        assert peer.goaway() is None

    run(main)


def test_time_pays_for_frames(clock: SimpleNamespace) -> None:
    """A connection that is kept alive by pings stays for as long as it likes."""

    async def main() -> None:
        peer = Peer(App())
        for _ in range(2 * tested.ALLOWANCE):
            clock.now += tested.COSTS[tested.PING] / tested.ALLOWED_A_SECOND
            await peer.send(CHEAP["PING"])

        assert peer.goaway() is None

    run(main)


BROKEN = b"\xff" * LIMITS.head_bytes  # of a block of headers; to decode it is an error


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        pytest.param(
            frame(http2.HEADERS, http2.END_HEADERS, 1, BROKEN),
            ErrorCodes.COMPRESSION_ERROR,
            id="short enough to be decoded",
        ),
        pytest.param(
            frame(http2.HEADERS, 0, 1, BROKEN)
            + frame(http2.CONTINUATION, http2.END_HEADERS, 1, BROKEN),
            ErrorCodes.ENHANCE_YOUR_CALM,
            id="too long",
        ),
        pytest.param(
            frame(http2.HEADERS, 0, 1, BROKEN) + frame(http2.CONTINUATION, 0, 1) * 2 * KIB,
            ErrorCodes.ENHANCE_YOUR_CALM,
            id="without an end, in frames of nothing",
        ),
    ],
)
def test_a_block_of_headers_is_bounded_before_it_is_decoded(
    frames: bytes, code: ErrorCodes, clock: SimpleNamespace
) -> None:
    async def main() -> None:
        peer = Peer(App())
        await peer.send(frames)

        assert peer.goaway() == code

    run(main)


def test_a_block_that_is_long_only_once_it_is_decoded_is_not_kept() -> None:
    """References to one header of the table: a byte for each time."""
    value = "x" * 2000
    kept = http2.block([("x-a", value)], kept=True)
    block = http2.block([*GET.items()]) + kept + b"\xbe" * 100

    async def main() -> None:
        app = App()
        peer = Peer(app)
        await peer.send(frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, block))

        assert peer.goaway() is not None
        assert app.begun == []

    run(main)


@pytest.mark.parametrize("size", [0, 100, 4 * KIB, 1 << 30])
def test_a_table_of_headers_is_no_larger_than_ours_whatever_a_peer_offers(size: int) -> None:
    """What is in it would be held here."""

    async def main() -> None:
        peer = Peer(App())
        peer.client.update_settings({SettingCodes.HEADER_TABLE_SIZE: size})
        for _ in range(3):
            assert (await peer.asked()).status == 200

        table = peer.protocol._engine.encoder.header_table_size
        assert table == min(size, tested.HEADER_TABLE)

    run(main)


@pytest.mark.parametrize("is_known", [False, None])
def test_content_comes_only_as_far_as_it_is_taken(*, is_known: bool | None) -> None:
    """Before a call is judged, and after: the windows go on with what the application takes."""
    size = 3 * CONNECTION_WINDOW

    async def main() -> None:
        held = Held(is_known=is_known)
        peer = Peer(App(x=held))
        await peer.settle()  # the settings of the server, with its window
        stream = peer.ask(POST, ends=False)
        sent = await poured(peer, stream, size)
        (call,) = peer.protocol._streams.values()
        assert sent == len(call.body) == STREAM_WINDOW

        held.go.set()
        assert sent + await poured(peer, stream, size - sent) == size
        peer.client.end_stream(stream)
        await peer.settle()
        assert peer.answers[stream].body == bytes(size)

    run(main)


async def poured(peer: Peer, stream: int, size: int) -> int:
    """Send content as far as the windows let it; return how much went."""
    sent = 0
    await peer.settle()
    while sent < size and (window := peer.client.local_flow_control_window(stream)):
        count = min(window, size - sent, 16 * KIB)
        peer.client.send_data(stream, bytes(count))
        sent += count
        await peer.settle()
    return sent


def test_a_connection_holds_no_more_than_its_window() -> None:
    """Of all calls together, while none of it is taken."""

    async def main() -> None:
        held = Held(is_known=None)
        peer = Peer(App(x=held, known=echo))
        await peer.asked(POST | {":path": "/known"}, b"")  # so that several calls may begin
        streams = [peer.ask(POST, ends=False) for _ in range(tested.NEW_OF_ONE)]
        sent = 0
        for stream in streams:
            sent += await poured(peer, stream, STREAM_WINDOW)

        assert sum(len(each.body) for each in peer.protocol._streams.values()) == sent
        assert STREAM_WINDOW < sent <= CONNECTION_WINDOW
        for stream in streams:  # what was given up makes room
            peer.client.reset_stream(stream)
        await peer.settle()
        assert (await peer.asked(POST | {":path": "/known"}, b"x" * STREAM_WINDOW)).status == 200

    run(main)


@pytest.mark.parametrize(("is_known", "most"), [(False, 1), (True, tested.NEW_OF_ONE)])
def test_calls_wait_until_those_before_them_are_judged(*, is_known: bool, most: int) -> None:
    """Of a caller without a token one at a time; what comes after a waiting call waits, too."""

    async def main() -> None:
        held = Held(is_known=None)
        app = App(held=held)
        peer = Peer(app)
        if is_known:
            await peer.asked()
        begun = len(app.begun)
        for _ in range(most + 1):
            peer.ask(GET | {":path": "/held"})
        await peer.settle()
        assert len(app.begun) - begun == most

        held.go.set()
        await peer.settle()
        assert len(app.begun) - begun == most + 1
        assert all(each.status == 200 for each in peer.answers.values())

    run(main)


@pytest.mark.parametrize(
    ("is_known", "http2_calls", "taken"),
    [
        pytest.param(False, 1024, STREAMS_OF_STRANGER, id="a stranger has a few"),
        pytest.param(True, 1024, tested.STREAMS, id="a caller with a token has many"),
        pytest.param(True, 5, STREAMS_OF_STRANGER, id="but a few where others have them all"),
    ],
)
def test_a_call_too_many_is_refused(*, is_known: bool, http2_calls: int, taken: int) -> None:
    """The client may ask again: nothing was done."""

    async def main() -> None:
        held = Held(is_known=is_known)
        peer = Peer(App(held=held), Limits(http2_calls=http2_calls))
        streams = []
        for _ in range(min(taken + 1, tested.STREAMS)):
            streams.append(peer.ask(GET | {":path": "/held"}))
            await peer.settle()
        resets = [peer.answers[stream].reset for stream in streams]
        assert resets[:taken] == [None] * taken
        assert set(resets[taken:]) <= {ErrorCodes.REFUSED_STREAM}
        assert peer.server.calls == taken

        held.go.set()
        await peer.settle()
        assert peer.server.calls == 0
        assert [peer.answers[stream].status for stream in streams[:taken]] == [200] * taken

    run(main)


def test_a_flood_in_one_read_is_read_in_turns() -> None:
    """So that the loop goes on with other work, and the network holds the rest."""

    async def main() -> None:
        peer = Peer(App())
        await peer.asked()
        peer.protocol.data_received(CHEAP["PRIORITY"] * 3000)
        assert peer.wire.is_held
        assert peer.goaway() is None
        await peer.settle()
        assert peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM

    run(main)


def test_a_connection_that_waits_for_its_turn_reads_nothing_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one with a token, whose first frames are read at once, and after its first turn."""
    monkeypatch.setattr(tested, "OF_KNOWN", Turn(frames=2, seconds=9))

    async def main() -> None:
        peer = Peer(App())
        await peer.asked()
        cheap = CHEAP["WINDOW_UPDATE"]
        peer.protocol.data_received(cheap * 200)
        for _ in range(2):
            before = len(peer.protocol._pending)
            assert before
            peer.protocol.data_received(cheap)
            assert len(peer.protocol._pending) == before + len(cheap)
            await asyncio.sleep(0)

    run(main)


# Callers that give up, do not read, or fall silent.


@pytest.mark.usefixtures("clock")  # which stands still: one turn reads both frames of the first
def test_a_call_that_is_reset_is_cancelled() -> None:
    async def main() -> None:
        held = Held(is_known=True)
        peer = Peer(App(held=held))
        peer.client.reset_stream(peer.ask(GET | {":path": "/held"}))
        await peer.settle()
        stream = peer.ask(GET | {":path": "/held"})
        await peer.settle()
        assert held.ended == []  # the first did not even begin to wait
        peer.client.reset_stream(stream)
        await peer.settle()

        assert held.ended == ["cancelled"]
        assert peer.server.calls == 0
        assert (await peer.asked()).status == 200

    run(main)


def test_a_connection_that_is_lost_ends_its_calls_and_gives_its_place_back() -> None:
    async def main() -> None:
        held = Held(is_known=True)
        peer = Peer(App(held=held))
        peer.ask(GET | {":path": "/held"})
        await peer.settle()
        peer.protocol.connection_lost(None)
        await peer.settle()

        assert held.ended == ["cancelled"]
        assert (peer.room.count, peer.server.calls) == (0, 0)
        assert (peer.server.connections, peer.server.tasks) == (set(), set())

    run(main)


def test_a_connection_is_busy_while_a_whole_call_waits_for_its_answer() -> None:
    """Half a request, and an answer that is not taken, keep no other connection out."""

    async def main() -> None:
        held = Held(is_known=True)
        peer = Peer(App(held=held))

        def is_idle() -> bool:
            return peer.place in peer.room.idle

        stream = peer.ask(POST | {":path": "/held"}, b"half", ends=False)
        await peer.settle()
        assert is_idle()
        peer.client.send_data(stream, bytes(CONNECTION_WINDOW // 8), end_stream=True)
        await peer.settle()
        assert not is_idle()
        held.go.set()
        await peer.settle()
        assert is_idle()
        peer.place.end()
        assert peer.wire.is_aborted

    run(main)


def a_page(size: int) -> Asked:
    async def answer(_: Any, receive: Any, send: Any, connection: Any) -> None:
        connection.judged(is_known=True)
        await respond(send, bytes(size))

    return answer


def test_an_answer_that_is_not_taken_waits_and_is_reset_in_the_end(clock: SimpleNamespace) -> None:
    """Its application waits; other calls of the connection go on."""

    async def main() -> None:
        peer = Peer(App(page=a_page(100 * KIB)))
        peer.reads = False
        stream = peer.ask(GET | {":path": "/page"})
        await peer.settle()
        assert len(peer.answers[stream].body) == 65535  # the windows of the standard
        assert len(peer.server.tasks) == 1
        clock.now += LIMITS.write_seconds
        peer.protocol._check_times()
        await peer.settle()
        assert peer.answers[stream].reset is None
        clock.now += 1
        peer.protocol._check_times()
        await peer.settle()

        assert peer.answers[stream].reset == ErrorCodes.CANCEL
        assert peer.server.tasks == set()
        assert not peer.wire.is_closing()

    run(main)


def test_an_answer_goes_on_as_its_caller_opens_the_window() -> None:
    async def main() -> None:
        peer = Peer(App(page=a_page(100 * KIB)))
        peer.reads = False
        stream = peer.ask(GET | {":path": "/page"})
        await peer.settle()
        peer.client.increment_flow_control_window(100 * KIB)
        await peer.settle()
        assert not peer.answers[stream].is_whole
        peer.client.increment_flow_control_window(100 * KIB, stream)
        await peer.settle()

        assert peer.answers[stream].is_whole
        assert len(peer.answers[stream].body) == 100 * KIB

    run(main)


def test_nothing_is_read_from_a_caller_that_takes_nothing(clock: SimpleNamespace) -> None:
    """Each frame might be answered; and a connection that stays like this is ended."""

    async def main() -> None:
        app = App()
        peer = Peer(app)
        await peer.settle()
        peer.protocol.pause_writing()
        await peer.asked()
        assert app.begun == []
        peer.protocol.resume_writing()
        await peer.settle()
        assert app.begun == ["/x"]

        peer.protocol.pause_writing()
        clock.now += LIMITS.write_seconds + 1
        peer.protocol._check_times()
        assert peer.wire.is_aborted

    run(main)


# The end of a connection.


def test_the_peer_that_says_goodbye_still_gets_its_answers() -> None:
    async def main() -> None:
        held = Held(is_known=True)
        peer = Peer(App(held=held))
        stream = peer.ask(GET | {":path": "/held"})
        await peer.settle()
        await peer.send(frame(http2.GOAWAY, content=bytes(8)))
        assert peer.room.count == 1
        held.go.set()
        await peer.settle()

        assert peer.answers[stream].is_whole
        assert peer.room.count == 0

    run(main)


def test_a_server_that_ends_answers_what_has_begun_and_takes_nothing_new() -> None:
    async def main() -> None:
        held = Held(is_known=True)
        peer = Peer(App(held=held))
        first = peer.ask(GET | {":path": "/held"})
        await peer.settle()
        peer.protocol.shutdown()
        second = peer.ask(GET | {":path": "/held"})
        await peer.settle()
        assert peer.goaway() == ErrorCodes.NO_ERROR
        assert peer.answers[second].reset == ErrorCodes.REFUSED_STREAM
        held.go.set()
        await peer.settle()

        assert peer.answers[first].is_whole
        assert peer.room.count == 0

    run(main)


def test_a_connection_without_calls_ends_at_once_when_the_server_does() -> None:
    """It may linger, so that its caller reads why; it holds no place."""

    async def main() -> None:
        peer = Peer(App())
        await peer.asked()
        peer.protocol.shutdown()
        await peer.settle()

        assert peer.goaway() == ErrorCodes.NO_ERROR
        assert peer.room.count == 0

    run(main)


@pytest.mark.parametrize(
    ("age", "quiet", "has_call", "end"),
    [
        pytest.param(tested.QUIET_SECONDS, tested.QUIET_SECONDS, False, None, id="not yet quiet"),
        pytest.param(999, tested.QUIET_SECONDS + 1, False, "asked", id="quiet"),
        pytest.param(999, tested.QUIET_SECONDS + 1, True, None, id="quiet, waiting for an answer"),
        pytest.param(tested.AGE_SECONDS + 1, 1, True, "asked", id="old"),
        pytest.param(
            tested.AGE_SECONDS + tested.GRACE_SECONDS + 1, 1, True, "cut", id="too old, with calls"
        ),
    ],
)
def test_a_connection_ends_in_time(
    age: float, quiet: float, *, has_call: bool, end: str | None, clock: SimpleNamespace
) -> None:
    """The caller is asked to open another one; in the end it has to."""

    async def main() -> None:
        peer = Peer(App(held=Held(is_known=True)))
        if has_call:
            peer.ask(GET | {":path": "/held"})
        clock.now += age - quiet
        peer.client.ping(bytes(8))
        await peer.settle()
        clock.now += quiet
        peer.protocol._check_times()
        await peer.settle()

        assert (peer.goaway() == ErrorCodes.NO_ERROR) == (end == "asked")
        assert peer.wire.is_aborted == (end == "cut")

    run(main)


@pytest.mark.parametrize("answers", [True, False])
def test_a_caller_that_waits_in_silence_is_asked_whether_it_is_there(
    *, answers: bool, clock: SimpleNamespace
) -> None:
    async def main() -> None:
        peer = Peer(App(held=Held(is_known=True)))
        peer.ask(GET | {":path": "/held"})
        await peer.settle()
        clock.now += tested.QUIET_SECONDS + 1
        peer.protocol._check_times()
        if answers:
            await peer.settle()
        clock.now += tested.PING_SECONDS + tested.CHECK_SECONDS
        peer.protocol._check_times()

        assert peer.wire.is_aborted != answers

    run(main)


UNKNOWN = 0xF000


def settings(count: int) -> bytes:
    """Return a frame of settings that nobody knows."""
    said = b"".join(struct.pack(">HI", UNKNOWN + number, 1) for number in range(count))
    return frame(http2.SETTINGS, content=said)


def a_connection(said: bytes) -> Http2Protocol:
    """Return a new connection that has read what was said."""

    async def read() -> Http2Protocol:
        transport = MagicMock()
        transport.is_closing.return_value = False
        server: Any = MagicMock(limits=LIMITS)
        connection = Http2Protocol(server, MagicMock(is_known=False))
        connection.connection_made(transport)
        connection.data_received(said)
        while connection.read_frames():
            pass
        return connection

    return asyncio.run(read())


def test_settings_that_nobody_knows_are_not_kept() -> None:
    """There are 65,536 of them, and each takes the library a kilobyte."""
    without, connection = a_connection(b""), a_connection(settings(10))

    assert [*connection._engine.remote_settings] == [*without._engine.remote_settings]
    assert not connection._is_over


def test_settings_cost_as_many_frames_as_they_are() -> None:
    """A frame of 2,730 takes the loop milliseconds."""
    assert a_connection(settings(1000))._is_over


def test_a_reader_that_takes_a_frame_is_not_stuck() -> None:
    """A long answer over a slow line takes longer than an answer may be left unread."""
    stream = tested.Stream(cast("Http2Protocol", MagicMock()), 1, is_head=False)
    stream.get_stuck()
    began = stream.stuck_since
    stream.moved = 1
    stream.get_stuck()
    assert stream.stuck_since == began
    stream.moved = tested.CONTENT_FRAME
    stream.get_stuck()
    assert stream.stuck_since > began


@pytest.mark.parametrize("stream", [1, 3], ids=["on a stream that is reset", "of a call"])
def test_headers_for_nothing_have_a_cost(stream: int) -> None:
    """To decode a block takes a millisecond, and a reset answers it."""
    block = http2.headers("/a", [(f"x{number}", "1") for number in range(200)])
    first = frame(http2.HEADERS, http2.END_HEADERS, 1, block) + frame(
        http2.RST_STREAM, 0, 1, http2.CANCEL
    )
    before = a_connection(first)._allowance

    assert (
        a_connection(first + frame(http2.HEADERS, http2.END_HEADERS, stream, block))._allowance
        <= before - 8
    )
