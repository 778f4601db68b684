"""Ranges of whole numbers, as annotations of the fields that have them.

Python itself ignores them; the strict decoder of saved files holds each number to its range.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias


class Within(NamedTuple):
    """A range; both ends belong to it."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Hold a number to the range. Pydantic calls this, so it need not be imported here."""
        return {**handler(source), "ge": self.least, "le": self.most}


MAX_SEQUENCE = 2**64 - 1

SequenceNumber: TypeAlias = Annotated[int, Within(0, MAX_SEQUENCE)]
"""The number of an event: a uint64 on the wire."""

Count: TypeAlias = Annotated[int, Within(0, 2**31 - 1)]
"""A number of things, or of a line or a column."""

Seconds: TypeAlias = Annotated[int, Within(0, 2**53 - 1)]
"""A time since the epoch; any JSON reader holds it exactly, and not every one has a date."""
