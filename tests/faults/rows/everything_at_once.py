"""Every attack on a server's memory, time and connections at once; honest callers notice little."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.service.build import open_sqlite
from reconciler.service.operations.dispatch import Incoming
from tests.faults.attackers import ATTACKS, Orders
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_store
from tests.program import ROOT
from tests.running import Server, running_server
from tests.wires import WIRES, Answered

MEMORY = 512 << 20  # as in docs/serving/kubernetes.yaml
SLOWEST = 0.25  # of a hundred calls, all but one; where the machine itself is not slower
TIMES = 5.0  # of what calls take on a calm server, on a machine that is slow by itself
CALM_SECONDS = 0.5
EVERY = 0.02
BATCH = 250
_PEAK = re.compile(r"VmHWM:\s+([0-9]+) kB")


class Honest(threading.Thread):
    """Calls over one transport, and notes how long each answer took."""

    def __init__(self, server: Server, transport: str, seconds: float) -> None:
        super().__init__()
        self._server = server
        self._transport = transport
        self._seconds = seconds
        self.took: list[float] = []
        self.wrong: list[Any] = []

    def run(self) -> None:
        headers = [("authorization", f"Bearer {self._server.token('editor')}")]
        until = time.monotonic() + self._seconds
        with closing(WIRES[self._transport](self._server)) as wire:
            wire.call("Healthz", {}, headers)  # loading a client is no part of a call
            while time.monotonic() < until:
                operation, fields = self._next()
                began = time.monotonic()
                outcome = wire.call(operation, fields, headers)
                self.took.append(time.monotonic() - began)
                if not isinstance(outcome, Answered):
                    self.wrong.append(outcome)
                time.sleep(EVERY)

    def _next(self) -> tuple[str, dict[str, Any]]:
        name = f"{self._transport}-{time.monotonic_ns()}"
        return (
            ("GetMyOrg", {}),
            ("ListActions", {"query": {"limit": 100}}),
            ("CreateAction", {"name": name, "script": "function f() {}"}),
            ("ListProjects", {}),
        )[len(self.took) % 4]


def honest_calls(server: Server, seconds: float) -> float:
    """Call over every transport; return how long all but one of a hundred calls took at most."""
    callers = [Honest(server, transport, seconds) for transport in WIRES]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    wrong = [wrong for caller in callers for wrong in caller.wrong]
    must(not wrong, "I13", wrong[:3])
    took = sorted(seconds for caller in callers for seconds in caller.took)
    return took[len(took) * 99 // 100]


def fill(store: Path, token: str, count: int) -> None:
    """Make so many actions in the organization of a caller."""
    headers = {"authorization": [f"Bearer {token}"]}
    with closing(open_sqlite(store)) as service:
        for start in range(0, count, BATCH):
            answers = service.dispatcher.receive(
                [
                    Incoming("CreateAction", {"name": f"a{number}", "script": "x" * 500}, headers)
                    for number in range(start, min(start + BATCH, count))
                ]
            )
            assert all(isinstance(received.answer, dict) for received in answers)


def peak_of(server: Server) -> int:
    """Return the most memory that a server ever had, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    found = _PEAK.search(status)
    assert found is not None
    return int(found[1]) << 10


@contextmanager
def attacked(orders: Orders) -> Iterator[None]:
    """Let a server be attacked as long as the block runs."""
    attackers = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.attackers"], cwd=ROOT, stdin=subprocess.PIPE, text=True
    )
    with attackers:
        assert attackers.stdin
        attackers.stdin.write(orders.as_json())
        attackers.stdin.close()
        try:
            yield
            assert attackers.poll() is None
        finally:
            attackers.kill()


def everything_at_once(
    dice: random.Random,
    folder: Path,
    *,
    rounds: int,
    seconds: float,
    connections: int,
    actions: int,
) -> int:
    """Attack in every way while honest callers call: answered in time, in memory (I13, I14).

    There is another round where a short one was slow: the machine may have been busy elsewhere.
    """
    with running_server(folder) as server:
        stranger = server.token("stranger")
        fill(server.store, stranger, actions)
        calm = honest_calls(server, CALM_SECONDS)
        allowed = max(SLOWEST, calm * TIMES)
        slowest: list[float] = []
        with attacked(Orders(server.port, stranger, connections, dice.uniform(0.02, 0.1))):
            while not slowest or (min(slowest) > allowed and len(slowest) < rounds):
                slowest.append(honest_calls(server, seconds))
        must(min(slowest) <= allowed, "I13", f"{slowest} s of {allowed:.3f}; calm: {calm:.3f} s")
        must(peak_of(server) < MEMORY, "I14", f"had {peak_of(server) >> 20} MiB")
    check_store(folder / "identity.db")
    return connections * len(ATTACKS)


ROWS = (
    Row(
        "L4",
        "every attack at once, for moments",
        partial(everything_at_once, rounds=4, seconds=1.0, connections=4, actions=500),
        1,
    ),
    Row(
        "L4b",
        "every attack at once, for a minute",
        partial(everything_at_once, rounds=1, seconds=60.0, connections=20, actions=20_000),
        0,
        alone=True,
    ),
)
