"""The same surroundings for every test, whatever the shell that started the tests says.

Variables that change what a program does are taken away, files are made with the usual rights, and
signals do what they usually do. A test that is about one of these sets it itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping

UMASK = 0o022
# A shell starts what runs in its background with the first ignored, and nohup with the second.
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
# Of this program, of CI services, of Git (a hook has them), of PostgreSQL, and of the language.
_FAMILIES = ("RECONCILER", "CI_", "GITHUB_", "GITLAB_", "GIT_", "PG", "LC_")
_SINGLE = frozenset(
    {
        "CI",
        "COLORTERM",
        "COLUMNS",
        "EDITOR",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LINES",
        "NO_COLOR",
        "PAGER",
        "PYTHONDONTWRITEBYTECODE",  # every process would compile what it imports
        "PYTHONHASHSEED",
        "PYTHONWARNINGS",
        "SOURCE_DATE_EPOCH",
        "TERM",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    }
)


def usual(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that change what a program does."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _SINGLE and not name.startswith(_FAMILIES)
    }
    return {**kept, "TZ": "UTC"}


def settle_in() -> None:
    """Give this process, and all that it starts, the usual surroundings."""
    wanted = usual(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    sys.dont_write_bytecode = False  # the modules of tests, too, are compiled once
    time.tzset()
    os.umask(UMASK)
    for number in IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            is_interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
