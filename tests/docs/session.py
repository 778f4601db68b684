"""Console blocks of a document, run in one shell and compared with what the document shows.

In a block, a line that begins with ``$ `` is a command, ``> `` continues it, and every other line
is output. ``[...]`` stands for any lines. Ids, digests, times and ports may differ; everything
else must be the same, except for blank lines around an output.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.program import environment
from tests.warm_client import warm_program

ANY_LINES = "[...]"
ENDS_WITHIN = 120.0  # seconds
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_QUESTION = "Only the word yes will do: "
_VARIES = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<instance>"),
    (re.compile(r"\b[0-9]{15,20}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?Z| UTC)?"), "<time>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
)


@dataclass(frozen=True)
class Command:
    """A command as a shell reads it, and the output that the document shows, if it shows any."""

    words: str
    shown: str | None


def blocks_of(text: str) -> list[list[Command]]:
    """Return the commands of each console block of a document."""
    return [list(_commands_of(block[1])) for block in _BLOCK.finditer(text)]


def _commands_of(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = 1
        while end < len(lines) and (lines[end].startswith("> ") or lines[end] == ">"):
            end += 1
        words = "\n".join([lines[0], *(line[2:] for line in lines[1:end])])
        yield Command(words, "\n".join(lines[end:]))


def matches(shown: str, seen: str) -> bool:
    """Return whether an output is what a document shows."""
    begin, *others = [part.splitlines() for part in _alike(shown).split(f"{ANY_LINES}\n")]
    lines = _alike(seen).splitlines()
    if not others:
        return lines == begin
    *between, end = others
    if lines[: len(begin)] != begin or lines[len(lines) - len(end) :] != end:
        return False
    rest = lines[len(begin) : len(lines) - len(end)]
    for part in between:
        starts = (at for at in range(len(rest)) if rest[at : at + len(part)] == part)
        at = next(starts, None)
        if at is None:
            return False
        rest = rest[at + len(part) :]
    return True


def _alike(text: str) -> str:
    """Return an output with a word for what may differ, without blank lines around it."""
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return lines.strip("\n") + "\n"


def run_session(folder: Path, commands: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """Run commands in one shell, with a home of its own; return what each printed.

    The shell asks at a terminal: each question of the program is answered with ``yes``.
    """
    home = folder.parent / "home"
    _make_home(home)
    mark = "~~ next ~~"
    script = "".join(f"{command}\necho '{mark}'\n" for command in commands)
    path = f"{home / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    known = {"HOME": str(home), "PATH": path, "USER": "ana", "LOGNAME": "ana", **given}
    with _terminal(script.count("\n")) as terminal:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment(**known),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_WITHIN,
            check=False,
        )
    text = done.stdout.replace(_QUESTION, f"{_QUESTION}yes\n")
    return text.split(f"{mark}\n")[:-1]


def _make_home(home: Path) -> None:
    """Make a home with the program, as copies of one that is loaded, and a name for Git."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "reconciler"
    program.write_text(warm_program())
    program.chmod(0o755)
    (home / ".gitconfig").write_text("[user]\n\tname = Ana\n\temail = ana@example.com\n")


@contextmanager
def _terminal(lines: int) -> Iterator[int]:
    """Yield a terminal at which ``yes`` was typed often enough."""
    ours, theirs = pty.openpty()
    drain = threading.Thread(target=_drain, args=(ours,), daemon=True)
    drain.start()
    try:
        os.write(ours, b"yes\n" * min(lines, 100))
        yield theirs
    finally:
        os.close(theirs)
        drain.join(5)
        os.close(ours)


def _drain(terminal: int) -> None:
    """Read the echo, so that the terminal never fills."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # EIO: the other end is closed
        return
