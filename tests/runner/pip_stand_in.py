"""Stands where pip does in the environments of jobs: the first installation is real, then copied.

``python -m pip install ...`` of the same arguments, requirements and files that they name gives the
same packages, so the second job that asks gets links to what pip installed for the first one.
The real pip is that of the Python which runs the tests. It looks through every file of every
version on an index, which takes half a minute: so the wheels of a lock are fetched once for an
environment, and installed from there; both by their hashes. Only what is imported is compiled.

Where a job has ``RUNNER_PROGRAM``, its text stands in the place of our tool's command.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

PACKAGES = Path(sysconfig.get_path("purelib"))
SCRIPTS = Path(sys.prefix) / "bin"
KEPT = Path(os.environ.get("RUNNER_INSTALLS", ""))
WHEELS = Path(os.environ.get("RUNNER_WHEELS", ""))
PROGRAM = os.environ.get("RUNNER_PROGRAM", "")


def main() -> int:
    """Install, or copy what was installed before."""
    if any(Path(argument).is_dir() for argument in sys.argv[1:]):  # built from a whole tree
        return _real(sys.argv[1:])
    kept = KEPT / _key(sys.argv[1:])
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            return _install(kept)
    _copy(kept)
    return 0


def _key(arguments: list[str]) -> str:
    """Return what an installation depends on: the command, and the bytes of every file in it.

    Requirements name files of the folder that pip is run in, so those count as well.
    """
    told = hashlib.sha256()
    for argument in arguments:
        told.update(b"\0" + (_digest(Path(argument)) or argument.encode()))
    for file in sorted(path for path in Path().iterdir() if path.is_file()):
        told.update(f"\0{file}\0".encode() + _digest(file))
    return told.hexdigest()


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b""


def _install(kept: Path) -> int:
    before = {path.name for path in [*PACKAGES.iterdir(), *SCRIPTS.iterdir()]}
    code = _real(sys.argv[1:])
    if code == 0:
        made = kept.with_suffix(".new")
        for folder in (PACKAGES, SCRIPTS):
            for path in folder.iterdir():
                if path.name not in before:
                    _link(path, made / path.relative_to(sys.prefix))
        made.rename(kept)
        if PROGRAM:
            _write(SCRIPTS / "reconciler", PROGRAM)
    return code


def _real(arguments: list[str]) -> int:
    """Install by the real pip, of wheels that were fetched; return its exit code."""
    locks = [Path(file) for flag, file in pairwise(arguments) if flag in {"-r", "--requirement"}]
    return _fetched(locks) or _pip(
        arguments, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(WHEELS), PIP_NO_COMPILE="0"
    )


def _fetched(locks: list[Path]) -> int:
    """Fetch the wheels that requirements name, unless they are there; return an exit code."""
    WHEELS.mkdir(exist_ok=True)
    with (WHEELS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for text in (file.read_text(encoding="utf-8") for file in locks):
            # The tool itself is a file beside the requirements; the rest has names.
            named = re.sub(r"(?m)^(?:#.*|\./(?:.*\\\n)*.*)\n?", "", text)
            there = WHEELS / f"{hashlib.sha256(named.encode()).hexdigest()}.txt"
            if there.exists():
                continue
            there.with_suffix(".new").write_text(named, encoding="utf-8")
            how = ["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
            asked = ["--dest", str(WHEELS), "--requirement", str(there.with_suffix(".new"))]
            if code := _pip([*how, *asked]):
                return code
            there.with_suffix(".new").rename(there)
    return 0


def _pip(arguments: list[str], **environment: str) -> int:
    """Run the real pip; return its exit code."""
    run = "import runpy, sys; sys.path.insert(0, {!r}); runpy.run_module('pip', None, '__main__')"
    command = [sys.executable, "-c", run.format(_real_pip()), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def _real_pip() -> str:
    """Return a folder with the pip of the runner's Python and nothing else."""
    asked = "import pip; print(pip.__path__[0])"
    python = os.environ["RUNNER_PYTHON"]
    found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    link = KEPT / "real-pip" / "pip"
    if not link.exists():
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(found.stdout.strip())
    return str(link.parent)


def _copy(kept: Path) -> None:
    for path in kept.glob("lib/python*/site-packages/*"):
        (Path(sys.prefix) / path.relative_to(kept)).symlink_to(path)
    for path in kept.glob("bin/*"):  # its first line names the Python of another job
        first, rest = path.read_text(encoding="utf-8").split("\n", 1)
        assert first.startswith("#!")
        text = PROGRAM if path.name == "reconciler" else ""
        _write(SCRIPTS / path.name, text or f"#!{sys.executable}\n{rest}")


def _write(script: Path, text: str) -> None:
    script.unlink(missing_ok=True)  # its bytes are those of the installation that is kept
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)


def _link(path: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, copy, copy_function=os.link)
    else:
        os.link(path, copy)


if __name__ == "__main__":
    sys.exit(main())
