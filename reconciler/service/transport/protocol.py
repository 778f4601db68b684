"""HTTP/1.1 on one connection: uvicorn's protocol behind our framing, deadlines and limits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.scheduling.shares import UNCOUNTED
from reconciler.service.transport.connections import TOO_MANY, Place
from reconciler.service.transport.framing import Framing, FramingError, Part
from reconciler.service.transport.http_messages import CONNECTION, raw_refusal
from reconciler.service.transport.limits import SMALL_BODY
from reconciler.service.transport.observer import Observer


class StrictProtocol(HttpToolsProtocol):
    """A connection that is refused as soon as it could be misunderstood, or takes too long.

    Applications see it as an ``intake.Connection``.
    """

    is_shared = False

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        place: Place,
        observer: Observer,
    ) -> None:
        """Read a connection. Another may get its place while it carries out no call."""
        super().__init__(config, server_state, {})
        self._limits = place.room.limits
        self._observer = observer
        self._place = place
        self.address = place.address
        self._framing = Framing(self._limits)
        self._watched: tuple[Part, int] = (Part.HEAD, 1)
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._body_deadline = 0.0
        self._received = 0
        self._refused: Refusal | None = None
        self._is_ending = False
        self._keep_alive = True  # whether the present request lets the connection go on
        self._has_left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection, unless there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))  # of a stream, thus one
        self._place.end = self.transport.abort
        if self._place.is_refused:
            self._refuse(Refusal(Code.UNAVAILABLE, TOO_MANY, "service.busy"))
        else:
            self.transport.set_write_buffer_limits(UNCOUNTED)
            self._timer = self.loop.call_later(self._limits.head_seconds, self._too_slow)
            self._tell_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._has_left = True
        _cancel(self._timer)
        _cancel(self._unread)
        super().connection_lost(exc)
        # uvicorn leaves its timer to a connection that was lost by an error. And a cycle of
        # references would keep all of it until the collector looks, which is seldom.
        self._unset_keepalive_if_required()
        vars(self).update(cycle=None, scope=None)
        self._timer = self._unread = None
        self._place.leave()

    def has_left(self) -> bool:
        return self._has_left

    def drop(self) -> None:
        self.transport.abort()

    def judged(self, *, is_known: bool) -> None:
        self._place.is_known |= is_known

    def data_received(self, data: bytes) -> None:
        """Let the parser see what is beyond doubt."""
        if self._refused is not None or self._is_ending:
            return  # what still comes is thrown away
        try:
            ready = self._framing.feed(data)
        except FramingError as error:
            self._refuse(error)
            return
        if ready:
            super().data_received(ready)
            self._check_pipeline()
            self._tell_room()
        else:
            self._unset_keepalive_if_required()
        self._watch()

    def _check_pipeline(self) -> None:
        """Refuse requests that are sent long before they can be answered: each takes memory."""
        if len(self.pipeline) > self._limits.pipelined:
            self.pipeline.clear()
            self._refuse(FramingError(429, "there are too many requests at once on one connection"))

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser does not accept though the framing does."""
        self._refuse(FramingError(400, "the request is not well-formed"))

    def on_headers_complete(self) -> None:
        """Begin a request. An answer that comes before its body is whole ends the connection."""
        super().on_headers_complete()
        cycle: RequestResponseCycle = self.cycle
        # An answer may begin before the body is whole. What is left of the body would then be read
        # as the next request, so until ``on_message_complete`` an answer ends the connection.
        self._keep_alive = cycle.keep_alive
        cycle.keep_alive = False
        cycle.transport = _EarlyEnd(self)
        scope = cast("dict[str, object]", cycle.scope)  # its type knows no extension of ours
        scope["extensions"] = {CONNECTION: self}

    def on_body(self, body: bytes) -> None:
        """Hold the caller back as soon as a small body is there that is not read yet."""
        super().on_body(body)
        # The application takes bodies in only while there is room; the network holds the rest.
        if len(self.cycle.body) > SMALL_BODY:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Let the connection go on after the answer, as the request wishes."""
        cycle: RequestResponseCycle = self.cycle
        if not cycle.response_started:
            cycle.keep_alive = self._keep_alive
            cycle.transport = self.transport
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or end a connection that was refused meanwhile."""
        if self._refused is not None:
            self._end(self._refused)
        elif not self._is_ending:
            super().on_response_complete()
            self._tell_room()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        """Return the request under way, or the last one; None before the first."""
        return self.cycle

    def _tell_room(self) -> None:
        """Tell the room whether a call is being carried out; else this connection may make way.

        A request that is not whole does not count as a call. Each part of it begins the idle time
        anew, so that a connection that sends one is the last to make way.
        """
        if self.transport.is_closing():
            return
        cycle = self._cycle
        if self.pipeline or not (cycle is None or cycle.response_complete or cycle.more_body):
            self._place.set_busy()
        else:
            self._place.set_idle()

    def shutdown(self) -> None:
        """Close after the answer that is under way, even if its body is not whole yet."""
        self._keep_alive = False
        super().shutdown()

    def pause_writing(self) -> None:
        """Wait for the caller to read, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        _cancel(self._unread)

    def _watch(self) -> None:
        """Keep the deadline of what the connection is in the middle of."""
        now = (self._framing.part, self._framing.requests)
        if self._framing.in_body:
            now = (Part.BODY, self._framing.requests)
        if now == self._watched:
            return
        self._watched = now
        _cancel(self._timer)
        self._timer = None
        if now[0] is Part.HEAD:
            self._timer = self.loop.call_later(self._limits.head_seconds, self._too_slow)
        elif now[0] is Part.BODY:
            self._body_deadline = self.loop.time() + self._limits.body_seconds
            self._received = 0
            self._check_later()

    def _check_later(self) -> None:
        left = max(self._body_deadline - self.loop.time(), 0)
        wait = min(self._limits.progress_seconds, left)
        self._timer = self.loop.call_later(wait, self._check_progress)

    def _check_progress(self) -> None:
        """Go on waiting for a body that makes progress."""
        progress = self._framing.received - self._received
        self._received = self._framing.received
        if self.flow.read_paused:  # it is not the caller who is slow
            self._body_deadline = self.loop.time() + self._limits.body_seconds
            self._check_later()
        elif self.loop.time() >= self._body_deadline or progress < self._limits.progress_bytes:
            self._too_slow()
        else:
            self._check_later()

    def _too_slow(self) -> None:
        if self._framing.requests == 0:
            self.transport.close()  # nothing was asked, so nothing is answered
        else:
            self._refuse(FramingError(408, "the request took too long to arrive"))

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse the connection, once what was asked before is answered."""
        self._refused = refusal
        self._observer.refused(refusal)
        _cancel(self._timer)
        self._unset_keepalive_if_required()
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            self._end(refusal)
        elif cycle.more_body and not self.pipeline and not cycle.response_started:
            cycle.disconnected = True  # its body will never be whole
            cycle.message_event.set()
            self._end(refusal)

    def _end(self, refusal: Refusal) -> None:
        """Say why, and close when the caller had time to read it."""
        if self._is_ending or self.transport.is_closing():
            return
        self.transport.write(raw_refusal(refusal, self._observer.request_id()))
        self.linger()

    def linger(self) -> None:
        """Close when the caller had time to read the answer; throw away what still comes.

        If bytes were left unread the network would reset the connection, and the caller might
        lose the answer.
        """
        if self._is_ending:
            return
        self._is_ending = True
        self._place.linger()
        _cancel(self._timer)
        self._unset_keepalive_if_required()
        cycle = self._cycle
        if cycle is not None:
            cycle.body = bytearray()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            with suppress(OSError):  # the caller went away
                self.transport.write_eof()
        self._timer = self.loop.call_later(self._limits.linger_seconds, self.transport.close)

    def eof_received(self) -> Any:
        """Answer what was asked in full, though the caller will not ask more.

        It has probably left, but on the network it looks like a caller that still reads.
        """
        self._has_left = True
        cycle = self._cycle
        if self.scheme == "https" or cycle is None or cycle.response_complete or cycle.more_body:
            return False
        cycle.keep_alive = False
        return True


class _EarlyEnd(asyncio.Transport):
    """The transport of an answer while the body of its request is not whole."""

    def __init__(self, protocol: StrictProtocol) -> None:
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._protocol.transport.write(data)

    def is_closing(self) -> bool:
        return self._protocol.transport.is_closing()

    def close(self) -> None:
        """Close later: what the caller still sends is in the way of the answer."""
        self._protocol.linger()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
