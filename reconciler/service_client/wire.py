"""The wire: operations of the identity service, called by name with JSON-shaped fields.

One client speaks over every wire. In process, the wire calls the very operations that the
transports of a server call; over HTTP it sends them. Operation names, fields and answers are
those of the JSON face (source 4, wire facts 1.2 and 1.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.resources.call import Call

NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operation, JSON-shaped."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WireRefusal:
    """The refusal of an operation: gRPC code, sentence, and further details from the service.

    Attributes:
        code: One of gRPC's, or ``NO_ANSWER``.
        unsure: Whether the call, or an earlier try of it, may have been carried out all the
            same: its answer was lost, or came from somewhere on the way.
        remedy: What to do, where the wire knows more than the code says; otherwise empty.
    """

    code: int
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    unsure: bool = False
    remedy: str = ""


class Wire(Protocol):
    """A way to call operations."""

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Carry out independent calls and return what each gave, in their order.

        Calls that are sent together may be carried out in any order and may share a commit;
        a refused call never keeps another from being carried out.
        """
        ...
