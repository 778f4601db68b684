"""Rules and short tokens in each store: what ends with what, and what only one writer can have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import ConflictError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.rows import PassRow, TrustRow
from reconciler.service.operations.callers import Caller, Role, caller_of_hash
from tests.examples import NOON, Clock
from tests.postgres_server import PostgresServer

HASH = bytes(range(32))
RULE = TrustRow(
    "apply", "7", "issuer", "editor", '["1"]', "https://a.example", '{"sub":["x"]}', "", "", "", 1,
    NOON, "admin", 0,
)  # fmt: skip
MINUTES = 60_000_000
SHORT = PassRow(
    HASH, "apply", "7", "viewer", "run:1", "{}", "digest", NOON + 2 * MINUTES, NOON + 9 * MINUTES
)


def test_a_rule_and_its_token_are_found(store: EventStore) -> None:
    with store.transaction() as tx:
        tx.put(RULE)
        tx.put(SHORT)

    with store.snapshot() as view:
        assert view.trusts() == [RULE]
        assert view.trust("apply") == RULE
        assert view.trusts_of("https://a.example") == [RULE]
        assert view.trusts_of("https://a.example/") == []
        assert view.short_token(HASH) == SHORT
        assert view.is_used("digest")
        assert not view.is_used("other")
        caller = caller_of_hash(view, HASH, NOON)
    assert caller == Caller("trust:apply", Role.VIEWER, frozenset({"1"}), HASH, "run:1", "{}")


def refused(store: EventStore, now: int = NOON) -> tuple[str, str]:
    """Return the message and the reason with which the short token is refused."""
    with store.snapshot() as view, pytest.raises(Refusal) as caught:
        caller_of_hash(view, HASH, now)
    return caught.value.message, caught.value.reason


def test_a_token_ends_with_its_rule(store: EventStore) -> None:
    """Also where another one has the name of its rule."""
    with store.transaction() as tx:
        tx.put(RULE)
        tx.put(SHORT)
    with store.transaction() as tx:
        tx.remove(RULE)

    for rule in (None, RULE._replace(id="8")):
        with store.transaction() as tx:
            if rule:
                tx.put(rule)
        assert refused(store) == ("the rule of this token was removed", "token.revoked")


def test_a_token_ends_in_time_and_is_remembered_as_used(store: EventStore) -> None:
    """Its row stays until the signed token would not be accepted any more."""
    with store.transaction() as tx:
        tx.put(RULE)
        tx.put(SHORT)
    ended = ("the token has expired", "token.expired")
    unknown = ("the token is not known to this service", "token.invalid")
    for minute, told in ((2, ended), (5, ended), (9, unknown)):
        time = NOON + minute * MINUTES
        with store.transaction() as tx:
            tx.expire(time)
        assert refused(store, time) == told
        with store.snapshot() as view:
            assert view.is_used("digest") is (told == ended)


def test_callers_of_rules_are_found_together(store: EventStore) -> None:
    """Whoever sends many tokens must not make a commit of others wait for as many looks."""
    hashes = [bytes([number]) * 32 for number in range(20)]
    known = {sha256: SHORT._replace(sha256=sha256, used=sha256.hex()) for sha256 in hashes[:10]}
    with store.transaction() as tx:
        tx.put(RULE)
        for short in known.values():
            tx.put(short)
    ran: list[str] = []

    with store.transaction() as tx:
        run: Any = getattr(tx, "run", None)
        if run is not None:  # a store in memory runs no statements

            def noted(statement: str, values: Sequence[object]) -> Any:
                ran.append(statement)
                return run(statement, values)

            tx.run = noted
        tx.hold_tokens(hashes)
        callers = [caller_of_hash(tx, sha256, NOON) for sha256 in known]
        for sha256 in hashes[10:]:
            with pytest.raises(Refusal):
                caller_of_hash(tx, sha256, NOON)

    assert [caller.token for caller in callers] == list(known)
    assert len(ran) <= 3


def test_two_servers_cannot_use_a_token_at_the_same_time(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Neither sees the row of the other; the constraint decides."""
    clock = Clock(NOON)
    with (
        postgres.empty_store() as address,
        closing(PostgresEventStore(address, clock)) as first,
        closing(PostgresEventStore(address, clock)) as second,
    ):
        with first.transaction() as tx:
            tx.put(RULE)

        def too_late() -> None:
            with second.transaction() as later:
                assert not later.is_used("digest")
                with first.transaction() as tx:
                    tx.put(SHORT)
                later.put(SHORT._replace(sha256=HASH[::-1]))

        with pytest.raises(ConflictError):
            too_late()

        with second.transaction() as tx:
            assert tx.is_used("digest")
            assert tx.short_token(HASH[::-1]) is None
