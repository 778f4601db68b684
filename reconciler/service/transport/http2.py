"""HTTP/2 on one connection: ASGI requests by the library ``h2``, under limits of ours.

The library knows the protocol and has no sockets. What a connection may cost is bounded here:

- Frames are read in turns with other connections (``turns``). A connection has an allowance for
  frames that carry no call; calls, and content in both directions, add to it.
- A block of headers is bounded before it is decoded, and again while it is.
- Content of a request is held only as far as the windows let it come: 64 KiB of a connection, and
  of a call more only once its caller is known. An application that takes content gives room back.
- A call whose caller is not judged yet holds back the next calls of its connection.
- Answers that the caller does not take end the connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, MutableSet
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import HPACKError

from reconciler.service.scheduling.shares import UNCOUNTED
from reconciler.service.transport.asgi import ASGIApp, Message, Scope
from reconciler.service.transport.connections import PREFACE, Place
from reconciler.service.transport.framing import is_target
from reconciler.service.transport.http_messages import CONNECTION, is_grpc
from reconciler.service.transport.limits import (
    CONNECTION_WINDOW,
    KIB,
    STREAM_WINDOW,
    STREAMS_OF_STRANGER,
    Limits,
)
from reconciler.service.transport.turns import OF_KNOWN, OF_STRANGER, Turns

LOG = logging.getLogger("reconciler.service")

STREAMS = 100  # of one connection at one time
CLOSED_STREAMS = 256  # that are remembered: a frame may come late, without being wrong
CONTENT_FRAME = 16 * KIB  # the longest frame that every peer takes, in both directions
HEADER_TABLE = 4 * KIB  # of the compression of headers, in both directions
MOST_PENDING = CONTENT_FRAME + 9  # bytes that came and are not read; what is more the network holds
LEAST_FRAME = KIB  # of content that is sent, without a cost to the peer that lets in no more
HEAD = 9  # bytes: length 3, kind 1, flags 1, stream 4
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK, END_HEADERS = 0x1, 0x4
GOAWAY_LEAST = 8  # bytes of such a frame
# Times the bytes that headers may have, a call is refused for them; beyond, its connection ends.
LONGEST_HEAD = 2
NEW_OF_ONE = 8  # calls of a connection with a valid token that are not judged yet; of others, one

# Allowance of a connection, in frames.
ALLOWANCE = 64  # at its beginning; a client needs some ten before its first call
ALLOWANCE_OF_KNOWN = 256  # at its first call with a valid token
MOST_ALLOWANCE = 8 * KIB
ALLOWED_A_SECOND = 16
FOR_A_KNOWN_CALL = 8
FOR_AN_ANSWER = 2
FOR_A_FRAME_SENT = 4  # the peer may answer each with updates of two windows, and a ping
CONTENT_OF_A_FRAME = 256  # bytes of content that pay for the frame they came in
COSTS = {HEADERS: 0, RST_STREAM: 3, SETTINGS: 8, PING: 4}  # of any other frame: 1
SETTING = 6  # bytes, which cost one frame; a client has some five
SETTINGS_KNOWN = frozenset(SettingCodes)

CHECK_SECONDS = 5.0  # between two looks at the times of a connection
QUIET_SECONDS = 60.0  # without a frame, after which a connection without calls is closed
PING_SECONDS = 20.0  # in which a peer with calls has to answer a ping
AGE_SECONDS = 1800.0  # after which a client is asked to open another connection
GRACE_SECONDS = 60.0  # which its calls have to end
LINGER_SECONDS = 0.5  # in which a peer can read why its connection or its call is ended
FAREWELL_SECONDS = 1.0  # which a peer over TLS has to say that it closes, too


# A client of gRPC does not show its caller a status of HTTP.
TOO_LONG_FOR_GRPC = [
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
    (b"grpc-status", b"8"),
    (b"grpc-message", b"the headers of the call are too long"),
]


class _Engine(H2Connection):
    """The protocol, with less memory for streams that are closed."""

    MAX_CLOSED_STREAMS = CLOSED_STREAMS

    def _terminate_connection(self, error_code: ErrorCodes) -> None:
        """Leave the last word to ``Http2Protocol``, which knows the codes of headers better."""


_CONFIG = H2Configuration(
    client_side=False,
    header_encoding=None,
    # Our own answers are well-formed; to check them would cost a tenth of a call.
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)


@dataclass(slots=True)
class Http2Server:
    """The parts of a server that all its connections over HTTP/2 share.

    Attributes:
        connections: Where the HTTP server looks up what it must wait for at its end.
        tasks: The same, for calls.
        calls: How many there are.
    """

    app: ASGIApp
    limits: Limits
    turns: Turns
    connections: MutableSet[Any]
    tasks: MutableSet[asyncio.Task[None]]
    calls: int = 0


class _Frame(NamedTuple):
    """The head of a frame."""

    length: int
    kind: int
    flags: int
    stream: int


def _longest(frame: _Frame) -> int:
    """Return how long the content of a frame may be, as its head says."""
    return 0 if frame.kind == SETTINGS and frame.flags & ACK else CONTENT_FRAME


def _earned(frame: _Frame) -> int:
    """Return what the content of a frame adds to the allowance: settings take from it."""
    if frame.kind == SETTINGS:
        return -(frame.length // SETTING)
    return frame.length // CONTENT_OF_A_FRAME if frame.kind == DATA else 0


class Http2Protocol(asyncio.Protocol):
    """One connection over HTTP/2."""

    def __init__(self, server: Http2Server, place: Place) -> None:
        """Answer requests by the application of a server."""
        self._server = server
        self._limits = limits = server.limits
        self._place = place
        self.address = place.address
        self._loop = asyncio.get_running_loop()
        self._engine = engine = _Engine(_CONFIG)
        engine.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.head_bytes,
                SettingCodes.ENABLE_PUSH: 0,
            },
        )
        engine.decoder.max_header_list_size = LONGEST_HEAD * limits.head_bytes
        self._streams: dict[int, Stream] = {}
        self._unsent: dict[int, Stream] = {}  # streams with content that the peer has not taken
        self._pending = bytearray()  # what came and is not read yet
        self._newest = 0  # stream
        self._block = 0  # bytes of a block of headers that is not whole
        self._unjudged = 0  # calls
        self._allowance: float = ALLOWANCE
        self._owed = 0  # bytes that may be given back to the window of the connection
        self._is_waiting = False  # for its turn
        self.turns = 0  # that it has had
        self._is_flushing = False
        self._is_writable = True
        self._is_draining = False  # takes no new calls
        self._is_over = False
        self._is_lost = False
        self._closed_at = 0.0
        self._answered_early: set[int] = set()  # streams whose requests are not whole
        self._began = self._seen = self._ticked = time.monotonic()
        self._unwritable_since = 0.0
        self._pinged = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the caller."""
        self._transport = cast("asyncio.Transport", transport)  # of a stream, thus one
        self._transport.set_write_buffer_limits(CONTENT_FRAME)
        self._server.connections.add(self)
        self._place.end = self._transport.abort
        self._place.set_idle()
        self._engine.initiate_connection()
        self._engine.receive_data(PREFACE)  # by which the protocol was known
        # A peer that has not heard of it yet may still use the larger window of the standard.
        self._engine.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW})
        self._flush()
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all calls of the connection."""
        self._is_over = self._is_lost = True
        self._server.turns.remove(self)
        self._server.connections.discard(self)
        self._place.leave()
        self._pending.clear()
        for stream in [*self._streams.values()]:
            self._abandon(stream)
        # Cycles of references would keep all of it until the collector looks, which is seldom.
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        vars(self._engine).clear()

    # -- what comes --------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes in; what does not fit in a turn is read in the next one."""
        if self._is_over:
            return
        self._pending += data
        if self._is_waiting:
            self._hold_back()
        elif not self._place.is_known or self.read_frames():
            self._wait()

    def read_frames(self) -> bool:
        self._is_waiting = False
        self.turns += 1
        turn = OF_KNOWN if self._place.is_known else OF_STRANGER
        until = time.monotonic() + turn.seconds
        more = False
        for _ in range(turn.frames):
            more = self._read_frame()
            if not more or time.monotonic() > until:
                break
        if not self._is_over:
            self._flush_soon()
            self._hold_back()
        more = more and not self._is_over
        self._is_waiting |= more  # the caller adds it to the turns
        return more

    def _wait(self) -> None:
        self._is_waiting = True
        self._server.turns.add(self)

    def _go_on(self) -> None:
        """Read what was held back."""
        if not self._is_waiting and not self._is_over and self._pending:
            self._wait()

    def _hold_back(self) -> None:
        """Let the network hold what comes while there is enough to read."""
        is_held = len(self._pending) > MOST_PENDING
        if is_held and self._transport.is_reading():
            self._transport.pause_reading()
        elif not is_held and not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()

    def _read_frame(self) -> bool:
        """Read the next frame; return whether that was done."""
        pending = self._pending
        if len(pending) < HEAD or self._is_over or not self._is_writable:
            return False
        frame = _Frame(
            int.from_bytes(pending[:3]),
            pending[3],
            pending[4],
            int.from_bytes(pending[5:HEAD]) & 0x7FFF_FFFF,  # the first bit is reserved
        )
        if frame.length > _longest(frame):
            return self._end(ErrorCodes.FRAME_SIZE_ERROR)
        if len(pending) < HEAD + frame.length or self._must_wait(frame):
            return False
        if not self._pay(frame) or not self._bound_block(frame):
            return self._end(ErrorCodes.ENHANCE_YOUR_CALM)
        data = bytes(pending[: HEAD + frame.length])
        del pending[: HEAD + frame.length]
        return self._is_settled(frame) or self._feed(data)

    def _must_wait(self, frame: _Frame) -> bool:
        """Return whether a frame begins a call that has to wait until others are judged."""
        if frame.kind != HEADERS or frame.stream <= self._newest:
            return False
        return self._unjudged >= (NEW_OF_ONE if self._place.is_known else 1)

    def _pay(self, frame: _Frame) -> bool:
        """Take the cost of a frame from the allowance; return whether it was enough."""
        is_late = frame.kind == HEADERS and frame.stream <= self._newest
        cost = FOR_A_KNOWN_CALL if is_late else COSTS.get(frame.kind, 1)
        self._earn(_earned(frame) - cost)
        if self._allowance < 0:
            now = time.monotonic()
            self._earn((now - self._ticked) * ALLOWED_A_SECOND)
            self._ticked = now
        return self._allowance >= 0

    def _earn(self, frames: float) -> None:
        self._allowance = min(self._allowance + frames, MOST_ALLOWANCE)

    def _bound_block(self, frame: _Frame) -> bool:
        """Follow a block of headers; return whether it is short enough to be decoded."""
        if frame.kind in {HEADERS, CONTINUATION}:
            self._block += HEAD + frame.length
            if self._block > LONGEST_HEAD * self._limits.head_bytes:
                return False
            if frame.flags & END_HEADERS:
                self._block = 0
        return True

    def _is_settled(self, frame: _Frame) -> bool:
        """Return whether a frame must not have a look by the library."""
        if frame.kind == HEADERS:
            self._newest = max(self._newest, frame.stream)
        # Within a block of headers, the library ends the connection for any other frame.
        is_farewell = frame.kind == GOAWAY and not self._block and not frame.stream
        if is_farewell and frame.length >= GOAWAY_LEAST:
            self.shutdown()  # the library would not answer the calls that are left
            return True
        return False

    def _feed(self, data: bytes) -> bool:
        """Hand a frame to the library; return whether the connection goes on."""
        self._seen = time.monotonic()
        self._pinged = 0.0
        try:
            for event in self._engine.receive_data(data):
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
        except ProtocolError as error:
            is_block = isinstance(error.__cause__, (HPACKError, IndexError, UnicodeDecodeError))
            return self._end(ErrorCodes.COMPRESSION_ERROR if is_block else error.error_code)
        except Exception:  # a defect of the library or of ours ends this connection only
            LOG.exception("a connection over HTTP/2 failed")
            return self._end(ErrorCodes.INTERNAL_ERROR)
        return True

    def change_settings(self, _: RemoteSettingsChanged) -> None:
        """Follow the settings of the peer, but for the size of the table of headers.

        It may offer any, and what is in that table is held here. So is an unknown setting, of
        which there can be 65,536: the library would keep each of them. The size is only
        set if it must be: set to what it is already, the encoder no longer says to the peer that
        it has changed.
        """
        encoder = self._engine.encoder
        is_too_large = encoder.header_table_size > HEADER_TABLE
        if is_too_large:
            encoder.header_table_size = HEADER_TABLE
        said = self._engine.remote_settings
        for unknown in said.keys() - SETTINGS_KNOWN:
            del said[unknown]
        self.send_on()

    # -- calls -------------------------------------------------------------------------------

    def begin(self, event: RequestReceived) -> None:
        """Begin to answer a request, if there is room for one more."""
        number = event.stream_id
        scope = _scope(event, self._transport)
        status = self._fault_of(scope)
        if status is not None:
            self._earn(-FOR_A_KNOWN_CALL)  # its block was decoded for nothing
            head = TOO_LONG_FOR_GRPC if status == b"431" and is_grpc(scope) else []
            self._engine.send_headers(number, head or [(b":status", status)], end_stream=True)
            if event.stream_ended is None:
                self._engine.reset_stream(number, ErrorCodes.NO_ERROR)
            return
        if self._is_draining or not self._may_begin():
            self._engine.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            return
        stream = Stream(self, number, is_head=scope["method"] == "HEAD")
        scope["extensions"][CONNECTION] = stream
        self._streams[number] = stream
        self._server.calls += 1
        self._unjudged += 1
        task = self._loop.create_task(self._run(stream, scope))
        stream.task = task
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def _may_begin(self) -> bool:
        """Return whether the connection may have one more call."""
        if len(self._streams) < STREAMS_OF_STRANGER:
            return True
        return self.is_known and self._server.calls < self._limits.http2_calls

    def _fault_of(self, scope: Scope) -> bytes | None:
        """Return the status of a request that HTTP/1.1 would not take either; else None."""
        target, limits = scope["raw_path"] + b"?" + scope["query_string"], self._limits
        headers = scope["headers"]
        # Each header counts as RFC 9113, 6.5.2, says.
        size = sum(len(name) + len(value) + 32 for name, value in headers)
        if size > limits.head_bytes or len(headers) > limits.headers:
            return b"431"
        if len(target) > limits.target_bytes:
            return b"414"
        return None if is_target(target) else b"400"

    def end_request(self, event: StreamEnded) -> None:
        """Note that a request is whole."""
        self._answered_early.discard(event.stream_id)
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.end()
            self._tell_room()

    def give_up(self, event: StreamReset) -> None:
        """End a call whose caller gives it up."""
        self._answered_early.discard(event.stream_id)
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            self._abandon(stream)

    async def _run(self, stream: Stream, scope: Scope) -> None:
        """Answer one request; what the application leaves open is ended."""
        try:
            await self._server.app(scope, stream.receive, stream.send)
        except Exception:  # the application answers everything: this is a defect of it
            LOG.exception("a request over HTTP/2 failed")
        finally:
            stream.task = None
            if not self._is_over and self._streams.get(stream.number) is stream:
                self._reset(stream, ErrorCodes.INTERNAL_ERROR)

    def receive(self, event: DataReceived) -> None:
        """Take in content of a request."""
        size = event.flow_controlled_length or 0
        stream = self._streams.get(event.stream_id)
        if stream is None:
            self._give_back(size)
            return
        stream.body += event.data
        stream.owed += size
        stream.taken += size
        stream.total += len(event.data)
        if stream.is_judged and len(stream.body) <= STREAM_WINDOW:
            self._give_back_of(stream)
        stream.wake()

    def judged(self, stream: Stream, *, is_known: bool) -> None:
        """Note whether a call has a valid token: other calls of the connection may come."""
        if stream.is_judged:
            return
        stream.is_judged = True
        self._unjudged -= 1
        if is_known and not self._place.is_known:
            self._place.is_known = True
            self._earn(ALLOWANCE_OF_KNOWN)
        elif is_known:
            self._earn(FOR_A_KNOWN_CALL)
        if len(stream.body) <= STREAM_WINDOW:
            self._give_back_of(stream)
        self._go_on()

    def taken(self, stream: Stream) -> None:
        """Note that the application has all that came of a body, and waits for more."""
        self._give_back_of(stream)
        if stream.taken and stream.number in self._streams:
            more = stream.taken
            if stream.total > STREAM_WINDOW and not stream.is_wide:
                stream.is_wide = True
                more += CONNECTION_WINDOW - STREAM_WINDOW
            stream.taken = 0
            self._engine.increment_flow_control_window(more, stream.number)
            self._flush_soon()

    def _give_back_of(self, stream: Stream) -> None:
        if stream.owed:
            self._give_back(stream.owed)
            stream.owed = 0

    def _give_back(self, size: int) -> None:
        self._owed += size
        if self._owed >= STREAM_WINDOW and not self._is_over:
            self._engine.increment_flow_control_window(self._owed)
            self._owed = 0
            self._flush_soon()

    def _forget(self, stream: Stream) -> None:
        """End the count of a call that is answered, or given up."""
        if self._streams.pop(stream.number, None) is None:
            return
        self._unsent.pop(stream.number, None)
        self._server.calls -= 1
        self.judged(stream, is_known=False)
        stream.body.clear()
        self._give_back_of(stream)
        if self._is_over:
            return
        self._tell_room()
        if self._is_draining and not self._streams:
            self._close()

    def _abandon(self, stream: Stream) -> None:
        """End a call whose caller does not wait for the answer any more."""
        self._forget(stream)
        stream.leave()

    def _tell_room(self) -> None:
        """Tell the room whether a call is being carried out; else this connection may make way."""
        if any(stream.is_whole and not stream.is_answered for stream in self._streams.values()):
            self._place.set_busy()
        else:
            self._place.set_idle()

    @property
    def is_known(self) -> bool:
        return self._place.is_known

    # -- what goes ---------------------------------------------------------------------------

    def send_head(self, stream: Stream, message: Message, *, ends: bool) -> None:
        """Send status and headers."""
        head = [(b":status", str(message["status"]).encode()), *message["headers"]]
        self._engine.send_headers(stream.number, head, end_stream=ends)
        if ends:
            self._answered(stream)

    def send_content(self, stream: Stream) -> None:
        """Send of an answer what its caller takes now; the rest goes later."""
        self._flush_soon()
        engine, number = self._engine, stream.number
        while stream.unsent and self._is_writable:
            size = min(engine.local_flow_control_window(number), CONTENT_FRAME, len(stream.unsent))
            if size <= 0:
                break
            ends = stream.is_answered and size == len(stream.unsent) and stream.trailers is None
            engine.send_data(number, bytes(stream.unsent[:size]), end_stream=ends)
            stream.unsent = stream.unsent[size:]
            stream.moved += size
            # A peer that lets in byte by byte pays for it.
            is_tiny = size < LEAST_FRAME and stream.unsent
            self._earn(-1 if is_tiny else FOR_A_FRAME_SENT)
            if ends:
                self._answered(stream)
                return
            if len(stream.unsent) > UNCOUNTED:
                self._flush()  # so that a caller that does not read is noticed
        if stream.unsent:
            self._unsent[number] = stream
            stream.get_stuck()
            self._tell_room()
            return
        self._unsent.pop(number, None)
        stream.stuck_since = 0.0
        if stream.is_answered:
            if stream.trailers is None:
                engine.send_data(number, b"", end_stream=True)
            else:
                engine.send_headers(number, stream.trailers, end_stream=True)
            self._answered(stream)
        stream.wake_writer()

    def send_on(self, _: WindowUpdated | None = None) -> None:
        """Send what waited, now that the peer or the network takes more."""
        for stream in [*self._unsent.values()]:
            self.send_content(stream)

    def _answered(self, stream: Stream) -> None:
        """End a stream whose answer is complete; what is left of its request is not read."""
        if not stream.is_whole:
            self._end_early(stream.number)
        self._earn(FOR_AN_ANSWER)
        self._flush_soon()
        self._forget(stream)
        stream.finish()

    def _end_early(self, number: int) -> None:
        """Reset a stream whose request is not whole, when its caller had time to read the answer.

        A caller must not discard an answer at a reset without an error (RFC 9113, 8.1), but some
        do: curl 7.88 lost it where it was still sending.
        """
        if len(self._answered_early) >= STREAMS_OF_STRANGER:
            self._engine.reset_stream(number, ErrorCodes.NO_ERROR)
        else:
            self._answered_early.add(number)
            self._loop.call_later(LINGER_SECONDS, self._reset_early, number)

    def _reset_early(self, number: int) -> None:
        if number in self._answered_early and not self._is_over:
            self._answered_early.discard(number)
            self._engine.reset_stream(number, ErrorCodes.NO_ERROR)
            self._flush_soon()

    def drop(self, stream: Stream) -> None:
        """End a call whose answer is not taken."""
        if stream.number in self._streams and not self._is_over:
            self._reset(stream, ErrorCodes.CANCEL)

    def _reset(self, stream: Stream, code: ErrorCodes) -> None:
        self._engine.reset_stream(stream.number, code)
        self._flush_soon()
        self._abandon(stream)

    def _flush_soon(self) -> None:
        """Write what is to be sent, together with what else this turn of the event loop brings.

        A write for each of many answers costs more than all else that is done for them here.
        """
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if not self._is_over and not self._transport.is_closing():
            self._transport.write(self._engine.data_to_send())

    def pause_writing(self) -> None:
        """Wait for the caller to read, but not for ever. Meanwhile nothing of it is read."""
        self._is_writable = False
        self._unwritable_since = time.monotonic()

    def resume_writing(self) -> None:
        """Go on writing and reading."""
        self._is_writable = True
        self.send_on()
        self._flush_soon()
        self._go_on()

    # -- the end -----------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Take no new calls, and close once those in flight are answered."""
        if self._is_draining or self._is_over:
            return
        self._is_draining = True
        self._transport.write(_goaway(self._newest, ErrorCodes.NO_ERROR))
        if not self._streams:
            self._close()

    def _close(self) -> None:
        """Close when the caller had time to read what was sent; its place is free at once."""
        self._flush()
        self._is_over = True
        self._place.end = self._transport.abort
        self._place.linger()
        self._server.turns.remove(self)
        self._pending.clear()
        self._transport.pause_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._closed_at = time.monotonic()
        self._loop.call_later(LINGER_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        """Close; then wait for what is written to go, and not for the farewell of TLS."""
        if self._is_lost:
            return
        late = time.monotonic() - self._closed_at
        is_written = late > FAREWELL_SECONDS and not self._transport.get_write_buffer_size()
        if is_written or late > self._limits.write_seconds:
            self._transport.abort()
        else:
            self._transport.close()
            self._loop.call_later(LINGER_SECONDS, self._hang_up)

    def _end(self, code: ErrorCodes) -> bool:
        """End the connection because of what came; return that no more is read."""
        self._flush()
        if not self._transport.is_closing():
            self._transport.write(_goaway(self._newest, code))
        streams = [*self._streams.values()]
        self._close()
        for stream in streams:
            self._abandon(stream)
        return False

    def _check_later(self) -> None:
        seconds = min(CHECK_SECONDS, self._limits.write_seconds)
        self._timer = self._loop.call_later(seconds, self._check_times)

    def _check_times(self) -> None:
        """End a connection that is quiet, old or stuck; ask one whether its caller is there."""
        if self._is_over:
            return
        now = time.monotonic()
        self._check_later()
        longest = self._limits.write_seconds
        for stream in [*self._unsent.values()]:
            if now - stream.stuck_since > longest:
                self._reset(stream, ErrorCodes.CANCEL)
        is_stuck = not self._is_writable and now - self._unwritable_since > longest
        age, quiet = now - self._began, now - self._seen
        if is_stuck or age > AGE_SECONDS + GRACE_SECONDS or self._is_gone(now):
            self._transport.abort()
        elif age > AGE_SECONDS or (quiet > QUIET_SECONDS and not self._streams):
            self.shutdown()

    def _is_gone(self, now: float) -> bool:
        """Return whether a quiet caller left a ping unanswered; send the first ping to others."""
        if self._pinged:
            return now - self._pinged > PING_SECONDS
        if now - self._seen > QUIET_SECONDS and self._streams:
            self._pinged = now
            self._engine.ping(b"are you?")
            self._flush_soon()
        return False


_HANDLERS: Mapping[type[Event], Callable[[Http2Protocol, Any], None]] = {
    RequestReceived: Http2Protocol.begin,
    DataReceived: Http2Protocol.receive,
    StreamEnded: Http2Protocol.end_request,
    StreamReset: Http2Protocol.give_up,
    RemoteSettingsChanged: Http2Protocol.change_settings,
    WindowUpdated: Http2Protocol.send_on,
}


class Stream:
    """One request and its answer, as an ASGI application sees them: an ``intake.Connection``.

    Attributes:
        body: Content that came and was not taken.
        owed: Bytes of it that the window of the connection was not given back.
        taken: Bytes that the window of the stream was not given back.
        total: Bytes of content that came.
        unsent: Content of the answer that the caller has not taken.
        trailers: What follows it; None where nothing does, or is not there yet.
        stuck_since: When its caller last had taken a frame's worth of it; 0 where none waits.
        moved: Bytes of it that were sent since then.
    """

    is_shared = True

    def __init__(self, connection: Http2Protocol, number: int, *, is_head: bool) -> None:
        self.number = number
        self.address = connection.address
        self.task: asyncio.Task[None] | None = None
        self.body = bytearray()
        self.owed = self.taken = self.total = 0
        self.is_whole = False  # the request
        self.is_judged = False
        self.is_wide = False
        self.is_answered = False  # by the application
        self.unsent = memoryview(b"")
        self.trailers: list[tuple[bytes, bytes]] | None = None
        self.stuck_since = 0.0
        self.moved = 0
        self._connection = connection
        self._is_head = is_head
        self._start: Message | None = None
        self._has_trailers = False
        self._is_told = False  # the application knows that the request is whole
        self._is_over = False
        self._waiting: asyncio.Future[None] | None = None  # for content
        self._writing: asyncio.Future[None] | None = None  # until the caller takes some

    def has_left(self) -> bool:
        return self._is_over

    def drop(self) -> None:
        self._connection.drop(self)

    def judged(self, *, is_known: bool) -> None:
        self._connection.judged(self, is_known=is_known)

    async def receive(self) -> Message:
        """Return the content that came, or wait for it."""
        while not self.body and not self._is_over and (not self.is_whole or self._is_told):
            if not self.is_whole:
                self._connection.taken(self)
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self._is_over:
            return {"type": "http.disconnect"}
        content = bytes(self.body)
        self.body.clear()
        self._is_told = self.is_whole
        return {"type": "http.request", "body": content, "more_body": not self.is_whole}

    async def send(self, message: Message) -> None:
        """Send a part of the answer; wait until the caller has taken it."""
        kind = message["type"]
        if self._is_over:
            return
        if kind == "http.response.start":
            # Sent with the first content: an answer without any ends with its headers.
            self._start = message
            self._has_trailers = message.get("trailers", False)
            return
        if kind == "http.response.trailers":
            self.trailers = message["headers"]
            self.is_answered = True
        elif self._take_content(message):
            return
        self._connection.send_content(self)
        while self.unsent and not self._is_over:
            self._writing = asyncio.get_running_loop().create_future()
            await self._writing

    def _take_content(self, message: Message) -> bool:
        """Take content of the answer; return whether there is nothing to send, yet or any more."""
        content = b"" if self._is_head else message.get("body", b"")
        is_last = not message.get("more_body", False)
        ends = is_last and not self._has_trailers
        if self._start is not None:
            start, self._start = self._start, None
            self.is_answered = ends and not content
            self._connection.send_head(self, start, ends=self.is_answered)
            if self.is_answered:
                return True
        self.unsent = memoryview(content)
        self.is_answered = ends
        return is_last and not ends  # the trailers follow at once

    def end(self) -> None:
        """Note that the request is whole."""
        self.is_whole = True
        self.wake()

    def wake(self) -> None:
        """Let the application look again for content."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def wake_writer(self) -> None:
        """Let the application go on with its answer."""
        if self._writing is not None and not self._writing.done():
            self._writing.set_result(None)

    def get_stuck(self) -> None:
        """Note that the caller takes no more for now.

        Its time begins anew with each frame's worth that it has taken. Were a byte enough, it
        could hold a long answer for ever.
        """
        if not self.stuck_since or self.moved >= CONTENT_FRAME:
            self.stuck_since, self.moved = time.monotonic(), 0

    def finish(self) -> None:
        """Note that the answer is sent."""
        self._is_over = True
        self.unsent = memoryview(b"")
        self.wake()
        self.wake_writer()

    def leave(self) -> None:
        """End the call: its caller does not wait for the answer any more."""
        self.finish()
        # A task that is cancelled refers to this stream: both would wait for the collector.
        task, self.task = self.task, None
        if task is not None:
            task.cancel()


def _scope(event: RequestReceived, transport: asyncio.Transport) -> Scope:
    pseudo: dict[bytes, bytes] = {}
    headers: list[tuple[bytes, bytes]] = []
    for name, value in event.headers:
        if name.startswith(b":"):
            pseudo[name] = value
        else:
            headers.append((name, value))
    if b":authority" in pseudo:
        headers.insert(0, (b"host", pseudo[b":authority"]))
    raw_path, _, query = pseudo.get(b":path", b"/").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "2",
        "method": pseudo[b":method"].decode("latin-1"),
        "scheme": pseudo.get(b":scheme", b"http").decode("latin-1"),
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": transport.get_extra_info("peername"),
        "server": transport.get_extra_info("sockname"),
        "extensions": {"http.response.trailers": {}},
    }


def _goaway(newest: int, code: ErrorCodes) -> bytes:
    """Return a frame that says which call was the last one to be taken, and why.

    The library would take no further frame after one of its own, not even those of calls that go
    on.
    """
    content = newest.to_bytes(4) + int(code).to_bytes(4)
    return len(content).to_bytes(3) + bytes((GOAWAY, 0)) + bytes(4) + content
