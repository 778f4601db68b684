"""New calls over gRPC: how many of each connection the gRPC server is given at one time.

The gRPC server begins one call after the other, in the order in which they reach it, whatever
connection they are on. On a busy machine it begins about a hundred a second. So a few connections
with many new calls would keep the calls of all others waiting for seconds. Therefore each
connection has a few calls there that have not begun, and its other new calls wait outside. A
connection whose newest call had no valid token has one there, and all such connections together
take turns for two places.

One event loop; no locks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from reconciler.service.transport.admission import Budget
from reconciler.service.transport.limits import Limits

NAMES = 10_000  # many more than there may be connections


class NewCallsOfOne:
    """The new calls of one connection.

    Attributes:
        name: Of the connection, while it lasts.
        is_known: Whether the newest call that was judged had a valid token.
        held_bytes: Length of what waits outside.
    """

    def __init__(
        self,
        name: str,
        go_on: Callable[[], None],
        end: Callable[[], None],
        all_calls: NewCalls,
    ) -> None:
        self.name = name
        self.is_known = False
        self.held_bytes = 0
        self.go_on = go_on
        self.end = end
        self.streams: list[int] = []  # passed on and not begun, the oldest first
        self._all = all_calls

    def join(self) -> None:
        """Begin to count the calls of this connection."""
        self._all.add(self)

    def may_begin(self, stream: int) -> bool:
        """Return whether a call is passed on now, and count it; else ``go_on`` is called later."""
        if not self._all.has_place(self):
            self._all.wait(self)
            return False
        self.streams.append(stream)
        self._all.passed_on(self)
        return True

    def ended(self, stream: int) -> None:
        """Stop counting a call that was answered or given up, perhaps before it began."""
        if stream in self.streams:
            self.streams.remove(stream)
            self._all.go_on()

    def leave(self) -> None:
        """Stop counting the calls of this connection, because it is lost."""
        self._all.remove(self)


class NewCalls:
    """The new calls of all connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._numbers = count()
        self._connections: dict[str, NewCallsOfOne] = {}
        self._waiting: dict[str, NewCallsOfOne] = {}  # in the order of their turns
        self._passed_on: set[NewCallsOfOne] = set()  # those with calls that have not begun

    def of_connection(self, go_on: Callable[[], None], end: Callable[[], None]) -> NewCallsOfOne:
        """Return what counts the calls of a new connection, once it has joined.

        ``go_on`` is called when a call that waits may begin, ``end`` when too much waits.
        """
        # A name is that of a unix socket, too, whose path may have 107 bytes. So all are as long as
        # ``grpc``, the name in the same folder at which the gRPC server listens.
        names = (f"{number % NAMES:04}" for number in self._numbers)
        name = next(name for name in names if name not in self._connections)
        return NewCallsOfOne(name, go_on, end, self)

    def add(self, connection: NewCallsOfOne) -> None:
        """Begin to count the calls of a connection."""
        self._connections[connection.name] = connection

    def begun(self, name: str) -> None:
        """Note that the gRPC server has begun a call of a connection.

        The server begins the calls of a connection in their order; where it does not, the number
        is right even so.
        """
        connection = self._connections.get(name)
        if connection is not None:
            del connection.streams[:1]
            self.go_on()

    def judged(self, name: str, *, is_known: bool) -> None:
        """Note whether a call that has begun had a valid token."""
        connection = self._connections.get(name)
        if connection is not None and connection.is_known != is_known:  # else no place is free
            connection.is_known = is_known
            self.go_on()

    def has_place(self, connection: NewCallsOfOne) -> bool:
        """Return whether one more call of a connection may be passed on."""
        if connection.is_known:
            return len(connection.streams) < self._limits.grpc_new_of_one
        return not connection.streams and self._strange() < self._limits.grpc_new_of_strangers

    def passed_on(self, connection: NewCallsOfOne) -> None:
        """Note that a call of a connection was passed on."""
        self._passed_on.add(connection)

    def wait(self, connection: NewCallsOfOne) -> None:
        """Let a connection take its turn as soon as there is a place."""
        self._waiting[connection.name] = connection

    def remove(self, connection: NewCallsOfOne) -> None:
        """Forget a connection."""
        self._connections.pop(connection.name, None)
        self._waiting.pop(connection.name, None)
        connection.streams.clear()
        self.go_on()

    def go_on(self) -> None:
        """Give the free places to those who wait, each one its turn."""
        self._passed_on = {connection for connection in self._passed_on if connection.streams}
        for connection in [*self._waiting.values()]:
            if connection.name in self._waiting and self.has_place(connection):
                del self._waiting[connection.name]  # who wants more waits at the end
                connection.go_on()

    def fullest(self) -> NewCallsOfOne | None:
        """Return the connection of which most waits outside, if all together is too much."""
        connections = self._connections.values()
        if sum(connection.held_bytes for connection in connections) <= self._limits.grpc_held_bytes:
            return None
        return max(connections, key=lambda connection: connection.held_bytes)

    def _strange(self) -> int:
        return sum(
            len(connection.streams) for connection in self._passed_on if not connection.is_known
        )


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
