"""Runs on machines that share nothing but a service: folders that begin empty, and rivals."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.service.eventstore.rows import StoredEvent
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_store
from tests.faults.rows.killed_program import KINDS, POINTS
from tests.faults.rows.many_writers import PATIENT
from tests.faults.world import APPLY, ENDS_WITHIN, PLAN, World, a_server, end
from tests.sinks import SINKS, Sink, counted, hashes

OWED_POINTS = ("C15", "C16", "C17", "C18")
WITH_SECRET = frozenset({"application.added", "application.secret.changed"})


@dataclass
class Machines:
    """A service, its tree, and the machines that applied it.

    Attributes:
        sinks: Of every machine; a machine that is thrown away leaves its sink.
    """

    world: World
    sinks: list[Sink] = field(default_factory=list)

    def next(self, kind: str = "") -> World:
        """Return an empty machine: the manifests, an address and a token, and a sink of its own."""
        folder = self.world.folder / f"machine{len(self.sinks)}"
        shutil.copytree(self.world.folder / "manifests", folder / "manifests")
        make = self.world.dice.choice([make for make in SINKS if kind in make.__name__])
        sink = make(folder)
        self.sinks.append(sink)
        here = {**self.world.here, "RECONCILER_SECRETS_TO": sink.address, "HOME": str(folder)}
        return replace(self.world, folder=folder, sink=sink, here=here)

    def settle(self, machine: World) -> None:
        """Apply undisturbed, and check that no secret was lost or replaced (I1 to I5, I7, I9)."""
        done = machine.run(*APPLY)
        must(done.code == 0, "I7", done.all)
        again = machine.run(*PLAN)
        must(again.code == 0, "I7", f"the plan is not empty: {again.all}")
        check_store(self.world.store)
        kept = {pair for sink in self.sinks for pair in hashes(sink.read()).items()}
        lost = set(counted(self.world.store).items()) - kept
        must(not lost, "I3", f"no machine has the secrets of {lost}")
        assert self.world.server
        events = self.world.server.events()
        must(not (replaced := list(_replaced(events))), "I3", f"had two secrets: {replaced}")
        made = {_payload(event).get("client_id") for event in events}
        must({client for client, _ in kept} <= made, "I1", "what was delivered is not in the log")


def _payload(event: StoredEvent) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.payload)
    return found


def _replaced(events: Iterable[StoredEvent]) -> Iterator[str]:
    """Yield the applications that got a secret while they had one."""
    has_secret: set[str] = set()
    for event in events:
        payload = _payload(event)
        if event.type in WITH_SECRET and payload.get("secret_hash"):
            if event.stream in has_secret:
                yield event.stream
            has_secret.add(event.stream)
        elif event.type == "application.changed" and not has_client_secret(payload["spec"]):
            has_secret.discard(event.stream)


@contextmanager
def machines(dice: random.Random, folder: Path) -> Iterator[Machines]:
    """Yield a service that machines can share, with a tree that has begun."""
    with a_server(dice, folder) as world:
        world.tree.declare(*dice.choices(KINDS, k=3), "secret", "secret")
        yield Machines(world)


def in_an_empty_folder(dice: random.Random, folder: Path) -> int:
    """Kill run after run, each on a machine that begins empty; edit the tree in between."""
    kills = 0
    with machines(dice, folder) as them:
        for _ in range(dice.randint(1, 4)):
            machine = them.next()
            if dice.random() < 0.3:
                kills += machine.killed(dice.uniform(0.01, 0.8))
            else:
                point = f"{dice.choice(POINTS + OWED_POINTS)}:{dice.randint(1, 3)}"
                kills += machine.run(*APPLY, RECONCILER_CRASHPOINT=point).code != 0
            them.world.tree.edit(dice.randint(0, 2))
            if dice.random() < 0.3:
                them.world.tree.give_secrets()
        them.settle(them.next())
    return kills + 1


def beside_a_rival(dice: random.Random, folder: Path) -> int:
    """Apply on two machines at once, kill one, and let the other go on."""
    rounds = dice.randint(1, 3)
    with machines(dice, folder) as them:
        for _ in range(rounds):
            one, two = them.next("file"), them.next("file")
            if dice.random() < 0.5:
                one.here["RECONCILER_CRASHPOINT"] = f"{dice.choice(POINTS + OWED_POINTS)}"
            with one.started(*APPLY, *PATIENT) as dies, two.started(*APPLY, *PATIENT) as goes_on:
                time.sleep(dice.uniform(0.01, 0.8))
                end(dies)
                said = goes_on.communicate(timeout=ENDS_WITHIN)
            must(goes_on.returncode == 0, "I7", said)
            them.world.tree.declare(*dice.choices(KINDS, k=2), "secret")
            if dice.random() < 0.4:
                them.world.tree.give_secrets()
        them.settle(them.next("file"))
    return rounds


ROWS = (
    Row("F16", "the next run starts in an empty folder", in_an_empty_folder, 1),
    Row("F16b", "of two machines with one service, one is killed", beside_a_rival, 1),
)
