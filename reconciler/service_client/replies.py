"""HTTP responses as replies of the wire: answers, refusals, and what is neither."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.resources.strict_json import JsonError, check_count, read_object
from reconciler.service_client.wire import NO_ANSWER, Answer, WireRefusal

UNAUTHENTICATED = 16
MAX_VALUES = 500_000  # several times what a full page has; they fit into 50 MB of memory
_MAX_MESSAGE = 500
_CODES: Mapping[int, int] = {
    400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 409: 10, 412: 9, 413: 3, 422: 3, 429: 8,
    501: 12, 502: 14, 503: 14, 504: 14,
}  # fmt: skip
_UNKNOWN = 2
# The service, or something on the way, failed in the middle; or an answer was lost.
_IN_THE_MIDDLE = frozenset({1, 2, 4, 13, 14, 15})


def reply_of(status: int, content_type: str, content: bytes) -> Answer | WireRefusal:
    """Return what a response says."""
    if status == 200:
        return _answer(content_type, content)
    if status < 300:
        return lost(
            f"the service answered with status {status}, which is not part of its interface"
        )
    if status < 400:
        return WireRefusal(
            _UNKNOWN, "the address redirects to another one, and redirects are not followed"
        )
    return _refusal(status, content_type, content)


def lost(message: str) -> WireRefusal:
    """Return the reply of a call whose answer never came, or means nothing."""
    return WireRefusal(NO_ANSWER, message, unsure=True)


def unsent(message: str, remedy: str = "") -> WireRefusal:
    """Return the reply of a call that certainly was not carried out."""
    return WireRefusal(NO_ANSWER, message, remedy=remedy)


def _answer(content_type: str, content: bytes) -> Answer | WireRefusal:
    if not _is_json(content_type):
        return lost("the service answered with something that is not JSON")
    try:
        return Answer(_read(content))
    except JsonError as failure:
        return lost(f"the service's answer cannot be read: it {failure}")


def _refusal(status: int, content_type: str, content: bytes) -> WireRefusal:
    fields: Mapping[str, Any] = {}
    if _is_json(content_type):
        try:
            fields = _read(content)
        except JsonError:
            fields = {}
    return refusal_in(fields, _CODES.get(status, _UNKNOWN), f"HTTP status {status}")


def refusal_in(
    fields: Mapping[str, Any], code: int = _UNKNOWN, message: str = "no reason is told"
) -> WireRefusal:
    """Return the refusal in the body of an error, or one of this code and message."""
    told = fields.get("code")
    if type(told) is int and 1 <= told <= 16:
        code = told
    said = fields.get("message")
    if isinstance(said, str) and said:
        message = said
    return WireRefusal(
        code, message[:_MAX_MESSAGE], _details(fields.get("details")), code in _IN_THE_MIDDLE
    )


def _read(content: bytes) -> dict[str, Any]:
    check_count(content, MAX_VALUES)
    return read_object(content)


def _details(told: Any) -> Mapping[str, Any]:
    """Return the facts of every detail, by name; the first detail that says one counts."""
    facts: dict[str, Any] = {}
    for detail in told if isinstance(told, Sequence) and not isinstance(told, str) else ():
        if isinstance(detail, dict):
            inner = detail.get("metadata")
            for name, value in {**(inner if isinstance(inner, dict) else {}), **detail}.items():
                facts.setdefault(name, value)
    return facts


def error_id(refusal: WireRefusal) -> str:
    """Return the id that ZITADEL gives every reason: in the details, or at the message's end."""
    told = refusal.details.get("id")
    if isinstance(told, str) and told:
        return told
    in_words = re.search(r"\(([A-Za-z0-9]+-[A-Za-z0-9]+)\)\s*$", refusal.message)
    return in_words[1] if in_words else ""


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
