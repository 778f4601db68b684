"""An old server and an old command beside a newer program, which writes to the same store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.service.build import IdentityService, microseconds, open_postgres, open_sqlite
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.writers import WRITERS_VERSION
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from reconciler.service.seal import NoKey
from tests.acceptance.conftest import Run
from tests.acceptance.test_serve import port_of, serving, status_of, stop
from tests.postgres_server import PostgresServer
from tests.raw_http import exchange, request
from tests.running import Known, furnish

NEWER = WRITERS_VERSION + 1
TOLD = f"has written to the store (its writers have version {NEWER}, this program"


@dataclass
class Shared:
    """A store that programs of two versions write to, and the arguments that name it."""

    known: Known
    newer: SqliteEventStore | PostgresEventStore
    arguments: tuple[str, ...]

    def write_as_newer(self, name: str) -> None:
        """Make an organization as a newer program does."""
        service = IdentityService(self.newer, NoKey(), microseconds)
        service.call(Request("AddOrg", {"name": name}, caller=EMBEDDED))


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    """Make a store, and open it as a newer program does."""
    key = tmp_path / "seal-key"
    store: SqliteEventStore | PostgresEventStore
    if request.param == "sqlite":
        path = tmp_path / "identity.db"
        place = f"sqlite:{path}"
        # Closed first: a process that opens a file twice loses the locks that SQLite has on it.
        with closing(open_sqlite(path, seal_key_file=key, create=True)) as made:
            known = furnish(made)
        store = SqliteEventStore(path, microseconds, NEWER)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        place = server.new_address()
        with closing(open_postgres(place, seal_key_file=key, create=True)) as made:
            known = furnish(made)
        store = PostgresEventStore(place, microseconds, NEWER)
    with closing(store):
        yield Shared(known, store, ("--service", place, "--seal-key-file", str(key)))


def test_a_server_that_is_too_old_is_read_and_not_ready(shared: Shared, tmp_path: Path) -> None:
    """Its callers are told to ask again, so that a balancer takes them to a newer one."""
    bearer = {"authorization": f"Bearer {shared.known.tokens['editor']}"}
    with serving(tmp_path, *shared.arguments) as (process, said):
        port = port_of(process, said)

        def made(name: str) -> tuple[int, object]:
            body = json.dumps({"name": name, "script": f"function {name}() {{}}"}).encode()
            headers = {**bearer, "content-type": "application/json"}
            answer = exchange(port, request("POST", "/management/v1/actions", headers, body))
            assert answer is not None
            return answer.status, json.loads(answer.body).get("code")

        assert made("early") == (200, None)
        shared.write_as_newer("globex")

        assert made("late") == (503, 14)
        assert status_of(port, "GET", "/management/v1/orgs/me", bearer) == 200
        assert status_of(port, "GET", "/readyz") == 503
        assert said.read_text(encoding="utf-8").count(TOLD) == 1
        assert stop(process) == 0


def test_a_command_that_is_too_old_says_so_and_writes_nothing(
    run: Run, small: Path, shared: Shared
) -> None:
    """It says what to do; what is there is sound, and can be read."""
    shared.write_as_newer("globex")
    with shared.newer.snapshot() as view:
        before = view.heads(), view.all_objects(), view.lease("acme")

    applied = run("apply", "--auto-approve", *shared.arguments)

    assert applied.code == 1, applied.all
    assert TOLD in applied.err
    assert "Install the newest version" in applied.err
    with shared.newer.snapshot() as view:
        assert (view.heads(), view.all_objects(), view.lease("acme")) == before
    assert run("store", "verify", *shared.arguments[:2]).out.startswith("Sound:")
    assert run("plan", *shared.arguments[:2]).code == 0
