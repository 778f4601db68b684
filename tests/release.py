"""The files of a release, made of the files that the tests try: what CI set-ups install.

They are kept beside the libraries of this environment, by a hash of all that they are made of, so
that one build serves every worker and every session.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler.resources.installation import WHEEL
from tests.architecture.test_house_rules import FILES
from tests.program import ROOT

KEPT = Path(sys.prefix) / "releases-of-tests"
AT = "2026-01-01T00:00:00Z"  # of the commit, and so of every file in the archives


@cache
def release() -> Path:
    """Return the folder that ``make dist`` makes of the files of this checkout."""
    folder = KEPT / _digest()
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for other in KEPT.iterdir():
                if other.is_dir():
                    shutil.rmtree(other)
            with TemporaryDirectory() as source:
                commit_files(Path(source))
                shutil.copytree(build(Path(source)), folder.with_suffix(".new"))
            folder.with_suffix(".new").rename(folder)
    return folder


def wheel() -> Path:
    """Return the wheel of that release."""
    return release() / WHEEL


def put_into_checkout() -> None:
    """Let this checkout have a ``dist/``, as it is set up to have; one that is there stays."""
    if not (ROOT / "dist" / WHEEL).exists():
        made = release()
        with (KEPT / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (ROOT / "dist").mkdir(exist_ok=True)
            # The wheel comes last, and whole: other workers look for it without the lock.
            for path in sorted(made.iterdir(), key=lambda path: path.name == WHEEL):
                new = ROOT / "dist" / f".{path.name}.new"
                shutil.copy2(path, new)
                new.replace(ROOT / "dist" / path.name)


def _digest() -> str:
    told = hashlib.sha256(sys.version.encode())
    for path in FILES:
        told.update(f"\0{path.relative_to(ROOT)}\0{path.stat().st_mode}\0".encode())
        told.update(path.read_bytes())
    return told.hexdigest()


def commit_files(source: Path) -> None:
    """Make a repository of the files of this checkout, with one commit."""
    for path in FILES:
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    git(source, "init", "--quiet")
    git(source, "add", "--all", "--force")
    git(source, "commit", "--quiet", "--message", "All")


def git(folder: Path, *arguments: str) -> None:
    told: Sequence[str] = ["-c", "user.name=a", "-c", "user.email=a@example.com",
                           "-c", "commit.gpgsign=false"]  # fmt: skip
    known = {**os.environ, "GIT_COMMITTER_DATE": AT, "GIT_AUTHOR_DATE": AT}
    subprocess.run(
        ["git", *told, *arguments], cwd=folder, check=True, capture_output=True, env=known
    )


def build(clone: Path, umask: int = 0o022) -> Path:
    """Build the files of a release as ``make dist`` does; return their folder."""
    subprocess.run(
        [clone / ".ci" / "build-dist"],
        env={**os.environ, "PYTHON": sys.executable},
        umask=umask,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return clone / "dist"
