"""The head rows that a transaction holds, and what may be relied on because of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.chain import first_head
from reconciler.service.eventstore.postgres_pending import Tip
from reconciler.service.eventstore.postgres_rows import Connection
from reconciler.service.eventstore.rows import Foresight, Head, ObjectRow

REFILL = 32
NOTHING = Foresight(frozenset(), frozenset(), frozenset(), 1)

NameKey = tuple[str, str, str]


def name_of(row: ObjectRow) -> NameKey:
    """Return what no two objects share."""
    return row.parent, row.kind, row.folded


class Locked(NamedTuple):
    """A head row that this transaction has locked.

    Attributes:
        tip: As it was when it was locked.
        taken: Who has those names of the organization that were looked up then.
        looked_up: Parents and names that were; None where all were.
    """

    tip: Tip
    taken: Mapping[NameKey, str]
    looked_up: Foresight | None


class Locks:
    """Locks head rows, and hands out positions, which grow within each organization.

    Positions come from one sequence of the database, without waiting for anybody. One is taken
    for an organization only while its head is locked, and only if it is past the last one
    there. So the order of an organization's positions is that of its commits, also where a
    database hands out numbers of a sequence in blocks, to each connection its own.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked = NOTHING
        self._positions: deque[int] = deque()
        self._has_all = False
        self.held: dict[str, Locked] = {}

    def foresee(self, asked: Foresight) -> None:
        """Look these names up as soon as an organization is locked, and not one by one."""
        self._asked = asked

    def lock(self, organization: str) -> Tip | None:
        """Wait for an organization's head and lock it; None if it has no head yet."""
        known = self.held.get(organization)
        if known is not None:
            return known.tip
        run = self._connection.execute
        asked = self._asked
        with self._connection.pipeline():
            head = run(tables.LOCK_HEAD, (organization,))
            names = run(tables.NAMES, (list(asked.parents), list(asked.names)))
            positions = run(tables.POSITIONS, (asked.events,))
        self._positions.extend(number for (number,) in positions)
        found = head.fetchone()
        if found is None:
            return None
        taken = {(parent, kind, folded): object_id for parent, kind, folded, object_id in names}
        tip = Tip(Head._make(found[:4]), found[4])
        self.held[organization] = Locked(tip, taken, asked)
        return tip

    def lock_new(self, organization: str) -> Tip:
        """Make an organization's first head and lock it, or wait for the writer making it."""
        self._connection.execute(tables.ADD_HEAD, first_head(organization))
        tip = self.lock(organization)
        if tip is None:
            raise AssertionError("a head that was added is there")
        return tip

    def lock_all(self) -> None:
        """Wait for every head there is, once. What is made after that is not part of it."""
        if self._has_all:
            return
        self._has_all = True
        found = self._connection.execute(tables.LOCK_HEADS).fetchall()
        for row in found:
            self.held.setdefault(row[0], Locked(Tip(Head._make(row[:4]), row[4]), {}, NOTHING))

    def let_go(self, held: dict[str, Locked]) -> None:
        """Take note that only these are held any more."""
        self.held = held
        self._has_all = False

    def emptied(self) -> None:
        """Take note that no organization that is held has any name in use."""
        self.held = {
            name: locked._replace(taken={}, looked_up=None) for name, locked in self.held.items()
        }

    def holder(self, organization: str, name: NameKey) -> str | None:
        """Return the id of the object that had a name of a locked organization."""
        locked = self.held[organization]
        parent, kind, folded = name
        looked_up = locked.looked_up
        if looked_up is None or (parent in looked_up.parents and folded in looked_up.names):
            return locked.taken.get(name)
        found = self._connection.execute(tables.NAME, (parent, kind, folded)).fetchone()
        return str(found[0]) if found else None

    def next_position(self, last: int) -> int:
        """Return a position past one that no other transaction has."""
        while True:
            while self._positions:
                position = self._positions.popleft()
                if position > last:
                    return position
            found = self._connection.execute(tables.POSITIONS, (REFILL,))
            self._positions.extend(number for (number,) in found)
