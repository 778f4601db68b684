"""What all test processes of a run use together: the first that needs it makes it.

The first process of a run makes a folder for that, tells the others of it in the environment, and
removes it at its end.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_VARIABLE = "PYTEST_SHARED_FOLDER"  # runs of pytest within tests are told nothing of this name


def shared_folder() -> tuple[Path, int]:
    """Return the folder of this run of tests, and the id of the process that removes it."""
    if _VARIABLE not in os.environ:
        folder = tempfile.mkdtemp(prefix="tests-")
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[_VARIABLE] = f"{os.getpid()}:{folder}"
    process, _, folder = os.environ[_VARIABLE].partition(":")
    return Path(folder), int(process)


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, in this process or in another one of the run."""
    folder = shared_folder()[0] / name
    made = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
