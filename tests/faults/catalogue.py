"""The faults that reconciler must survive, a row for each kind.

A row's case is one seeded run: it brings a fault about in an empty folder, for real, and checks
afterwards what must always hold (I1 to I16, in ``docs/faults.md``). The same cases make the quick
tier, ``test_catalogue.py``, and the long one, ``make soak``.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults import rows

LOSSES = frozenset({"I1", "I3"})

Case = Callable[[random.Random, Path], int]


class ViolationError(AssertionError):
    """Something that must always hold did not."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


def must(holds: object, invariant: str, what: object = "") -> None:
    """Raise a violation unless something holds."""
    if not holds:
        raise ViolationError(invariant, str(what))


@dataclass(frozen=True)
class Row:
    """A kind of fault, the case that brings it about, and how many the quick tier runs.

    ``case`` takes dice and an empty folder, returns how many faults it brought about, and raises
    ``ViolationError``. A case that measures times is ``alone``: the soak runs no other beside it.
    """

    name: str
    fault: str
    case: Case
    quick: int
    alone: bool = False


def catalogue(*names: str) -> Mapping[str, Row]:
    """Return the rows of some names, or every row, by its name.

    Each module of ``rows`` lists its own as ``ROWS``. Those that mention none of the names are not
    loaded: a case of the soak is a process of its own, and all of them take seconds.
    """
    modules = sorted(module.name for module in pkgutil.iter_modules(rows.__path__))
    found = [
        row
        for module in modules
        if not names or _mentions(module, names)
        for row in importlib.import_module(f"{rows.__name__}.{module}").ROWS
    ]
    return {row.name: row for row in found if not names or row.name in names}


def _mentions(module: str, names: tuple[str, ...]) -> bool:
    source = Path(rows.__path__[0], f"{module}.py").read_text(encoding="utf-8")
    return any(f'"{name}"' in source for name in names)


def dice(seed: int, row: str, number: int) -> random.Random:
    """Return the dice of one case."""
    return random.Random(f"{seed}/{row}/{number}")
