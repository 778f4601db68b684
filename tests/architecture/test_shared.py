"""What test processes share is made once, and is gone after the run, even one that was killed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import shared
from tests.shared import made_once, shared_folder

ROOT = Path(__file__).parents[2]
# Prints the folder of a run of its own, with a file for each time that something was made in it.
A_RUN = """
import os, sys
from pathlib import Path
from tests import shared
shared.MEMORY, shared.has_room = Path(sys.argv[1]), Path.exists
shared.use_memory()
shared.made_once("thing", lambda folder: (folder / "file").touch())
print(os.environ["TMPDIR"], *shared.made_once("thing", lambda folder: 1 / 0).iterdir())
sys.stdout.flush()
if "killed" in sys.argv:
    os.kill(os.getpid(), 9)
"""


def a_run(memory: Path, *how: str) -> list[Path]:
    """Run it in a process of its own, and return what it printed."""
    told = {"TMPDIR", *(name for name in os.environ if "PYTEST" in name)}
    clean = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(
        [sys.executable, "-c", A_RUN, memory, *how],
        cwd=ROOT,
        env=clean,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return [Path(path) for path in done.stdout.split()]


def test_what_several_ask_for_at_once_is_made_once() -> None:
    """The others wait for it."""
    made: list[Path] = []
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: made_once(f"once-{os.getpid()}", made.append), range(8))]

    assert found == made * 8
    assert len(made) == 1


def test_what_could_not_be_made_is_tried_again() -> None:
    """Each caller is told the cause, not that a folder is there."""
    name = f"failing-{os.getpid()}"

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("the cause")

    for _ in range(2):
        with pytest.raises(ValueError, match="the cause"):
            made_once(name, fail)

    assert [*made_once(name, lambda _: None).iterdir()] == []


def test_a_run_leaves_nothing_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """Files in memory would take it until the machine is started again."""
    theirs = tmp_path / "tests-of-others"
    theirs.mkdir()
    running = tmp_path / f"{shared._PREFIX}running"  # perhaps in another container
    running.mkdir()
    descriptor = os.open(running, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    killed, file = a_run(tmp_path, "killed")
    assert {*tmp_path.iterdir()} == {killed, theirs, running}
    assert file.is_relative_to(killed)

    ended, _ = a_run(tmp_path)
    assert ended.parent == tmp_path
    assert {*tmp_path.iterdir()} == {theirs, running}

    os.close(descriptor)
    a_run(tmp_path)
    assert [*tmp_path.iterdir()] == [theirs]


def test_a_run_of_its_own_is_told_of_the_folder() -> None:
    """Every process of a run has the same, and knows who removes it."""
    folder, process = shared_folder()
    assert folder.is_dir()
    assert Path("/proc", str(process)).exists()


@pytest.mark.parametrize(
    ("flags", "free", "available", "found"),
    [
        pytest.param(0, 3 << 20, 3 << 20, "enough", id="just enough"),
        pytest.param(os.ST_NOEXEC, 3 << 20, 3 << 20, "not enough", id="no programs"),
        pytest.param(0, (3 << 20) - 1, 3 << 20, "not enough", id="a small folder"),
        pytest.param(0, 3 << 20, (3 << 20) - 1, "not enough", id="memory that others use"),
    ],
)
def test_memory_is_used_where_there_is_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: int,
    free: int,
    available: int,
    found: str,
) -> None:
    """On a small machine the files are on the disk; sizes are in KiB."""
    told = SimpleNamespace(f_flag=flags, f_bavail=free, f_frsize=1024)
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemFree:     1 kB\nMemAvailable:  {available} kB\nBuffers:   2 kB\n")
    monkeypatch.setattr(shared, "MEMINFO", meminfo)

    assert shared.has_room(tmp_path) is (found == "enough")


def test_there_is_no_room_where_there_is_no_folder(tmp_path: Path) -> None:
    """Other systems have no such folder in memory."""
    assert not shared.has_room(tmp_path / "nowhere")
