"""Secrets in custody: listing what is owed, claiming a secret again, acknowledging delivery."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.events import AppOidcSecretClaimed
from reconciler.service.domain.oidc_application import hash_of
from reconciler.service.domain.refusal import (
    Refusal,
    invalid,
    lease_lost,
    not_found,
    secret_lost,
    secret_replaced,
    secret_unreadable,
)
from reconciler.service.eventstore.rows import ObjectRow, OwedRow
from reconciler.service.operations import custody
from reconciler.service.operations.answers import Answer, timestamp
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading, Writing

PAGE = 1000
AT_ONCE = 500


class _Asked(NamedTuple):
    """One owed secret as a caller names it: application, and sequence that made the secret."""

    id: str
    made_at: int


def list_owed_secrets(call: Reading, fields: Fields) -> Answer:
    """Answer a page of the secrets that are owed in an organization, by application id."""
    organization = _organization(call, fields)
    after, limit = fields.text("cursor"), fields.limit(PAGE)
    fields.end()
    page = call.view.owed_page(organization.id, after=after, limit=limit + 1)
    rows = page[:limit]
    held = _applications(call, rows)
    now = call.runtime.now()
    return {
        "owedSecrets": [_view(row, held[row.id], now) for row in rows if row.id in held],
        "next": rows[-1].id if len(page) > limit else "",
    }


def _view(row: OwedRow, held: ObjectRow, now: int) -> Answer:
    return {
        "id": row.id,
        "organizationId": row.organization,
        "projectId": held.parent,
        "name": held.name,
        "clientId": held.client_id,
        "madeAt": str(row.made_at),
        "since": timestamp(row.made_at),
        "madeBy": row.made_by,
        "tree": row.tree,
        "run": row.run,
        "state": "lost" if custody.is_lost(row, now) else "owed",
        "expires": timestamp(row.expires_at),
    }


def claim_secrets(call: Writing, fields: Fields) -> Answer:
    """Answer owed secrets again, each with an event of its own. They stay owed.

    A secret that cannot be had is an error in its place.
    """
    organization, asked = _organization(call, fields), _asked(fields)
    if call.request.idempotency_key:
        raise invalid("idempotency-key", "is not for claims: a claim may simply be repeated")
    if not call.request.lease:
        raise lease_lost()
    call.check_lease(organization.folded)
    owed = {row.id: row for row in call.view.owed([each.id for each in asked])}
    held = _applications(call, owed.values())
    return {"secrets": [_claimed(call, organization, each, owed, held) for each in asked]}


def _claimed(
    call: Writing,
    organization: ObjectRow,
    asked: _Asked,
    owed: Mapping[str, OwedRow],
    held: Mapping[str, ObjectRow],
) -> Answer:
    try:
        row = owed.get(asked.id)
        application = held.get(asked.id)
        if row is None or application is None or row.organization != organization.id:
            raise not_found("owed secret")
        if row.made_at != asked.made_at:
            raise secret_replaced()
        if custody.is_lost(row, call.runtime.now()):
            raise secret_lost()
        secret = _unsealed(call, row)
        if hash_of(secret) != application.secret_hash:
            raise secret_replaced()
    except Refusal as refusal:
        return {
            "id": asked.id,
            "error": {"code": int(refusal.code), "message": refusal.message},
        }
    call.record_side_event(application, AppOidcSecretClaimed(row.id, str(row.made_at)))
    return {
        "id": row.id,
        "clientId": application.client_id,
        "madeAt": str(row.made_at),
        "clientSecret": secret,
    }


def _unsealed(call: Writing, row: OwedRow) -> Secret:
    """Return an owed secret.

    Raises:
        Refusal: the key that opens its seal is missing.
    """
    try:
        return custody.unsealed(call.tx, (row.seal, row.slot), call.batch, call.runtime)
    except Refusal:
        raise secret_unreadable() from None


def acknowledge_secrets(call: Writing, fields: Fields) -> Answer:
    """End the custody of secrets that were delivered; a secret that is not owed is passed over.

    A call under a lease that was lost is refused: its delivery may have been the later of two.
    """
    organization, asked = _organization(call, fields), _asked(fields)
    call.check_lease(organization.folded)
    wanted = set(asked)
    for row in call.view.owed([each.id for each in asked]):
        if row.organization == organization.id and (row.id, row.made_at) in wanted:
            custody.remove(call.tx, row, call.batch)
    return {}


def _organization(call: Reading, fields: Fields) -> ObjectRow:
    return call.owner(Kind.ORGANIZATION, fields.text("organizationId", required=True))


def _asked(fields: Fields) -> Sequence[_Asked]:
    parts = fields.parts("secrets")
    fields.end()
    if not 1 <= len(parts) <= AT_ONCE:
        raise fields.wrong("secrets", f"must name 1 to {AT_ONCE} secrets")
    asked = []
    for part in parts:
        each = _Asked(part.text("id", required=True), part.number("madeAt"))
        part.end()
        if not each.made_at:
            raise part.wrong("madeAt", "is required")
        asked.append(each)
    return asked


def _applications(call: Reading, rows: Collection[OwedRow]) -> Mapping[str, ObjectRow]:
    """Return the applications that owe, by id. A removed application owes nothing."""
    ids = [row.id for row in rows]
    return {row.id: row for row in call.view.get_objects(ids)} if ids else {}
