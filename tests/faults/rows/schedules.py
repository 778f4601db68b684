"""Faults of every kind come one after the other, in any order."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import (
    APPLY,
    ENDS_WITHIN,
    World,
    a_server,
    disturbed,
    faults,
    own_store,
    undisturbed,
    wait_a_while,
)

CRASHES = tuple(f"C{number}" for number in (1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13))
STORE_CRASHES = tuple(f"S{number}" for number in range(1, 9))
Fault = Callable[[World], int]


def crash(world: World) -> int:
    """Let an apply crash at one of its steps, should it come by."""
    points = CRASHES if world.server else CRASHES + STORE_CRASHES
    point = f"{world.dice.choice(points)}:{world.dice.randint(1, 3)}"
    ran = world.run(*APPLY, RECONCILER_CRASHPOINT=point)
    must(ran.code in {0, -signal.SIGKILL}, "I10", f"{point} {ran.all}")
    return 1 if ran.code else 0


def kill(world: World) -> int:
    """Kill an apply at a random time."""
    return int(world.killed(world.dice.uniform(0.01, 0.6)))


def ask_to_stop(world: World) -> int:
    """Ask an apply to stop at a random time."""
    number = world.dice.choice((signal.SIGINT, signal.SIGTERM))
    with world.started(*APPLY) as process:
        wait_a_while(process, world.dice)
        process.send_signal(number)
        out, err = process.communicate(timeout=ENDS_WITHIN)
    must("Traceback" not in err, "I13", err)
    must(process.returncode in {0, 128 + number}, "I10", f"{process.returncode} {out} {err}")
    return 1 if process.returncode else 0


def harm(world: World) -> int:
    """Apply over a bad line; of a store of one's own, there is none."""
    if world.proxy is None:
        return crash(world)
    before = faults(world.proxy)
    world.proxy.choose = disturbed(world.dice, 0.4)
    ran = world.run(*APPLY)
    must(ran.code in {0, 1, 5}, "I10", ran.all)
    world.proxy.choose = undisturbed
    return faults(world.proxy) - before


def crowd(world: World) -> int:
    """Apply several times at once."""
    count = world.dice.choice((2, 3))
    with ExitStack() as stack:
        patience = world.dice.choice(("0", "60"))
        command = (*APPLY, "--lock-timeout", patience)
        running = [stack.enter_context(world.started(*command)) for _ in range(count)]
        said = [process.communicate(timeout=ENDS_WITHIN) for process in running]
    codes = [process.returncode for process in running]
    must(set(codes) <= ({0} if patience == "60" else {0, 6}), "I10", f"{codes} {said}")
    return count - 1


FAULTS: tuple[Fault, ...] = (crash, crash, kill, ask_to_stop, harm, harm, crowd)


def one_after_the_other(dice: random.Random, folder: Path) -> int:
    """Edit and apply under faults a few times, then apply once in peace."""
    make = dice.choice((own_store, a_server))
    done = 0
    with make(dice, folder) as world:
        world.tree.edit(6)
        while not done or dice.random() < 0.75:
            done += dice.choice(FAULTS)(world)
            world.tree.edit(dice.randint(0, 5))
        world.settle()
    return done


ROWS = (Row("P5", "faults come one after the other", one_after_the_other, 2),)
