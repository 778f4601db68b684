"""The way between the program and its service is bad."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.fault_proxy import at_random, fault_proxy
from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, Tree, a_server, disturbed, faults, undisturbed
from tests.listening import listening
from tests.program import program
from tests.sinks import a_file_sink
from tests.zitadel.stand_in import IAM, FakeZitadel

TRIES = 6
MOST_RUNS = 3  # beneath a bad line, each waits for lists that lag
UNPRUNED = ("apply", "--auto-approve", "--allow-updates", "1000")
REMAINS = 5
ENDS = {0, 1, 5}


def requests_and_answers_come_to_harm(dice: random.Random, folder: Path) -> int:
    """Apply through a proxy that harms two of five requests, then apply without it."""
    with a_server(dice, folder) as world:
        assert world.proxy
        for _ in range(2):
            world.tree.declare(*dice.choices(("secret", "public", "action", "idp"), k=8))
            world.tree.edit(8)
            world.proxy.choose = disturbed(dice, 0.4)
            for _ in range(dice.randint(1, TRIES)):
                ran = world.run(*APPLY)
                must(ran.code in ENDS, "I10", ran.all)
                if ran.code == 0:
                    break
        world.settle()
        return faults(world.proxy)


def a_foreign_line_is_bad(dice: random.Random, folder: Path) -> int:
    """Apply to a service that knows no idempotency keys, and whose lists lag."""
    fake = FakeZitadel(lag=dice.uniform(0, 1.5), is_unique=dice.random() < 0.7)
    fake.put("projects", name="shop")
    sink = a_file_sink(folder)
    run = program(folder)
    tree = Tree(dice, folder / "manifests")
    tree.declare("secret", "public", "action", "idp", "secret", "action")
    with (
        listening(fake.app()) as target,
        fault_proxy(target, at_random(dice.randrange(1 << 30), 0.4, once_only=True)) as proxy,
    ):
        time.sleep(fake.lag)  # what was put in is shown
        here = {
            "RECONCILER_SERVICE": proxy.address,
            "RECONCILER_TOKEN": IAM,
            "RECONCILER_SECRETS_TO": sink.address,
        }
        told, runs = "", 0
        while not faults(proxy) or (runs < MOST_RUNS and dice.random() < 0.5):
            runs += 1
            tree.edit(4)
            ran = run(*UNPRUNED, **here)
            must(ran.code in ENDS, "I10", ran.all)
            told += ran.all if ran.code == REMAINS else ""
        proxy.choose = undisturbed
        time.sleep(fake.lag)
        ran = run(*UNPRUNED, **here)
        must(ran.code in {0, REMAINS}, "I7", ran.all)  # it looks again before the lag is over
        told += ran.all if ran.code == REMAINS else ""
        time.sleep(fake.lag)
        planned = run("plan", "--detailed-exitcode", **here)
        must(planned.code == 0, "I7", planned.all)
        done = faults(proxy)
    for kind in ("apps", "actions", "idps", "projects"):
        names = [item["name"].lower() for item in fake.held[kind].values()]
        must(len(set(names)) == len(names), "I2", names)
    kept = sink.read()
    for app in fake.held["apps"].values():
        secret = fake.secrets.get(app["id"])
        is_kept = kept.get(app["oidcConfig"]["clientId"]) == secret
        is_told = f"--rotate-missing OidcApplication/acme/shop/{app['name']}\n" in told
        must(secret is None or is_kept or is_told, "I3", (app, told))
    return done


ROWS = (
    Row("F3", "requests and answers come to harm", requests_and_answers_come_to_harm, 1),
    Row("F3b", "the line to a service without idempotency keys is bad", a_foreign_line_is_bad, 1),
)
