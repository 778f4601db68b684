"""Callers, and the permissions of their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The role of a token. Each role may do all that the one before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


_READS = frozenset(
    {"org.read", "project.read", "project.app.read", "org.idp.read", "org.action.read"}
)
_WRITES = frozenset(
    {
        "project.create",
        "project.app.write",
        "project.app.delete",
        "org.idp.write",
        "org.action.write",
        "org.action.delete",
        "org.lease",
        "org.context.write",
        "org.batch.write",
    }
)
PERMISSIONS: Mapping[Role, frozenset[str]] = {
    Role.VIEWER: _READS,
    Role.EDITOR: _READS | _WRITES,
    Role.ADMIN: _READS | _WRITES | {"org.create", "token.write"},
}


def least_role(permission: str) -> Role:
    """Return the first role that has a permission; the empty permission is every role's."""
    return next(role for role in Role if not permission or permission in PERMISSIONS[role])


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
        """Return what the answers that are kept for this caller alone are kept under."""
        return self.token.hex() or self.name

    @property
    def only_organization(self) -> str:
        """Return the id of the organization it may see if that is one and no more, or nothing."""
        seen = self.organizations or ()
        return next(iter(seen)) if len(seen) == 1 else ""

    def may(self, permission: str) -> bool:
        """Return whether the role has a permission, in the organizations the caller sees."""
        return permission in PERMISSIONS[self.role]

    def sees(self, organization: str) -> bool:
        """Return whether an organization exists at all, as far as the caller is concerned."""
        return self.organizations is None or organization in self.organizations


EMBEDDED = Caller("embedded", Role.ADMIN)
