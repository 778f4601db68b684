"""Rows as one transaction knows them: found in the database, or changed and not sent there yet.

A savepoint is a layer over the rest: to undo it is to drop the layer, to keep it is to merge it.
What is found goes to the lower layer, unless the database has the savepoint too: it then gives up
the locks under which rows were found.

Nothing here knows a database. A row of None means that no row has its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

Key = tuple[str, ...]
"""Name of a table, and the key of a row in it."""
Rows = dict[Key, Any]
UNKNOWN: Any = object()
"""Stands for a row that was not looked up."""


class Waiting(NamedTuple):
    """A row that waits to be sent: as it is now, and as the database has it."""

    key: Key
    row: Any
    found: Any


class Changes:
    """The rows that a transaction knows.

    Attributes:
        is_held: Whether the database has the savepoint that is open.
    """

    def __init__(self) -> None:
        # The first of each is that of the transaction, a second one that of the savepoint.
        self._found: list[Rows] = [{}]
        self._left: list[Rows] = [{}]
        self.is_held = False
        self._stack()

    def _stack(self) -> None:
        """Put the layers in the order in which a row is looked for in them."""
        self._where_found = self._found[::-1]
        self._where_any = self._left[::-1] + self._where_found

    def get(self, key: Key) -> Any:
        """Return a row as it is now; None if it is known to be missing, or ``UNKNOWN``."""
        for rows in self._where_any:
            if key in rows:
                return rows[key]
        return UNKNOWN

    def as_found(self, key: Key) -> Any:
        """Return a row as the database has it; None if it is missing there, or ``UNKNOWN``."""
        for rows in self._where_found:
            if key in rows:
                return rows[key]
        return UNKNOWN

    def learn(self, key: Key, row: Any) -> None:
        """Note a row as the database has it."""
        self._found[-1 if self.is_held else 0][key] = row

    def leave(self, key: Key, row: Any) -> None:
        """Change a row, or remove it: None."""
        self._left[-1][key] = row

    def is_left(self, key: Key) -> bool:
        """Return whether a row was changed and not sent since."""
        return any(key in rows for rows in self._left)

    def forget(self, *tables: str) -> None:
        """Forget rows of tables as they were found, less those that were changed since."""
        for rows in self._found:
            for key in [key for key in rows if key[0] in tables and not self.is_left(key)]:
                del rows[key]

    def forget_one(self, key: Key) -> None:
        """Forget a row as it was found."""
        for rows in self._found:
            rows.pop(key, None)

    def there_are(self, table: str) -> list[Key]:
        """Return the keys of the rows of a table that are known, and not missing."""
        known = {key for rows in (*self._found, *self._left) for key in rows if key[0] == table}
        return [key for key in known if self.get(key) is not None]

    @property
    def is_open(self) -> bool:
        """Return whether a savepoint has begun and not ended."""
        return len(self._left) > 1

    def begin(self) -> None:
        """Begin a savepoint. There is one at a time."""
        self._found.append({})
        self._left.append({})
        self._stack()

    def keep(self) -> None:
        """End the savepoint."""
        for layers in (self._found, self._left):
            upper = layers.pop()
            layers[0].update(upper)
        self.is_held = False
        self._stack()

    def undo(self) -> None:
        """End the savepoint as if it had never begun."""
        del self._found[1:], self._left[1:]
        self.is_held = False
        self._stack()

    def count(self) -> int:
        """Return how many rows wait."""
        return sum(map(len, self._left))

    def has_block(self) -> bool:
        """Return whether the savepoint has rows that wait."""
        return self.is_open and bool(self._left[1])

    def take(self, *, block: bool = False, but: str = "") -> Iterable[Waiting]:
        """Return what waits outside the savepoint, or in it; from now on the database has it.

        Rows of the table ``but`` go on waiting.
        """
        layer = 1 if block else 0
        left = self._left[layer]
        kept = {key: left.pop(key) for key in list(left) if key[0] == but}
        waiting = [Waiting(key, row, self.as_found(key)) for key, row in left.items()]
        self._found[layer].update(left)
        left.clear()
        left.update(kept)
        return waiting
