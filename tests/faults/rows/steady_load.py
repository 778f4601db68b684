"""A steady load, and callers who break off in the middle of what they say."""

from __future__ import annotations

import random
import socket
import threading
from contextlib import suppress
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_store
from tests.faults.test_steady_load import CLIENTS, MEGABYTE, RATE, warm
from tests.raw_http import request
from tests.running import Server, running_server

WARM_SECONDS = 1.0
SECONDS = 3.0
GROWTH = 12 * MEGABYTE
ACTIONS = "/management/v1/actions"


class RudeCaller(threading.Thread):
    """Says a part of a request, or all of it, and hangs up without waiting for the answer."""

    def __init__(self, dice: random.Random, server: Server) -> None:
        super().__init__()
        self._dice = dice
        self._server = server
        self.over = threading.Event()
        self.hung_up = 0

    def run(self) -> None:
        headers = {**self._server.bearer(), "content-type": "application/json"}
        while not self.over.wait(self._dice.uniform(0.0, 0.05)):
            body = b'{"name":"rude%d","script":"x"}' % self.hung_up
            sent = request("POST", ACTIONS, headers, body)
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", self._server.port), 5) as connection,
            ):
                connection.sendall(sent[: self._dice.randint(0, len(sent))])
                self.hung_up += 1


def a_steady_load(dice: random.Random, folder: Path) -> int:
    """Let callers call, and others hang up on the server; it neither errs nor grows (I13, I14)."""
    with running_server(folder) as server:
        warm(server, WARM_SECONDS)
        files, memory = server.open_files(), server.memory()
        rude = RudeCaller(dice, server)
        rude.start()
        try:
            callers = warm(server, SECONDS)
        finally:
            rude.over.set()
            rude.join()
        wrong = [wrong for caller in callers for wrong in caller.wrong]
        must(not wrong, "I13", wrong[:3])
        answered = sum(caller.answered for caller in callers)
        must(answered >= RATE * SECONDS * 0.5, "I13", f"only {answered} calls were answered")
        must(server.open_files() <= files + 2 * CLIENTS, "I14", "files stay open")
        grown = server.memory() - memory
        must(grown < GROWTH, "I14", f"grew by {grown} bytes")
    check_store(folder / "identity.db")
    return rude.hung_up


ROWS = (Row("L3", "callers hang up in the middle of a steady load", a_steady_load, 1),)
