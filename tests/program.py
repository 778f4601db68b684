"""The real program, as a real process, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.surroundings import usual
from tests.warm import SECONDS, Copy, can_be_warm

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


Run = Callable[..., Ran]


def environment(**more: str) -> dict[str, str]:
    """Return an environment that tells the program nothing, and more by keyword."""
    return {**usual(os.environ), "PYTHONPATH": str(ROOT), **more}


def run_fresh(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdin: str,
    flags: Sequence[str] = (),
) -> Ran:
    """Run the program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, *flags, "-m", "reconciler", *arguments],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def started(folder: Path, *arguments: str, **more: str) -> Copy:
    """Start the program in a folder; extra environment by keyword."""
    return Copy(arguments, folder, environment(**more))


def program(folder: Path, *flags: str) -> Run:
    """Return what runs the program in a folder; flags of Python, extra environment by keyword."""

    def run(*arguments: str, stdin: str = "", **more: str) -> Ran:
        if not flags and can_be_warm(more):
            copy = Copy(arguments, folder, environment(**more), stdin=stdin)
            out, err = copy.communicate(SECONDS)
            ran = Ran(copy.wait(), out, err)
        else:
            ran = run_fresh(arguments, folder, environment(**more), stdin, flags)
        assert "Traceback" not in ran.all, ran.all
        return ran

    return run
