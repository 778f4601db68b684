"""Applies run at once, or outlive the lock they hold."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from tests.acceptance.conftest import ORGANIZATION, an_action, an_application, write
from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, ENDS_WITHIN, PLAN, World, a_server, end, is_write, own_store

SHARES = ("same", "overlapping", "disjoint")
PATIENT = ("--lock-timeout", "90")
STEADY = 0.3


def many_at_once(dice: random.Random, folder: Path) -> int:
    """Start two or eight applies of manifests that have much, some or nothing in common."""
    make = dice.choice((own_store, a_server))
    count, share = dice.choice((2, 2, 8)), dice.choice(SHARES)
    with make(dice, folder, "file") as world:
        folders = [_manifests(world, number, share) for number in range(count)]
        commands = [("apply", name, "--tree", name, "--auto-approve") for name in folders]
        with ExitStack() as stack:
            running = [stack.enter_context(world.started(*each, *PATIENT)) for each in commands]
            killed = running.pop(dice.randrange(count)) if dice.random() < 0.3 else None
            if killed:
                time.sleep(dice.uniform(0.01, 0.5))
                end(killed)
            said = [process.communicate(timeout=ENDS_WITHIN) for process in running]
        codes = [process.returncode for process in running]
        must(codes == [0] * len(running), "I7", f"{share} {codes} {said}")
        for command in commands if killed else ():
            again = world.run(*command)
            must(again.code == 0, "I7", again.all)
        for name in folders:
            planned = world.run("plan", name, "--tree", name, "--detailed-exitcode")
            must(planned.code == 0, "I7", planned.all)
        world.check()
    return count


def _manifests(world: World, number: int, share: str) -> str:
    """Write what one apply declares, and return the name of its folder."""
    name = f"part{number}"
    write(world.folder / name / "acme.yaml", ORGANIZATION)
    first = {"same": 0, "overlapping": number * 2, "disjoint": number * 4}[share]
    for each in range(first, first + 4):
        manifest = an_application if each % 2 else an_action
        write(world.folder / name / f"{each}.yaml", manifest(f"x{each}"))
    return name


class Sleep:
    """Stops a process as it sends its write of a given number; a batch is one."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self.process = 0
        self.began = threading.Event()

    def choose(self, first: bytes) -> str:
        """Harm nothing; stop the process when its turn has come."""
        self._turn -= is_write(first)
        if self._turn == 0 and not self.began.is_set():
            os.kill(self.process, signal.SIGSTOP)
            self.began.set()
        return ""


def a_holder_sleeps_through_its_lease(dice: random.Random, folder: Path) -> int:
    """Stop an apply in its writes, let another do other work elsewhere, and wake the first."""
    with a_server(dice, folder, "file") as world:
        assert world.proxy
        assert world.server
        world.here["RECONCILER_SECRETS_TO"] = f"file:{folder / 'kept'}"
        world.settle()
        world.tree.declare(*dice.choices(("secret", "action", "idp"), k=90))
        sleep = Sleep(1)
        world.proxy.choose = sleep.choose
        with world.started(*APPLY) as sleeper:
            sleep.process = sleeper.pid
            must(sleep.began.wait(ENDS_WITHIN), "I7", "the apply did not come to its writes")
            _wait_until_steady(world)
            _end_the_lease(world)
            other = _elsewhere(world)
            other.tree.edit(dice.randint(0, 10))
            other.tree.drop(dice.randint(0, 40))
            ran = other.run(*APPLY)
            must(ran.code == 0, "I15", ran.all)
            before = world.server.events()[-1].position
            sleeper.send_signal(signal.SIGCONT)
            out, err = sleeper.communicate(timeout=ENDS_WITHIN)
        must("Traceback" not in err, "I13", err)
        after = [event.type for event in world.server.events(after=before)]
        must(not after, "I15", f"who was fenced out wrote {after}: {out} {err}")
        planned = other.run(*PLAN)
        must(planned.code == 0, "I15", planned.all)
        must(sleeper.returncode in {0, 1, 4, 5, 6}, "I10", f"{sleeper.returncode} {out} {err}")
        world.settle()
    return 1


def _elsewhere(world: World) -> World:
    """Return the same tree on what might be another machine: it has no journal of the first."""
    folder = world.folder / "elsewhere"
    shutil.copytree(world.folder / "manifests", folder / "manifests")
    return replace(world, folder=folder, tree=world.tree.moved(folder / "manifests"))


def _wait_until_steady(world: World) -> None:
    assert world.server
    count = -1
    while count != (count := world.server.event_count()):
        time.sleep(STEADY)


def _end_the_lease(world: World) -> None:
    """Let the lease run out, as if its time had passed."""
    with closing(sqlite3.connect(world.store)) as raw, raw:
        raw.execute("UPDATE leases SET expires_at = 1")


ROWS = (
    Row("F8", "applies run at once, and one is killed", many_at_once, 1),
    Row("F8b", "who holds the lock sleeps past its end", a_holder_sleeps_through_its_lease, 1),
)
