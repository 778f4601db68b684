"""The program is killed while it applies."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, ENDS_WITHIN, World, a_server, is_write, own_store

POINTS = ("C1", "C2", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13")
STORE_POINTS = tuple(f"S{number}" for number in range(1, 9))
PER_SECRET = frozenset({"C7"})
FILES = frozenset({"C7", "C8", "C9"})
KINDS = ("secret", "secret", "public", "action", "idp")
SINKS = ("file", "age", "exec")


def killed_at_a_point(dice: random.Random, folder: Path) -> int:
    """Kill an apply at one of its steps, then apply again."""
    sink = dice.choice(SINKS)
    points = [point for point in POINTS if sink != "exec" or point not in FILES]
    with own_store(dice, folder, sink) as world:
        secrets = _prepare(world)
        point = dice.choice(points)
        visit = 1 + dice.randint(1, secrets) if point in PER_SECRET else 1  # first is the probe
        killed = world.run(*APPLY, RECONCILER_CRASHPOINT=f"{point}:{visit}")
        must(killed.code == -signal.SIGKILL, "I10", f"{sink} {point}:{visit} {killed.all}")
        world.settle()
    return 1


def killed_over_and_over(dice: random.Random, folder: Path) -> int:
    """Kill apply after apply, at steps of its own, of its store, and at random times."""
    kills = 0
    with own_store(dice, folder) as world:
        _prepare(world)
        while not kills or dice.random() < 0.7:
            if dice.random() < 0.4:
                kills += world.killed(dice.uniform(0.01, 0.4))
            else:
                point = f"{dice.choice(POINTS + STORE_POINTS)}:{dice.randint(1, 3)}"
                kills += world.run(*APPLY, RECONCILER_CRASHPOINT=point).code != 0
            world.tree.edit(dice.randint(0, 3))
        world.settle()
    return kills


class Kill:
    """Kills a process as a write of it passes by: half sent, or half answered."""

    def __init__(self, turn: int, harm: str, seconds: float) -> None:
        self._turn = turn
        self._harm = harm
        self._seconds = seconds
        self.process = 0

    def choose(self, first: bytes) -> str:
        """Harm one write, and kill who sent it, at once or while it reads."""
        self._turn -= is_write(first)
        if self._turn != 0 or not is_write(first):
            return ""
        if self._harm == "half an answer":
            threading.Thread(target=self._kill, args=(self._seconds,), daemon=True).start()
        else:
            self._kill(0.0)
        return self._harm

    def _kill(self, seconds: float) -> None:
        time.sleep(seconds)
        os.kill(self.process, signal.SIGKILL)


def killed_in_a_request(dice: random.Random, folder: Path) -> int:
    """Kill an apply that has sent half a request, or read half an answer (C3, C5)."""
    with a_server(dice, folder) as world:
        assert world.proxy
        world.settle()
        kills = dice.randint(1, 3)
        for _ in range(kills):
            _prepare(world)
            harm = dice.choice(("half a request", "reset before", "half an answer", "reset after"))
            kill = Kill(dice.randint(1, 2), harm, dice.uniform(0, 0.03))
            world.proxy.choose = kill.choose
            with world.started(*APPLY) as process:
                kill.process = process.pid
                out, err = process.communicate(timeout=ENDS_WITHIN)
                said = f"{harm} {process.returncode} {out} {err}"
                must(process.returncode in {-signal.SIGKILL, 1, 5, 0}, "I10", said)
        world.settle()
    return kills


def _prepare(world: World) -> int:
    """Declare what makes secrets and what does not; sometimes let an application move to one.

    Return how many secrets the next apply makes at least.
    """
    world.tree.declare(*world.dice.choices(KINDS, k=4), "secret", "secret")
    if world.dice.random() < 0.4:
        world.tree.declare("public")
        settles = world.server is None
        if settles:
            world.settle()
        world.tree.give_secrets()
        return 1 if settles else 2
    return 2


ROWS = (
    Row("F2", "the program is killed at a step of its apply", killed_at_a_point, 6),
    Row("F2b", "apply after apply is killed", killed_over_and_over, 1),
    Row("F2c", "the program is killed in the middle of a request", killed_in_a_request, 1),
)
