"""Copies of the program beneath ``strace``, which watches or strikes them.

A script that is to be traced stops itself before its work, and goes on once a tracer is there.
Loading the program beneath a tracer would take far longer than the work does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.program import environment
from tests.warm import Copy

STOPS_WITHIN = 60.0
PAUSE = 0.005
# Linux with Yama lets a process be traced by its ancestors only, or by whom it names.
_SET_TRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)


def wait_for_tracer() -> None:
    """Stop this process until a tracer lets it go on."""
    ctypes.CDLL(None).prctl(_SET_TRACER, _ANY, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def run_traced(
    options: Sequence[str], script: str, arguments: Sequence[str], folder: Path, within: float
) -> subprocess.CompletedProcess[str]:
    """Run a script that calls ``wait_for_tracer`` to its end, beneath ``strace`` with options."""
    copy = Copy([script, *arguments], folder, environment())
    try:
        wait_until_stopped(copy)
        tracing = ["strace", *options, "-p", str(copy.pid)]
        with subprocess.Popen(tracing, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr
            said = tracer.stderr.readline()
            assert "attached" in said, said
            copy.send_signal(signal.SIGCONT)
            out, err = copy.communicate(within)
    finally:
        copy.kill()
    return subprocess.CompletedProcess(tracing, copy.wait(), out, err)


def wait_until_stopped(copy: Copy) -> None:
    """Wait until a process has stopped itself."""
    status, deadline = Path(f"/proc/{copy.pid}/stat"), time.monotonic() + STOPS_WITHIN
    while copy.poll() is None and time.monotonic() < deadline:
        if status.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T":
            return
        time.sleep(PAUSE)
    raise AssertionError("\n".join(copy.communicate(0)))
