"""A real PostgreSQL server, thrown away after the tests: its own folder, port and socket."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier

from reconciler.service.eventstore import postgres_schema
from reconciler.service.eventstore.postgres import create
from tests.shared import made_once

ROOT = Path(__file__).parents[1]
USER = "tests"
START_SECONDS = 60
STOP_SECONDS = 30
HOW_TO_INSTALL = "PostgreSQL is missing: run .ci/install-debian postgresql"
# Leaves a store as it is right after it was made: another instance of the same tables.
EMPTY = SQL("; ").join(
    [
        *(
            SQL("DELETE FROM {}").format(Identifier(table))
            for table in sorted(postgres_schema.COLUMNS.keys() - {"reconciler_meta"})
        ),
        SQL(
            "DELETE FROM reconciler_meta"
            " WHERE name NOT IN ('schema', 'instance', 'writers', 'program')"
        ),
        SQL("UPDATE reconciler_meta SET value = md5(random()::text) WHERE name = 'instance'"),
        SQL("SELECT setval('reconciler_positions', 1, false)"),
    ]
)


def find_binaries() -> Path:
    """Return the folder of the server's programs: the newest of Debian's, or what is on PATH."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    if found is None or shutil.which("postgres") is None:
        raise RuntimeError(HOW_TO_INSTALL)
    return Path(found).resolve().parent


def _version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0


def as_somebody(command: Sequence[object]) -> list[str]:
    """Return a command as it is run by somebody who is not root, whom PostgreSQL refuses.

    It ends when the tests do, however they end.
    """
    words = [str(word) for word in command]
    if os.getuid() != 0:
        return words
    somebody = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]
    return ["setpriv", *somebody, "--", *words]


@dataclass
class PostgresServer:
    """One server. Every commit is synced, as it is where it matters."""

    folder: Path
    port: int
    settings: Sequence[str] = ()
    schemas: Iterator[int] = field(default_factory=lambda: count(1))
    process: subprocess.Popen[bytes] | None = None
    _stores: list[str] = field(default_factory=list)  # schemas with a store that nobody uses
    _emptier: psycopg.Connection | None = None

    def start(self) -> None:
        """Start, and wait until it lets somebody in."""
        options = (
            "fsync=on",
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.folder}",
            "shared_buffers=64MB",
            *self.settings,
        )
        command = [find_binaries() / "postgres", "-D", self.folder / "data"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                as_somebody([*command, *(word for said in options for word in ("-c", said))]),
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.address(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if self.process is None or self.process.poll() is not None:
                    log = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL did not start: {log[-2000:]}") from None
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop at once: nothing of it is needed any more."""
        self._end(signal.SIGQUIT)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Pause every process of the server: it is there, and says nothing."""
        paused = [*self._children(), *([self.process.pid] if self.process else [])]
        for pid in paused:
            _signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in paused:
                _signal(pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the server as a crash of the machine would: no byte is written any more."""
        if self.process is not None:
            for pid in self._children():
                _signal(pid, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def _children(self) -> list[int]:
        parent = self.process.pid if self.process else 0
        listed = Path(f"/proc/{parent}/task/{parent}/children")
        return [int(pid) for pid in listed.read_text().split()] if listed.exists() else []

    def _end(self, number: signal.Signals) -> None:
        if self._emptier is not None:
            self._emptier.close()
            self._emptier = None
        if self.process is not None:
            process, self.process = self.process, None
            _signal(process.pid, number)
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                _signal(process.pid, signal.SIGKILL)
                process.wait()

    def address(self, schema: str = "") -> str:
        """Return the address of the database, or of one schema of it."""
        address = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"
        return f"{address}?options=-csearch_path%3D{schema}" if schema else address

    def new_address(self) -> str:
        """Return the address of an empty schema, which is to a store a database of its own."""
        return self.address(self._new_schema())

    def _new_schema(self) -> str:
        schema = f"s{next(self.schemas)}"
        self.execute(f"CREATE SCHEMA {schema}")
        return schema

    @contextmanager
    def empty_store(self) -> Iterator[str]:
        """Yield the address of a store without rows.

        Tables take 0.1 s of processor to make, so they are emptied and used again, unless a test
        failed: they are kept as it left them. What changes tables begins with a new address.
        """
        if self._stores:
            schema = self._stores.pop()
        else:
            schema = self._new_schema()
            create(self.address(schema))
        yield self.address(schema)
        if self._emptier is None:
            self._emptier = psycopg.connect(self.address(), autocommit=True)
        self._emptier.execute(SQL("SET search_path TO {}").format(Identifier(schema)))
        self._emptier.execute(EMPTY)
        self._stores.append(schema)

    def execute(self, *statements: str, address: str = "") -> None:
        """Run statements as the database's owner."""
        with psycopg.connect(address or self.address(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def documented_roles() -> str:
    """Return the SQL by which the documentation makes the roles of a server and of a reader."""
    page = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
    (granting,) = [
        sql for sql in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "GRANT" in sql
    ]
    return str(granting)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


@contextmanager
def a_server(*settings: str) -> Iterator[PostgresServer]:
    """Yield a running server that trusts whoever reaches it, and remove it afterwards."""
    folder = _new_folder()
    try:
        empty = made_once("postgresql", _make_empty)
        _run(["cp", "-a", empty / "data", folder / "data"], folder)
        server = PostgresServer(folder, _free_port(), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def a_synchronous_pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Yield a primary whose commits wait for its standby, and the standby."""
    with a_server() as primary, a_standby(primary) as standby:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        yield primary, standby


@contextmanager
def a_standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Yield a running copy of a server that follows it, and remove it afterwards."""
    folder = _new_folder()
    try:
        copy = [find_binaries() / "pg_basebackup", "-D", folder / "data", "-d", primary.address()]
        _run([*copy, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"], folder)
        standby = PostgresServer(folder, _free_port())
        standby.start()
        try:
            yield standby
        finally:
            standby.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_empty(folder: Path) -> None:
    """Make the files of an empty database, once for all servers of a run of tests: that is slow."""
    folder.chmod(0o755)
    give_to_somebody(folder)
    initdb = [find_binaries() / "initdb", "-D", folder / "data", "-U", USER, "--auth=trust"]
    _run([*initdb, "--encoding=UTF8", "--locale=C", "--no-sync"], folder)


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    folder.chmod(0o755)
    give_to_somebody(folder)
    return folder


def give_to_somebody(path: Path) -> None:
    """Make the user of the server the owner of a file or folder."""
    if os.getuid() == 0:
        shutil.chown(path, "postgres", "postgres")


def _run(command: Sequence[object], folder: Path) -> None:
    subprocess.run(as_somebody(command), check=True, capture_output=True, cwd=folder)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
