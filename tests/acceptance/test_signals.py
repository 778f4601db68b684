"""A signal at any moment of a command ends it with its own code and without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run
from tests.program import environment

TRIES = 6
CAUGHT = 1 << (signal.SIGTERM - 1)
WITHIN = 30.0


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the program, and wait until its first own line has run."""
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WITHIN
    while process.poll() is None and not catches_signals(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return process


def catches_signals(pid: int) -> bool:
    """Tell whether a process has a handler for SIGTERM, as Python has none of its own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(mask, 16) & CAUGHT)


# The moments of each signal lie between those of the others.
@pytest.mark.parametrize(
    ("number", "first"), [(signal.SIGINT, 0), (signal.SIGTERM, 0.3), (signal.SIGHUP, 0.6)]
)
def test_a_signal_at_any_moment_leaves_no_traceback(
    run: Run, small: Path, number: signal.Signals, first: float
) -> None:
    """While modules load, while the command runs, and while the interpreter ends."""
    assert run("apply", "--auto-approve").code == 0
    began = time.monotonic()
    begin(small.parent, "plan").communicate(timeout=WITHIN)
    length = time.monotonic() - began
    codes = []
    for turn in range(TRIES):
        process = begin(small.parent, "plan")
        time.sleep(length * 1.1 * (turn + first) / TRIES)
        process.send_signal(number)
        out, err = process.communicate(timeout=WITHIN)
        codes.append(process.returncode)
        assert "Traceback" not in err, (turn, err)
        assert "Exception ignored" not in err, (turn, err)
        # Python gives signals back to the system in its last steps; a shell shows the same.
        assert process.returncode in {0, 128 + number, -number}, (turn, out, err)

    assert codes[0] == 128 + number
    assert codes.count(128 + number) >= TRIES // 4


AT_A_PLACE = """
import atexit, os, sys
number, place = int(sys.argv.pop(1)), sys.argv.pop(1)

class Value:
    def __del__(self):
        os.kill(os.getpid(), number)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == place:
            os.kill(os.getpid(), number)
        if name == "reconciler.plan.planner" and place == "value":
            Value()

sys.meta_path.insert(0, Finder())
if place == "end":
    atexit.register(os.kill, os.getpid(), number)
from reconciler.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "place",
    [
        "click",
        "reconciler.cli.plan",
        pytest.param("decimal", marks=pytest.mark.untraced),  # who measures has loaded it before
        "value",
        "end",
    ],
)
def test_a_signal_at_a_delicate_place_is_heard(
    run: Run, small: Path, number: signal.Signals, place: str
) -> None:
    """Modules load; an exception would be lost in the end of a value; the interpreter ends."""
    told = subprocess.run(
        [sys.executable, "-c", AT_A_PLACE, str(number.value), place, "plan"],
        cwd=small.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert told.returncode == 128 + number, told.stderr
    assert "Traceback" not in told.stderr
    assert "Exception ignored" not in told.stderr
