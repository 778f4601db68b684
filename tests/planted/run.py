"""Plants each bug in a copy of the tree and runs the suite that must notice: ``make planted``.

A bug is noticed where an assertion of the suite fails. An import that breaks, a test that is no
longer found, or a run that never ends proves nothing. Ends with 1 if a bug was not noticed.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache

from tests.copied_tree import CopiedTree, Outcome, a_copied_tree
from tests.planted.planting import Plant, plants

WITHIN = 300.0


class Garden:
    """A copy of the tree, and what its suites say of each bug."""

    def __init__(self, tree: CopiedTree) -> None:
        self._tree = tree
        self._sound = cache(self._run)

    def _run(self, suite: tuple[str, ...]) -> Outcome:
        return self._tree.test(*suite, within=WITHIN)

    def survives(self, plant: Plant) -> tuple[str, int]:
        """Return why a bug was not noticed, or nothing; and how many tests noticed it."""
        sound = self._sound(plant.suite)
        if sound.code != 0 or not sound.tests:
            return f"without it, too, the suite fails: {min(sound.failures, default='')}", 0
        before = (self._tree.folder / plant.file).read_text(encoding="utf-8")
        self._tree.write(plant.file, plant.planted(self._tree.folder))
        try:
            found = self._run(plant.suite)
        finally:
            self._tree.write(plant.file, before)
        return _why_not(sound, found), len(found.asserted)


def _why_not(sound: Outcome, found: Outcome) -> str:
    if found.code is None:
        return "the suite never ended"
    if found.code == 0:
        return "the suite passed"
    if found.tests != sound.tests:
        return f"{len(found.tests)} of {len(sound.tests)} tests were run"
    if not found.asserted:
        return f"no assertion failed, but: {min(found.failures.values(), default='')[:100]}"
    return ""


def main() -> int:
    """Plant the bugs that are named, or all."""
    asked = argparse.ArgumentParser(prog="make planted", description=__doc__.splitlines()[0])
    asked.add_argument("names", nargs="*", metavar="NAME", help="bugs to plant; all by default")
    names = asked.parse_args().names
    chosen = [plant for plant in plants() if not names or plant.name in names]
    survivors = 0
    with a_copied_tree() as tree:
        garden = Garden(tree)
        for plant in chosen:
            began = time.monotonic()
            why, tests = garden.survives(plant)
            seconds = time.monotonic() - began
            survivors += why != ""
            said = f"SURVIVES: {why}" if why else f"noticed by {tests} test(s)"
            sys.stdout.write(f"{plant.name:34} {seconds:6.1f} s  {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} bugs were noticed\n")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
