"""Seals and owed secrets of a PostgreSQL store, inside a transaction that the caller begins.

Two writers may end the custody of two secrets of one seal at the same time. The row lock on the
seal orders them: the second one reads which secrets are still owed after the first committed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.service.eventstore import postgres_schema as schema
from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.postgres_queue import PostgresQueue
from reconciler.service.eventstore.rows import OwedRow, SealRow


class PostgresCustody(PostgresQueue):
    """Reads and writes of sealed secrets."""

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal, which no other transaction can change from then on."""
        self._settle()
        found = self._run(tables.LOCK_SEAL, (seal_id,)).fetchone()
        return SealRow._make(found) if found else None

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe."""
        self._settle()
        return super().owed(ids)

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        self._settle()
        return super().owed_page(organization, after=after, limit=limit)

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds."""
        self._settle()
        return super().owed_in(seal_id)

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._pending.seals.append((tables.PUT_SEAL, seal))

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        self._pending.seals.append((tables.REMOVE_SEAL, (seal_id,)))

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._pending.owed.append((tables.PUT_OWED, row))

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        self._pending.owed.append((tables.REMOVE_OWED, (row.id, row.made_at)))

    def _expire_owed(self, now: int) -> None:
        """Drop the seals of secrets that were owed for too long; their rows stay without them."""
        self._run(tables.EXPIRE_OWED_SEALS, (now,))
        self._run(tables.EXPIRE_OWED, (now,))

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one."""
        self._settle()
        return schema.upgrade(self._connection)
