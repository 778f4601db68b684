"""Stores that version 1 of the schema made: read as they are, brought up when they are written to.

``store_version_1.sql`` is such a store as text. It was made in this order: an organization, a
project and an application ``web`` by the tree team-a; an update of it without a tree; a new secret
by team-b; an application ``spa`` by team-a, moved to a sign-in without a secret by team-b; an
action made by hand; and one that team-b made and removed.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from reconciler.service.build import IdentityService, open_postgres, open_sqlite
from reconciler.service.eventstore import postgres_statements
from reconciler.service.eventstore.errors import StoreUnusableError
from reconciler.service.eventstore.postgres import create as create_tables
from reconciler.service.eventstore.sqlite_tables import APPLICATION_ID
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from reconciler.service.projections import maintenance as rebuilding
from reconciler.service.projections.maintenance import verify
from reconciler.service.restore import restore
from tests.postgres_server import PostgresServer
from tests.program import program

WRITTEN = Path(__file__).with_name("store_version_1.sql").read_text(encoding="utf-8")
TABLES = ("heads", "events", "objects", "seals", "records", "leases", "tokens")
OWNERS = {
    "acme": ("team-a", ["team-a"], True),
    "shop": ("team-a", ["team-a"], True),
    "web": ("team-a", ["team-a"], True),
    "spa": ("team-b", ["team-a", "team-b"], True),
    "byhand": ("", [], False),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make the store of version 1 in a SQLite file."""
    path = tmp_path / "identity.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        made.execute("PRAGMA user_version = 1")
        made.executescript(WRITTEN)
        made.execute("PRAGMA journal_mode = WAL")
    return path


@pytest.fixture
def address(path: Path, postgres: PostgresServer) -> str:
    """Make the store of version 1 in a PostgreSQL database."""
    address = postgres.new_address()
    create_tables(address)
    with (
        closing(sqlite3.connect(path)) as source,
        psycopg.connect(address, autocommit=True) as target,
    ):
        target.execute("DROP TABLE reconciler_owed")
        target.execute(postgres_statements.SET_META, ("1", "schema"))
        for table in TABLES:
            words = ["SELECT * FROM", table]
            rows = source.execute(" ".join(words))
            columns = [found[0] for found in rows.description]
            values = [list(row) for row in rows]
            if table == "heads":
                columns.append("position")
                values = [[*row, 1_000] for row in values]
            places = ", ".join("%s" for _ in columns)
            words = ["INSERT INTO", f"reconciler_{table}", f"({', '.join(columns)})"]
            statement = " ".join([*words, "VALUES", f"({places})"])
            target.cursor().executemany(statement.encode(), values)
        target.execute("SELECT setval('reconciler_positions', 1000)")
    return address


def call(service: IdentityService, operation: str, **fields: Any) -> dict[str, Any]:
    beside = {name: fields.pop(name) for name in ("custody", "context") if name in fields}
    return service.call(Request(operation, fields, caller=EMBEDDED, **beside))


def organization_of(service: IdentityService) -> str:
    found: str = call(service, "ListOrgs")["result"][0]["id"]
    return found


def objects(service: IdentityService) -> dict[str, dict[str, Any]]:
    answer = call(service, "ListObjects", organizationId=organization_of(service))
    return {found["name"]: found for found in answer["objects"]}


def check(service: IdentityService) -> None:
    """Check that a store is read as this version would have written it."""
    held = objects(service)
    assert {
        name: (found["owner"], found["trees"], found["preventDelete"])
        for name, found in held.items()
    } == OWNERS
    assert (held["web"]["hasSecret"], held["spa"]["hasSecret"]) == (True, False)
    assert {found["state"] for found in held.values()} == {"ACTIVE"}
    owed = call(service, "ListOwedSecrets", organizationId=organization_of(service))
    assert owed == {"owedSecrets": [], "next": ""}
    assert verify(service.store) == []


def use(service: IdentityService) -> None:
    """Write to a store that was brought up: what version 1 could not keep, too."""
    web = objects(service)["web"]
    target = {"projectId": web["projectId"], "appId": web["id"]}
    call(service, "RegenerateOIDCClientSecret", **target, custody="run-1")
    owed = call(service, "ListOwedSecrets", organizationId=organization_of(service))
    assert [found["state"] for found in owed["owedSecrets"]] == ["owed"]
    assert verify(service.store) == []


def test_an_old_file_is_read_and_not_touched(path: Path) -> None:
    """A plan against a store of before shows the owners, and makes nothing."""
    before = path.read_bytes()

    with closing(open_sqlite(path, read_only=True)) as service:
        check(service)
        service.store.backup(path.with_name("backup.db"))

    assert path.read_bytes() == before
    assert {found.name for found in path.parent.iterdir()} == {"identity.db", "backup.db"}


def test_an_old_file_is_brought_up_when_it_is_written_to(path: Path) -> None:
    """Once, and for every later opening."""
    for _ in range(2):
        with closing(open_sqlite(path)) as service:
            check(service)
    with closing(open_sqlite(path)) as service:
        use(service)
    with closing(open_sqlite(path, read_only=True)) as service:
        assert verify(service.store) == []


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one transaction: a crash in its midst is one that never began."""

    def fail(*_: object) -> None:
        raise KeyError("in the midst")

    with monkeypatch.context() as patched:
        patched.setattr(rebuilding, "next_row", fail)
        for read_only in (False, True):
            with (
                pytest.raises(StoreUnusableError, match="earlier version"),
                closing(open_sqlite(path, read_only=read_only)) as service,
            ):
                objects(service)

    with closing(sqlite3.connect(path)) as looked_at:
        tables = {name for (name,) in looked_at.execute("SELECT name FROM sqlite_schema")}
        (version,) = looked_at.execute("PRAGMA user_version").fetchone()
    assert ("owed" in tables, version) == (False, 1)
    with closing(open_sqlite(path)) as service:
        check(service)


def test_a_backup_of_an_old_file_is_restored(path: Path) -> None:
    """It is verified as this version reads it."""
    target = path.with_name("restored.db")
    restore(path, target)

    with closing(open_sqlite(target)) as service:
        check(service)


def test_a_damaged_old_file_is_told(path: Path) -> None:
    """What its log lost is a finding, not a failure."""
    with closing(sqlite3.connect(path)) as spoilt:
        spoilt.execute("UPDATE events SET payload = '{}' WHERE type = 'app.oidc.added'")
        spoilt.commit()

    with closing(open_sqlite(path, read_only=True)) as service:
        (finding,) = verify(service.store)
    assert "cannot be replayed" in finding


def test_an_old_file_through_the_command_line(path: Path) -> None:
    """Looking leaves it as it is; the next write brings it up."""
    run = program(path.parent)
    store = ("--service", f"sqlite:{path}")

    assert "Sound" in run("store", "verify", *store).out
    assert "action.added" in run("history", "Action", "acme/byhand", *store).out
    rebuilt = run("store", "rebuild", *store)
    assert (rebuilt.code, rebuilt.out) == (0, "Rebuilt 5 objects from the log.\n")
    assert "Sound" in run("store", "verify", *store).out
    with closing(sqlite3.connect(path)) as looked_at:
        assert looked_at.execute("PRAGMA user_version").fetchone() == (2,)


def test_an_old_database_is_read_and_brought_up(address: str, tmp_path: Path) -> None:
    """By whoever writes first; a reader needs no right to make tables."""
    with closing(open_postgres(address, read_only=True)) as service:
        check(service)
    with psycopg.connect(address) as looked_at:
        assert looked_at.execute(postgres_statements.META, ("schema",)).fetchone() == ("1",)

    key = tmp_path / "key"
    with (
        closing(open_postgres(address, seal_key_file=key)) as service,
        closing(open_postgres(address, seal_key_file=key)) as other,
    ):
        check(service)
        check(other)
        use(service)
    with closing(open_postgres(address, read_only=True)) as service:
        assert objects(service)["spa"]["owner"] == "team-b"
