"""A steady load over three transports: no error, flat memory, no file left open.

``STEADY_SECONDS=60`` makes it the long run; in the suite it is a short one.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.contract.story import JWT
from tests.running import Server, running_server
from tests.wires import WIRES, Answered

SECONDS = int(os.environ.get("STEADY_SECONDS", "4"))
RATE = 200
CLIENTS = 6
MEGABYTE = 1 << 20


class Caller(threading.Thread):
    """Makes its calls at a steady rate over one transport: a write to every four reads.

    On a busy machine the last call is late, but none is left out and none comes early.
    """

    def __init__(self, server: Server, number: int, calls: int) -> None:
        super().__init__()
        self._server = server
        self._transport = list(WIRES)[number % len(WIRES)]
        self._number = f"{number}-{calls}"
        self._calls = calls
        self.answered = 0
        self.wrong: list[Any] = []

    def run(self) -> None:
        headers = [("authorization", f"Bearer {self._server.token('editor')}")]
        pause, due = CLIENTS / RATE, time.monotonic()
        with closing(WIRES[self._transport](self._server)) as wire:
            for _ in range(self._calls):
                operation, fields = self._next()
                outcome = wire.call(operation, fields, headers)
                if not isinstance(outcome, Answered):
                    self.wrong.append(outcome)
                self.answered += 1
                due += pause
                time.sleep(max(0.0, due - time.monotonic()))

    def _next(self) -> tuple[str, dict[str, Any]]:
        name = f"{self._transport}-{self._number}-{self.answered}"
        project = self._server.known.project
        return (
            ("CreateAction", {"name": name, "script": "function f() {}"}),
            ("ListActions", {"query": {"limit": 10}}),
            ("AddOIDCApp", {"projectId": project, "name": name}),
            ("GetProjectByID", {"id": project}),
            ("AddOrgJWTIDP", {"name": name, **JWT}),
            ("ListApps", {"projectId": project, "query": {"limit": 10}}),
            ("ListProjects", {}),
            ("GetMyOrg", {}),
            ("ListOrgIDPs", {"query": {"limit": 10}}),
            ("ListActions", {"query": {"limit": 5, "offset": 3}}),
        )[self.answered % 10]


def test_a_steady_load_is_answered_without_an_error_and_without_growth(tmp_path: Path) -> None:
    """Two hundred requests a second is a busy day, not a test of strength."""
    with running_server(tmp_path) as server:
        warm(server, 2.0)
        files, memory, worked = server.open_files(), server.memory(), server.processor()

        callers = warm(server, float(SECONDS))

        answered = sum(caller.answered for caller in callers)
        assert [wrong for caller in callers for wrong in caller.wrong] == []
        assert answered >= RATE * SECONDS * 0.8
        # The time that the calls take is the machine's; the work in them is the server's.
        assert server.processor() - worked < SECONDS
        assert server.open_files() <= files + 2 * CLIENTS
        assert server.memory() - memory < min(24, 3 * SECONDS) * MEGABYTE


def warm(server: Server, seconds: float) -> list[Caller]:
    """Let every caller make the calls of some seconds."""
    calls = int(seconds * RATE / CLIENTS)
    callers = [Caller(server, number, calls) for number in range(CLIENTS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return callers
