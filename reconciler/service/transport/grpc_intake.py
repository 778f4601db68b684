"""Calls over gRPC as they come in: which the gRPC server is given, and whose messages it reads.

The gRPC server begins one call after the other, in the order in which they reach it, whatever
connection they are on. On a busy machine it begins about a hundred a second. So a few connections
with many new calls would keep the calls of all others waiting for seconds. Therefore each
connection has a few calls there that have not begun, and its other new calls wait outside. A
connection whose newest call had no valid token has one there, and all such connections together
take turns for two places.

One event loop; no locks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.table import needs_token
from reconciler.service.transport.admission import (
    NOBODY,
    Admission,
    Budget,
    Shares,
    UnreadError,
    no_room,
    too_large,
)
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.stream_messages import NO_ROOM, TOO_LARGE

NAMES = 10_000  # many more than there may be connections
ENDED_SECONDS = 0.1  # in which the library cancels a call that has no message because it is over


@dataclass(eq=False, slots=True)
class NewCallsOfOne:
    """The new calls of one connection.

    Attributes:
        name: Of the connection, while it lasts.
        go_on: Is called when a call that waits may begin.
        end: Is called when too much waits.
        is_known: Whether the newest call that was judged had a valid token.
        held_bytes: Length of what waits outside.
        streams: Calls that were passed on and have not begun, the oldest first.
    """

    name: str
    go_on: Callable[[], None]
    end: Callable[[], None]
    is_known: bool = False
    held_bytes: int = 0
    streams: list[int] = field(default_factory=list)


class NewCalls:
    """The new calls of all connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._numbers = count()
        self._connections: dict[str, NewCallsOfOne] = {}
        self._waiting: dict[str, NewCallsOfOne] = {}  # in the order of their turns
        self._passed_on: set[NewCallsOfOne] = set()  # those with calls that have not begun

    def of_connection(self, go_on: Callable[[], None], end: Callable[[], None]) -> NewCallsOfOne:
        """Return the new calls of a connection; they count once they are added."""
        # A name is that of a unix socket, too, whose path may have 107 bytes. So all are as long as
        # ``grpc``, the name in the same folder at which the gRPC server listens.
        names = (f"{number % NAMES:04}" for number in self._numbers)
        return NewCallsOfOne(next(n for n in names if n not in self._connections), go_on, end)

    def add(self, connection: NewCallsOfOne) -> None:
        """Begin to count the calls of a connection."""
        self._connections[connection.name] = connection

    def remove(self, connection: NewCallsOfOne) -> None:
        """Stop counting the calls of a connection, because it is lost."""
        self._connections.pop(connection.name, None)
        self._waiting.pop(connection.name, None)
        connection.streams.clear()
        self._go_on()

    def may_begin(self, connection: NewCallsOfOne, stream: int) -> bool:
        """Return whether a call is passed on now, and count it; else ``go_on`` is called later."""
        if not self._has_place(connection):
            self._waiting[connection.name] = connection
            return False
        connection.streams.append(stream)
        self._passed_on.add(connection)
        return True

    def begun(self, name: str) -> None:
        """Note that the gRPC server has begun a call of a connection.

        The server begins the calls of a connection in their order; where it does not, the number
        is right even so.
        """
        connection = self._connections.get(name)
        if connection is not None:
            del connection.streams[:1]
            self._go_on()

    def judged(self, name: str, *, is_known: bool) -> None:
        """Note whether a call that has begun had a valid token."""
        connection = self._connections.get(name)
        if connection is not None and connection.is_known != is_known:  # else no place is free
            connection.is_known = is_known
            self._go_on()

    def ended(self, connection: NewCallsOfOne, stream: int) -> None:
        """Stop counting a call that was answered or given up, perhaps before it began."""
        if stream in connection.streams:
            connection.streams.remove(stream)
            self._go_on()

    def fullest(self) -> NewCallsOfOne | None:
        """Return the connection of which most waits outside, if all together is too much."""
        connections = self._connections.values()
        if sum(connection.held_bytes for connection in connections) <= self._limits.grpc_held_bytes:
            return None
        return max(connections, key=lambda connection: connection.held_bytes)

    def _has_place(self, connection: NewCallsOfOne) -> bool:
        if connection.is_known:
            return len(connection.streams) < self._limits.grpc_new_of_one
        strange = sum(len(other.streams) for other in self._passed_on if not other.is_known)
        return not connection.streams and strange < self._limits.grpc_new_of_strangers

    def _go_on(self) -> None:
        """Give the free places to those who wait, each one its turn."""
        self._passed_on = {connection for connection in self._passed_on if connection.streams}
        for connection in [*self._waiting.values()]:
            # The one before may have ended this one.
            if connection.name in self._waiting and self._has_place(connection):
                del self._waiting[connection.name]  # who wants more waits at the end
                connection.go_on()


class Inside(NamedTuple):
    """The server that HTTP/2 is passed on to.

    Attributes:
        address: Of the unix socket where the gRPC server listens.
        budget: Room for large messages; the share of a caller is that of a connection here.
        new_calls: Those that the gRPC server has not begun.
    """

    address: str
    budget: Budget
    new_calls: NewCalls


async def connected(address: str, name: str) -> socket.socket:
    """Return a connection to a unix socket that has a name of its own in the same folder.

    The gRPC server tells the name with each call. The file of the name is not needed once the
    socket has it.

    Raises:
        OSError: nothing listens at the address.
    """
    joining = socket.socket(socket.AF_UNIX)
    try:
        joining.settimeout(0)
        path = Path(address).with_name(name)
        joining.bind(str(path))
        path.unlink()
        await asyncio.get_running_loop().sock_connect(joining, address)
    except BaseException:
        joining.close()
        raise
    return joining


class CallContext(Protocol):
    """A call as the gRPC library, which has no types, shows it; as much of it as is used here."""

    peer: Callable[[], str]
    invocation_metadata: Callable[[], Iterable[tuple[str, str | bytes]]]
    read: Callable[[], Awaitable[object]]  # the next message, or a mark of their end
    write: Callable[[object], Awaitable[None]]
    set_code: Callable[[object], None]
    set_details: Callable[[str], None]
    set_trailing_metadata: Callable[[Sequence[tuple[str, str | bytes]]], None]
    add_done_callback: Callable[[Callable[[CallContext], None]], None]


class Intake:
    """Decides whose calls are taken in, how many at a time, and how long messages may take."""

    def __init__(self, admission: Admission, new_calls: NewCalls, limits: Limits) -> None:
        """Take in what ``admission`` lets in; tell ``new_calls`` of each call that has begun."""
        self._admission = admission
        self._new_calls = new_calls
        self.limits = limits
        self._known = Shares(limits.grpc_known, limits.grpc_known_of_one)
        self._open = Shares(limits.grpc_open, limits.grpc_open)
        self._streams = Shares(limits.grpc_open, limits.grpc_open)

    def begun(self, context: CallContext) -> None:
        """Note that the server has begun a call: another one may come to it."""
        self._new_calls.begun(_name_of(context))

    @asynccontextmanager
    async def message(
        self, context: CallContext, operation: str, headers: Mapping[str, list[str]]
    ) -> AsyncIterator[bytes | Refusal]:
        """Yield the message of a call, or why it was not taken in.

        The call keeps its place as long as the block runs, which is until it is answered.
        """
        self.begun(context)
        if not needs_token(operation):
            async with self.open_message(context) as message:
                yield message
            return
        try:
            caller = await self._admission.caller(headers)
        except UnreadError as refusal:
            self._new_calls.judged(_name_of(context), is_known=False)
            yield refusal
            return
        self._new_calls.judged(_name_of(context), is_known=True)
        seconds = self.limits.body_seconds
        async with _message(context, self._known, caller, seconds) as message:
            yield message

    def open_message(self, context: CallContext) -> AbstractAsyncContextManager[bytes | Refusal]:
        """Yield the message of a call that needs no token, or why it was not taken in."""
        return _message(context, self._open, NOBODY, self.limits.head_seconds)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[None]:
        """Give a call without a token that has many messages its place while the block runs.

        Raises:
            Refusal: there is no room, or it takes too long.
        """
        try:
            with self._streams.place(NOBODY):
                async with asyncio.timeout(self.limits.grpc_stream_seconds):
                    yield
        except TimeoutError:
            raise _too_slow() from None


def _name_of(context: CallContext) -> str:
    """Return the name of the connection of a call, which is an address; see ``connected``."""
    return context.peer().rpartition("/")[2]


@asynccontextmanager
async def _message(
    context: CallContext, shares: Shares, caller: bytes, seconds: float
) -> AsyncIterator[bytes | Refusal]:
    with ExitStack() as place:
        try:
            place.enter_context(shares.place(caller))
            message = await _read(context, seconds)
        except UnreadError as refusal:
            message = refusal
        yield message


async def _read(context: CallContext, seconds: float) -> bytes | Refusal:
    """Return the message of a call, or the refusal of a call without one."""
    try:
        async with asyncio.timeout(seconds):
            message = await context.read()
    except TimeoutError:
        return _too_slow()
    if not isinstance(message, bytes):  # so the library marks a call without a message
        # A call that the library has refused, or whose caller went away, is cancelled soon.
        # One that is still there ended without a message, and is answered.
        await asyncio.sleep(ENDED_SECONDS)
        return invalid("request", "must be one message; none came")
    if message == NO_ROOM:
        return no_room()
    return too_large() if message == TOO_LARGE else message


def _too_slow() -> Refusal:
    return Refusal(Code.ABORTED, "the message took too long to arrive", "message.too_slow")
