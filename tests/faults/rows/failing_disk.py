"""The service runs out of something: room, a disk that works, files, memory."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.load import STORE, Line, Load, ended_well, under_load

WITHIN = 20.0
READ = "/management/v1/actions/_search"
MEGABYTE = 1 << 20
FILES = 200
CALLS = (("pwrite64", 10, 30), ("fdatasync", 2, 6))  # of each thread, past what a start takes


def the_disk_is_full(dice: random.Random, folder: Path) -> int:
    """Take the room away under load, a few times, and give it back."""
    times = dice.randint(2, 4)
    with under_load(folder, clients=3) as load:
        for _ in range(times):
            time.sleep(dice.uniform(0.1, 0.4))
            room = _log_of(load).stat().st_size + dice.randint(0, 60_000)
            _limit(load, resource.RLIMIT_FSIZE, room)
            _until_refused(load)
            _reads_go_on(load)
            _limit(load, resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
        _check_all(load, dice)
    return times


def the_disk_fails(dice: random.Random, folder: Path) -> int:
    """Let writes or syncs fail: once, for a while, or for ever until the service is restarted."""
    call, fewest, most = dice.choice(CALLS)
    nth = dice.randint(fewest, most)
    error = dice.choice(("EIO", "EIO", "ENOSPC"))
    span = dice.choice(("", f"..{nth + dice.randint(1, 30)}", "+"))
    inject = f"inject={call}:error={error}:when={nth}{span}"
    tracer = ("strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null")
    struck = ("-e", "trace=pwrite64,fdatasync", "-e", inject)
    with under_load(folder, clients=3, before=(*tracer, *struck)) as load:
        _until_refused(load)
        _reads_go_on(load)
        if span == "+" or dice.random() < 0.5:
            load.served.stop(dice.choice((signal.SIGTERM, signal.SIGKILL)))
            load.served.before = ()
            load.served.start()
        _check_all(load, dice)
    return 1


def a_small_disk_is_full(dice: random.Random, folder: Path) -> int:
    """Fill the disk that the store is on; where none can be mounted, limit the files instead."""
    with _small_disk(folder) as disk:
        if disk is None:
            return the_disk_is_full(dice, folder)
        with under_load(disk, clients=3) as load:
            ballast = disk / "ballast"
            for _ in range(2):
                time.sleep(dice.uniform(0.05, 0.2))
                _fill(ballast)
                _until_refused(load)
                _reads_go_on(load)
                ballast.unlink()
                time.sleep(0.2)
            load.finish(at_once=True)
            load.check_replays(dice)
            load.served.stop()
            load.check()
    return 2


def nothing_can_be_opened(dice: random.Random, folder: Path) -> int:
    """Let the service open no further file or connection, then as many as it likes again."""
    times = 2
    with under_load(folder, clients=3) as load:
        for _ in range(times):
            time.sleep(dice.uniform(0.1, 0.3))
            assert load.served.process is not None
            held = len([*Path(f"/proc/{load.served.process.pid}/fd").iterdir()])
            _limit(load, resource.RLIMIT_NOFILE, held + dice.randint(0, 8))
            with _many_connections(load):
                time.sleep(dice.uniform(0.2, 0.6))
            _limit(load, resource.RLIMIT_NOFILE, 1024)
        _check_all(load, dice)
    return times


def memory_is_short(dice: random.Random, folder: Path) -> int:
    """Let the service have no more memory than it has, then as much as it likes again."""
    with under_load(folder, clients=4) as load:
        time.sleep(dice.uniform(0.1, 0.3))
        assert load.served.process is not None
        pages = Path(f"/proc/{load.served.process.pid}/statm").read_text(encoding="ascii").split()
        room = int(pages[0]) * resource.getpagesize() + dice.randint(0, 4) * MEGABYTE
        _limit(load, resource.RLIMIT_AS, room)
        time.sleep(dice.uniform(0.2, 0.6))
        _limit(load, resource.RLIMIT_AS, resource.RLIM_INFINITY)
        _check_all(load, dice)
    return 1


def _check_all(load: Load, dice: random.Random) -> None:
    """Check that writes work again, that nothing is lost, and nothing there twice."""
    load.finish()
    load.check_replays(dice)
    ended_well(load.served)
    load.check()


def _log_of(load: Load) -> Path:
    return load.served.folder / f"{STORE}-wal"


def _limit(load: Load, what: int, value: int) -> None:
    assert load.served.process is not None
    _, hard = resource.prlimit(load.served.process.pid, what)
    resource.prlimit(load.served.process.pid, what, (value, hard))


def _until_refused(load: Load) -> None:
    """Wait until some client was refused since now."""
    before, deadline = load.refused.total(), time.monotonic() + WITHIN
    while load.refused.total() == before:
        must(time.monotonic() < deadline, "I13", "nothing was refused")
        time.sleep(0.01)


def _reads_go_on(load: Load) -> None:
    line = Line(load.served, load.known)
    status = line.read(READ)
    line.close()
    must(status == 200, "I13", f"a read is answered with {status}")


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """Yield a disk of a megabyte and a half; None where this user can mount none."""
    place = folder / "disk"
    place.mkdir()
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(place)],
            capture_output=True,
            check=False,
        ).returncode
    )
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@contextmanager
def _many_connections(load: Load) -> Iterator[None]:
    held = []
    try:
        for _ in range(FILES):
            with suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", load.served.port), 1))
        yield
    finally:
        for connection in held:
            connection.close()


ROWS = (
    Row("F5", "the disk of the service is full", the_disk_is_full, 1),
    Row("F5a", "a small disk is full", a_small_disk_is_full, 1),
    Row("F5b", "writes or syncs of the service fail", the_disk_fails, 2),
    Row("F5c", "the service can open no further file", nothing_can_be_opened, 1),
    Row("F5d", "the service gets no more memory", memory_is_short, 1),
)
