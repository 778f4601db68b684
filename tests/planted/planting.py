"""Bugs that are put in on purpose, to see that the tests notice.

Each file of ``bugs`` plants one: a TOML table with

- ``bug``: what goes wrong, in a sentence,
- ``file``, ``was``, ``becomes``: the module, text that it has once, and the text instead,
- ``suite``: the arguments of pytest with which it must be noticed; as few tests as do,
- ``instead_of``: the bug it stands for, where that bug has no place in this program, and why.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUGS = Path(__file__).parent / "bugs"


@dataclass(frozen=True)
class Plant:
    """One bug and how it is put in."""

    name: str
    bug: str
    file: str
    was: str
    becomes: str
    suite: tuple[str, ...]
    instead_of: str = ""

    def planted(self, root: Path = ROOT) -> str:
        """Return the module with the bug in it.

        Raises:
            ValueError: the text is not there once, so that nobody knows where the bug belongs.
        """
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.was) != 1:
            raise ValueError(
                f"{self.file} has the text of {self.name} {text.count(self.was)} times"
            )
        return text.replace(self.was, self.becomes)


def plants() -> list[Plant]:
    """Return every bug, by name."""
    found = []
    for path in sorted(BUGS.glob("*.toml")):
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        found.append(Plant(path.stem, **{**fields, "suite": tuple(fields["suite"])}))
    return found
