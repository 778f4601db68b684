"""Callers: the permissions of their roles, and the bearer tokens that name them.

Only the hash of a token is kept.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256

from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.domain.trust import MACHINE
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import TokenRow, TrustRow
from reconciler.service.eventstore.sql import Snapshot


class Role(StrEnum):
    """The role of a token. Each role may do all that the one before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


_ADMINS = frozenset({"org.create", "token.list", "token.write", "trust.manage"})
_RANKS = {role: rank for rank, role in enumerate(Role)}


@cache
def least_role(permission: str) -> Role:
    """Return the first role that has a permission; the empty permission is every role's."""
    if not permission or permission.endswith(".read"):
        return Role.VIEWER
    return Role.ADMIN if permission in _ADMINS else Role.EDITOR


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of an operation.

    Attributes:
        name: Of the token; stands with every event it causes.
        organizations: Ids of those it may see, or None for all, also those to come.
        token: SHA-256 of the token, or empty for a caller that needs none. A name can pass to
            another token; this cannot.
        owner: Owner of the answers that are kept for it, where several tokens share them: a run
            that renews its token, and tries again, stays the same caller.
        verified: What was verified of a caller without a long token, as JSON. It is written
            beside the context of each event.
    """

    name: str
    role: Role
    organizations: frozenset[str] | None = None
    token: bytes = b""
    owner: str = ""
    verified: str = ""

    @property
    def account(self) -> str:
        """Return the name under which answers are kept for this caller alone."""
        return self.owner or self.token.hex() or self.name

    @property
    def only_organization(self) -> str:
        """Return the id of the organization it may see if there is exactly one; empty otherwise."""
        seen = self.organizations or ()
        return next(iter(seen)) if len(seen) == 1 else ""

    def may(self, permission: str) -> bool:
        """Return whether the role has a permission, in the organizations the caller sees."""
        return _RANKS[self.role] >= _RANKS[least_role(permission)]

    def sees(self, organization: str) -> bool:
        """Return whether an organization exists at all, as far as the caller is concerned."""
        return self.organizations is None or organization in self.organizations


EMBEDDED = Caller("embedded", Role.ADMIN)


PREFIX = "rct_"
BITS = 256
_FORM = re.compile(r"rct_[A-Za-z0-9_-]{43}[0-9a-f]{8}", re.ASCII)
_UNKNOWN = "the token is not known to this service"


def new_token(random_bytes: Callable[[int], bytes]) -> Secret:
    """Return a token: a prefix that scanners know, 256 random bits, and a checksum of both."""
    body = PREFIX + urlsafe_b64encode(random_bytes(BITS // 8)).decode().rstrip("=")
    return Secret(f"{body}{zlib.crc32(body.encode()):08x}")


def token_hash(token: str) -> bytes:
    """Return what is kept of a token. Its bits are random, so that a fast hash is safe."""
    return sha256(token.encode()).digest()


def caller_of(view: Snapshot, token: str, now: int) -> Caller:
    """Return the caller of a token.

    Raises:
        Refusal: the token is unknown, was revoked or has expired.
    """
    if not _FORM.fullmatch(token):  # it is not looked for
        raise unauthenticated(_UNKNOWN)
    return caller_of_hash(view, token_hash(token), now)


@lru_cache(maxsize=64)
def _caller(
    name: str, role: str, organizations: str, sha256: bytes, owner: str = "", verified: str = ""
) -> Caller:
    """Return the caller of a row's values. Cached: only its validity can change, see above."""
    return Caller(name, Role(role), organizations_of(organizations), sha256, owner, verified)


def organizations_of(kept: str) -> frozenset[str] | None:
    """Return the ids of organizations as a row keeps them; None for all."""
    return frozenset(json.loads(kept)) if kept else None


def caller_of_hash(view: Snapshot, sha256: bytes, now: int) -> Caller:
    """Return the caller of the token of a hash.

    Raises:
        Refusal: there is no such token, or it was revoked or has expired.
    """
    row = view.token(sha256)
    if row is None:
        return _caller_of_rule(view, sha256, now)
    if row.revoked_at:
        raise unauthenticated("the token was revoked", "token.revoked")
    if row.expires_at and row.expires_at <= now:
        raise unauthenticated("the token has expired", "token.expired")
    return _caller(row.name, row.role, row.organizations, row.sha256)


def _caller_of_rule(view: Snapshot, sha256: bytes, now: int) -> Caller:
    """Return the caller of a short token. It ends with its rule, in every server."""
    short = view.short_token(sha256)
    if short is None:
        raise unauthenticated(_UNKNOWN)
    rule = view.trust(short.rule)
    if rule is None or rule.id != short.rule_id:
        raise unauthenticated("the rule of this token was removed", "token.revoked")
    ends = min(short.expires_at, rule.expires_at or short.expires_at)
    if ends <= now:
        raise unauthenticated("the token has expired", "token.expired")
    name = writer_name(rule)
    owner, verified = short.account, short.verified
    return _caller(name, short.role, rule.organizations, sha256, owner, verified)


def writer_name(rule: TrustRow) -> str:
    """Return the name that stands with what a rule's callers write. No token has such a name."""
    return f"{'machine' if rule.kind == MACHINE else 'trust'}:{rule.name}"


def end_of_token(view: Snapshot, sha256: bytes) -> int:
    """Return when a token ends, in microseconds since the epoch; 0 where it has no end.

    A caller without a token has an empty hash. Nothing is looked up for it: a database user that
    may only plan has no right to read tokens.
    """
    if not sha256:
        return 0
    row = view.token(sha256) or view.short_token(sha256)
    return row.expires_at if row else 0


def unauthenticated(message: str, reason: str = "token.invalid") -> Refusal:
    """Return the refusal of a caller without a valid token.

    Only the holder of a token learns that it was revoked or has expired.
    """
    return Refusal(Code.UNAUTHENTICATED, message, reason)


def make_token(
    store: EventStore, row: TokenRow, random_bytes: Callable[[int], bytes]
) -> Secret | None:
    """Keep a new token and return it, this once; None where its name is in use.

    The row comes without a hash. A name is used again only after its token was revoked.
    """
    token = new_token(random_bytes)
    with store.transaction() as tx:
        taken = [known for known in tx.tokens() if known.name == row.name]
        if taken and not taken[0].revoked_at:
            return None
        tx.put(row._replace(sha256=token_hash(token.reveal())))
    return token


def revoke_token(store: EventStore, name: str, now: int) -> bool:
    """Revoke a token, in every server from now on; return whether it existed."""
    with store.transaction() as tx:
        for known in tx.tokens():
            if known.name == name and not known.revoked_at:
                tx.put(known._replace(revoked_at=now))
                return True
    return False


def all_tokens(store: EventStore) -> Sequence[TokenRow]:
    """Return every token, by name."""
    with store.snapshot() as view:
        return view.tokens()
