"""What the design aims at, each aim beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Aim(NamedTuple):
    """A figure, and the bound that it should keep.

    Attributes:
        is_least: Whether the bound is the least that is good enough, and not the most.
    """

    work: str
    bound: float
    measured: float
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        """Say whether the figure, as it is shown, keeps its bound."""
        shown, bound = round(self.measured, 2), round(self.bound, 2)
        return shown >= bound if self.is_least else shown <= bound

    def row(self) -> str:
        """Return the figure as a row of a table."""
        bound = f"at {'least' if self.is_least else 'most'} {round(self.bound, 2):g}"
        met = "met" if self.is_met else "**missed**"
        return f"| {self.work} | {bound} | {self.measured:.2f} | {met} |"


def table(aims: Sequence[Aim]) -> list[str]:
    """Return a section of results with every aim."""
    head = ["", "## Aims", "", "| work | aim | measured | |", "|---|---|---|---|"]
    return [*head, *(aim.row() for aim in aims)]
