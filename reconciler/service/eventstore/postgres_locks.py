"""Locks of head rows, and what a transaction may rely on because it has them.

The first append to an organization locks its head row until the commit. Objects, names and
positions are looked up in the same round trip, after the lock: they are then true until the
commit, because no other transaction writes to that organization. What is looked up was announced
before the batch began (``prefetch``); anything else costs a lookup of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from psycopg.rows import TupleRow

from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.postgres_unit import Tip, UnitOfWork
from reconciler.service.eventstore.rows import Head, Lookups, ObjectRow, first_head

REFILL = 32  # positions that are taken at once where more are needed than announced
NOTHING = Lookups(frozenset(), frozenset(), frozenset(), 1)

NameKey = tuple[str, str, str]


def name_of(row: ObjectRow) -> NameKey:
    """Return parent, kind and folded name, which no two objects share."""
    return row.parent, row.kind, row.folded


class LockingUnit(UnitOfWork):
    """A unit of work that locks the organizations it writes to.

    Attributes:
        _asked: The lookups that were announced.
        _found: Objects of the ids in ``_asked``, as of the last lock.
        _logged: Versions of their streams in the log, as of the last lock.
        _taken: Ids of the objects that had the names in ``_asked``, as of the last lock.
        _positions: Numbers that no other transaction has, for events to come.
        _has_all: Whether every head there was is locked.
        _is_empty: Whether no organization that is locked has any object in the database.
    """

    def __init__(self, connection: Connection, place: str) -> None:
        super().__init__(connection, place)
        self._asked = NOTHING
        self._found: dict[str, ObjectRow] = {}
        self._logged: dict[str, int] = {}
        self._taken: dict[NameKey, str] = {}
        self._positions: deque[int] = deque()
        self._has_all = self._is_empty = False

    def _lock(self, organization: str) -> Tip:
        """Return the end of an organization's chain, which only this transaction can now move."""
        tip = self._locked.get(organization) or self._lock_head(organization)
        # The INSERT makes the first head, or waits for the transaction that is making it. It goes
        # through ``_write``, because a savepoint must cover a row that is made.
        if tip is None:
            self._write(tables.ADD_HEAD, first_head(organization))
            tip = self._lock_head(organization)
        if tip is None:
            raise AssertionError("a head that was added is there")
        return tip

    def _lock_head(self, organization: str) -> Tip | None:
        """Wait for a head and lock it, and look up what was announced; None if it is missing."""
        run, asked = self._connection.execute, self._asked
        # In READ COMMITTED each statement sees what was committed before it began. Those after the
        # lock begin once it is had, although they were sent with it.
        with self._connection.pipeline():
            head = run(tables.LOCK_HEAD, (organization,))
            objects = run(tables.OBJECTS, (list(asked.objects),))
            versions = run(tables.VERSIONS, (list(asked.objects),))
            names = run(tables.NAMES, (list(asked.objects), list(asked.names)))
            positions = run(tables.POSITIONS, (asked.events,))
        self._positions.extend(number for (number,) in positions)
        self._keep_found(objects)
        self._logged = {stream: version or 0 for stream, version in versions}
        self._taken = {(parent, kind, folded): held for parent, kind, folded, held in names}
        found = head.fetchone()
        if found is None:
            return None
        tip = self._locked[organization] = _tip(found)
        return tip

    def _keep_found(self, objects: Iterable[TupleRow]) -> None:
        self._found = {row.id: row for row in map(ObjectRow._make, objects)}

    def _lock_all(self) -> None:
        """Wait for every head there is, once. What is made after that is not part of it."""
        if not self._has_all:
            for row in self._connection.execute(tables.LOCK_HEADS, ()).fetchall():
                self._locked.setdefault(row[0], _tip(row))
            self._has_all = True
            self._forget_lookups()  # they were made before these locks

    def _forget_lookups(self) -> None:
        self._asked = NOTHING
        self._found.clear()
        self._logged.clear()
        self._taken.clear()

    def _undo(self, start: int) -> None:
        if self._held is not None:
            self._has_all = self._is_empty = False
            self._forget_lookups()  # they may have seen rows that are undone now
        super()._undo(start)

    def _stored_holder(self, name: NameKey) -> str | None:
        """Return the id of the object that has a name of a locked organization in the database."""
        parent, kind, folded = name
        if self._is_empty:
            return None
        if parent in self._asked.objects and folded in self._asked.names:
            return self._taken.get(name)
        found = self._stored.find_object(kind, parent, folded)
        return found.id if found else None

    def _next_position(self, last: int) -> int:
        """Return a position past one that no other transaction has.

        Positions come from a sequence of the database, without waiting for other writers. One is
        used for an organization only while its head is locked, and only if it is past the last one
        there. So the order of an organization's positions is that of its commits, also where a
        database hands out numbers of a sequence in blocks, to each connection its own.
        """
        while True:
            while self._positions:
                position = self._positions.popleft()
                if position > last:
                    return position
            found = self._connection.execute(tables.POSITIONS, (REFILL,))
            self._positions.extend(number for (number,) in found)


def _tip(row: TupleRow) -> Tip:
    """Return a head and the position of its last event, from the columns of ``LOCK_HEAD``."""
    *head, position = row
    return Tip(Head._make(head), position)
