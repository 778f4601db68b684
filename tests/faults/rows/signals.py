"""Somebody wants an apply to end, or is no longer there to read what it says."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, ENDS_SOON, World, a_server, own_store, wait_a_while
from tests.program import environment
from tests.warm import Copy

MANY = 300
ASKED = (signal.SIGINT, signal.SIGTERM)


def asked_to_end(world: World) -> None:
    """Send one signal, or a second soon after it."""
    number = world.dice.choice(ASKED)
    with world.started(*APPLY) as process:
        wait_a_while(process, world.dice)
        process.send_signal(number)
        is_told_twice = world.dice.random() < 0.3
        if is_told_twice:
            time.sleep(world.dice.uniform(0, 0.1))
            process.send_signal(number)
        out, err = process.communicate(timeout=ENDS_SOON)
    must("Traceback" not in err, "I13", err)
    codes = {0, 128 + number, *([-number] if is_told_twice else [])}  # a shell shows the same
    must(process.returncode in codes, "I10", f"{process.returncode} {out} {err}")


def hung_up_on(world: World) -> None:
    """Close its terminal."""
    with world.started(*APPLY) as process:
        wait_a_while(process, world.dice)
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=ENDS_SOON)
    must("Traceback" not in err, "I13", err)
    must(process.returncode in {0, 128 + signal.SIGHUP}, "I10", f"{process.returncode} {out} {err}")


def not_read(world: World) -> None:
    """Let whoever reads what it says be gone, from the first or in the middle."""
    dice = world.dice
    said = world.folder / "said.txt"
    reader, writer = os.pipe()
    is_result_lost = dice.random() < 0.5
    with (
        said.open("wb") as file,
        Copy(
            APPLY,
            world.folder,
            environment(**world.here),
            stdout=writer if is_result_lost else file.fileno(),
            stderr=file.fileno() if is_result_lost else writer,
        ) as process,
    ):
        try:
            os.close(writer)
            time.sleep(dice.choice((0.0, dice.uniform(0.0, 0.4))))
            os.close(reader)
            code = process.wait(ENDS_SOON)
        finally:
            process.kill()
    text = said.read_text(encoding="utf-8")
    must("Traceback" not in text, "I13", text)
    must(code in {0, 1}, "I10", f"{is_result_lost} {code} {text}")


def orphaned(world: World) -> None:
    """Kill the process that started it."""
    parent = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, sys.executable, "-m", "reconciler", *APPLY],
        cwd=world.folder,
        env=environment(**world.here),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        time.sleep(world.dice.uniform(0.2, 0.8))
        process.kill()
    deadline = time.monotonic() + ENDS_SOON
    while _runs(child):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            must(None, "I9", "the orphan did not end")
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


ENDS: tuple[Callable[[World], None], ...] = (
    asked_to_end,
    asked_to_end,
    hung_up_on,
    not_read,
    not_read,
    orphaned,
)


def told_to_end(dice: random.Random, folder: Path) -> int:
    """Bring an apply to its end in some way, more than once, then apply in peace."""
    make = dice.choice((own_store, a_server))
    count = dice.randint(2, 4)
    with make(dice, folder) as world:
        if world.server:
            world.settle()
        for _ in range(count):
            world.tree.declare(*dice.choices(("secret", "public", "action", "idp"), k=8))
            world.tree.declare(*["action"] * dice.choice((0, MANY)))
            dice.choice(ENDS)(world)
        world.settle()
    return count


ROWS = (Row("F13", "an apply gets a signal to end, or its output is closed", told_to_end, 1),)
