"""The database under a service fails, or the service over a database does."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from reconciler.service.build import open_postgres
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_events
from tests.faults.load import KINDS, Client, Load, at_work, check_answers, ended_well
from tests.faults.rows.killed_service import in_a_write
from tests.postgres_server import PostgresServer, a_server
from tests.running import furnish
from tests.served import Served, a_free_port

RECOVERS_WITHIN = 10.0
ENDS_WITHIN = 10.0
IMPATIENT = "?connect_timeout=2"  # so that silence is known after three seconds, not six
Range = tuple[float, float]
UNNOTICED: Range = (0.0, 1.0)  # seconds of silence
NOTICED: Range = (2.5, 5.0)
CONNECTIONS = 40  # more than a server's own, few enough to take them all
OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@dataclass
class World:
    """A database, a server over it, and clients that do not give up."""

    dice: random.Random
    database: PostgresServer
    load: Load

    def check(self) -> None:
        """Check that everything answered is there, once, and is answered so again (I1 to I5)."""
        self.load.finish()
        must(self.load.wishes, "I10", "nothing was asked")
        self.load.check_replays(self.dice)
        ended_well(self.load.served)
        log = (self.load.served.folder / "serve.log").read_text(encoding="utf-8")
        must("Traceback" not in log, "I13", log[-3000:])
        with closing(open_postgres(self.database.address(), read_only=True)) as held:
            check_events(held.store)
            with held.store.snapshot() as view:
                check_answers(self.load.wishes, view.read_all(limit=1_000_000))


@contextmanager
def a_world(dice: random.Random, folder: Path, clients: int, settings: str = "") -> Iterator[World]:
    """Start all of it; in the end all of it is gone. ``settings`` end the server's address."""
    key = folder / "seal-key"
    with a_server(f"max_connections={CONNECTIONS}") as database:
        address = f"{database.address()}{settings}"
        with closing(open_postgres(address, seal_key_file=key, create=True)) as opened:
            known = furnish(opened)
        served = Served(folder, address, a_free_port(), ("--seal-key-file", str(key)))
        with at_work(served, known, clients) as load:
            yield World(dice, database, load)


def crash(world: World) -> None:
    """Kill every process of the database at once, and start it again."""
    world.database.kill()
    time.sleep(world.dice.uniform(0.0, 0.5))
    world.database.start()


def restart(world: World) -> None:
    """Stop the database, without waiting for anybody, and start it again."""
    world.database.stop()
    time.sleep(world.dice.uniform(0.0, 0.5))
    world.database.start()


def terminate(world: World) -> None:
    """End every connection a few times."""
    for _ in range(world.dice.randint(1, 4)):
        world.database.execute(OTHERS)
        time.sleep(world.dice.uniform(0.0, 0.2))


def turn_read_only(world: World) -> None:
    """Let nobody write for a while, as a server does that is no longer the primary one."""
    writable = f"{world.database.address()}?options=-cdefault_transaction_read_only%3Doff"
    for setting in ("on", "off"):
        world.database.execute(
            f"ALTER SYSTEM SET default_transaction_read_only = {setting}",
            "SELECT pg_reload_conf()",
            address=writable,
        )
        time.sleep(world.dice.uniform(0.1, 0.6))


def crowd(world: World) -> None:
    """End the connections of the server and take them all, for a while."""
    with ExitStack() as stack:
        world.database.execute(OTHERS)
        with suppress(psycopg.OperationalError):
            while True:
                stack.enter_context(psycopg.connect(world.database.address()))
        time.sleep(world.dice.uniform(0.2, 1.0))


FAULTS: tuple[Callable[[World], None], ...] = (crash, restart, terminate, turn_read_only, crowd)


def the_database_fails(dice: random.Random, folder: Path) -> int:
    """Let the database fail in two ways under load; each time writes soon go on."""
    faults = dice.sample(FAULTS, 2)
    with a_world(dice, folder, clients=dice.choice((3, 12))) as world:
        served, known = world.load.served, world.load.known
        witness = Client(len(world.load.clients), served, known, KINDS)
        world.load.clients = [*world.load.clients, witness]
        for fault in faults:
            time.sleep(dice.uniform(0.0, 0.4))
            fault(world)
            began = time.monotonic()
            witness.fulfil(witness.next_wish())
            took = time.monotonic() - began
            must(took < RECOVERS_WITHIN, "I14", f"{fault.__name__}: {took:.1f} s without writes")
        world.check()
    return len(faults)


def the_database_falls_silent(
    dice: random.Random, folder: Path, *, silences: Sequence[Range], until_end: float, clients: int
) -> int:
    """Pause the database under load; writes soon go on, and in a silence the server ends in time.

    The first silence is one of ``silences``. The second one lasts up to ``until_end`` seconds
    before the server is told to end. There are 3 clients, or ``clients``.
    """
    with a_world(dice, folder, dice.choice((3, clients)), IMPATIENT) as world:
        served, known = world.load.served, world.load.known
        witness = Client(len(world.load.clients), served, known, KINDS)
        world.load.clients = [*world.load.clients, witness]
        time.sleep(dice.uniform(0.0, 0.4))
        with world.database.frozen():
            time.sleep(dice.uniform(*dice.choice(silences)))
        began = time.monotonic()
        witness.fulfil(witness.next_wish())
        took = time.monotonic() - began
        must(took < RECOVERS_WITHIN, "I14", f"{took:.1f} s without writes")
        with world.database.frozen():
            time.sleep(dice.uniform(0.0, until_end))
            began = time.monotonic()
            ended_well(served)
            took = time.monotonic() - began
            must(took < ENDS_WITHIN, "I10", f"{took:.1f} s until the server ended")
        served.start()
        world.check()
    return 2


def the_service_is_killed(dice: random.Random, folder: Path) -> int:
    """Kill the service at random moments, also while it starts."""
    kills = dice.randint(3, 5)
    with a_world(dice, folder, clients=dice.choice((2, 8))) as world:
        served = world.load.served
        for _ in range(kills):
            time.sleep(dice.uniform(0.0, 0.4))
            served.stop(signal.SIGKILL)
            served.spawn()
            if dice.random() < 0.7:
                served.wait()
        served.wait()
        world.check()
    return kills


def the_service_is_killed_at_its_steps(dice: random.Random, folder: Path) -> int:
    """Kill the service at three steps of writes; the database undoes or keeps each as a whole."""
    kills = 3
    with a_world(dice, folder, clients=0) as world:
        load = world.load
        client = Client(0, load.served, load.known, KINDS)
        load.clients = [client]
        client.fulfil(client.next_wish("idp"))
        for _ in range(kills):
            in_a_write(dice, load, client)
        world.check()
    return kills


ROWS = (
    Row("F11", "the database under a service fails", the_database_fails, 1),
    Row(
        "F11b",
        "the database under a service falls silent for a moment",
        partial(the_database_falls_silent, silences=(UNNOTICED,), until_end=0.5, clients=3),
        1,
    ),
    Row(
        "F11c",
        "the database under a service falls silent",
        partial(
            the_database_falls_silent, silences=(UNNOTICED, NOTICED), until_end=3.5, clients=12
        ),
        0,
    ),
    Row("F1-PG", "the service over a database is killed", the_service_is_killed, 1),
    Row(
        "F1b-PG",
        "the service over a database is killed at a step",
        the_service_is_killed_at_its_steps,
        1,
    ),
)
