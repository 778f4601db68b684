"""Answers of repeated calls: whether a call is the same one, and whether its answer still holds."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from reconciler.service.domain.refusal import object_gone
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import made_id
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.operation import Admitted
from reconciler.service.operations.request import Request

REGENERATE = "RegenerateOIDCClientSecret"


def digest(request: Request, admitted: Admitted) -> bytes:
    """Return the digest of what a request means: a default may be said, an own one be named."""
    operation, asked, text = admitted
    organization = request.organization or request.caller.only_organization
    meaning = text if isinstance(asked, Fields) else asked.model_dump_json()
    return sha256(f"{operation.name}\n{organization}\n{meaning}".encode()).digest()


def held_still(tx: Transaction, request: Request, answer: Mapping[str, Any]) -> ObjectRow | None:
    """Return the object that a repeated call made, or made a secret for; None for other calls.

    Raises:
        Refusal: the object is gone, or was renamed since it was made.
    """
    made = made_id(answer)
    object_id = made or (request.fields.get("appId") if request.operation == REGENERATE else "")
    if not object_id:
        return None
    held = tx.get_object(object_id)
    if held is None or (made and held.name != request.fields.get("name")):
        raise object_gone()
    if not request.caller.sees(held.organization):
        raise object_gone()
    return held


def tie(asked: bytes, answer: str, seal: str | None, slot: int) -> bytes:
    """Return what ties an answer to what was asked: a damaged one is not given for it."""
    return sha256(asked + f"{seal} {slot} {answer}".encode()).digest()
