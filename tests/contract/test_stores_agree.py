"""Chance against the store that waits before it writes: it behaves as the one that does not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any

import pytest

from reconciler.service.eventstore.errors import ConflictError, StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.rows import (
    NO_LOOKUPS,
    Author,
    LeaseRow,
    Lookups,
    NewEvent,
    ObjectQuery,
    ObjectRow,
    Record,
    SealRow,
    StreamAt,
)
from reconciler.service.eventstore.sql import Snapshot
from tests.examples import NOON
from tests.memory_store import MemoryEventStore
from tests.postgres_server import PostgresServer

OWNERS = ("acme", "globex", "initech")
NAMES = ("a", "b", "c", "d")
US = Author("us", "")
STEPS = 40
TRANSACTIONS = 5
ASKED = Lookups(
    frozenset(OWNERS[:1]),
    frozenset(("us", name) for name in NAMES[:3]),
    frozenset(OWNERS[:2]),
    frozenset((owner, name) for owner in (*OWNERS[:2], "") for name in NAMES[:3]),
    3,
)


Act = Callable[[Transaction], Any]


class GivenUpError(Exception):
    """Leaves a block so that what it did is undone."""


class Actor:
    """Does the same to every store, as chance has it."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._made = 0

    def plan(self) -> list[Act]:
        """Return what one transaction does."""
        return [self._step() for _ in range(self._chance.randint(1, STEPS))]

    def gives_up(self) -> bool:
        return self._chance.random() < 0.2

    def _step(self) -> Act:
        chance = self._chance
        if chance.random() < 0.3:
            acts = [self._act() for _ in range(chance.randint(1, 6))]
            is_undone = chance.random() < 0.5
            return lambda tx: _in_a_savepoint(tx, acts, is_undone=is_undone)
        return _guarded(self._act())

    def _act(self) -> Act:
        kind = self._chance.choice(
            [self._create] * 4 + [self._change] * 3 + [self._remove] + [self._read] * 2
            + [self._record, self._lease, self._seal]
        )  # fmt: skip
        return kind()

    def _create(self) -> Act:
        self._made += 1
        object_id, owner = f"i{self._made:05}", self._chance.choice(OWNERS)
        name = self._chance.choice(NAMES)

        def act(tx: Transaction) -> Any:
            (stored,) = tx.append(StreamAt(owner, object_id, 0), (NewEvent("t", name),), US)
            tx.put(_row(object_id, owner, name, 1, stored.sequence))
            return stored.hash

        return act

    def _change(self) -> Act:
        object_id, name = f"i{self._chance.randint(1, self._made + 1):05}", self._pick()
        is_stale = self._chance.random() < 0.1

        def act(tx: Transaction) -> Any:
            row = tx.get_object(object_id)
            if row is None:
                return None
            version = row.version - 1 if is_stale and row.version > 1 else row.version
            stream = StreamAt(row.organization, object_id, version)
            first, second = tx.append(stream, (NewEvent("c", name), NewEvent("c", "")), US)
            changed = row._replace(name=name, folded=name, version=second.version)
            tx.put(changed._replace(sequence=second.sequence))
            return first.hash, second.previous

        return act

    def _remove(self) -> Act:
        object_id = f"i{self._chance.randint(1, self._made + 1):05}"

        def act(tx: Transaction) -> Any:
            row = tx.get_object(object_id)
            if row is not None:
                tx.append(
                    StreamAt(row.organization, object_id, row.version), (NewEvent("r", ""),), US
                )
                tx.remove(row)
            return row

        return act

    def _read(self) -> Act:
        owner, name = self._chance.choice(OWNERS), self._pick()
        object_id = f"i{self._chance.randint(1, self._made + 1):05}"
        reads: list[Act] = [
            lambda tx: tx.find_object("Action", owner, name),
            lambda tx: tx.head(owner),
            lambda tx: list(tx.heads()),
            lambda tx: [event.version for event in tx.read_stream(object_id)],
            lambda tx: list(tx.objects_page(owner)),
            lambda tx: tx.list_objects(ObjectQuery("Action", owner, by_name=True))[0],
            lambda tx: list(tx.all_objects()),
            lambda tx: [(event.organization, event.sequence) for event in tx.read_all()],
        ]
        return self._chance.choice(reads)

    def _record(self) -> Act:
        key, expires = self._pick(), NOON + self._chance.randint(0, 9)

        def act(tx: Transaction) -> Any:
            known = tx.record("us", key)
            tx.put(Record("us", key, b"d", name_of(known), None, 0, expires))
            return known, tx.record("us", key)

        return act

    def _lease(self) -> Act:
        name = self._pick()

        def act(tx: Transaction) -> Any:
            held = tx.lease(name)
            fence = held.fence + 1 if held else 1
            tx.put(LeaseRow(name, "t", "me", fence, NOON, NOON + 9))
            return tx.lease(name)

        return act

    def _seal(self) -> Act:
        name = self._pick()

        def act(tx: Transaction) -> Any:
            if tx.seal(name) is None:
                tx.put(SealRow(name, b"sealed", NOON))
            return tx.seal(name)

        return act

    def _pick(self) -> str:
        return self._chance.choice(NAMES)


def name_of(record: Record | None) -> str:
    return f"{record.answer}+" if record else "first"


def _row(object_id: str, owner: str, name: str, version: int, sequence: int) -> ObjectRow:
    return ObjectRow(
        object_id, "Action", owner, owner, name, name, "{}", f"{object_id}@{owner}", "", version,
        sequence, sequence, "us", "", "{}",
    )  # fmt: skip


def _guarded(act: Act) -> Act:
    """Do something as the engine does: in a savepoint, where a conflict undoes just that."""

    def guarded(tx: Transaction) -> Any:
        try:
            with tx.savepoint():
                return act(tx)
        except ConflictError as conflict:
            return type(conflict).__name__

    return guarded


def _in_a_savepoint(tx: Transaction, acts: Sequence[Act], *, is_undone: bool) -> list[Any]:
    """Do several things in one savepoint."""
    told: list[Any] = []
    with suppress(GivenUpError, ConflictError), tx.savepoint():
        told.extend(act(tx) for act in acts)
        if is_undone:
            raise GivenUpError
    return told


def everything(view: Snapshot) -> list[Any]:
    return [
        [event[1:] for event in view.read_all(limit=10_000)],
        view.heads(),
        view.all_objects(),
        [view.record("us", name) for name in NAMES],
        [view.lease(name) for name in NAMES],
        [view.seal(name) for name in NAMES],
    ]


def story(store: MemoryEventStore | PostgresEventStore, seed: int) -> list[Any]:
    """Return what a store answers to all of it, and what it holds in the end."""
    actor = Actor(seed)
    foresees = random.Random(seed)
    told: list[Any] = []
    for _ in range(TRANSACTIONS):
        steps, gives_up = actor.plan(), actor.gives_up()
        asked = ASKED if foresees.random() < 0.5 else NO_LOOKUPS
        with suppress(GivenUpError), store.transaction(asked) as tx:
            told += [step(tx) for step in steps]
            if gives_up:
                raise GivenUpError
        with store.snapshot() as view:
            told.append(everything(view))
    return told


@pytest.mark.parametrize("seed", range(15))
def test_whatever_chance_does_both_stores_tell_the_same_story(
    postgres: PostgresServer, seed: int
) -> None:
    """Answers, conflicts, undone blocks and what is held in the end are equal."""
    with closing(MemoryEventStore(lambda: NOON)) as memory:
        expected = story(memory, seed)
    with (
        postgres.empty_store() as address,
        closing(PostgresEventStore(address, lambda: NOON)) as store,
    ):
        assert story(store, seed) == expected


def test_chance_meets_conflicts() -> None:
    """The story above is not one of success alone."""
    with closing(MemoryEventStore(lambda: NOON)) as memory:
        told = [entry for seed in range(40) for entry in story(memory, seed)]

    assert told.count("NameTakenError") > 20
    assert told.count(StreamConflictError.__name__) > 5
