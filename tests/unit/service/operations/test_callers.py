"""Bearer tokens: how they look, what is kept of them, and who each one is."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from hashlib import sha256

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.domain.trust import ISSUER, MACHINE
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import PassRow, TokenRow, TrustRow
from reconciler.service.operations.callers import (
    Caller,
    Role,
    all_tokens,
    caller_of,
    end_of_token,
    least_role,
    make_token,
    new_token,
    revoke_token,
    writer_name,
)
from reconciler.service.operations.dispatch import Incoming
from tests.memory_store import open_memory
from tests.rows import each_row

NOW = 1_800_000_000_000_000
ROW = TokenRow("ci", "editor", '["7","8"]', b"", NOW, NOW + 10, 0)


@pytest.fixture
def store() -> EventStore:
    """Return a store without tokens."""
    return open_memory().store


def some_bytes(count: int) -> bytes:
    return bytes(range(count))


def other_bytes(count: int) -> bytes:
    return bytes(range(100, 100 + count))


def who(store: EventStore, token: str, now: int = NOW) -> Caller | Refusal:
    """Return who a token is, less its hash, or the refusal."""
    with store.snapshot() as view:
        try:
            caller = caller_of(view, token, now)
            assert caller.token == sha256(token.encode()).digest()
            return replace(caller, token=b"")
        except Refusal as refusal:
            return refusal


def made(store: EventStore, row: TokenRow = ROW) -> str:
    """Make a token."""
    token = make_token(store, row, some_bytes)
    assert token is not None
    return token.reveal()


@pytest.mark.parametrize(
    ("permission", "role"),
    [
        ("", Role.VIEWER),
        ("org.read", Role.VIEWER),
        ("project.create", Role.EDITOR),
        ("org.create", Role.ADMIN),
    ],
)
def test_who_may_not_is_told_the_first_role_that_may(permission: str, role: Role) -> None:
    """Roles are in order, from the one that may do least."""
    assert least_role(permission) is role


def test_a_token_can_be_recognised_and_checked() -> None:
    """Scanners know it by its prefix, and by its checksum that it is no chance find."""
    token = new_token(some_bytes).reveal()

    assert re.fullmatch(r"rct_[A-Za-z0-9_-]{43}[0-9a-f]{8}", token)
    assert token[4:47] == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    assert int(token[47:], 16) == zlib.crc32(token[:47].encode())


def test_only_the_hash_of_a_token_is_kept(store: EventStore) -> None:
    """Who reads the store can sign in as nobody."""
    token = made(store)

    assert all_tokens(store) == [ROW._replace(sha256=sha256(token.encode()).digest())]


@pytest.mark.parametrize(
    ("row", "caller"),
    [
        (ROW, Caller("ci", Role.EDITOR, frozenset({"7", "8"}))),
        (ROW._replace(organizations="", role="admin"), Caller("ci", Role.ADMIN, None)),
        (ROW._replace(organizations="[]", role="viewer"), Caller("ci", Role.VIEWER, frozenset())),
        (ROW._replace(expires_at=NOW + 1), Caller("ci", Role.EDITOR, frozenset({"7", "8"}))),
        (ROW._replace(expires_at=0), Caller("ci", Role.EDITOR, frozenset({"7", "8"}))),
    ],
)
def test_a_token_is_who_it_was_made_for(store: EventStore, row: TokenRow, caller: Caller) -> None:
    """Its role, and its organizations: none at all is not the same as all of them."""
    assert who(store, made(store, row)) == caller


@pytest.mark.parametrize("expires", [NOW, NOW - 1, 1])
def test_a_token_ends_with_its_time(store: EventStore, expires: int) -> None:
    """At the very moment, not some time after."""
    found = who(store, made(store, ROW._replace(expires_at=expires)))

    assert_is_nobody(found, "the token has expired", "token.expired")


def test_who_asks_is_told_as_of_now() -> None:
    """In a server that has run for longer than the token counts."""
    time = [NOW + 9]
    service = open_memory(now=lambda: time[0])
    call = Incoming("GetIAM", {}, {"authorization": [f"Bearer {made(service.store)}"]})

    before = service.dispatcher.receive([call])
    time[0] += 1
    after = service.dispatcher.receive([call])

    assert [received.caller for received in before + after] == ["ci", ""]


@each_row(
    ("token", "end"),
    [
        pytest.param(b"long", NOW + 10, id="a token"),
        pytest.param(b"short", NOW + 5, id="a token of a rule"),
        pytest.param(b"", 0, id="a caller that needs none"),
        pytest.param(b"gone", 0, id="a token that was removed meanwhile"),
    ],
)
def test_a_caller_is_told_when_its_token_ends(store: EventStore, token: bytes, end: int) -> None:
    with store.transaction() as tx:
        tx.put(ROW._replace(sha256=b"long"))
        tx.put(PassRow(b"short", "apply", "7", "viewer", "", "{}", "u", NOW + 5, NOW + 9))

    with store.snapshot() as view:
        assert end_of_token(view, token) == end


@each_row(("kind", "name"), [(ISSUER, "trust:apply"), (MACHINE, "machine:apply")])
def test_writers_without_a_long_token_have_names_of_their_own(kind: str, name: str) -> None:
    """They show what was trusted: tokens of somebody else, or a key of its own."""
    rule = TrustRow("apply", "7", kind, "viewer", "", "i", "{}", "", "", "", 1, NOW, "ana", 0)

    assert writer_name(rule) == name


def test_a_token_ends_when_it_is_revoked_and_no_other_does(store: EventStore) -> None:
    """A second revocation has nothing to do."""
    token = made(store)
    other = make_token(store, ROW._replace(name="other"), other_bytes)
    assert other is not None

    assert revoke_token(store, "ci", NOW + 5)

    assert_is_nobody(who(store, token), "the token was revoked", "token.revoked")
    assert who(store, other.reveal()) == Caller("other", Role.EDITOR, frozenset({"7", "8"}))
    assert [row.revoked_at for row in all_tokens(store)] == [NOW + 5, 0]
    assert not revoke_token(store, "ci", NOW + 6)
    assert not revoke_token(store, "nobody", NOW)
    assert [row.revoked_at for row in all_tokens(store)] == [NOW + 5, 0]


def test_a_name_is_free_again_once_its_token_is_revoked(store: EventStore) -> None:
    """Until then nobody takes the place of who has it."""
    token = made(store)

    assert make_token(store, ROW, other_bytes) is None
    assert who(store, token) == Caller("ci", Role.EDITOR, frozenset({"7", "8"}))

    revoke_token(store, "ci", NOW)
    again = make_token(store, ROW, other_bytes)

    assert again is not None
    assert_is_nobody(who(store, token))
    assert isinstance(who(store, again.reveal()), Caller)


def test_what_does_not_look_like_a_token_is_not_looked_for(store: EventStore) -> None:
    """Even if something like it were in the store."""
    hash_of = sha256(b"guessed").digest()
    with store.transaction() as tx:
        tx.put(ROW._replace(sha256=hash_of))

    assert_is_nobody(who(store, "guessed"))


def assert_is_nobody(
    found: Caller | Refusal,
    message: str = "the token is not known to this service",
    reason: str = "token.invalid",
) -> None:
    assert isinstance(found, Refusal)
    assert (found.code, found.message, found.reason) == (
        Code.UNAUTHENTICATED,
        message,
        reason,
    )
