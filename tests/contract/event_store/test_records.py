"""Records, seals, leases, tokens and what is owed."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import (
    LeaseRow,
    Record,
    SealRow,
    TokenRow,
)
from tests.contract.event_store.stores import UndoError, an_owed, and_fail, owe_another_instead
from tests.examples import NOON


def test_records_and_seals_go_when_their_time_comes(store: EventStore) -> None:
    """A seal stays as long as a record needs it."""
    with store.transaction() as tx:
        tx.put(Record("us", "old", b"1", "{}", "s1", 0, NOON))
        tx.put(Record("us", "new", b"2", "{}", "s2", 0, NOON + 1))
        tx.put(Record("them", "old", b"3", "{}", None, 0, NOON + 1))
        for name in ("s1", "s2"):
            tx.put(SealRow(name, b"sealed", NOON))
        tx.expire(NOON)

        kept = [tx.record(*key) for key in (("us", "old"), ("us", "new"), ("them", "old"))]
        assert [record.digest if record else None for record in kept] == [None, b"2", b"3"]
        assert [tx.seal(name) is None for name in ("s1", "s2")] == [True, False]


def test_a_record_whose_time_has_come_is_written_over(store: EventStore) -> None:
    """The same key may be used again a day later."""
    with store.transaction() as tx:
        for answer in ("1", "2"):
            tx.put(Record("us", "key", b"", answer, None, 0, NOON))
        found = tx.record("us", "key")

    assert found is not None
    assert found.answer == "2"


def test_leases_and_tokens_come_back_as_they_were_put(store: EventStore) -> None:
    """Each has one row, under its name."""
    lease = LeaseRow("acme", "t", "me", 2, NOON, NOON + 9)
    token = TokenRow("ci", "editor", '["1"]', b"hash", NOON, 0, NOON)

    with store.transaction() as tx:
        tx.put(lease._replace(fence=1))
        tx.put(lease)
        tx.put(token._replace(revoked_at=0))
        tx.put(token)
        tx.put(token._replace(name="bot", sha256=b"other"))

    with store.snapshot() as view:
        assert view.lease("acme") == lease
        assert view.lease("globex") is None
        assert [row.name for row in view.tokens()] == ["bot", "ci"]
        assert view.token(b"hash") == token
        assert view.token(b"no") is None


def test_owed_secrets_are_found_by_application_organization_and_seal(store: EventStore) -> None:
    """Inside the transaction as after it."""
    rows = [an_owed("1"), an_owed("2", "t"), an_owed("3"), an_owed("4", organization="globex")]
    with store.transaction() as tx:
        for row in rows:
            tx.put(row)
        inside = (sorted(tx.owed(["2", "4", "9"])), tx.owed_page("acme"), sorted(tx.owed_in("s")))

    with store.snapshot() as view:
        assert inside == (
            [rows[1], rows[3]], [rows[0], rows[1], rows[2]], [rows[0], rows[2], rows[3]],
        )  # fmt: skip
        assert sorted(view.owed(["2", "4", "9"])) == inside[0]
        assert sorted(view.owed_in("s")) == inside[2]
        assert view.owed_page("acme", after="1", limit=1) == [rows[1]]
        assert view.owed([]) == []


def test_a_newer_secret_is_owed_in_the_place_of_the_first(store: EventStore) -> None:
    """What is removed is the one that was meant, and no newer one."""
    first, newer = an_owed(), an_owed(made_at=NOON + 1)
    with store.transaction() as tx:
        tx.put(first)
        tx.put(newer)
        tx.remove(first)
    with store.snapshot() as view:
        assert view.owed(["1"]) == [newer]

    with store.transaction() as tx:
        tx.remove(newer)
        assert tx.owed(["1"]) == []
        tx.put(first)
    with store.snapshot() as view:
        assert view.owed(["1"]) == [first]


def test_what_is_owed_is_undone_with_its_savepoint(store: EventStore) -> None:
    """A refused call leaves no trace, and takes nothing of the others away."""
    with store.transaction() as tx:
        tx.put(an_owed("1"))
        tx.put(SealRow("s", b"sealed", NOON + 9))
        with pytest.raises(UndoError), tx.savepoint():
            and_fail(owe_another_instead, tx)
        with tx.savepoint():
            tx.put(an_owed("3"))

    with store.snapshot() as view:
        assert [row.id for row in view.owed_page("acme")] == ["1", "3"]
        assert view.seal("s") is not None


def test_a_seal_is_replaced_and_removed(store: EventStore) -> None:
    """Each time for good."""
    with store.transaction() as tx:
        tx.put(SealRow("s", b"three", NOON + 9))
    with store.transaction() as tx:
        tx.put(SealRow("s", b"two", NOON + 9))
        assert tx.seal("s") == SealRow("s", b"two", NOON + 9)
    with store.transaction() as tx:
        tx.remove(SealRow("s", b"", 0))
        tx.remove(SealRow("none", b"", 0))
    with store.snapshot() as view:
        assert view.seal("s") is None


def test_owed_secrets_lose_their_seal_when_their_time_comes(store: EventStore) -> None:
    """Although a record needs it, too; the rows stay, and others keep their seal."""
    kept = an_owed("2", "t", expires_at=NOON + 10)
    with store.transaction() as tx:
        tx.put(an_owed("1"))
        tx.put(kept)
        tx.put(Record("us", "key", b"digest", "{}", "s", 0, NOON + 99))
        for name in ("s", "t"):
            tx.put(SealRow(name, b"sealed", NOON + 10))
    with store.transaction() as tx:
        tx.expire(NOON + 9)

    with store.snapshot() as view:
        assert view.owed_page("acme") == [an_owed("1", seal=None), kept]
        assert (view.seal("s"), view.seal("t")) == (None, SealRow("t", b"sealed", NOON + 10))
