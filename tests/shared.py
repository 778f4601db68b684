"""What all test processes of a run use together: the first that needs it makes it.

The first process of a run makes a folder for that, tells the others of it in the environment, and
removes it at its end. Where there is room in memory, tests have their temporary files in it too:
they make and sync tens of thousands, and none is read after the run.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

MEMORY = Path("/dev") / "shm"
ROOM = 3 << 30  # bytes that must be free in it: three times what all tests together leave
MEMINFO = Path("/proc") / "meminfo"
_PREFIX = "recon-run-"  # no other program names a folder so; short, for the paths of sockets
_VARIABLE = "PYTEST_SHARED_FOLDER"  # runs of pytest within tests are told nothing of this name


def shared_folder() -> tuple[Path, int]:
    """Return the folder of this run of tests, and the id of the process that removes it."""
    if _VARIABLE not in os.environ:
        made = tempfile.mkdtemp(prefix=_PREFIX)
        while not _is_locked(Path(made), fcntl.LOCK_EX):  # another run removed it before
            made = tempfile.mkdtemp(prefix=_PREFIX)
        Path(made).chmod(0o755)  # PostgreSQL runs as another user
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        os.environ[_VARIABLE] = f"{os.getpid()}:{made}"
    process, _, folder = os.environ[_VARIABLE].partition(":")
    return Path(folder), int(process)


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, in this process or in another one of the run."""
    folder = shared_folder()[0] / name
    made = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # an earlier call may have failed
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


def use_memory() -> None:
    """Make this run's temporary files in memory, unless ``TMPDIR`` says where to make them.

    Nothing is lost that a test could see: a process that is killed loses no written byte on a disk
    either, and what must be synced before what is seen in the calls that a process makes.
    """
    if "TMPDIR" in os.environ or _VARIABLE in os.environ or not has_room(MEMORY):
        return
    for left in MEMORY.glob(f"{_PREFIX}*"):  # by a run that was killed
        if _is_locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(left, ignore_errors=True)
    tempfile.tempdir = str(MEMORY)
    tempfile.tempdir = os.environ["TMPDIR"] = str(shared_folder()[0])


def has_room(folder: Path) -> bool:
    """Return whether programs can be run in a folder in memory, and enough is free there.

    A folder in memory tells only its own limit, however much memory is in use.
    """
    try:
        found = os.statvfs(folder)
    except FileNotFoundError:
        return False
    if found.f_flag & os.ST_NOEXEC or found.f_bavail * found.f_frsize < ROOM:
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB$", MEMINFO.read_text(), re.MULTILINE)
    return available is not None and int(available[1]) * 1024 >= ROOM


def _is_locked(folder: Path, how: int) -> bool:
    """Lock a folder until this process ends; return whether that was possible.

    The id of a process would not tell whether a run goes on: containers that share the memory
    do not see each other's processes.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        return False
    return folder.exists()
