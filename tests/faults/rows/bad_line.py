"""The way between the program and its service is bad."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, a_server, disturbed, faults

TRIES = 6
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


ROWS = (Row("F3", "requests and answers come to harm", requests_and_answers_come_to_harm, 2),)
