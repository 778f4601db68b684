"""Common parts of answers: details, and times as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.rows import ObjectRow

MICROSECONDS = 1_000_000
ERROR_DETAIL = "type.googleapis.com/zitadel.v1.ErrorDetail"


def timestamp(microseconds: int) -> str:
    """Return a time as RFC 3339 in UTC, to the microsecond."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return f"{_to_the_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=1024)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def details_read(row: ObjectRow) -> dict[str, Any]:
    """Return the details of an object that was read."""
    return {
        "sequence": str(row.sequence),
        "creationDate": timestamp(row.created),
        "changeDate": timestamp(row.sequence),
        "resourceOwner": row.organization,
    }


# A create answers both dates, and they are the same instant.
details_created = details_read


def details_changed(row: ObjectRow) -> dict[str, Any]:
    """Return the details of an object that was changed, or that an update found as wanted."""
    return details_at(row.organization, row.sequence)


def details_at(organization: str, sequence: int) -> dict[str, Any]:
    """Return the details of an event that changed or removed an object."""
    return {
        "sequence": str(sequence),
        "changeDate": timestamp(sequence),
        "resourceOwner": organization,
    }


def made_id(answer: Mapping[str, Any]) -> str:
    """Return the id of the object that a create made; empty for the answers of other calls."""
    return answer.get("appId") or answer.get("idpId") or answer.get("id") or ""


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Return the body of a refusal (source 7); what is known of it stands in its detail."""
    detail = {
        "@type": ERROR_DETAIL,
        "id": refusal.reason,
        "message": refusal.message,
        **refusal.details,
    }
    return {"code": int(refusal.code), "message": refusal.message, "details": [detail]}
