"""A call of an operation: its caller, its headers, and its fields where no model reads them.

HTTP headers and gRPC metadata have the same names and rules. ``Fields`` reads the requests of an
unchanged plan and those of lists: they have few fields, and to import the models takes longer
than the whole listing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

from reconciler.resources.call import HEADERS, MAX_TEXTS, ORGANIZATION_OF_ZITADEL, Call, is_id
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.answers import VERIFIED
from reconciler.service.operations.callers import Caller, token_hash, unauthenticated
from reconciler.service.operations.texts import Encode


@dataclass(frozen=True, slots=True)
class Request(Call):
    """A call and its caller.

    Attributes:
        in_parts: Whether lists are answered as ``encode`` encodes them; see ``Incoming``.
        encode: Makes the body of an answer, for a caller that needs nothing else.
    """

    caller: Caller = field(kw_only=True)
    in_parts: bool = field(default=False, kw_only=True)
    encode: Encode | None = field(default=None, kw_only=True)

    @property
    def as_text(self) -> bool:
        """Return whether lists are answered as JSON text (``Encoded``)."""
        return self.encode is not None and not self.in_parts

    def asks_the_same(self, other: object) -> bool:
        """Return whether another request has the same caller, headers, fields and encoding."""
        # 1, 1.0 and true are equal, and are not the same.
        return (
            isinstance(other, Request) and self == other and repr(self.fields) == repr(other.fields)
        )


_VALUES = attrgetter(*Call.__slots__)


def request_of(call: Call, caller: Caller) -> Request:
    """Return a call as a caller makes it."""
    return Request(*_VALUES(call), caller=caller)


ORGANIZATION = (HEADERS["organization"], ORGANIZATION_OF_ZITADEL)
CUSTODY = HEADERS["custody"]
_BEARER = re.compile(r"Bearer ([!-~]{1,512})", re.ASCII | re.IGNORECASE)
# White space around the value of a header is not part of it (RFC 9110, 5.5).
_BLANK = " \t"
_SEQUENCE = re.compile(r'"(0|[1-9][0-9]{0,18})"', re.ASCII)

MAX_CONTEXT = 8192
_READ_HEADERS = frozenset((*HEADERS.values(), ORGANIZATION_OF_ZITADEL))
_RUN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)

Headers = Mapping[str, Sequence[str]]

LARGEST = 2**63 - 1
MAX_TEXT = 200
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


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
    """Return the hash of the token of a request, by which the calls of a caller are counted.

    It is empty for all requests without a readable token.
    """
    try:
        return token_hash(bearer_token(headers))
    except Refusal:
        return b""


def organization_named(headers: Headers) -> str:
    """Return the first organization that headers name, unchecked; empty where none does."""
    return next((values[0] for name in ORGANIZATION if (values := headers.get(name))), "")


def header_values(headers: Headers) -> Mapping[str, Any]:
    """Return the values of the headers that operations know, by the attributes of a call.

    Raises:
        Refusal: one of them is repeated or malformed.
    """
    if _READ_HEADERS.isdisjoint(headers):  # as in most reads
        return {}
    values: dict[str, Any] = {name: _one(headers, header) for name, header in HEADERS.items()}
    values["organization"] = _organization(headers)
    values["expected_sequence"] = _expected(values["expected_sequence"])
    if CUSTODY in headers and not values["custody"]:
        raise invalid(CUSTODY, "must not be empty")
    return values


def _one(headers: Headers, name: str) -> str:
    values = headers.get(name, ())
    if len(values) > 1:
        raise invalid(name, "must be given once")
    return values[0].strip(_BLANK) if values else ""


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


def check_headers(request: Request) -> None:
    """Check the headers of a request.

    Raises:
        Refusal: one of them is malformed.
    """
    if request.organization and not is_id(request.organization):
        raise invalid("x-service-orgid", "must be the id of one organization")
    if len(request.idempotency_key) > 200 or not request.idempotency_key.isprintable():
        raise invalid("idempotency-key", "must be at most 200 printable characters")
    if request.custody and not _RUN.fullmatch(request.custody):
        raise invalid("x-reconciler-custody", "must be 1 to 64 letters, digits, - and _")
    fault = _context_fault(request.context) if request.context else ""
    if fault:
        raise invalid("x-reconciler-context", fault)


@lru_cache(maxsize=16)
def _context_fault(text: str) -> str:
    """Return why a text is not a context, or nothing.

    Answers hold contexts a few levels down, for readers that limit the depth: so it is flat.
    """
    rule = (
        "must be a flat JSON object of texts, whole numbers, true, false and null, of at most "
        f"{MAX_CONTEXT} characters"
    )
    if len(text) > MAX_CONTEXT:
        return rule
    try:
        fields = read_object(text.encode(), depth=1)
    except (JsonError, UnicodeEncodeError):
        return rule
    if VERIFIED in fields:
        return f"must not have {VERIFIED}: the service itself writes that"
    for name, most in MAX_TEXTS.items():
        value = fields.get(name)
        if isinstance(value, str) and len(value) > most:
            return f"{name} must be at most {most} characters long"
    return ""


class Fields:
    """The fields of a request or of a part of one. Each is read once; the rest is unknown.

    None is the same as left out, but only for a field that is known.
    """

    def __init__(self, fields: Mapping[str, object], path: str = "") -> None:
        self._left = dict(fields)
        self._path = path

    def text(self, name: str, *, required: bool = False, limit: int = MAX_TEXT) -> str:
        """Return a text; one that is left out is empty."""
        value = self._taken(name, "")
        if not isinstance(value, str):
            raise self.wrong(name, "must be a string")
        if len(value) > limit:
            raise self.wrong(name, f"must be at most {limit} characters long")
        if required and not value:
            raise self.wrong(name, "is required")
        if "\0" in value or not is_encodable(value):
            raise self.wrong(name, "must be text without NUL")
        return value

    def number(self, name: str) -> int:
        """Return a number, which JSON may also carry as a string of its digits."""
        value = self._taken(name, 0)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self.wrong(name, "must be a whole number, 0 or more")
        return value

    def limit(self, most: int) -> int:
        """Return the length of a page, at most ``most``, which is also what 0 and none mean."""
        return min(self.number("limit") or most, most)

    def seconds(self, most: int) -> int:
        """Return how long something lasts: a second at least, and ``most`` at most."""
        value = self.number("seconds")
        if not 1 <= value <= most:
            raise self.wrong("seconds", f"must be from 1 to {most}")
        return value

    def flag(self, name: str) -> bool:
        """Return a flag; one that is left out is false."""
        value = self._taken(name, default=False)
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of some words; the first if it is left out."""
        value = self._taken(name, choices[0])
        if value not in choices:
            raise self.wrong(name, f"must be one of {', '.join(choices)}")
        return str(value)

    def part(self, name: str) -> Fields:
        """Return a part that has fields of its own; empty if it is left out."""
        return self._part(name, self._taken(name, {}))

    def parts(self, name: str, most: int, rule: str) -> Sequence[Fields]:
        """Return a list of parts that have fields of their own; more than ``most`` break a rule."""
        values = self.values(name)
        if len(values) > most:  # before each is looked at: there may be very many
            raise self.wrong(name, rule)
        return [self._part(f"{name}[{at}]", item) for at, item in enumerate(values)]

    def values(self, name: str) -> Sequence[object]:
        """Return a list of values of any kind."""
        value = self._taken(name, [])
        if not isinstance(value, (list, tuple)):
            raise self.wrong(name, "must be a list")
        return value

    def names(self) -> Sequence[str]:
        """Return the names of the fields that were not read yet."""
        return [name for name, value in self._left.items() if value is not None]

    def end(self) -> None:
        """Refuse what was not read: a misspelt field that is ignored misleads its author."""
        for name in self._left:
            raise self.wrong(shown(name), "is not a field of this request")

    def wrong(self, name: str, rule: str) -> Exception:
        """Return the refusal of a field."""
        return invalid(f"{self._path}{name}", rule)

    def _taken(self, name: str, default: object) -> object:
        value = self._left.pop(name, None)
        return default if value is None else value

    def _part(self, name: str, value: object) -> Fields:
        if not isinstance(value, Mapping):
            raise self.wrong(name, "must be an object")
        return Fields(value, f"{self._path}{name}.")


def shown(name: object) -> str:
    """Return a name that the caller chose as a refusal or a log may show it."""
    text = str(name)[:64]
    return text if text.isascii() and text.isprintable() else ascii(text)


def shown_path(path: Iterable[int | str]) -> str:
    """Return a path as refusals name fields: names that are no plain words as escapes."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in path)
    return "".join(steps).removeprefix(".")


def is_encodable(text: str) -> bool:
    """Return whether UTF-8 can say a text: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
