"""The wire: operations of the identity service, called by name with JSON-shaped fields.

One client speaks over every wire. In process, the wire calls the very operations that the
transports of a server call; over HTTP it sends them. Operation names, fields and answers are
those of the JSON face (source 4, wire facts 1.2 and 1.3). What a refusal means to the reconciler
stands here in one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    InvalidArgumentError,
    LockHeldError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
    UnauthenticatedError,
)
from reconciler.kinds.addresses import ADDRESSES
from reconciler.kinds.calls import CALLS
from reconciler.resources.call import Call, Code, JsonObject

NO_ANSWER = 0  # no code of gRPC: nothing that the service said


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operation, JSON-shaped."""

    fields: JsonObject


@dataclass(frozen=True, slots=True)
class WireRefusal:
    """The refusal of an operation: gRPC code, sentence, and further details from the service.

    Attributes:
        code: One of gRPC's, or ``NO_ANSWER``.
        unsure: Whether the call, or an earlier try of it, may have been carried out all the
            same: its answer was lost, or came from somewhere on the way.
        remedy: What to do, where the wire knows more than the code says; otherwise empty.
        is_code_told: The answer itself has the code. Otherwise the code is made from the HTTP
            status, which a proxy may have set.
        is_whole: The message says who refused: something other than the service.
    """

    code: int
    message: str
    details: JsonObject = field(default_factory=dict)
    unsure: bool = False
    remedy: str = ""
    # Where a code comes from is not part of what was refused.
    is_code_told: bool = field(default=False, compare=False)
    is_whole: bool = field(default=False, compare=False)


Reply: TypeAlias = Answer | WireRefusal


class Wire(Protocol):
    """A way to call operations."""

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Carry out independent calls and return what each gave, in their order.

        Calls that are sent together may be carried out in any order and may share a commit;
        a refused call never keeps another from being carried out.
        """
        ...


def lost(message: str, remedy: str = "") -> WireRefusal:
    """Return the reply of a call whose answer never came, or means nothing."""
    return WireRefusal(NO_ANSWER, message, unsure=True, remedy=remedy)


def unsent(message: str, remedy: str = "") -> WireRefusal:
    """Return the reply of a call that certainly was not carried out."""
    return WireRefusal(NO_ANSWER, message, remedy=remedy)


def is_read(call: Call) -> bool:
    """Return whether a call writes nothing."""
    verb, _, path = ADDRESSES[call.operation][0].partition(" ")
    return verb == "GET" or path.endswith("/_search")


FIRST_PAUSE = 0.1  # seconds; it doubles with each try
LONGEST_PAUSE = 5.0


def pause(tries: int, chance: float, asked: float) -> float:
    """Return the seconds to wait after so many tries.

    ``chance`` is a random number from 0 to 1, so that many clients do not come back at once.
    ``asked`` is what the service asked for; it is never undercut.
    """
    longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries - 1, 10))
    return max(asked, chance * longest)


AGAIN = "Run the command again; what was done is not repeated."
UNKNOWN = 2  # the code of gRPC for a failure that has no other
_MAX_MESSAGE = 500

# The service, or something on the way, failed in the middle; or an answer was lost.
_IN_THE_MIDDLE = frozenset({1, UNKNOWN, 4, Code.INTERNAL, Code.UNAVAILABLE, 15})

# A ZITADEL from 4.11.0 to 4.13.1 answers some refusals as unknown errors: those of its gateway and
# of its checks of fields, whose code stands in the sentence alone (zitadel#11786).
_CODES: Mapping[str, int] = {
    "InvalidArgument": Code.INVALID_ARGUMENT,
    "NotFound": Code.NOT_FOUND,
    "AlreadyExists": Code.ALREADY_EXISTS,
    "PermissionDenied": Code.PERMISSION_DENIED,
    "ResourceExhausted": Code.RESOURCE_EXHAUSTED,
    "FailedPrecondition": Code.PRECONDITION_FAILED,
    "Unimplemented": Code.UNIMPLEMENTED,
    "Unavailable": Code.UNAVAILABLE,
    "Unauthenticated": Code.UNAUTHENTICATED,
}
_WRAPPED = re.compile(rf"rpc error: code = ({'|'.join(_CODES)}) desc = (.*?)(?: \(\))?", re.DOTALL)

# gRPC code: what to raise, and what its reader can do.
_MEANINGS: Mapping[int, tuple[type[ServiceError], str]] = {
    Code.INVALID_ARGUMENT: (
        InvalidArgumentError,
        "Correct the manifest. Where `validate` accepts it, the service is the stricter one.",
    ),
    Code.NOT_FOUND: (
        ObjectNotFoundError,
        "It was removed, its id is wrong, or it is not visible to this token.",
    ),
    Code.ALREADY_EXISTS: (
        AlreadyExistsError,
        "Another object has the name. Run `reconciler plan` again to see it.",
    ),
    Code.PERMISSION_DENIED: (
        AccessDeniedError,
        "Use a token whose role allows this in the organization.",
    ),
    Code.RESOURCE_EXHAUSTED: (ServiceUnavailableError, AGAIN),
    Code.PRECONDITION_FAILED: (
        PreconditionFailedError,
        "It was changed after it was planned. Run `reconciler plan` again and review.",
    ),
    Code.ABORTED: (ServiceUnavailableError, AGAIN),
    Code.UNIMPLEMENTED: (
        ServiceError,
        "It lacks this call. Check the address and --service-kind, or upgrade the service.",
    ),
    Code.UNAVAILABLE: (ServiceUnavailableError, AGAIN),
    Code.UNAUTHENTICATED: (
        UnauthenticatedError,
        "Give a valid token in RECONCILER_TOKEN or with --token-file.",
    ),
}

_MAKE_ANOTHER = (
    "Make a new one with `reconciler token create`, then give it in RECONCILER_TOKEN or with "
    "--token-file."
)

# Reasons that say more than the code does: first those of our own service, then ZITADEL's.
_PATH = (
    "Correct the path of the address in --service; most have none. If it is right, the service is "
    "older than this program: upgrade it."
)
NO_ADDRESS = "address.unknown"
"""Id of a service of ours for an address that none of its operations has."""

_BY_ID: Mapping[str, tuple[type[ServiceError], str]] = {
    NO_ADDRESS: (ObjectNotFoundError, _PATH),
    "token.expired": (AccessDeniedError, _MAKE_ANOTHER),
    "token.revoked": (AccessDeniedError, _MAKE_ANOTHER),
    "AUTHZ-cdgFk": (
        AccessDeniedError,
        "Make the user of this token a member of the organization.",
    ),
    **{told: error for calls in CALLS.values() for told, error in calls.refusals.items()},
}


def no_custody() -> ServiceError:
    """Return the error of a service that keeps no secrets."""
    return ServiceError(
        "the service keeps no client secrets until they are delivered",
        remedy="Make a new secret: reconciler apply --rotate-missing REF.",
    )


def answers_of(wire: Wire, calls: Sequence[Call], lost: str = "") -> Sequence[JsonObject]:
    """Carry out calls and return their answers, in their order.

    Raises:
        LockHeldError: a call was aborted; ``lost`` says which lease the run lost.
        ServiceError: the wire failed, or a call was refused.
    """
    return [*answers_in(wire.send(calls) if calls else (), lost)]


def answers_in(replies: Iterable[Reply], lost: str = "") -> Iterator[JsonObject]:
    """Yield the answers before the first refusal.

    Raises:
        LockHeldError: a call was aborted; ``lost`` says which lease the run lost.
        ServiceError: a call was refused.
    """
    for reply in replies:
        if isinstance(reply, WireRefusal):
            if lost and reply.code == Code.ABORTED:
                raise LockHeldError(lost, remedy=AGAIN)
            raise service_error(reply)
        yield reply.fields


def service_error(refusal: WireRefusal) -> ServiceError:
    """Return the error that a refusal is, in words for the reader.

    It never says "refused" of a call that may have been carried out all the same.
    """
    kind, remedy = _MEANINGS.get(refusal.code, (ServiceError, AGAIN))
    kind, remedy = _BY_ID.get(error_id(refusal), (kind, remedy))
    # Last, as it overrules the rest: an error that says "refused" must mean "not carried out".
    if refusal.unsure or refusal.code == NO_ANSWER:
        kind, remedy = ServiceUnavailableError, AGAIN
    return kind(f"{_who(refusal)}{refusal.message}", remedy=refusal.remedy or remedy)


def _who(refusal: WireRefusal) -> str:
    if refusal.code == NO_ANSWER or refusal.is_whole:
        return ""
    return "the service failed: " if refusal.unsure else "the service refused: "


def refusal_in(
    fields: JsonObject, code: int = UNKNOWN, message: str = "no reason is given"
) -> WireRefusal:
    """Return the refusal in the body of an error, or one of this code and message."""
    # Bodies of proxies have fields of the same names, so nothing in them is taken unchecked.
    told = fields.get("code")
    # A number outside gRPC's is not believed; True is no number.
    is_told = type(told) is int and 1 <= told <= 16
    if type(told) is int and is_told:
        code = told
    said = fields.get("message")
    if isinstance(said, str) and said:
        message = said
    if code == UNKNOWN and (wrapped := _WRAPPED.fullmatch(message)):
        code, message = _CODES[wrapped[1]], wrapped[2]
    return WireRefusal(
        code,
        message[:_MAX_MESSAGE],
        _details(fields.get("details")),
        code in _IN_THE_MIDDLE,
        is_code_told=is_told,
    )


def _details(told: object) -> JsonObject:
    """Return the facts of every detail, by name; the first detail that says one counts."""
    facts: dict[str, object] = {}
    for detail in told if isinstance(told, Sequence) and not isinstance(told, str) else ():
        if isinstance(detail, dict):
            inner = detail.get("metadata")
            for name, value in {**(inner if isinstance(inner, dict) else {}), **detail}.items():
                facts.setdefault(name, value)
    return facts


def error_id(refusal: WireRefusal) -> str:
    """Return the id that ZITADEL gives every reason: in the details, or at the message's end.

    Newer servers may have a slug instead (``zitadel.error.v2.ErrorDetail``).
    """
    told, slug = refusal.details.get("id"), refusal.details.get("slug")
    if isinstance(told, str) and told:
        return told
    # ZITADEL ends its sentences with the id in parentheses: "... (COMMAND-1m88i)".
    in_words = re.search(r"\(([A-Za-z0-9]+-[A-Za-z0-9]+)\)\s*$", refusal.message)
    if in_words:
        return in_words[1]
    return slug if isinstance(slug, str) else ""
