"""Custody of client secrets: sealing them, keeping them for a time, and removing them for good.

Secrets that are answered once are sealed at the commit, together, because the cost is per seal.
Those in custody have a seal of their own: it is kept longer, and it is sealed again without each
secret whose custody ends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import secret_gone
from reconciler.service.eventstore.errors import SealingError, StoreError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import ObjectRow, OwedRow, SealRow
from reconciler.service.operations.answers import MICROSECONDS, Answer
from reconciler.service.operations.request import Request
from reconciler.service.operations.runtime import Batch, Runtime, SealDraft

KEPT = 24 * 60 * 60 * MICROSECONDS  # answers under an idempotency key
SHOWN_ONCE = "clientSecret"
CLAIMED = "secrets"  # answers that hold several secrets have them here

Place = tuple[str | None, int]
NOWHERE: Place = (None, 0)


def keep(
    tx: Transaction, request: Request, answer: Answer, batch: Batch, runtime: Runtime
) -> Place:
    """Put the secret of an answer among those that the commit seals; return its seal and slot.

    Where the caller asks for custody, the secret is owed from now on.
    """
    if not _is_sealed(request, answer):
        return NOWHERE
    secret = answer[SHOWN_ONCE]
    if not request.custody:
        return _put(batch.answered, secret, runtime, KEPT)
    place = _put(batch.custody, secret, runtime, runtime.keep_owed)
    tx.put_owed(_owed_row(request, answer, place, batch.custody.expires_at))
    return place


def with_secret_shown(answer: Answer) -> Answer:
    """Return an answer as it leaves the service: here, and only here, a secret becomes text."""
    secret = answer.get(SHOWN_ONCE)
    if isinstance(secret, Secret):
        return {**answer, SHOWN_ONCE: secret.reveal()}
    if CLAIMED in answer:
        return {**answer, CLAIMED: [with_secret_shown(claimed) for claimed in answer[CLAIMED]]}
    return answer


def check_seal(request: Request, answer: Answer, batch: Batch) -> None:
    """Refuse a call whose secret would have to be sealed, where that is known to fail.

    Raises:
        Refusal: it is such a call.
    """
    if batch.unsealed is not None and _is_sealed(request, answer):
        raise batch.unsealed


def _is_sealed(request: Request, answer: Answer) -> bool:
    """Return whether a call makes a secret that is kept for a repeated call, or for a run."""
    return SHOWN_ONCE in answer and bool(request.custody or request.idempotency_key)


def _put(draft: SealDraft, secret: Secret, runtime: Runtime, kept: int) -> Place:
    if not draft.id:
        draft.id = runtime.identifiers.next()
        draft.expires_at = runtime.now() + kept
    draft.secrets.append(secret)
    return draft.id, len(draft.secrets) - 1


def _owed_row(request: Request, answer: Answer, place: Place, expires_at: int) -> OwedRow:
    details = answer["details"]
    return OwedRow(
        answer.get("appId") or request.fields["appId"],
        details["resourceOwner"],
        int(details["sequence"]),
        request.caller.name,
        _tree(request.context),
        request.custody,
        *place,
        expires_at,
    )


@lru_cache(maxsize=16)
def _tree(context: str) -> str:
    tree = json.loads(context).get("tree") if context else ""
    return tree if isinstance(tree, str) else ""


def unsealed(tx: Transaction, place: Place, batch: Batch, runtime: Runtime) -> Secret:
    """Return a secret that was kept.

    Raises:
        Refusal: it was removed, or the key that opens its seal is missing.
    """
    seal_id, slot = place
    if seal_id is None:
        raise secret_gone()
    for draft in (batch.answered, batch.custody):
        if seal_id == draft.id:
            secrets: Sequence[Secret | None] = draft.secrets
            break
    else:
        secrets = _opened(tx, seal_id, batch, runtime)
    secret = secrets[slot] if slot < len(secrets) else None
    if secret is None:
        raise secret_gone()
    return secret


def _opened(
    tx: Transaction, seal_id: str, batch: Batch, runtime: Runtime
) -> Sequence[Secret | None]:
    """Return the secrets of a seal; none if the seal is gone or its key is missing."""
    if seal_id not in batch.opened:
        seal = tx.seal(seal_id)
        batch.opened[seal_id] = (runtime.seals.open(seal.sealed) if seal else None) or ()
    return batch.opened[seal_id]


def is_lost(row: OwedRow, now: int) -> bool:
    """Return whether an owed secret is no longer kept."""
    return row.seal is None or row.expires_at <= now


def end(tx: Transaction, row: ObjectRow, batch: Batch) -> None:
    """End the custody of an application's secret, if it owes one."""
    for owed in tx.owed([row.id]):
        remove(tx, owed, batch)


def remove(tx: Transaction, owed: OwedRow, batch: Batch) -> None:
    """Remove an owed secret. The commit seals what is left of its seal again."""
    tx.remove_owed(owed)
    if owed.seal is not None:
        batch.reduced.add(owed.seal)


def seal_batch(tx: Transaction, batch: Batch, runtime: Runtime) -> None:
    """Seal the secrets of a batch, remove those whose custody ended, drop what has expired.

    Raises:
        SealingError: the secrets of the batch cannot be sealed.
    """
    for draft in (batch.answered, batch.custody):
        if draft.secrets:
            tx.put_seal(SealRow(draft.id, _sealed(draft.secrets, runtime), draft.expires_at))
    for seal_id in sorted(batch.reduced):
        _reduce(tx, seal_id, runtime)
    tx.expire(runtime.now())


def _sealed(secrets: Sequence[Secret], runtime: Runtime) -> bytes:
    try:
        return runtime.seals.seal(secrets)
    except StoreError as failure:
        raise SealingError(failure.problem, failure.remedy) from failure


def _reduce(tx: Transaction, seal_id: str, runtime: Runtime) -> None:
    """Leave in a seal only the secrets that are still owed, each in its place."""
    seal = tx.seal(seal_id)
    if seal is None:
        return
    needed = {owed.slot for owed in tx.owed_in(seal_id)}
    if not needed:
        tx.remove_seal(seal_id)
        return
    secrets = runtime.seals.open(seal.sealed)
    if secrets is None:
        return  # sealed with a key that is missing here: it cannot be opened, nor sealed again
    left = [secret if slot in needed else None for slot, secret in enumerate(secrets)]
    if left != secrets:
        tx.put_seal(seal._replace(sealed=runtime.seals.seal(left)))
