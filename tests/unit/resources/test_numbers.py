"""Ranges of numbers hold in the decoder of saved files, and cost nothing elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from reconciler.resources.numbers import MAX_SEQUENCE, Count, Seconds, SequenceNumber
from reconciler.resources.strict_json import JsonError, read_as


@dataclass(frozen=True)
class Numbers:
    """One number of each range."""

    count: Count = 0
    seconds: Seconds = 0
    sequence: SequenceNumber = 0


@pytest.mark.parametrize(
    ("name", "most"), [("count", 2**31 - 1), ("seconds", 2**53 - 1), ("sequence", MAX_SEQUENCE)]
)
def test_both_ends_of_a_range_belong_to_it(name: str, most: int) -> None:
    """One less or one more is refused, and the field is named."""
    for number in (0, most):
        read = read_as(Numbers, f'{{"{name}": {number}}}'.encode())
        assert getattr(read, name) == number
    for number in (-1, most + 1):
        with pytest.raises(JsonError, match=f"^has a field {name} that is not "):
            read_as(Numbers, f'{{"{name}": {number}}}'.encode())
