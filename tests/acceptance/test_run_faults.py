"""What a run does when its disk, its clock, its processor, Git or the service fails it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action
from tests.acceptance.test_run import (
    SMALL,
    WITHIN,
    Following,
    Loop,
    _rounds,
    embedded,
    following,
)
from tests.direct import Direct
from tests.program import environment
from tests.repository import Repository
from tests.running import a_free_port, prepare, start_server
from tests.warm import Copy

JUMPING = """
import pathlib, sys, time
wall, wall_ns, offset = time.time, time.time_ns, pathlib.Path(sys.argv.pop(1))
time.time = lambda: wall() + int(offset.read_text())
time.time_ns = lambda: wall_ns() + int(offset.read_text()) * 10**9
from reconciler.cli.main import main
main()
"""
DAY = 86_400
AFTER = 2 * WITHIN

__all__ = ["embedded"]


@contextmanager
def stopped_at_end(*follows: Following) -> Iterator[None]:
    """End runs, whatever became of the test, and check that none has stumbled."""
    try:
        yield
    finally:
        for each in follows:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.process.send_signal(signal.SIGTERM)
                each.process.wait(WITHIN)
    for each in follows:
        text = each.log.read_text(encoding="utf-8")
        assert "Traceback" not in text, text


def serve(folder: Path, port: int) -> Copy:
    """Start the server of a store on a port, and wait until it listens."""
    said = folder / "serve.txt"
    said.unlink(missing_ok=True)
    service = f"sqlite:{folder / 'identity.db'}"
    process = start_server(folder, said, service, "--listen", f"127.0.0.1:{port}")
    deadline = time.monotonic() + WITHIN
    while "listening on" not in said.read_text(encoding="utf-8"):
        time.sleep(0.05)
        assert time.monotonic() < deadline
        assert process.poll() is None, said.read_text(encoding="utf-8")
    return process


class Served(Loop):
    """A loop whose server can be killed and started again."""

    server: Copy
    port: int

    def start(self) -> None:
        self.server = serve(self.direct.store.parent, self.port)

    def kill(self) -> None:
        self.server.send_signal(signal.SIGKILL)
        self.server.wait(WITHIN)


@pytest.fixture
def served(run: Run, tmp_path: Path) -> Iterator[Served]:
    """Return a loop over a server on a port of its own; nothing is applied yet."""
    repository = Repository.new(tmp_path / "origin")
    repository.commit(SMALL)
    folder = tmp_path / "server"
    folder.mkdir()
    known = prepare(folder / "identity.db")
    port = a_free_port()
    loop = Served(
        repository,
        tmp_path,
        Direct(folder / "identity.db"),
        run,
        f"http://127.0.0.1:{port}",
        {"RECONCILER_TOKEN": known.tokens["admin"]},
    )
    loop.port = port
    loop.start()
    yield loop
    if loop.server.poll() is None:
        loop.kill()


def after_rounds(follows: Following, count: int) -> None:
    """Wait until so many more rounds ended."""
    before = _rounds(follows)
    follows.until(lambda _: _rounds(follows) >= before + count)


def end_leases(store: Path) -> None:
    """Let every lease run out, as the time does."""
    with closing(sqlite3.connect(store, timeout=WITHIN)) as connection, connection:
        connection.execute("UPDATE leases SET expires_at = 1")


def test_a_run_that_was_stopped_past_its_lease_writes_nothing(served: Served) -> None:
    """Another one leads meanwhile, and applies what is pushed."""
    first = following(served, "apply", "--interval", "1s")
    with stopped_at_end(first):
        first.until(lambda state: state["commit_applied"] and not state["conditions"])
        first.process.send_signal(signal.SIGSTOP)
        end_leases(served.direct.store)
        second = served.push({"manifests/greet.yaml": an_action(timeout="5s")})
        other = following(served, "apply", "--interval", "1s", state="other")
        with stopped_at_end(other):
            other.until(lambda state: state["commit_applied"] == second)
            third = served.push({"manifests/greet.yaml": an_action(timeout="7s")})
            other.until(lambda state: state["commit_applied"] == third)
            count = served.events()

            first.process.send_signal(signal.SIGCONT)
            after_rounds(first, 2)

            assert served.events() == count
            assert served.held("greet")["spec"]["timeout"] == "7s"
            assert served.applied() == third


def test_a_service_that_is_away_and_comes_back(served: Served) -> None:
    """What was pushed meanwhile is applied, and an edit by hand healed."""
    follows = following(served, "apply", "--interval", "1s")
    with stopped_at_end(follows):
        follows.until(lambda state: state["commit_applied"] and not state["conditions"])
        served.kill()
        commit = served.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(5)})
        time.sleep(3.0)  # rounds meanwhile; each tries for up to a minute
        served.start()
        follows.until(lambda state: state["commit_applied"] == commit and not state["failures"])
        served.direct.change("greet", timeout="1s")
        follows.until(lambda _: served.held("greet")["spec"]["timeout"] == "20s")


def test_git_that_is_away_and_comes_back(served: Served) -> None:
    """What was applied goes on being healed; a push is applied when it is back."""
    follows = following(served, "apply", "--interval", "1s")
    with stopped_at_end(follows):
        first = follows.until(lambda state: state["commit_applied"])["commit_applied"]
        folder = served.repository.folder
        away = folder.rename(folder.with_name("away"))
        follows.until(lambda state: "failing" in state["conditions"])
        served.direct.change("greet", timeout="1s")
        follows.until(lambda _: served.held("greet")["spec"]["timeout"] == "20s")
        assert served.applied() == first

        away.rename(folder)
        commit = served.push({"manifests/greet.yaml": an_action(timeout="5s")})
        follows.until(lambda state: state["commit_applied"] == commit and not state["failures"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 4 MiB where the state is."""
    folder = tmp_path / "state"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", "size=4m,mode=700", "none", str(folder))
    subprocess.run(["mount", *options], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096):
            pass


def test_a_full_disk_is_said_and_holds_a_commit_up(served: Served, small_disk: Path) -> None:
    """No commit counts as rewritten for want of room; with room again, the push is applied."""
    follows = following(served, "apply", "--interval", "1s")
    with stopped_at_end(follows):
        first = follows.until(lambda state: state["commit_applied"] and not state["conditions"])
        filling = small_disk / "filling"
        with pytest.raises(OSError, match="No space"):
            fill(filling)
        commit = served.push({"manifests/greet.yaml": an_action(timeout="5s")})
        full = follows.until(lambda state: "failing" in state["conditions"])
        assert full["commit_applied"] == first["commit_applied"]
        assert "rewritten" not in full["conditions"]
        assert any(
            "No space left" in each or "the disk is full" in each for each in full["failures"]
        ), full["failures"]
        after_rounds(follows, 2)
        assert "rewritten" not in follows.log.read_text(encoding="utf-8")

        filling.unlink()
        follows.until(lambda state: state["commit_applied"] == commit and not state["failures"])
        assert served.held("greet")["spec"]["timeout"] == "5s"


def test_a_state_that_cannot_be_written_is_refused_at_the_start(
    served: Served, small_disk: Path
) -> None:
    """Nothing is applied."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = served.once("apply")
    assert done.code == 1, done.all
    assert "--state" in done.err
    assert served.applied() == ""


def wait_for(is_so: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + AFTER
    while not is_so():
        assert process is None or process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_applied(loop: Loop, commit: str) -> bool:
    return loop.applied() == commit


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
            written = offset.with_suffix(".new")
            written.write_text(str(jump))
            written.rename(offset)  # at once: the run reads it at any moment
            pushed = embedded.push({"manifests/greet.yaml": an_action(timeout=f"{number + 1}s")})
            wait_for(partial(_is_applied, embedded, pushed), process)
            embedded.direct.change("greet", allowedToFail=True)
            wait_for(lambda: not embedded.held("greet")["spec"]["allowedToFail"], process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(AFTER)
    assert code == 128 + signal.SIGTERM, log.read_text()
    assert "Traceback" not in log.read_text()


def test_a_run_that_was_stopped_within_an_apply_writes_nothing_late(served: Served) -> None:
    """The fence keeps it out once another one has taken over."""
    many = 1500
    first = following(served, "apply", "--interval", "1s")
    first.until(lambda state: state["commit_applied"] == served.repository.head)
    before = served.events()
    pushed = served.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(many)})
    wait_for(lambda: served.events() > before)
    first.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)  # for the batch that the server has already
    made = served.events() - before
    end_leases(served.direct.store)
    good = served.push({"manifests/greet.yaml": an_action(timeout="5s")})
    second = following(served, "apply", "--interval", "1s", state="other")
    with stopped_at_end(first, second):
        second.until(lambda state: state["commit_applied"] == good)
        count = served.events()

        first.process.send_signal(signal.SIGCONT)
        first.until(lambda state: "watching" in state["conditions"])

    assert made > 0
    assert (served.events(), served.applied()) == (count, good)
    with closing(sqlite3.connect(served.direct.store, timeout=AFTER)) as database:
        (added,) = database.execute(
            "SELECT count(*) FROM events WHERE type = 'action.added'"
        ).fetchone()
    assert added == many + 1
    assert pushed != good
