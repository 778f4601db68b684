"""One unit of work on a PostgreSQL store: what is locked, looked up, waits, is sent and undone.

Rows wait in this process and are sent in one round trip, with one statement for all rows of a
kind: at the commit, or before a statement that must see them. That is what makes a commit of many
calls cheap: a statement costs the database far more than a row.

The first append to an organization locks its head row until the commit. Objects, names and
positions are looked up in the same round trip, after the lock: they are then true until the
commit, because no other transaction writes to that organization. What is looked up was announced
before the batch began (``prefetch``); anything else costs a lookup of its own.

Invariants:

* The queue is in the order of the decisions. To undo a savepoint is to cut the queue to its length
  at the savepoint's beginning, and to take back what was noted since (``_note``).
* Once anything decided inside a savepoint is sent, the database has the savepoint, too, and
  everything decided before it was sent before. ``_held`` is then not None.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import StoreConflictError, StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.postgres_errors import first_cause, lost_while_committing
from reconciler.service.eventstore.postgres_statements import Batched, Waiting, batches
from reconciler.service.eventstore.rows import Head, Lookups, ObjectRow, first_head
from reconciler.service.eventstore.sql import Found, Values

SENT_AT_ONCE = 1024  # rows that wait at most
REFILL = 32  # positions that are taken at once where more are needed than announced
NOTHING = Lookups(frozenset(), frozenset(), frozenset(), 1)
USABLE = {TransactionStatus.INTRANS, TransactionStatus.INERROR}

K = TypeVar("K")
V = TypeVar("V")
NameKey = tuple[str, str, str]


def name_of(row: ObjectRow) -> NameKey:
    """Return parent, kind and folded name, which no two objects share."""
    return row.parent, row.kind, row.folded


class ChainEnd(NamedTuple):
    """An organization's head, and the position of its last event."""

    head: Head
    position: int


class UnitOfWork(Transaction):
    """A view of a store whose changes wait until they must be sent.

    Attributes:
        _stored: What the database has, without what waits.
        _locked: Heads that this transaction has locked, as they were then, by organization.
        _held: Those that were locked when the database got the savepoint; None while it has none.
        _has_all: Whether every head there was is locked.
        _is_empty: Whether no organization that is locked has any object in the database.
        _asked: The lookups that were announced.
        _found: Objects of the ids in ``_asked``, as of the last lock.
        _logged: Versions of their streams in the log, as of the last lock.
        _taken: Ids of the objects that had the names in ``_asked``, as of the last lock.
        _positions: Numbers that no other transaction has, for events to come.
    """

    def __init__(self, connection: Connection, place: str) -> None:
        super().__init__(self._run_up_to_date, statements.DIALECT)
        self._connection = connection
        self._place = place
        self._stored = statements.snapshot(connection)
        self._locked: dict[str, ChainEnd] = {}
        self._held: dict[str, ChainEnd] | None = None
        self._has_all = self._is_empty = False
        self._asked = NOTHING
        self._found: dict[str, ObjectRow] = {}
        self._logged: dict[str, int] = {}
        self._taken: dict[NameKey, str] = {}
        self._positions: deque[int] = deque()
        self._queue: list[tuple[Batched, Values]] = []
        self._notes: list[Callable[[], object]] = []  # each takes back one change in memory
        self._start: int | None = None  # length of the queue when the savepoint began

    def _lock(self, organization: str) -> ChainEnd:
        """Return the end of an organization's chain, which only this transaction can now move."""
        end = self._locked.get(organization) or self._lock_head(organization)
        # The INSERT makes the first head, or waits for the transaction that is making it. It goes
        # through ``_write``, because a savepoint must cover a row that is made.
        if end is None:
            self._write(statements.ADD_HEAD, first_head(organization))
            end = self._lock_head(organization)
        if end is None:
            raise AssertionError("a head that was added is there")
        return end

    def _lock_head(self, organization: str) -> ChainEnd | None:
        """Wait for a head and lock it, and look up what was announced; None if it is missing."""
        run, asked = self._connection.execute, self._asked
        # In READ COMMITTED each statement sees what was committed before it began. Those after the
        # lock begin once it is had, although they were sent with it.
        with self._connection.pipeline():
            head = run(statements.LOCK_HEAD, (organization,))
            objects = run(statements.OBJECTS, (list(asked.objects),))
            versions = run(statements.VERSIONS, (list(asked.objects),))
            names = run(statements.NAMES, (list(asked.objects), list(asked.names)))
            positions = run(statements.POSITIONS, (asked.events,))
        self._positions.extend(number for (number,) in positions)
        self._keep_found(objects)
        self._logged = {stream: version or 0 for stream, version in versions}
        self._taken = {(parent, kind, folded): held for parent, kind, folded, held in names}
        found = head.fetchone()
        if found is None:
            return None
        end = self._locked[organization] = _chain_end(found)
        return end

    def _keep_found(self, objects: Iterable[TupleRow]) -> None:
        self._found = {row.id: row for row in map(ObjectRow._make, objects)}

    def _lock_all(self) -> None:
        """Wait for every head there is, once. What is made after that is not part of it."""
        if not self._has_all:
            for row in self._connection.execute(statements.LOCK_HEADS, ()).fetchall():
                self._locked.setdefault(row[0], _chain_end(row))
            self._has_all = True
            self._forget_lookups()  # they were made before these locks

    def _forget_lookups(self) -> None:
        self._asked = NOTHING
        self._found.clear()
        self._logged.clear()
        self._taken.clear()

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
            found = self._connection.execute(statements.POSITIONS, (REFILL,))
            self._positions.extend(number for (number,) in found)

    def _run_up_to_date(self, statement: str, values: Sequence[object]) -> Found:
        """Run a statement that must see everything that was decided."""
        if self._queue:
            self._send()
        return statements.run(self._connection, statement, values)

    def _write(self, statement: str, values: Sequence[object]) -> psycopg.Cursor[TupleRow]:
        """Run a statement that changes or locks a row, so that a savepoint covers it."""
        self._send()
        return self._connection.execute(statement, values)

    def _note(self, table: dict[K, V], key: K, value: V) -> None:
        """Set a value until the savepoint is undone."""
        is_new = key not in table
        back = partial(table.pop, key) if is_new else partial(table.__setitem__, key, table[key])
        self._notes.append(back)
        table[key] = value

    def _note_clear(self, table: dict[K, V]) -> None:
        """Remove every value until the savepoint is undone."""
        self._notes.append(partial(table.update, table.copy()))
        table.clear()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        # Before the savepoint, so that the database need not have it for the sake of memory alone.
        if len(self._queue) >= SENT_AT_ONCE:
            self._send()
        self._notes.clear()
        self._start = len(self._queue)
        try:
            yield
            if self._held is not None:
                self._connection.execute("RELEASE SAVEPOINT one")
        except BaseException:
            self._undo(self._start)
            raise
        finally:
            self._start = self._held = None

    def _undo(self, start: int) -> None:
        if self._held is not None:
            self._has_all = self._is_empty = False
            self._forget_lookups()  # they may have seen rows that are undone now
        del self._queue[start:]
        while self._notes:
            self._notes.pop()()
        if self._held is not None and self._connection.info.transaction_status in USABLE:
            self._locked = self._held  # the database lets go of those since the savepoint
            self._connection.execute("ROLLBACK TO SAVEPOINT one")
            self._connection.execute("RELEASE SAVEPOINT one")

    def _send(self) -> None:
        """Send what waits; first what was decided before the savepoint, which then is made.

        Raises:
            StreamConflictError: what was decided since the savepoint does not hold.
            StoreConflictError: what was decided before it does not.
        """
        if self._start is not None and self._held is None:
            self._make_savepoint(self._queue[: self._start])
            del self._queue[: self._start]
            self._start = 0
        # Taken from the queue first: what fails is undone by the database, and never sent twice.
        waiting, self._queue = self._queue, []
        if waiting:
            no_savepoint = self._held is None
            with self._one_writer_wins(undoes_all=no_savepoint), self._connection.pipeline():
                self._hand_over(waiting)

    def _make_savepoint(self, before: Waiting) -> None:
        with self._one_writer_wins(undoes_all=True), self._connection.pipeline():
            self._hand_over(before)
            self._connection.execute("SAVEPOINT one")
        self._held = dict(self._locked)

    def _hand_over(self, waiting: Waiting) -> None:
        for statement, rows in batches(waiting):
            self._connection.execute(statement, (rows,))

    @contextmanager
    def _one_writer_wins(self, *, undoes_all: bool = False) -> Iterator[None]:
        """Raise a constraint that does not hold as the conflict that it is.

        Raises:
            StoreConflictError: it ``undoes_all``, as the database has no savepoint to go back to.
            StreamConflictError: otherwise.
        """
        try:
            yield
        except psycopg.Error as error:
            if isinstance(first_cause(error), psycopg.errors.UniqueViolation):
                raise (self._lost_a_race() if undoes_all else StreamConflictError) from error
            raise

    def finish(self) -> None:
        """Send what waits, and commit, in one round trip.

        Raises:
            StreamConflictError: another writer had the same idea first.
            StoreConflictError: the database undid it all.
            StoreUnreachableError: the answer is missing; the commit may have been carried out.
        """
        crashpoint("S7")
        try:
            with self._one_writer_wins(), self._connection.pipeline():
                self._hand_over(self._queue)
                committed = self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            # COMMIT was sent with the rows, so whether it arrived is not known.
            if self._connection.closed:
                raise lost_while_committing(self._place) from error
            raise
        # In a transaction that failed, COMMIT is answered with ROLLBACK, and not with an error.
        if committed.statusmessage != "COMMIT":
            raise self._lost_a_race()

    def _lost_a_race(self) -> StoreConflictError:
        return StoreConflictError(
            f"other writers got in the way at {self._place}",
            "Run the command again. Nothing was written.",
        )


def _chain_end(row: TupleRow) -> ChainEnd:
    """Return a head and the position of its last event, from the columns of ``LOCK_HEAD``."""
    *head, position = row
    return ChainEnd(Head._make(head), position)
