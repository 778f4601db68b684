"""Turns of connections over HTTP/2: each reads a few frames, then lets the others go on.

The cost of HTTP/2 is per frame, not per byte: a read of 64 KiB can have 7,000 frames, which take
the event loop 50 ms. So a connection with more frames than fit in a turn waits for the next one,
and between two rounds of turns the event loop does all its other work.

A connection without a valid token always waits for its turns, which are shorter. It has its first
few in the next rounds, so that a new caller is soon known. After those, all strangers together
have one turn in ``PACE_SECONDS``: whatever they send, it takes a small part of the loop.

In each line addresses take turns, and so do the connections of one address: who opens many
connections has no more turns than others have.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple, Protocol


class Turn(NamedTuple):
    """The length of a turn.

    Attributes:
        frames: How many are read at most.
        seconds: After so long, no further one is.
    """

    frames: int
    seconds: float


OF_KNOWN = Turn(32, 0.001)
OF_STRANGER = Turn(8, 0.000_25)
KNOWN_A_ROUND = 8
NEW_A_ROUND = 2  # new strangers; the refusal of a call takes longer than the turn
FIRST_TURNS = 4  # of a stranger; a client of gRPC needs two before its token is judged
PACE_SECONDS = 0.002  # from one turn of strangers to the next


class Reader(Protocol):
    """A connection with frames to read: the address of its caller, the turns that it has had."""

    address: str
    turns: int

    @property
    def is_known(self) -> bool:
        """Return whether a call of it had a valid token."""
        ...

    def read_frames(self) -> bool:
        """Read frames for one turn; return whether there are more to read at once."""
        ...


class Turns:
    """The connections that wait for a turn. One event loop; no locks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._known, self._new, self._strangers = _Line(), _Line(), _Line()
        self._is_due = False  # the next round
        self._is_paced = False  # the next turn of strangers
        self._paced_until = 0.0

    def add(self, reader: Reader) -> None:
        """Let a connection wait for its turn."""
        if reader.is_known or reader.turns < FIRST_TURNS:
            (self._known if reader.is_known else self._new).add(reader)
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._round)
        else:
            self._strangers.add(reader)
            self._pace()

    def remove(self, reader: Reader) -> None:
        """Forget a connection."""
        for line in (self._known, self._new, self._strangers):
            line.remove(reader)

    def _round(self) -> None:
        try:
            self._take(self._known, KNOWN_A_ROUND)
            self._take(self._new, NEW_A_ROUND)
        finally:  # also after a defect: else no connection would ever have a turn again
            self._is_due = bool(self._known or self._new)
            if self._is_due:
                self._loop.call_soon(self._round)

    def _pace(self) -> None:
        if not self._is_paced:
            self._is_paced = True
            left = max(self._paced_until - time.monotonic(), 0)
            self._loop.call_later(left, self._take_paced)

    def _take_paced(self) -> None:
        try:
            self._take(self._strangers, 1)
        finally:
            self._is_paced = False
            self._paced_until = time.monotonic() + PACE_SECONDS
            if self._strangers:
                self._pace()

    def _take(self, line: _Line, most: int) -> None:
        """Give turns to the first connections of a line, but not for long."""
        until = time.monotonic() + OF_KNOWN.seconds
        while line and most and time.monotonic() < until:
            most -= 1
            reader = line.next()
            if reader.read_frames():
                self.add(reader)


class _Line:
    """Connections of one kind: its length is how many addresses they have."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[Reader, None]] = {}  # by address, the next turn first

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, reader: Reader) -> None:
        """Let a connection wait behind the others of its address."""
        self._waiting.setdefault(reader.address, {})[reader] = None

    def remove(self, reader: Reader) -> None:
        """Forget a connection."""
        readers = self._waiting.get(reader.address, {})
        if readers.pop(reader, self) is None and not readers:
            del self._waiting[reader.address]

    def next(self) -> Reader:
        """Take the connection whose turn it is; its address goes to the end of the line."""
        address = next(iter(self._waiting))
        readers = self._waiting.pop(address)
        reader = next(iter(readers))
        del readers[reader]
        if readers:
            self._waiting[address] = readers
        return reader
