"""Intake of requests, for every transport: token, number of calls, and room, before a body.

Over HTTP/1.1 a connection has one request at a time. So a small body is read at once: connections
are counted, and the call itself judges the token. Before a larger one the token is judged and a
place in the budget is taken; until then the caller is not read from. A small body that is dense
needs a place, too: as objects it is longer than the sum of memory has for it.

Over HTTP/2 a connection has many. There the token is judged and the call is counted before
anything of its body is taken in, and all but the shortest bodies need a place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.request import Headers
from reconciler.service.scheduling.shares import Shares
from reconciler.service.transport.admission import Admission, Budget
from reconciler.service.transport.asgi import Receive, Scope
from reconciler.service.transport.http_messages import CONNECTION, HttpRefusal
from reconciler.service.transport.limits import SMALL_BODY, SMALL_MESSAGE, Limits
from reconciler.service.transport.observer import Answer

CONTAINER_BYTES = 200  # of an object or a list in memory
QUOTE_BYTES = 30  # of half a text in memory, beside what is in it
MOST_SMALL = 9 * SMALL_BODY  # bytes of both in a small body that needs no place
DENSE = 3  # times its length is the place of a small body with more of them

T = TypeVar("T")
GoOn = Callable[[bytes | None], Awaitable[T]]


class CallerLeftError(Exception):
    """The caller went away before its body was whole."""


class Connection(Protocol):
    """The connection of a request, as far as applications ask about it.

    Attributes:
        address: Of the caller.
        is_shared: Whether it has other requests at the same time: HTTP/2.
    """

    address: str
    is_shared: bool

    def has_left(self) -> bool:
        """Return whether the caller has gone away."""
        ...

    def drop(self) -> None:
        """End the request, and over HTTP/1.1 its connection: its answer is not taken."""
        ...

    def judged(self, *, is_known: bool) -> None:
        """Note whether the request has a valid token."""
        ...


def connection_of(scope: Scope) -> Connection:
    """Return the connection of a request."""
    connection: Connection = scope["extensions"][CONNECTION]
    return connection


@dataclass
class Body:
    """The body of a request of JSON, as far as it was read; see ``grpc_messages`` for the others.

    Attributes:
        longest: Bytes that it may have.
        read: What came of it.
    """

    headers: Headers
    longest: int
    read: bytearray = field(default_factory=bytearray)

    @property
    def length(self) -> int:
        """Return the length that the request gives it; 0 for one in chunks, or none."""
        values = self.headers.get("content-length", ())
        return int(values[0]) if values else 0  # the protocol has judged its form

    @property
    def weight(self) -> int:
        """Return the bytes of the place that it needs though it is small, or 0."""
        containers = self.read.count(b"{") + self.read.count(b"[")
        is_dense = CONTAINER_BYTES * containers + QUOTE_BYTES * self.read.count(b'"') > MOST_SMALL
        return DENSE * len(self.read) if is_dense else 0

    @property
    def large_weight(self) -> int:
        """Return the bytes of the place that it needs where it is not small."""
        return self.length or self.longest


class Intake:
    """Takes in bodies for every transport."""

    def __init__(self, answer: Answer, limits: Limits) -> None:
        """``answer`` judges tokens; see ``Admission``."""
        self.admission = Admission(answer)
        self.limits = limits
        self._budget = Budget(limits.large_bytes, limits.large_share_bytes, limits.large_seconds)
        self._known = Shares(limits.http2_known, limits.http2_known_of_one)
        self._open = Shares(limits.http2_open, limits.http2_open_of_one)
        self._forms = Shares(limits.http2_open, limits.http2_open_of_one)

    async def take(
        self,
        body: Body,
        receive: Receive,
        connection: Connection,
        go_on: GoOn[T],
        *,
        needs_token: bool = True,
    ) -> T:
        """Take in a body, and go on with it; with None if it is too long.

        The room of a large body is held until ``go_on`` has ended. A body that is too long is
        not read to its end.

        Raises:
            Refusal: the token is not valid, there was no room in time, or the body is too slow.
            CallerLeftError: the body has no end.
        """
        if not connection.is_shared:
            return await self._take(body, _Reader(receive, SMALL_BODY, None), go_on)
        if not needs_token:
            connection.judged(is_known=False)
            reader = _Reader(receive, SMALL_MESSAGE, self.limits.head_seconds)
            with self._open.place(connection.address.encode()):
                return await self._take(body, reader, go_on)
        caller = await self.admission.caller(body.headers)
        connection.judged(is_known=True)
        reader = _Reader(receive, SMALL_MESSAGE, self.limits.body_seconds)
        with self._known.place(caller):
            return await self._take(body, reader, go_on)

    async def take_form(
        self, body: Body, receive: Receive, connection: Connection, go_on: GoOn[T]
    ) -> T:
        """Take in a short body of a caller that has no token yet; otherwise as ``take``.

        The call is counted until ``go_on`` has ended, for its address and for all.
        """
        if connection.is_shared:
            connection.judged(is_known=False)
        reader = _Reader(receive, body.longest, self.limits.head_seconds)
        with self._forms.place(connection.address.encode()):
            is_whole = body.length <= body.longest and await reader.read(body, body.longest)
            is_taken = is_whole and len(body.read) <= body.longest
            return await go_on(bytes(body.read) if is_taken else None)

    async def _take(self, body: Body, reader: _Reader, go_on: GoOn[T]) -> T:
        length = body.length
        if length > body.longest:
            return await go_on(None)
        is_whole = length <= reader.small and await reader.read(body, reader.small)
        is_small = is_whole and len(body.read) <= reader.small
        weight = body.weight if is_small else body.large_weight
        if is_small and not weight:
            return await go_on(bytes(body.read))
        if body.length > body.longest:  # a message says so itself
            return await go_on(None)
        caller = await self.admission.caller(body.headers)
        async with self._budget.place(caller, weight):
            # No more than the place is for: a message may be longer than it says.
            most = min(body.length or body.longest, body.longest)
            is_whole = is_whole or await reader.read(body, most)
            is_taken = is_whole or len(body.read) <= body.longest
            return await go_on(bytes(body.read) if is_taken else None)


class _Reader(NamedTuple):
    """Reads a body.

    Attributes:
        small: Bytes of a body that may be read before its caller is given a place.
        seconds: How long each part of it may take; None leaves that to the protocol.
    """

    receive: Receive
    small: int
    seconds: float | None

    async def read(self, body: Body, longest: int) -> bool:
        """Add to a body until it is whole or longer than so; return whether it is whole.

        The pieces are put together as they come: each for itself would cost more than its bytes.

        Raises:
            Refusal: it takes longer than ``seconds``.
            CallerLeftError: it has no end.
        """
        if self.seconds is None:
            return await self._read(body, longest)
        try:
            async with asyncio.timeout(self.seconds):
                return await self._read(body, longest)
        except TimeoutError:
            raise too_slow() from None

    async def _read(self, body: Body, longest: int) -> bool:
        read = body.read
        while len(read) <= longest:
            message = await self.receive()
            if message["type"] != "http.request":
                raise CallerLeftError
            read += message.get("body", b"")
            if not message.get("more_body", False):
                return True
        return False


def too_slow() -> Refusal:
    """Refuse a request whose body does not come."""
    return HttpRefusal(408, "the message took too long to arrive", "message.too_slow")
