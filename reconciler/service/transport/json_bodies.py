"""Bodies of requests: JSON, read as everywhere else, and refused in the words of the service."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.resources.strict_json import (
    MAX_DEPTH,
    MAX_DIGITS,
    ContentError,
    Fault,
    JsonError,
    check_count,
    read_object,
)
from reconciler.service.domain.refusal import invalid
from reconciler.service.operations.request import shown_path

# Names and values in one body. Each can take 70 bytes for two of text, so that a body is at most
# ten times as long in memory. The longest batch of orders has a third of them.
MAX_SIGNS = 60_000

_RULES: Mapping[Fault, str] = {
    Fault.ENCODING: "must be UTF-8",
    Fault.SYNTAX: "must be one JSON object and nothing else",
    Fault.SHAPE: "must be an object",
    Fault.DEPTH: f"must not be nested deeper than {MAX_DEPTH}",
    Fault.TWICE: "must be given once",
    Fault.NO_NUMBER: "must not contain NaN or Infinity",
    Fault.FRACTION: "must not contain a number that is not whole",
    Fault.SIZE: f"must not contain a number that is too large or has more than {MAX_DIGITS} digits",
    Fault.NUL: "must not contain NUL",
    Fault.HALF: "must be Unicode text, without lone surrogates",
}


def read_body(body: bytes) -> dict[str, object]:
    """Return the object that a body is; an empty body is an empty one.

    Raises:
        Refusal: it is not JSON, not an object, or not beyond doubt.
    """
    if not body:
        return {}
    try:
        check_count(body, MAX_SIGNS)
        return read_object(body, fractions=True)
    except ContentError as error:
        raise invalid(shown_path(error.path) or "request", _RULES[error.fault]) from None
    except JsonError:
        raise invalid("request", f"must not have more than {MAX_SIGNS} names and values") from None
