"""Leases: one writer at a time per organization, and one leader per tree in it, by its name.

A call that names a tree is about the leadership of that tree, which is a lease of its own: the
leader keeps no other run from writing.
"""

from __future__ import annotations

import base64

from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.ref import Kind, fold
from reconciler.service.domain.refusal import Code, Refusal, leadership_lost, lease_lost, not_found
from reconciler.service.eventstore.rows import LeaseRow
from reconciler.service.operations.answers import MICROSECONDS, Answer, timestamp
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Writing

MAX_SECONDS = 3600
MAX_HOLDER = 1000
TOKEN_BYTES = 16


def acquire_lease(call: Writing, fields: Fields) -> Answer:
    """Become the one writer of an organization, or the leader of a tree in it; or be refused."""
    name = _name(call, fields)
    holder = fields.text("holder", required=True, limit=MAX_HOLDER)
    seconds = fields.seconds(MAX_SECONDS)
    instead_of = fields.number("insteadOf")
    fields.end()
    held = call.tx.lease(name)
    now = call.runtime.lease_time.after(_written_after(held))
    if held and _counts(held, now) and held.fence != instead_of:
        raise _held_by(held)
    fence = held.fence + 1 if held else 1
    secret = base64.urlsafe_b64encode(call.runtime.random_bytes(TOKEN_BYTES)).decode().rstrip("=")
    lease = LeaseRow(name, f"{fence}.{secret}", holder, fence, now, now + seconds * MICROSECONDS)
    call.tx.put(lease)
    return _view(lease)


def renew_lease(call: Writing, fields: Fields) -> Answer:
    """Keep a lease for so many seconds from now."""
    name = _name(call, fields)
    token = fields.text("lease", required=True)
    seconds = fields.seconds(MAX_SECONDS)
    fields.end()
    held = call.tx.lease(name)
    now = call.runtime.lease_time.after(_written_after(held))
    if held is None or held.token != token or not _counts(held, now):
        raise lease_lost()
    lease = held._replace(expires_at=now + seconds * MICROSECONDS)
    call.tx.put(lease)
    return _view(lease)


def release_lease(call: Writing, fields: Fields) -> Answer:
    """Give a lease back. Does nothing where it is lost already."""
    name = _name(call, fields)
    token = fields.text("lease", required=True)
    fields.end()
    held = call.tx.lease(name)
    if held is not None and held.token == token:
        call.tx.put(held._replace(token=""))
    return {}


def check_leadership(call: Writing, organization: str, tree: str, token: str) -> None:
    """Refuse a caller who does not lead a tree in an organization, by its folded name."""
    held = call.tx.lease(_key(organization, tree))
    now = call.runtime.lease_time()
    if held is None or held.token != token or not _counts(held, now):
        raise leadership_lost()


def _key(organization: str, tree: str) -> str:
    """Return the name under which a lease is kept.

    A folded name has no capital letter. So ``TacmeTshop``, of the tree shop in acme, is the name of
    no organization, and of no other tree.
    """
    return f"T{organization}T{tree}" if tree else organization


def _name(call: Writing, fields: Fields) -> str:
    """Return the key of a lease in an organization that the caller sees, or could make.

    Raises:
        Refusal: the caller neither sees it nor could make it.
    """
    organization = fold(fields.text("organization", required=True))
    row = call.tx.find_object(Kind.ORGANIZATION, "", organization)
    if not call.caller.sees(row.id if row else ""):
        raise not_found("organization")
    return _key(organization, fields.text("tree", limit=MAX_TEXTS["tree"]))


def _written_after(lease: LeaseRow | None) -> int:
    """Return a time that is in the past, as the lease was written after it; 0 without a lease."""
    if lease is None:
        return 0
    return max(lease.acquired_at, lease.expires_at - MAX_SECONDS * MICROSECONDS)


def _counts(lease: LeaseRow, now: int) -> bool:
    return lease.token != "" and lease.expires_at > now


def _held_by(lease: LeaseRow) -> Refusal:
    leads = lease.organization.startswith("T")
    return Refusal(
        Code.ABORTED,
        "another run leads this tree"
        if leads
        else "another run holds the lease of this organization",
        "lease.held",
        holder=lease.holder,
        fence=str(lease.fence),
        acquiredAt=timestamp(lease.acquired_at),
        expiresAt=timestamp(lease.expires_at),
    )


def _view(lease: LeaseRow) -> Answer:
    return {
        "lease": lease.token,
        "fence": str(lease.fence),
        "acquiredAt": timestamp(lease.acquired_at),
        "expiresAt": timestamp(lease.expires_at),
    }


ROWS = (
    Operation("AcquireLease", "org.lease", Effect.COORDINATES, acquire_lease),
    Operation("RenewLease", "org.lease", Effect.COORDINATES, renew_lease),
    Operation("ReleaseLease", "org.lease", Effect.COORDINATES, release_lease),
)
