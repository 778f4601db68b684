"""Client secrets: sealing and keeping them, and the operations on those that are owed.

The secrets of a commit are sealed together, because the cost is per seal. Those in custody have a
seal of their own: it is kept longer, and is sealed again without each secret whose custody ends.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reconciler.kinds.oidc_application.events import SecretClaimed
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.client_secret import hash_of
from reconciler.service.domain.refusal import (
    Refusal,
    invalid,
    lease_lost,
    not_found,
    secret_gone,
    secret_lost,
    secret_replaced,
    secret_unreadable,
    store_unusable,
)
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import ObjectRow, OwedRow, SealRow
from reconciler.service.operations.answers import MICROSECONDS, Answer, timestamp
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields, Request
from reconciler.service.operations.runtime import Batch, Runtime, SealDraft
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import tree_of

LOG = logging.getLogger("reconciler.service")
KEPT = 24 * 60 * 60 * MICROSECONDS  # answers under an idempotency key
SHOWN_ONCE = "clientSecret"
OWED_BY = "appId"  # the object that a secret is of, in requests and answers
CLAIMED = "secrets"  # answers that hold several secrets have them here

Place = tuple[str | None, int]
NOWHERE: Place = (None, 0)

PAGE = 1000  # owed secrets
AT_ONCE = 500  # secrets of one claim or acknowledgement


def keep(call: Writing, answer: Answer) -> Place:
    """Put the secret of an answer among those that the commit seals; return its seal and slot.

    If the caller asks for custody, the secret is owed from now on.
    """
    if not _is_sealed(call, answer):
        return NOWHERE
    secret, batch = answer[SHOWN_ONCE], call.batch
    if not call.request.custody:
        return _put(batch.answered, secret, call.runtime, KEPT)
    place = _put(batch.custody, secret, call.runtime, call.runtime.keep_owed)
    call.tx.put(_owed_row(call.request, answer, place, batch.custody.expires_at))
    return place


def with_secret_shown(answer: Answer) -> Answer:
    """Return an answer as it leaves the service: here, and only here, a secret becomes text."""
    secret = answer.get(SHOWN_ONCE)
    if isinstance(secret, Secret):
        return {**answer, SHOWN_ONCE: secret.reveal()}
    if CLAIMED in answer:
        return {**answer, CLAIMED: [with_secret_shown(claimed) for claimed in answer[CLAIMED]]}
    return answer


def check_seal(call: Writing, answer: Answer) -> None:
    """Check that the secret of a call can be sealed; the log says why not, once for a commit.

    Raises:
        Refusal: it cannot, and the call fails alone.
        StoreError: it cannot, and the calls of the commit fail together.
    """
    if not _is_sealed(call, answer):
        return
    failure = _seal_failure(call.runtime)
    if failure is None:
        return
    if not call.batch.alone:
        raise failure
    if not call.batch.is_failure_logged:
        LOG.error("the store failed: %s. %s", failure.problem, failure.remedy)
        call.batch.is_failure_logged = True
    raise store_unusable()


def _seal_failure(runtime: Runtime) -> StoreError | None:
    try:
        runtime.seals.ready()
    except StoreError as failure:
        return failure
    return None


def _is_sealed(call: Writing, answer: Answer) -> bool:
    """Return whether a call makes a secret that is kept for a repeated call, or for a run."""
    return SHOWN_ONCE in answer and bool(call.request.custody or call.request.idempotency_key)


def _put(draft: SealDraft, secret: Secret, runtime: Runtime, kept: int) -> Place:
    if not draft.id:
        draft.id = runtime.identifiers.next()
        draft.expires_at = runtime.now() + kept
    draft.secrets.append(secret)
    return draft.id, len(draft.secrets) - 1


def _owed_row(request: Request, answer: Answer, place: Place, expires_at: int) -> OwedRow:
    details = answer["details"]
    return OwedRow(
        answer.get(OWED_BY) or request.fields[OWED_BY],
        details["resourceOwner"],
        int(details["sequence"]),
        request.caller.name,
        tree_of(request.context),
        request.custody,
        *place,
        expires_at,
    )


def unsealed(tx: Transaction, place: Place, batch: Batch, runtime: Runtime) -> Secret:
    """Return a secret that was kept.

    Raises:
        Refusal: it was removed, or the key that opens its seal is missing.
    """
    seal_id, slot = place
    if seal_id is None:
        raise secret_gone()
    # No draft is empty here: it gets its id with its first secret.
    drafts = {draft.id: draft.secrets for draft in (batch.answered, batch.custody)}
    secrets = drafts.get(seal_id) or _opened(tx, seal_id, batch, runtime)
    secret = secrets[slot] if slot < len(secrets) else None
    if secret is None:
        raise secret_gone()
    return secret


def _opened(
    tx: Transaction, seal_id: str, batch: Batch, runtime: Runtime
) -> Sequence[Secret | None]:
    if seal_id not in batch.opened:
        seal = tx.seal(seal_id)
        batch.opened[seal_id] = (runtime.seals.open(seal.sealed) if seal else None) or ()
    return batch.opened[seal_id]


def is_lost(row: OwedRow, now: int) -> bool:
    """Return whether an owed secret is no longer kept."""
    return row.seal is None or row.expires_at <= now


def seal_batch(tx: Transaction, batch: Batch, runtime: Runtime) -> None:
    """Seal the secrets of a batch, remove those whose custody ended, drop what has expired."""
    for draft in (batch.answered, batch.custody):
        if draft.secrets:
            sealed = runtime.seals.seal(draft.secrets)
            tx.put(SealRow(draft.id, sealed, draft.expires_at))
    for seal_id in sorted(batch.reduced):
        _reduce(tx, seal_id, runtime)
    tx.expire(runtime.now())


def _reduce(tx: Transaction, seal_id: str, runtime: Runtime) -> None:
    """Leave in a seal only the secrets that are still owed, each in its place."""
    seal = tx.seal(seal_id)
    if seal is None:
        return
    needed = {owed.slot for owed in tx.owed_in(seal_id)}
    if not needed:
        tx.remove(seal)
        return
    secrets = runtime.seals.open(seal.sealed)
    if secrets is None:
        return  # sealed with a key that is missing here: it cannot be opened, nor sealed again
    left = [secret if slot in needed else None for slot, secret in enumerate(secrets)]
    if left != secrets:
        tx.put(seal._replace(sealed=runtime.seals.seal(left)))


class _Asked(NamedTuple):
    """One owed secret as a caller names it: application, and sequence that made the secret."""

    id: str
    made_at: int


def list_owed_secrets(call: Reading, fields: Fields) -> Answer:
    """Answer a page of the secrets that are owed in an organization, by application id."""
    organization = call.organization(fields.text("organizationId"))
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
        "state": "lost" if is_lost(row, now) else "owed",
        "expires": timestamp(row.expires_at),
    }


def claim_secrets(call: Writing, fields: Fields) -> Answer:
    """Answer owed secrets again, each with an event of its own. They stay owed.

    A secret that cannot be answered is an error in its place.
    """
    organization, asked = call.organization(fields.text("organizationId")), _asked(fields)
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
        if is_lost(row, call.runtime.now()):
            raise secret_lost()
        try:
            secret = unsealed(call.tx, (row.seal, row.slot), call.batch, call.runtime)
        except Refusal:  # the key that opens its seal is missing
            raise secret_unreadable() from None
        if hash_of(secret) != application.secret_hash:
            raise secret_replaced()
    except Refusal as refusal:
        return {
            "id": asked.id,
            "error": {"code": int(refusal.code), "message": refusal.message},
        }
    claimed = SecretClaimed(Kind(application.kind), row.id, str(row.made_at))
    call.record_side_event(application, claimed)
    return {
        "id": row.id,
        "clientId": application.client_id,
        "madeAt": str(row.made_at),
        "clientSecret": secret,
    }


def acknowledge_secrets(call: Writing, fields: Fields) -> Answer:
    """End the custody of secrets that were delivered; a secret that is not owed is passed over.

    A call under a lease that was lost is refused: its delivery may have been the later of two.
    """
    organization, asked = call.organization(fields.text("organizationId")), _asked(fields)
    call.check_lease(organization.folded)
    wanted = set(asked)
    for row in call.view.owed([each.id for each in asked]):
        if row.organization == organization.id and (row.id, row.made_at) in wanted:
            call.remove_owed(row)
    return {}


def _asked(fields: Fields) -> Sequence[_Asked]:
    rule = f"must name 1 to {AT_ONCE} secrets"
    parts = fields.parts("secrets", AT_ONCE, rule)
    fields.end()
    if not parts:
        raise fields.wrong("secrets", rule)
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


_WRITE = "project.app.write"
ROWS = (
    Operation("ListOwedSecrets", "project.app.read", Effect.READS, list_owed_secrets),
    Operation("ClaimSecrets", _WRITE, Effect.COORDINATES, claim_secrets),
    Operation("AcknowledgeSecrets", _WRITE, Effect.COORDINATES, acknowledge_secrets),
)
