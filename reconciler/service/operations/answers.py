"""Parts of answers: details, times as text, and what objects of every kind answer.

The shapes are those of the API that this service is compatible with.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.projections.objects import is_active

Answer: TypeAlias = dict[str, Any]
"""An answer, or an object in one, by the JSON names of its members."""

MICROSECONDS = 1_000_000
ERROR_DETAIL = "type.googleapis.com/zitadel.v1.ErrorDetail"


def timestamp(microseconds: int) -> str:
    """Return a time as RFC 3339 in UTC, to the microsecond."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return f"{to_the_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=1024)
def to_the_second(seconds: int) -> str:
    """Return a time in seconds since the epoch as RFC 3339 in UTC, without its zone."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


VERIFIED = "verified"
"""Member of a stored context that the service itself wrote. No caller may send one."""


@lru_cache(maxsize=64)
def stored_context(claimed: str, verified: str) -> str:
    """Return the context of an event: what its caller claims, and beside it what was verified."""
    if not verified:
        return claimed
    fields = json.loads(claimed) if claimed else {}
    return json.dumps({**fields, VERIFIED: json.loads(verified)}, separators=(",", ":"))


@lru_cache(maxsize=64)
def context_view(stored: str) -> Answer:
    """Return both parts of a stored context. Very many events and objects share very few."""
    context = json.loads(stored) if stored else {}
    verified = context.pop(VERIFIED, {})
    return {"context": context, "verified": verified}


def details_read(row: ObjectRow) -> Answer:
    """Return the details of an object that was read, or created: then both dates are the same."""
    return {
        "sequence": str(row.sequence),
        "creationDate": timestamp(row.created),
        "changeDate": timestamp(row.sequence),
        "resourceOwner": row.organization,
    }


def details_at(organization: str, sequence: int) -> Answer:
    """Return the details of an object that was changed or removed, or was as wanted already."""
    return {
        "sequence": str(sequence),
        "changeDate": timestamp(sequence),
        "resourceOwner": organization,
    }


def made_id(answer: Answer) -> str:
    """Return the id of the object that a create made; empty for the answers of other calls."""
    return next((value for name, value in answer.items() if name == "id" or name[-2:] == "Id"), "")


def error_body(refusal: Refusal) -> Answer:
    """Return the body of a refusal (source 7); what is known of it stands in its detail."""
    detail = {
        "@type": ERROR_DETAIL,
        "id": refusal.reason,
        "message": refusal.message,
        **refusal.details,
    }
    return {"code": int(refusal.code), "message": refusal.message, "details": [detail]}


def named(row: ObjectRow, state: str) -> Answer:
    """Return the members that objects of every kind have; ``state`` names the enum of theirs."""
    return {
        "id": row.id,
        "details": details_read(row),
        "state": f"{state}_{'ACTIVE' if is_active(row.marks) else 'INACTIVE'}",
        "name": row.name,
    }


def spec_of(row: ObjectRow) -> Answer:
    """Return the spec of an object."""
    spec: Answer = json.loads(row.spec)
    return spec


def flat_view(row: ObjectRow, state: str) -> Answer:
    """Return an object with its spec among its members; ``state`` as in ``named``."""
    return {**named(row, state), **spec_of(row)}
