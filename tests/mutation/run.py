"""Changes a part in small ways, one at a time, and runs its tests: ``make mutate PART=planner``.

The changes are mutmut's: a comparison turned round, a constant moved by one, an argument left out.
A change that the tests do not notice is shown. Not counted are sentences for people in other
words, and the few changes that are listed as making no difference. Ends with 1 where less than
nine in ten were noticed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from tests.copied_tree import CopiedTree, a_copied_tree
from tests.mutation.parts import PARTS, Part
from tests.mutation.survivors import Mutant, mutants

ENOUGH = 0.9


def _settings(part: Part) -> str:
    lists = {
        "source_paths": ["reconciler/"],
        "only_mutate": part.modules,
        "pytest_add_cli_args_test_selection": part.tests,
        "pytest_add_cli_args": ("-p", "no:xdist", "-p", "no:randomly", *part.options),
        "also_copy": ("tests", "schemas", "manifests", "docs", "README.md", "pyproject.toml"),
    }
    lines = ["[mutmut]"]
    for name, values in lists.items():
        lines += [f"{name}=", *(f"    {value}" for value in values)]
    return "\n".join([*lines, ""])


def _tried(tree: CopiedTree, part: Part) -> Sequence[Mutant]:
    (tree.folder / "mutants").mkdir()
    (tree.folder / "setup.cfg").write_text(_settings(part), encoding="utf-8")
    with (tree.folder / "mutmut.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "mutmut", "run", "--max-children", "1"],
            cwd=tree.folder,
            env={**os.environ, "PYTHONPATH": str(tree.folder / "mutants")},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        said = (tree.folder / "mutmut.log").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"mutmut failed:\n{said[-3000:]}")
    return list(mutants(tree.folder))


def _told(name: str, found: Sequence[Mutant]) -> bool:
    """Tell what came of a part, and return whether it is good enough."""
    counted = [one for one in found if not one.is_words and not one.is_equivalent]
    noticed = sum(one.noticed for one in counted)
    for one in counted:
        if not one.noticed:
            sys.stdout.write("\n".join([one.name, *one.change, ""]) + "\n")
    words = [one for one in found if one.is_words]
    sys.stdout.write(
        f"{name}: {noticed} of {len(counted)} changes noticed ({noticed / len(counted):.1%}); "
        f"not counted: {sum(one.is_equivalent for one in found)} that make no difference, "
        f"{len(words)} of sentences ({sum(one.noticed for one in words)} noticed)\n"
    )
    sys.stdout.flush()
    return noticed >= ENOUGH * len(counted)


def main() -> int:
    """Try the part that is named, or all."""
    asked = argparse.ArgumentParser(prog="make mutate", description=__doc__.splitlines()[0])
    asked.add_argument("part", nargs="?", choices=PARTS)
    named = asked.parse_args().part
    is_enough = True
    os.nice(15)
    for name in [named] if named else PARTS:
        with a_copied_tree() as tree:
            is_enough &= _told(name, _tried(tree, PARTS[name]))
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
