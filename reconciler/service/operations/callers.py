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
from functools import lru_cache
from hashlib import sha256

from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.eventstore.sql import Snapshot


class Role(StrEnum):
    """The role of a token. Each role may do all that the one before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


_ADMINS = frozenset({"org.create", "token.list", "token.write"})
_RANKS = {role: rank for rank, role in enumerate(Role)}


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
    """

    name: str
    role: Role
    organizations: frozenset[str] | None = None
    token: bytes = b""

    @property
    def account(self) -> str:
        """Return the name under which answers are kept for this caller alone."""
        return self.token.hex() or self.name

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
    row = valid_token(view, token_hash(token), now)
    return _caller(row.name, row.role, row.organizations, row.sha256)


@lru_cache(maxsize=64)
def _caller(name: str, role: str, organizations: str, sha256: bytes) -> Caller:
    """Return the caller of a row's values. Cached: only its validity can change, see above."""
    seen = frozenset(json.loads(organizations)) if organizations else None
    return Caller(name, Role(role), seen, sha256)


def valid_token(view: Snapshot, sha256: bytes, now: int) -> TokenRow:
    """Return the valid token of a hash.

    Raises:
        Refusal: there is none, or it was revoked or has expired.
    """
    row = view.token(sha256)
    if row is None:
        raise unauthenticated(_UNKNOWN)
    if row.revoked_at:
        raise unauthenticated("the token was revoked", "token.revoked")
    if row.expires_at and row.expires_at <= now:
        raise unauthenticated("the token has expired", "token.expired")
    return row


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
        tx.put_token(row._replace(sha256=token_hash(token.reveal())))
    return token


def revoke_token(store: EventStore, name: str, now: int) -> bool:
    """Revoke a token, in every server from now on; return whether it existed."""
    with store.transaction() as tx:
        for known in tx.tokens():
            if known.name == name and not known.revoked_at:
                tx.put_token(known._replace(revoked_at=now))
                return True
    return False


def all_tokens(store: EventStore) -> Sequence[TokenRow]:
    """Return every token, by name."""
    with store.snapshot() as view:
        return view.tokens()
