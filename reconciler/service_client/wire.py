"""The wire: operations of the identity service, called by name with JSON-shaped fields.

One client speaks over every wire. In process, the wire calls the very operations that the
transports of a server call; over HTTP it sends them. Operation names, fields and answers are
those of the JSON face (source 4, wire facts 1.2 and 1.3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from reconciler.resources.call import ADDRESSES, Call, JsonObject

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
    """

    code: int
    message: str
    details: JsonObject = field(default_factory=dict)
    unsure: bool = False
    remedy: str = ""
    # Where a code comes from is not part of what was refused.
    is_code_told: bool = field(default=False, compare=False)


Reply: TypeAlias = Answer | WireRefusal


class Wire(Protocol):
    """A way to call operations."""

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Carry out independent calls and return what each gave, in their order.

        Calls that are sent together may be carried out in any order and may share a commit;
        a refused call never keeps another from being carried out.
        """
        ...


# Not only digits: a ZITADEL may have ids of another form. No separator of paths or headers.
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def is_id(text: object) -> bool:
    """Return whether a text can be the id of an object: it goes into addresses and headers."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def lost(message: str) -> WireRefusal:
    """Return the reply of a call whose answer never came, or means nothing."""
    return WireRefusal(NO_ANSWER, message, unsure=True)


def unsent(message: str, remedy: str = "") -> WireRefusal:
    """Return the reply of a call that certainly was not carried out."""
    return WireRefusal(NO_ANSWER, message, remedy=remedy)


def is_read(call: Call) -> bool:
    """Return whether a call writes nothing."""
    verb, _, path = ADDRESSES[call.operation][0].partition(" ")
    return verb == "GET" or path.endswith("/_search")
