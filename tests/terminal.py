"""The real program on a real terminal: a pseudo-terminal for its stdin, stdout and stderr."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.acceptance.conftest import Ran
from tests.program import environment

ENDS_WITHIN = 120.0  # seconds
COLUMNS = 100


def on_terminal(
    folder: Path, *arguments: str, typed: str = "", prompt: str = "", **more: str
) -> Ran:
    """Run the program on a terminal of the usual width."""
    return on_terminal_of(COLUMNS, folder, *arguments, typed=typed, prompt=prompt, **more)


def on_terminal_of(
    columns: int, folder: Path, *arguments: str, typed: str = "", prompt: str = "", **more: str
) -> Ran:
    """Run the program on a terminal; its ``out`` is what the terminal was sent.

    With a prompt the text is typed once that was shown: a question for a secret drops what was
    typed before it.
    """
    return _ran(columns, folder, arguments, (prompt, lambda: None, typed), more)


def approved_after(
    meanwhile: Callable[[], object], folder: Path, *arguments: str, **more: str
) -> Ran:
    """Run the program on a terminal, and do something before its plan is approved there."""
    return _ran(COLUMNS, folder, arguments, (_QUESTION, meanwhile, "yes\n"), more)


_QUESTION = "Only the word yes will do: "
_Answering: TypeAlias = tuple[str, Callable[[], object], str]
"""A prompt, what is done once it was shown, and what is typed then."""


def _ran(
    columns: int,
    folder: Path,
    arguments: Sequence[str],
    answering: _Answering,
    more: Mapping[str, str],
) -> Ran:
    prompt, meanwhile, typed = answering
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # line ends as they were written
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", *arguments],
        cwd=folder,
        env={**environment(**more), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        text = _read(ours, until=prompt) if prompt else ""
        meanwhile()
        os.write(ours, typed.encode())
        text += _read(ours)
        code = process.wait(ENDS_WITHIN)
    os.close(ours)
    ran = Ran(code, text, "")
    assert "Traceback" not in ran.all, ran.all
    return ran


def _read(terminal: int, until: str = "") -> str:
    """Return what a terminal was sent: up to a text, or all of it."""
    content, deadline = b"", time.monotonic() + ENDS_WITHIN
    while not until or until.encode() not in content:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        try:
            part = os.read(terminal, 65536) if ready else b""
        except OSError:  # EIO: the program has closed its end
            break
        if not part:
            break
        content += part
    return content.decode()
