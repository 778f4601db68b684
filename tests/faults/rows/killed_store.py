"""A process that writes to a store is killed at one of its calls of the system."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from reconciler.service.build import open_sqlite
from tests.faults import store_writer
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_store
from tests.faults.store_writer import Answer, arguments, check_acknowledged, request, told
from tests.faults.tracing import run_traced
from tests.program import environment, program
from tests.warm import Copy

STORE = "identity.db"
OPTIONS = {"calls": 12, "reopen": 5, "pragma": "wal_autocheckpoint=40"}
SURELY = 8  # so many calls of each kind it takes to make a store
WITHIN = 60
IN_MAKING = ("pwrite64", "fdatasync", "fsync", "link", "unlink")
STEPS_OF_MAKING = 3
NEWER = range(2, 1 << 31)
COMMANDS = (
    ("store", "verify"),
    ("store", "rebuild"),
    ("serve", "--listen", "127.0.0.1:0"),
    ("export",),
)


def killed_at_the_nth_call(dice: random.Random, folder: Path) -> int:
    """Kill a writer a few times at a write or a sync, let it begin again each time."""
    path = folder / STORE
    kills = 0
    acknowledged: list[Answer] = []
    for number in range(6):
        call, upto = dice.choice((("pwrite64", 260), ("fdatasync", 45)))
        died = _struck(path, call, dice.randint(1, upto if number else SURELY))
        kills += died.returncode == -signal.SIGKILL
        _check(path, acknowledged, told(died.stdout))
    whole = _writer(path)
    must(whole.returncode == 0, "I9", whole.stderr)
    _check(path, acknowledged, told(whole.stdout))
    return kills


def killed_while_it_is_made(dice: random.Random, folder: Path) -> int:
    """Kill a writer while it makes the store: there is none then, or a whole one."""
    kills = 0
    for number in range(5):
        place = folder / str(number)
        place.mkdir()
        path = place / STORE
        for _ in range(2):
            if not kills or dice.random() < 0.4:
                step = f"S11:{dice.randint(1, STEPS_OF_MAKING)}"
                died = _writer(path, RECONCILER_CRASHPOINT=step)
            else:
                died = _struck(path, dice.choice(IN_MAKING), dice.randint(1, 12))
            kills += died.returncode == -signal.SIGKILL
            if path.exists():
                check_store(path)
            must(path.exists() or not died.stdout, "I1", "there is no store")
        whole = _writer(path)
        must(whole.returncode == 0, "I9", whole.stderr)
        _check(path, [], told(whole.stdout))
    _refuses_a_newer_one(dice, folder / "0")
    return kills + 1


def _refuses_a_newer_one(dice: random.Random, folder: Path) -> None:
    """Check that a store of a later version is refused, and left as it is."""
    with closing(sqlite3.connect(folder / STORE)) as store:
        store.execute(f"PRAGMA user_version = {dice.choice(NEWER)}")
    before = (folder / STORE).read_bytes()
    refused = program(folder)(*dice.choice(COMMANDS), "--service", f"sqlite:{STORE}")
    must(refused.code == 1 and "newer version" in refused.err, "I9", refused.all)
    must((folder / STORE).read_bytes() == before, "I9", "the newer store was changed")


def _writer(path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a writer to its end."""
    words = [store_writer.__file__, *arguments(path, **OPTIONS)]
    copy = Copy(words, path.parent, environment(**more))
    out, err = copy.communicate(WITHIN)
    return subprocess.CompletedProcess(words, copy.wait(), out, err)


def _struck(path: Path, call: str, nth: int) -> subprocess.CompletedProcess[str]:
    """Run a writer that is killed at the nth call of a kind."""
    inject = f"inject={call}:signal=KILL:when={nth}"
    options = ("-o", "/dev/null", "-e", f"trace={call}", "-e", inject)
    words = arguments(path, **OPTIONS, traced=1)
    return run_traced(options, store_writer.__file__, words, path.parent, WITHIN)


def _check(path: Path, acknowledged: list[Answer], now: Sequence[Answer]) -> None:
    """Check what was acknowledged now and before, where the same calls were answered the same."""
    for number, (before, after) in enumerate(zip(acknowledged, now, strict=False)):
        keyed = request(number, now).idempotency_key
        must(before == after or not keyed, "I3", f"call {number} is answered otherwise")
    acknowledged[: len(now)] = now
    if path.exists():
        check_store(path)
        with closing(open_sqlite(path)) as service:
            check_acknowledged(service, now)


ROWS = (
    Row("F1c", "a writer is killed at a call of the system", killed_at_the_nth_call, 2),
    Row("F14", "a store is being made when its maker is killed", killed_while_it_is_made, 1),
)
