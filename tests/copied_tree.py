"""A copy of this repository that a test may spoil, and pytest run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NOT_COPIED = (
    ".git",
    ".venv",
    ".reconciler",
    ".soak",
    ".coverage*",
    ".hypothesis",
    "__pycache__",
    "node_modules",
    "dist",
)
_WEB = Path("tests", "web", "node_modules")  # the stand-in for a ZITADEL has its messages from here


@dataclass(frozen=True)
class Outcome:
    """What came of one run of pytest.

    Attributes:
        code: As pytest exits; None where it was ended because it took too long.
        tests: The names of the tests that were run.
        failures: What each test that failed says, by its name.
        asserted: Those in which an assertion failed, and not something on the way to it.
    """

    code: int | None
    tests: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
    asserted: frozenset[str] = frozenset()


class CopiedTree:
    """The copy. Python in it imports the package from it, though another one is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told_in = folder / ".outcomes"
        shutil.copytree(
            ROOT, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED), dirs_exist_ok=True
        )
        if (ROOT / _WEB).exists():
            (folder / _WEB).symlink_to(ROOT / _WEB)
        self._check_import()

    def write(self, file: str, text: str) -> None:
        """Write a module. Its compiled form is removed: two texts may be of one size and second."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    def test(self, *arguments: str, within: float) -> Outcome:
        """Run pytest in the copy, and end it after so many seconds."""
        self._told_in.write_text("", encoding="utf-8")
        command = ["-m", "pytest", "-p", "tests.outcomes", "--outcomes", str(self._told_in)]
        process = subprocess.Popen(
            [sys.executable, *command, *arguments],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return Outcome(None)
        return self._told(code)

    def _environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        return {**clean, "PYTHONPATH": str(self.folder)}

    def _told(self, code: int) -> Outcome:
        lines = self._told_in.read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines]
        return Outcome(
            code,
            frozenset(one["test"] for one in told),
            {one["test"]: one["said"] for one in told if one["failed"]},
            frozenset(one["test"] for one in told if one["failed"] and one["asserted"]),
        )

    def _check_import(self) -> None:
        asked = "import reconciler; print(reconciler.__file__)"
        told = subprocess.run(
            [sys.executable, "-c", asked],
            cwd=self.folder.parent,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert Path(told).is_relative_to(self.folder), f"{told} is not in the copy"


@contextmanager
def a_copied_tree() -> Iterator[CopiedTree]:
    """Copy the repository as it is now, changes that are not committed included."""
    with tempfile.TemporaryDirectory(prefix="copied-tree-") as folder:
        yield CopiedTree(Path(folder) / "tree")
