"""A real server on a store of its own: two organizations, a project, and a token of each kind."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.eventstore import sqlite_tables
from reconciler.service.eventstore.rows import ObjectRow, StoredEvent, TokenRow
from reconciler.service.operations.callers import EMBEDDED, make_token
from reconciler.service.operations.request import Request
from tests.program import environment
from tests.warm import Copy

START_WITHIN = 30.0
STOP_WITHIN = 120.0  # seconds; a busy machine takes longer than its drain
ANY_PORT = ("--listen", "127.0.0.1:0")
LOG = "stderr.txt"  # beside the store
_MEMORY = re.compile(r"memory: at most ([0-9]+) MiB")
_LISTENING = re.compile(r"listening on (https?)://([0-9.]+):([0-9]+)")


@dataclass
class Known:
    """What is in the store before anybody calls."""

    organization: str = ""
    other_organization: str = ""
    project: str = ""
    tokens: dict[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """A server that listens on a port of its own."""

    port: int
    scheme: str
    store: Path
    process: Copy
    known: Known

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def token(self, name: str = "editor") -> str:
        return self.known.tokens[name]

    def bearer(self, name: str = "editor") -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(name)}"}

    def most_memory(self) -> int:
        """Return the most memory that the server says it will hold, in bytes."""
        (most,) = _said(self.process, self.store.with_name(LOG), _MEMORY).groups()
        return int(most) << 20

    def put_actions(
        self, organization: str, count: int, first: int, script: str = "function a() {}"
    ) -> None:
        """Put actions in the store, without the events that made them: that takes a second.

        ``first`` is the first id, from which the others follow.
        """
        spec = json.dumps(
            {"allowedToFail": False, "script": script, "timeout": "20s"},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        marks = '{"owner":"","preventDelete":null,"trees":[]}'
        rows = (
            ObjectRow(
                str(number), "Action", organization, organization, f"{number:099d}action",
                f"{number:099d}action", spec, "", "", 1, number, number, "t", "", marks,
            )
            for number in range(first, first + count)
        )  # fmt: skip
        with closing(sqlite3.connect(self.store)) as connection, connection:
            connection.executemany(sqlite_tables.PUT["objects"], rows)

    def events(self, after: int = 0) -> Sequence[StoredEvent]:
        """Return the events in the store, read beside the server."""
        with (
            closing(open_sqlite(self.store, read_only=True)) as service,
            service.store.snapshot() as view,
        ):
            return view.read_all(after=after, limit=100_000)

    def event_count(self) -> int:
        """Return how many events are in the store, without reading them."""
        with closing(sqlite3.connect(self.store)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
        return int(count)

    def open_files(self) -> int:
        """Return how many files and sockets the server has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def memory(self) -> int:
        """Return how much memory the server holds, in bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def processor(self) -> float:
        """Return how many seconds of processor the server has taken."""
        status = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = status.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running_server(folder: Path, *arguments: str) -> Iterator[Server]:
    """Run a server; at the end it must stop when told to, and not have stumbled."""
    store = folder / "identity.db"
    known = prepare(store)
    said = folder / LOG
    process = start_server(folder, said, f"sqlite:{store}", *ANY_PORT, *arguments)
    try:
        scheme, port = _listening(process, said)
        yield Server(port, scheme, store, process, known)
        process.send_signal(signal.SIGTERM)
        code = process.wait(STOP_WITHIN)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    text = said.read_text(encoding="utf-8")
    assert "Traceback" not in text, text
    assert code in {0, 143}, text


def a_free_port() -> int:
    """Return a port for a server that has to know its own address before it listens."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


@contextmanager
def another_server(folder: Path, service: str, *arguments: str) -> Iterator[str]:
    """Run one more server on a store; yield its address."""
    said = folder / "stderr-of-another.txt"
    process = start_server(folder, said, service, *ANY_PORT, *arguments)
    try:
        scheme, port = _listening(process, said)
        yield f"{scheme}://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
    text = said.read_text(encoding="utf-8")
    assert "Traceback" not in text, text


@contextmanager
def dying_server(folder: Path, service: str, point: str) -> Iterator[tuple[str, Copy]]:
    """Run one more server on a store; yield its address and process. It dies at a crash point."""
    said = folder / LOG
    process = start_server(folder, said, service, *ANY_PORT, RECONCILER_CRASHPOINT=point)
    try:
        scheme, port = _listening(process, said)
        yield f"{scheme}://127.0.0.1:{port}", process
        assert process.wait(STOP_WITHIN) == -signal.SIGKILL
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def prepare(store: Path) -> Known:
    """Make a store with two organizations, a project, and tokens."""
    with closing(open_sqlite(store, create=True)) as service:
        return furnish(service)


def furnish(service: IdentityService) -> Known:
    """Make two organizations, a project, and tokens in an empty store."""
    known = Known()
    known.organization = _call(service, "AddOrg", {"name": "acme"})["id"]
    known.other_organization = _call(service, "AddOrg", {"name": "other"})["id"]
    made = _call(service, "AddProject", {"name": "shop"}, known.organization)
    known.project = made["id"]
    for name, role, organizations in (
        ("admin", "admin", ""),
        ("editor", "editor", f'["{known.organization}"]'),
        ("viewer", "viewer", f'["{known.organization}"]'),
        ("stranger", "editor", f'["{known.other_organization}"]'),
    ):
        row = TokenRow(name, role, organizations, b"", service.now(), 0, 0)
        token = make_token(service.store, row, secrets.token_bytes)
        assert token is not None
        known.tokens[name] = token.reveal()
    return known


def _call(
    service: IdentityService, operation: str, fields: Mapping[str, Any], organization: str = ""
) -> dict[str, Any]:
    return service.call(Request(operation, fields, caller=EMBEDDED, organization=organization))


def start_server(folder: Path, said: Path, service: str, *arguments: str, **more: str) -> Copy:
    """Start a server whose stderr is added to a file; extra environment by keyword."""
    words = ["serve", "--service", service, *arguments]
    with said.open("ab") as file:
        return Copy(words, folder, environment(**more), stderr=file.fileno())


def _listening(process: Copy, said: Path) -> tuple[str, int]:
    found = _said(process, said, _LISTENING)
    return found[1], int(found[3])


def _said(process: Copy, said: Path, what: re.Pattern[str]) -> re.Match[str]:
    """Return the first of what a server says, once it has said it."""
    deadline = time.monotonic() + START_WITHIN
    while time.monotonic() < deadline:
        found = what.search(said.read_text(encoding="utf-8"))
        if found:
            return found
        assert process.poll() is None, said.read_text(encoding="utf-8")
        time.sleep(0.02)
    raise AssertionError(said.read_text(encoding="utf-8"))
