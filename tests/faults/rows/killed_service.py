"""The service is killed: at any moment, and at each step of what it does."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.load import (
    KINDS,
    STORE,
    Client,
    Load,
    ended_well,
    read_and_hang_up,
    under_load,
)
from tests.program import program

POINTS = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8")
KEEPS_ANSWERS = "S6"  # which is a step of what has a key, so of no update
ENDS_WITHIN = 20


def killed_under_load(dice: random.Random, folder: Path) -> int:
    """Kill the service at random moments, also while it starts; clients ask until answered."""
    kills = dice.randint(4, 8)
    with under_load(folder, clients=dice.choice((2, 5))) as load:
        for _ in range(kills):
            time.sleep(dice.uniform(0.0, 0.4))
            load.served.stop(signal.SIGKILL)
            load.served.spawn()
            if dice.random() < 0.7:
                load.served.wait()
        load.served.wait()
        _check_all(load, dice)
    return kills


def killed_at_its_steps(dice: random.Random, folder: Path) -> int:
    """Kill the service at two steps of a write, and once in what it does beside writing."""
    beside = (_half_an_answer, _while_draining, _in_a_checkpoint, _in_a_rebuild)
    with under_load(folder, clients=0) as load:
        client = Client(0, load.served, load.known, KINDS)
        load.clients = [client]
        client.fulfil(client.next_wish("idp"))
        for _ in range(2):
            in_a_write(dice, load, client)
        dice.choice(beside)(dice, load, client)
        _check_all(load, dice)
    return 3


def _check_all(load: Load, dice: random.Random) -> None:
    load.finish()
    must(load.wishes, "I10", "nothing was asked")
    load.check_replays(dice)
    ended_well(load.served)
    load.check()


def in_a_write(dice: random.Random, load: Load, client: Client) -> None:
    """Kill at a step, at its first to third visit, and ask again."""
    kind, point, visit = dice.choice(KINDS), dice.choice(POINTS), dice.randint(1, 3)
    if kind == "idp" and point == KEEPS_ANSWERS:
        kind = "app"
    _restart(load, f"{point}:{visit}")
    for _ in range(visit - 1):
        client.fulfil(client.next_wish(kind))
    wish = client.next_wish(kind)
    must(client.line.ask(wish) is None, "I10", f"{point}:{visit} did not kill {kind}")
    client.wishes.append(wish)
    _must_be_killed(load, f"{point}:{visit} {kind}")
    load.served.environment = {}
    load.served.start()
    client.fulfil(wish)


def _half_an_answer(dice: random.Random, load: Load, client: Client) -> None:
    """S9: the service dies when the client has half of its answer."""
    wish = client.next_wish(dice.choice(("action", "app")))
    client.wishes.append(wish)
    read = read_and_hang_up(load.served, load.known, wish, dice.randint(1, 200))
    load.served.stop(signal.SIGKILL)
    must(read, "I10", "no answer")
    load.served.start()
    client.fulfil(wish)


def _while_draining(dice: random.Random, load: Load, client: Client) -> None:
    """S13: SIGTERM, and SIGKILL before it was done."""
    wish = client.next_wish("app")
    client.wishes.append(wish)
    assert load.served.process is not None
    load.served.process.send_signal(signal.SIGTERM)
    answer = client.line.ask(wish)
    time.sleep(dice.uniform(0.0, 0.05))
    load.served.stop(signal.SIGKILL)
    wish.answer = answer or {}
    load.served.start()
    client.fulfil(wish)


def _in_a_checkpoint(dice: random.Random, load: Load, client: Client) -> None:
    """S10: killed at a write into the file of the store itself, which only checkpoints do."""
    store = load.served.folder / STORE
    nth = f"inject=pwrite64:signal=KILL:when={dice.randint(1, 12)}"
    # Not with --seccomp-bpf: strace 6.1 then injects errors, but no signal.
    tracer = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", str(store))
    load.served.before = (*tracer, "-e", "trace=pwrite64", "-e", nth)
    _restart(load, "")
    for _ in range(8):
        client.fulfil(client.next_wish())
    assert load.served.process is not None
    load.served.process.send_signal(signal.SIGTERM)
    _must_be_killed(load, nth)
    load.served.before = ()
    load.served.start()


def _in_a_rebuild(dice: random.Random, load: Load, client: Client) -> None:
    """S12: killed while the objects are made anew."""
    ended_well(load.served)
    rebuild = ("store", "rebuild", "--service", load.served.service)
    run = program(load.served.folder)
    killed = run(*rebuild, RECONCILER_CRASHPOINT=f"S12:{dice.randint(1, 4)}")
    must(killed.code == -signal.SIGKILL, "I10", killed.all)
    must(run("store", "verify", "--service", load.served.service).code == 0, "I5")
    must(run(*rebuild).code == 0, "I5")
    load.served.start()


def _restart(load: Load, point: str) -> None:
    """Begin again, armed to die at a point."""
    ended_well(load.served)
    load.served.environment = {"RECONCILER_CRASHPOINT": point} if point else {}
    load.served.start()


def _must_be_killed(load: Load, how: str) -> None:
    assert load.served.process is not None
    code = load.served.process.wait(ENDS_WITHIN)
    must(code == -signal.SIGKILL, "I10", f"{how}: ended with {code}")


ROWS = (
    Row("F1", "the service is killed under load", killed_under_load, 1),
    Row("F1b", "the service is killed at a step", killed_at_its_steps, 2),
)
