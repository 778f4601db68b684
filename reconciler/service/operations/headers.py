"""Call headers: the same names and rules for HTTP headers and gRPC metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.resources.call import HEADERS, ORGANIZATION_OF_ZITADEL, Call
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.tokens import token_hash, unauthenticated

ORGANIZATION = (HEADERS["organization"], ORGANIZATION_OF_ZITADEL)
CUSTODY = HEADERS["custody"]
_BEARER = re.compile(r"Bearer ([!-~]{1,512})", re.ASCII | re.IGNORECASE)
# Optional white space around a value is no part of it (RFC 9110, 5.5), however it came.
_BLANK = " \t"
_SEQUENCE = re.compile(r'"(0|[1-9][0-9]{0,18})"', re.ASCII)

Headers = Mapping[str, Sequence[str]]


def bearer_token(headers: Headers) -> str:
    """Return the token of a request.

    Raises:
        Refusal: there is none, more than one, or something else.
    """
    values = headers.get("authorization", ())
    if not values:
        raise unauthenticated("a bearer token is needed: Authorization: Bearer TOKEN")
    found = _BEARER.fullmatch(values[0].strip(_BLANK)) if len(values) == 1 else None
    if found is None:
        raise unauthenticated("the authorization header must be one bearer token")
    return found.group(1)


def caller_key(headers: Headers) -> bytes:
    """Return the key to count the calls of one caller by: the hash of its token.

    The same token has one key, however its header is written. All requests without a readable
    token have one key, too, which is empty.
    """
    try:
        return token_hash(bearer_token(headers))
    except Refusal:
        return b""


def read_call(operation: str, fields: Mapping[str, Any], headers: Headers) -> Call:
    """Return a call of an operation, with the values of the headers that operations know.

    Raises:
        Refusal: one of them is repeated or malformed.
    """
    return Call(
        operation,
        fields,
        organization=_organization(headers),
        expected_sequence=_expected(_one(headers, HEADERS["expected_sequence"])),
        idempotency_key=_one(headers, HEADERS["idempotency_key"]),
        lease=_one(headers, HEADERS["lease"]),
        context=_one(headers, HEADERS["context"]),
        custody=_custody(headers),
    )


def _one(headers: Headers, name: str) -> str:
    values = headers.get(name, ())
    if len(values) > 1:
        raise invalid(name, "must be given once")
    return values[0].strip(_BLANK) if values else ""


def _custody(headers: Headers) -> str:
    run = _one(headers, CUSTODY)
    if CUSTODY in headers and not run:
        raise invalid(CUSTODY, "must not be empty")
    return run


def _organization(headers: Headers) -> str:
    named = [_one(headers, name) for name in ORGANIZATION]
    chosen = {value for value in named if value}
    if len(chosen) > 1:
        raise invalid(ORGANIZATION[0], f"and {ORGANIZATION_OF_ZITADEL} must not differ")
    return chosen.pop() if chosen else ""


def _expected(value: str) -> int | None:
    if not value:
        return None
    found = _SEQUENCE.fullmatch(value)
    if found is None:
        raise invalid(
            HEADERS["expected_sequence"], 'must be a sequence in quotes, such as "1700000000000000"'
        )
    return int(found.group(1))
