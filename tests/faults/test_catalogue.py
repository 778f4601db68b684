"""The quick tier: a few cases of every row, the same ones each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.catalogue import Row, catalogue, dice

SEED = 1
CASES = [
    pytest.param(row, number, id=f"{row.name}-{number}")
    for row in catalogue().values()
    for number in range(row.quick)
]


@pytest.mark.parametrize(("row", "number"), CASES)
def test_what_must_hold_holds_after_the_fault(row: Row, number: int, tmp_path: Path) -> None:
    """The case raises if it does not; a case without a fault would prove nothing."""
    assert row.case(dice(SEED, row.name, number), tmp_path) > 0
