"""What a run does when its disk, its clock, its processor, Git or the service fails it."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action
from tests.acceptance.test_run import SMALL, WITHIN, Following, Loop, _rounds, following
from tests.direct import Direct
from tests.program import environment
from tests.repository import Repository
from tests.running import a_free_port, prepare, start_server
from tests.warm import Copy

JUMP = 3 * 24 * 3600  # seconds
_CLOCK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
    const char *path = getenv("CLOCK_JUMP");
    FILE *file = path ? fopen(path, "re") : NULL;
    long seconds = 0;
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    if (!code && id == CLOCK_REALTIME) now->tv_sec += jump();
    return code;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


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
    while "listening on" not in said.read_text(encoding="utf-8"):
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
    """Also while a commit is applied: the commit is applied as a whole in the end."""
    follows = following(served, "apply", "--interval", "1s")
    with stopped_at_end(follows):
        follows.until(lambda state: state["commit_applied"] and not state["conditions"])
        served.kill()
        follows.until(lambda state: "failing" in state["conditions"])
        assert follows.get("/readyz").status_code == 503
        commit = served.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(5)})
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
    if subprocess.run(["mount", *options], check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096):
            pass


def test_a_full_disk_is_said_and_what_was_applied_goes_on_being_healed(
    served: Served, small_disk: Path
) -> None:
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
        assert any("pace" in each for each in full["failures"]), full["failures"]
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


@pytest.fixture
def jumping(tmp_path: Path) -> Path:
    """Build a library with which the wall clock of a process jumps by what a file says."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(_CLOCK, encoding="ascii")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("jump", [JUMP, -JUMP])
def test_a_wall_clock_that_jumps_delays_nothing(served: Served, jumping: Path, jump: int) -> None:
    """Rounds go on, the lease is kept, and what is pushed is applied."""
    by = served.folder / "jump"
    by.write_text("0", encoding="ascii")
    known = environment(**served.known, LD_PRELOAD=str(jumping), CLOCK_JUMP=str(by))
    log = served.folder / "fresh.log"
    port = a_free_port()
    options = (*served.options("apply"), "--listen", f"127.0.0.1:{port}", "--interval", "1s")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "reconciler", "run", *options],
            cwd=served.folder,
            env=known,
            stderr=stderr,
        )
    follows = Following(process, f"http://127.0.0.1:{port}", log)  # type: ignore[arg-type]
    with stopped_at_end(follows):
        before = follows.until(lambda state: state["commit_applied"] and not state["conditions"])
        by.write_text(str(jump), encoding="ascii")
        after_rounds(follows, 2)
        assert follows.until(lambda _: True)["last_round"][:10] != before["last_round"][:10]
        commit = served.push({"manifests/greet.yaml": an_action(timeout="5s")})
        follows.until(lambda state: state["commit_applied"] == commit)
        by.write_text("0", encoding="ascii")
        served.direct.change("greet", timeout="1s")
        follows.until(lambda _: served.held("greet")["spec"]["timeout"] == "5s")
        assert "watching" not in follows.until(lambda _: True)["conditions"]
