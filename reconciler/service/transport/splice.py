"""One port for HTTP/1.1 and HTTP/2: the first bytes of a connection say which it is.

HTTP/1.1 goes to the protocol of the HTTP server, and from then on nothing of this is in its way.
HTTP/2 goes, frame by frame and under back-pressure, to the socket where gRPC listens. A large
message takes its place in the budget of the server first; until there is room, what comes of it is
kept here, and the other calls of its connection go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from reconciler.service.domain.refusal import Refusal
from reconciler.service.transport.connections import Room
from reconciler.service.transport.frames import (
    PREFACE,
    CallerFrames,
    Frames,
    FramesError,
)
from reconciler.service.transport.grpc_intake import Inside, connected
from reconciler.service.transport.limits import MAX_MESSAGE, SMALL_BODY
from reconciler.service.transport.stream_messages import NO_ROOM, TOO_LARGE, Entry, Sizes

# Settings without a word, and GOAWAY: no call was begun, and there are too many connections.
REFUSED = bytes.fromhex("000000040000000000 000008070000000000 000000000000000b")
FLUSH_SECONDS = 10.0  # in which a side takes what is left for it once the other is gone
ANSWER_SECONDS = 30.0  # after a large message has come
SIZES = Sizes(SMALL_BODY, MAX_MESSAGE, TOO_LARGE, NO_ROOM)

MakeProtocol = Callable[[], asyncio.Protocol]


class FirstBytes(asyncio.Protocol):
    """A connection whose protocol is not known yet."""

    def __init__(
        self,
        make_http: MakeProtocol,
        inside: Inside,
        room: Room,
        turned_away: Callable[[str], None],
    ) -> None:
        """Tell ``turned_away`` why a connection is refused.

        The HTTP server looks up in ``room.connections`` what it must wait for at its end: this
        connection is there until it is lost, or until its HTTP protocol is there instead.
        """
        self._make_http = make_http
        self._inside = inside
        self._room = room
        self._turned_away = turned_away
        self._timer: asyncio.TimerHandle | None = None
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first bytes, but not for long; not at all where there are too many."""
        self._transport = cast("asyncio.Transport", transport)  # of a stream, thus one
        self._room.connections.add(self)
        if len(self._room.connections) > self._room.limits.connections:
            self._go_on_as_http()  # which says so
            return
        self._room.set_idle(self, self._make_way)
        self._timer = asyncio.get_running_loop().call_later(
            self._room.limits.head_seconds, self.shutdown
        )

    def data_received(self, data: bytes) -> None:
        """Hand the connection on as soon as its bytes are no preface, or are one."""
        self._seen += data
        if self._seen.startswith(PREFACE):
            self._leave()
            self._go_on_as_http2()
        elif not PREFACE.startswith(self._seen):
            self._go_on_as_http().data_received(self._seen)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._leave()

    def shutdown(self) -> None:
        """Close, because the server ends: nothing was asked yet."""
        self._transport.close()

    def _make_way(self) -> None:
        """End at once, because others have no room."""
        self._leave()
        self._transport.abort()

    def _go_on_as_http(self) -> asyncio.Protocol:
        self._leave()
        http = self._make_http()
        self._transport.set_protocol(http)
        http.connection_made(self._transport)
        return http

    def _go_on_as_http2(self) -> None:
        splice = Splice(self._transport, self._inside, self._room, self._turned_away)
        if self._room.splice(splice):
            splice.begin(self._seen)
        else:
            self._turned_away("there are too many connections over HTTP/2")
            self._transport.write(REFUSED)
            self._transport.close()

    def _leave(self) -> None:
        self._room.connections.discard(self)
        self._room.set_busy(self)
        if self._timer is not None:
            self._timer.cancel()


class Splice:
    """A connection from outside and one to the gRPC server, joined."""

    def __init__(
        self,
        outside: asyncio.Transport,
        inside: Inside,
        room: Room,
        turned_away: Callable[[str], None],
    ) -> None:
        self._room = room
        self._address, self._budget, self._all_new_calls = inside
        self._new_calls = self._all_new_calls.of_connection(self._go_on, self._too_full)
        self._turned_away = turned_away
        self._now = asyncio.get_running_loop().time
        self.last_seen = self._now()
        self._calls_began = 0.0  # when the newest call came
        may_begin = partial(self._all_new_calls.may_begin, self._new_calls)
        self._asked = CallerFrames(self._given_up, self._large, SIZES, may_begin)
        self._answered = Frames(self._ended)
        self._outside = _End(self._lost, self._from_outside)
        self._inside = _End(self._lost, self._from_inside)
        self._held: dict[int, asyncio.Task[None]] = {}  # large messages, by stream
        self._waiting: set[int] = set()  # those of them that wait for room
        self._inside.join(self._outside)
        self._outside.join(self._inside)
        self._outside.connection_made(outside)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether a call waits for its answer, and not for longer than answers may take."""
        longest = self._room.limits.body_seconds + ANSWER_SECONDS
        return self._asked.is_calling and self._calls_began + longest > self._now()

    def begin(self, seen: bytes) -> None:
        """Connect to the gRPC server; the other side waits until that is done."""
        self._room.connections.add(self)
        self._all_new_calls.add(self._new_calls)
        self._outside.transport.set_protocol(self._outside)
        self._outside.transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._connect(seen))

    def shutdown(self) -> None:
        """Do nothing: the gRPC server ends its connections itself."""
        self._room.connections.discard(self)

    def abort(self) -> None:
        """End the connection at once."""
        self._outside.transport.abort()

    async def _connect(self, seen: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            joining = await connected(self._address, self._new_calls.name)
            await loop.create_unix_connection(lambda: self._inside, sock=joining)
        except OSError:
            self._inside.is_lost = True
            self._outside.transport.abort()
            return
        if self._outside.is_lost:
            self._inside.transport.abort()
            return
        self._outside.data_received(seen)
        self._outside.resume()

    def _lost(self) -> None:
        for stream in [*self._held]:  # with either side, the calls are lost
            self._give_back(stream)
        if self._outside.is_lost and self._inside.is_lost:
            self._room.connections.discard(self)
            self._room.unsplice(self)
            self._all_new_calls.remove(self._new_calls)

    def _from_outside(self, data: bytes) -> bytes:
        self.last_seen = self._now()
        newest = self._asked.newest
        passed = self._asked.feed(data)
        if self._asked.newest != newest:
            self._calls_began = self.last_seen
        self._new_calls.held_bytes = self._asked.held_bytes
        fullest = self._all_new_calls.fullest() if self._asked.held_bytes else None
        if fullest is not None:
            fullest.end()
        return passed

    def _go_on(self) -> None:
        """Pass on new calls for which there is a place now."""
        self._calls_began = self._now()
        self._inside.send(self._asked.go_on())
        self._new_calls.held_bytes = self._asked.held_bytes

    def _too_full(self) -> None:
        self._turned_away("too many calls on it wait to begin")
        self.abort()

    def _from_inside(self, data: bytes) -> bytes:
        self.last_seen = self._now()
        return self._answered.feed(data)

    def _given_up(self, stream: int) -> None:
        """Give back what a call held whose caller wants no answer."""
        self._asked.forget(stream)
        self._all_new_calls.ended(self._new_calls, stream)
        self._give_back(stream)

    def _ended(self, stream: int) -> None:
        """Give back what a call held, once it is answered."""
        self._given_up(stream)
        self._pass_on()

    def _give_back(self, stream: int) -> None:
        self._waiting.discard(stream)
        task = self._held.pop(stream, None)
        if task is not None:
            task.cancel()

    def _large(self, stream: int, size: int) -> Entry:
        """Let a large message wait for room, unless too many wait."""
        if stream in self._held:  # one more message of a call that has a place
            return Entry.NOW
        limits = self._room.limits
        if (
            len(self._waiting) >= limits.grpc_waiting_of_one
            or self._budget.waiting >= limits.grpc_waiting
        ):
            return Entry.NEVER
        self._waiting.add(stream)
        self._held[stream] = asyncio.get_running_loop().create_task(self._hold(stream, size))
        return Entry.LATER

    async def _hold(self, stream: int, size: int) -> None:
        """Hold the room of a message until its call has ended, which cancels this."""
        try:
            async with (
                asyncio.timeout(self._room.limits.body_seconds + ANSWER_SECONDS),
                self._budget.place(b"%d" % id(self), size),
            ):
                self._waiting.discard(stream)
                self._asked.enter(stream)
                self._pass_on()
                await asyncio.Event().wait()
        except Refusal:
            self._waiting.discard(stream)
            self._asked.enter(stream, as_mark=True)
            self._pass_on()
        except TimeoutError:
            self._turned_away("its large messages do not come")
            self.abort()

    def _pass_on(self) -> None:
        self._inside.send(self._asked.ready())


class _End(asyncio.Protocol):
    """One of two connections: what comes in here goes out at the other."""

    transport: asyncio.Transport
    _other: _End

    def __init__(self, lost: Callable[[], None], follow: Callable[[bytes], bytes]) -> None:
        self.is_made = False
        self.is_lost = False
        self._tell = lost
        self._follow = follow
        self.has_ended = False

    def join(self, other: _End) -> None:
        self._other = other

    def send(self, data: bytes) -> None:
        if data and not self.is_over() and not self._other.has_ended:
            self.transport.write(data)

    def resume(self) -> None:
        if not self.is_over():
            self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # of a stream, thus one
        self.is_made = True

    def data_received(self, data: bytes) -> None:
        try:
            self._other.send(self._follow(data))
        except FramesError:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Hold the other side back while this one is slow to take what it is sent."""
        if not self._other.is_over():
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        self._other.resume()

    def eof_received(self) -> bool:
        """Pass on that no more will come; return whether this side still takes answers.

        TLS knows no such state: there, the end of one direction is the end of both.
        """
        self.has_ended = True
        other = self._other
        if other.has_ended or other.is_over() or not self.transport.can_write_eof():
            return False
        if not other.transport.can_write_eof():
            return False
        other.transport.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side too, once it took what is left for it."""
        self.is_lost = True
        other = self._other
        if not other.is_over():  # one that is not made yet ends once it is
            other.transport.close()
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, other.end)
        self._tell()

    def end(self) -> None:
        """Let go of this side, whether or not it took everything."""
        if not self.is_lost:
            self.transport.abort()

    def is_over(self) -> bool:
        """Return whether nothing can be sent here any more, or yet."""
        return self.is_lost or not self.is_made or self.transport.is_closing()
