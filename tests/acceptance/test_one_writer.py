"""One writer at a time: applies that run at once lose nothing; who is fenced out writes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli.embedded import InProcessWire
from reconciler.errors import LockHeldError, ServiceError
from reconciler.resources.ref import Kind, ResourceRef, organization_ref
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import LEASE_SECONDS, this_process
from reconciler.service_client.port import CreateOrder, Written
from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.builders import declared
from tests.memory_store import open_memory
from tests.program import started

SECOND = 1_000_000


@pytest.mark.parametrize("applies", [2, 8])
def test_applies_that_run_at_once_do_the_work_of_one(run: Run, small: Path, applies: int) -> None:
    """A pipeline that was started twice makes nothing twice."""
    run("apply", "--auto-approve")
    for number in range(40):
        write(small / f"app{number}.yaml", an_application(f"app{number}"))
        write(small / f"act{number}.yaml", an_action(f"act{number}"))
    command = ("apply", "--auto-approve", "--lock-timeout", "60", "--format", "json")

    running = [started(small.parent, *command) for _ in range(applies)]
    ended = [process.communicate(timeout=120) for process in running]

    assert [process.returncode for process in running] == [0] * applies, ended
    made = [json.loads(out)["summary"]["made"] for out, _ in ended]
    assert sum(made) == 80
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("store", "verify").code == 0
    assert len(list((small.parent / ".reconciler" / "secrets").glob("*.json"))) == 41


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        self.now += 1
        return self.now


def test_a_holder_that_was_paused_and_wakes_writes_nothing() -> None:
    """A laptop that slept through its lease must not write over who came after."""
    time = Time()
    service = open_memory(now=time)
    wire = InProcessWire(service)
    sleeper, other = (
        OperationsClient(
            wire,
            replace(this_process(), user="somebody", host=host),
            clock=lambda: time.now / SECOND,
        )
        for host in ("a", "b")
    )
    sleeper.acquire(["acme"])
    (made,) = sleeper.write([CreateOrder(declared(organization_ref("acme")))], {})
    assert isinstance(made, Written)
    with pytest.raises(LockHeldError, match="somebody on a"):
        other.acquire(["acme"])

    time.now += LEASE_SECONDS * SECOND
    other.acquire(["acme"])
    action = declared(ResourceRef(Kind.ACTION, "acme", "", "f"), {"script": "function f() {}"})
    (refused,) = sleeper.write([CreateOrder(action, organization_id=made.id)], {})

    assert isinstance(refused, ServiceError)
    assert [held.ref.kind for held in other.observe(["acme"]).objects.values()] == [
        Kind.ORGANIZATION
    ]
    with pytest.raises(LockHeldError, match="somebody on b"):
        sleeper.renew()
    (written,) = other.write([CreateOrder(action, organization_id=made.id)], {})
    assert isinstance(written, Written)
