"""What the shell that starts the tests says changes no test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.program import environment
from tests.surroundings import UMASK, usual


def test_variables_that_change_what_a_program_does_are_taken_away() -> None:
    """What a test needs to run at all is kept, and times are those of one zone."""
    shell = {
        "CI": "true", "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "20",
        "LANG": "tr_TR.UTF-8", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "GIT_DIR": "/elsewhere",
        "RECONCILER_SERVICE": "sqlite:mine.db", "PGHOST": "db.example.com", "GITHUB_SHA": "1",
        "PATH": "/usr/bin", "HOME": "mine", "TIMES": "10", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip

    assert usual(shell) == {"PATH": "/usr/bin", "HOME": "mine", "TIMES": "10", "TZ": "UTC"}


def test_every_test_has_the_usual_surroundings() -> None:
    """The process of the tests, and all that it starts."""
    umask = os.umask(UMASK)
    os.umask(umask)

    assert dict(os.environ).items() >= usual(os.environ).items()
    assert not {"CI", "NO_COLOR", "LANG", "RECONCILER_SERVICE"} & set(environment())
    assert time.tzname[0] == "UTC"
    assert umask == UMASK
    assert not sys.dont_write_bytecode


def test_signals_that_a_shell_ignores_are_heard() -> None:
    """It starts what runs in its background with SIGINT ignored; nohup ignores SIGHUP."""
    ask = (
        "import signal; from tests.surroundings import settle_in; settle_in();"
        "print(signal.getsignal(2).__name__, signal.getsignal(1).name)"
    )
    shell = ["sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh", sys.executable, "-c", ask]

    found = subprocess.run(shell, capture_output=True, text=True, check=True)

    assert found.stdout == "default_int_handler SIG_DFL\n"
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
