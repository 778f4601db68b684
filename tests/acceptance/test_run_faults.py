"""The loop without a person where clocks jump, disks fill up, and a run is stopped and goes on."""

from __future__ import annotations

import contextlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import an_action
from tests.acceptance.test_run import WITHIN, Following, Loop, embedded, following, loop
from tests.program import environment

__all__ = ["embedded", "loop"]

AFTER = 2 * WITHIN
JUMPING = """
import pathlib, sys, time
wall, wall_ns, offset = time.time, time.time_ns, pathlib.Path(sys.argv.pop(1))
time.time = lambda: wall() + int(offset.read_text())
time.time_ns = lambda: wall_ns() + int(offset.read_text()) * 10**9
from reconciler.cli.main import main
main()
"""
DAY = 86_400


def wait_for(is_so: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + AFTER
    while not is_so():
        assert process is None or process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def end(follows: Following) -> None:
    follows.process.send_signal(signal.SIGTERM)
    assert follows.process.wait(AFTER) == 128 + signal.SIGTERM


def test_a_clock_that_jumps_both_ways_holds_nothing_up(embedded: Loop) -> None:
    """Waiting, retries and looks go by a clock that never jumps."""
    offset = embedded.folder / "offset"
    offset.write_text("0")
    options = ("run", *embedded.options("apply"), "--listen", "127.0.0.1:0", "--interval", "1s")
    log = embedded.folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", JUMPING, str(offset), *options],
            cwd=embedded.folder, env=environment(), stderr=stderr,
        )  # fmt: skip
    try:
        wait_for(lambda: embedded.applied() == embedded.repository.head, process)
        for number, jump in enumerate((DAY, -2 * DAY, 400 * DAY, 0)):
            offset.write_text(str(jump))
            pushed = embedded.push({"manifests/greet.yaml": an_action(timeout=f"{number + 1}s")})
            wait_for(lambda pushed=pushed: embedded.applied() == pushed, process)  # type: ignore[misc]
            embedded.direct.change("greet", allowedToFail=True)
            wait_for(lambda: not embedded.held("greet")["spec"]["allowedToFail"], process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(AFTER)
    assert code == 128 + signal.SIGTERM, log.read_text()
    assert "Traceback" not in log.read_text()


def passed(store: Path) -> None:
    """Let the time of every lease pass."""
    with closing(sqlite3.connect(store, timeout=AFTER)) as database, database:
        database.execute("UPDATE leases SET expires_at = 1")


def served(tried: Loop) -> bool:
    return tried.service.startswith("http")


def test_a_run_that_was_stopped_past_its_lease_watches_when_it_goes_on(loop: Loop) -> None:
    if not served(loop):
        return  # a store of this machine is led only while it is written to
    first = following(loop, "apply", "--interval", "1s")
    first.until(lambda state: state["commit_applied"] == loop.repository.head)
    first.process.send_signal(signal.SIGSTOP)
    passed(loop.direct.store)
    second = following(loop, "apply", "--interval", "1s", state="other")
    pushed = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    second.until(lambda state: state["commit_applied"] == pushed)
    count = loop.events()

    first.process.send_signal(signal.SIGCONT)
    first.until(lambda state: "watching" in state["conditions"])

    assert (loop.events(), loop.applied()) == (count, pushed)
    third = loop.push({"manifests/greet.yaml": an_action(timeout="6s")})
    second.until(lambda state: state["commit_applied"] == third)
    end(first)
    end(second)


def test_a_run_that_was_stopped_within_an_apply_writes_nothing_late(loop: Loop) -> None:
    """The fence keeps it out once another one has taken over."""
    if not served(loop):
        return
    many = 1500
    first = following(loop, "apply", "--interval", "1s")
    first.until(lambda state: state["commit_applied"] == loop.repository.head)
    before = loop.events()
    pushed = loop.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(many)})
    wait_for(lambda: loop.events() > before)
    first.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)  # for the batch that the server has already
    made = loop.events() - before
    passed(loop.direct.store)
    good = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    second = following(loop, "apply", "--interval", "1s", state="other")
    second.until(lambda state: state["commit_applied"] == good)
    count = loop.events()

    first.process.send_signal(signal.SIGCONT)
    first.until(lambda state: "watching" in state["conditions"])

    assert made > 0
    assert (loop.events(), loop.applied()) == (count, good)
    with closing(sqlite3.connect(loop.direct.store, timeout=AFTER)) as database:
        (added,) = database.execute(
            "SELECT count(*) FROM events WHERE type = 'action.added'"
        ).fetchone()
    assert added == many + 1
    assert pushed != good
    end(first)
    end(second)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 8 MiB."""
    place = tmp_path / "state"
    place.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    full = place / "full"
    with full.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))
    return full


def test_a_full_disk_holds_a_run_up_and_loses_nothing(embedded: Loop, small_disk: Path) -> None:
    """Without room for its journal a run writes nothing; it goes on once there is room."""
    follows = following(embedded, "apply", "--interval", "1s")
    first = embedded.repository.head
    follows.until(lambda state: state["commit_applied"] == first)
    full = fill(small_disk)
    pushed = embedded.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(20)})
    failed = follows.until(lambda state: state["failures"])
    embedded.direct.change("greet", allowedToFail=True)
    rounds = failed["last_round"]
    follows.until(lambda state: state["last_round"] > rounds)
    assert embedded.applied() == first
    assert re.search("No space left|disk", str(failed["failures"])), failed["failures"]

    full.unlink()
    follows.until(lambda state: state["commit_applied"] == pushed and not state["failures"])
    assert not embedded.held("greet")["spec"]["allowedToFail"]
    end(follows)
    assert "Traceback" not in follows.log.read_text(encoding="utf-8")
