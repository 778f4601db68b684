"""The program is killed while it applies."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from tests.acceptance.conftest import ORGANIZATION, an_action, an_application, an_idp, write
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_delivered, check_store
from tests.program import program

POINTS = ("C1", "C2", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13")
PER_SECRET = frozenset({"C7", "C8", "C9"})


def killed_at_a_point(dice: random.Random, folder: Path) -> int:
    """Kill an apply at one of its steps, then apply again."""
    run = program(folder)
    write(folder / "manifests" / "acme.yaml", ORGANIZATION)
    run("apply", "--auto-approve")
    for name in ("web", "api"):
        write(folder / "manifests" / f"{name}.yaml", an_application(name))
    write(
        folder / "manifests" / "public.yaml",
        an_application(
            "spa", authMethodType="OIDC_AUTH_METHOD_TYPE_NONE", appType="OIDC_APP_TYPE_USER_AGENT"
        ),
    )
    write(folder / "manifests" / "action.yaml", an_action())
    write(folder / "manifests" / "idp.yaml", an_idp())
    point = dice.choice(POINTS)
    visit = dice.randint(1, 2) if point in PER_SECRET else 1
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=f"{point}:{visit}")

    must(killed.code == -signal.SIGKILL, "I10", f"{point}:{visit} {killed.all}")
    after = run("apply", "--auto-approve")
    must(after.code == 0, "I7", after.all)
    must(run("plan", "--detailed-exitcode").code == 0, "I7", "the plan is not empty")
    check_store(folder / ".reconciler" / "identity.db")
    check_delivered(run, folder)
    return 1


ROWS = (Row("F2", "the program is killed at a step of its apply", killed_at_a_point, 22),)
