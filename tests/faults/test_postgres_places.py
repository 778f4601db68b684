"""What is found where a store in PostgreSQL is looked for, and what is told about it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from reconciler.service.build import IdentityService, open_postgres, postgres_holds_store
from reconciler.service.eventstore.errors import (
    StoreError,
    StoreMissingError,
    StoreReadOnlyError,
    StoreUnreachableError,
    StoreUnusableError,
)
from reconciler.service.eventstore.postgres_connection import BoundedConnection
from reconciler.service.eventstore.postgres_schema import COLUMNS, IS_BY_CODE_POINT, TABLES
from reconciler.service.projections.maintenance import rebuild, verify
from tests.certificates import a_certificate
from tests.faults.writers import call, create
from tests.postgres_server import (
    USER,
    PostgresServer,
    a_server,
    documented_roles,
    find_binaries,
    give_to_somebody,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """Return the address of an empty database."""
    return postgres.new_address()


@pytest.fixture
def service(address: str, tmp_path: Path) -> Iterator[IdentityService]:
    """Open a service over it."""
    key = tmp_path / "seal-key"
    with closing(open_postgres(address, seal_key_file=key, create=True)) as opened:
        yield opened


def tables_at(address: str) -> set[str]:
    with psycopg.connect(address) as connection:
        listing = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return {name for (name,) in connection.execute(listing)}


def run(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_looking_at_an_empty_database_makes_nothing(address: str) -> None:
    """A plan against it finds no store, and leaves none."""
    assert postgres_holds_store(address) is False
    for read_only in (True, False):
        with pytest.raises(StoreMissingError):
            open_postgres(address, read_only=read_only)

    assert tables_at(address) == set()


def test_a_store_that_is_looked_at_cannot_be_written_to(
    address: str, service: IdentityService
) -> None:
    """Reading needs no key, and writing is refused in words."""
    service.call(call("AddOrg", name="acme"))
    with closing(open_postgres(address, read_only=True)) as reader:
        assert postgres_holds_store(address) is True
        assert verify(reader.store) == []
        with pytest.raises(StoreReadOnlyError):
            reader.call(call("AddOrg", name="globex"))


@pytest.mark.parametrize(
    "foreign",
    [
        ["CREATE TABLE reconciler_events (id int)"],
        ["CREATE TABLE reconciler_meta (name text, value text, note text)"],
        [TABLES, "INSERT INTO reconciler_meta VALUES ('program', 'another')"],
        [
            "CREATE TABLE reconciler_meta (name text, value text)",
            "INSERT INTO reconciler_meta VALUES ('program', 'reconciler identity service')",
        ],
    ],
)
def test_tables_of_another_program_are_left_alone(address: str, foreign: list[str]) -> None:
    """Nothing is made beside them, whoever asks."""
    run(address, *foreign)
    before = tables_at(address)

    for creates in (True, False):
        with pytest.raises(StoreUnusableError, match="not the store's") as caught:
            open_postgres(address, create=creates, read_only=not creates)
        assert not isinstance(caught.value, StoreMissingError)

    assert tables_at(address) == before


def test_other_tables_beside_the_store_do_not_matter(address: str, tmp_path: Path) -> None:
    """A database may be shared, though its own is better."""
    run(address, "CREATE TABLE events (id int)", "CREATE TABLE objects (id int)")

    with closing(open_postgres(address, seal_key_file=tmp_path / "key", create=True)) as opened:
        opened.call(call("AddOrg", name="acme"))

    assert tables_at(address) == {*COLUMNS, "events", "objects"}


def test_a_store_of_a_newer_version_is_refused(address: str, service: IdentityService) -> None:
    """Even where its tables have changed."""
    service.close()
    run(
        address,
        "UPDATE reconciler_meta SET value = '2' WHERE name = 'schema'",
        "ALTER TABLE reconciler_events ADD COLUMN more int",
    )

    for creates in (True, False):
        with pytest.raises(StoreUnusableError, match="newer version"):
            open_postgres(address, create=creates, read_only=not creates)


def test_a_store_that_was_begun_is_finished(address: str) -> None:
    """Databases that make tables one by one may be interrupted in between."""
    run(address, *TABLES.split(";")[:4])
    assert postgres_holds_store(address) is False

    with closing(open_postgres(address, create=True)) as opened:
        opened.call(call("AddOrg", name="acme"))


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: PostgresServer) -> None:
    """Its encoding is looked at before anything is made."""
    postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    with pytest.raises(StoreUnusableError, match="UTF8"):
        open_postgres(postgres.address().replace("/postgres", "/latin"), create=True)


def test_a_schema_that_cannot_be_used_is_not_taken_for_an_empty_database(
    postgres: PostgresServer,
) -> None:
    """A plan would create everything, where the store is there and only hidden from its user."""
    missing = postgres.address("missing")
    hidden = postgres.new_address()
    open_postgres(hidden, create=True).close()
    postgres.execute("CREATE ROLE reconciler_stranger LOGIN")
    stranger = hidden.replace("//tests@", "//reconciler_stranger@")

    for address in (missing, stranger):
        for opening in (
            lambda address=address: postgres_holds_store(address),
            lambda address=address: open_postgres(address, read_only=True),
            lambda address=address: open_postgres(address, create=True),
        ):
            with pytest.raises(StoreUnusableError, match="no schema") as caught:
                opening()
            assert "GRANT USAGE" in caught.value.remedy


def test_a_database_whose_certificate_is_not_trusted_is_not_told_to_be_away(
    tmp_path: Path,
) -> None:
    """The advice to look at host and port would be of no help."""
    certificate, key = a_certificate(tmp_path)
    ask = "&sslmode=verify-full&sslrootcert="
    with a_server() as server:
        address = f"{server.new_address()}{ask}{certificate}"
        with pytest.raises(StoreUnreachableError, match="speaks no TLS"):
            open_postgres(address, create=True)

        server.stop()
        for name, file in (("server.crt", certificate), ("server.key", key)):
            there = server.folder / "data" / name
            there.write_bytes(file.read_bytes())
            there.chmod(0o600)
            give_to_somebody(there)
        server.settings = ("ssl=on",)
        server.start()

        open_postgres(address, create=True).close()
        with pytest.raises(StoreUnreachableError, match="is not trusted") as caught:
            open_postgres(address.replace("cert.pem", "missing.pem"))

    assert "sslrootcert" in caught.value.remedy


def test_names_are_compared_by_code_point_whatever_the_database_does(
    postgres: PostgresServer,
) -> None:
    """A database with the order of a dictionary lists as every other store does."""
    postgres.execute(
        "CREATE DATABASE dictionary ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en'"
        " LOCALE 'C' TEMPLATE template0"
    )
    address = postgres.address().replace("/postgres", "/dictionary")
    names = ["a", "B", "é", "Z", "\uff41", "\U0001f600", "_", "ß"]
    with psycopg.connect(address) as connection:
        assert connection.execute(IS_BY_CODE_POINT).fetchone() == (False,)
    with psycopg.connect(postgres.address()) as connection:
        assert connection.execute(IS_BY_CODE_POINT).fetchone() == (True,)

    with closing(open_postgres(address, create=True)) as opened:
        acme = str(opened.call(call("AddOrg", name="acme"))["id"])
        for name in names:
            opened.call(create(name, acme))
        listing = call("ListActions", acme, query={"limit": 100})
        found = [row["name"] for row in opened.call(listing)["result"]]
        with opened.store.snapshot() as view:
            by_name = [row.folded for row in view.all_objects() if row.kind == "Action"]

    assert sorted(found) == sorted(names)
    assert sorted(by_name) == sorted(name.casefold() for name in names)


def test_without_the_driver_one_is_told_what_to_install() -> None:
    """It is an extra, and most people do without."""
    command = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from reconciler.service.build import open_postgres\n"
        "from reconciler.service.eventstore.errors import StoreUnusableError\n"
        "try: open_postgres('postgresql://db/x', read_only=True)\n"
        "except StoreUnusableError as error: print(error.problem, error.remedy)"
    )
    told = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout

    assert "the extra postgres" in told
    assert "make extras" in told


def test_all_servers_share_one_key(address: str, service: IdentityService, tmp_path: Path) -> None:
    """The first made it, for its owner alone; another or none is refused."""
    key = tmp_path / "seal-key"
    assert service.call(call("AddOrg", name="acme"))
    assert key.stat().st_mode & 0o777 == 0o600

    other = tmp_path / "other-key"
    with pytest.raises(StoreUnusableError, match="is missing"):
        open_postgres(address, seal_key_file=other)
    assert not other.exists()
    elsewhere = f"{address}x"
    run(address, f"CREATE SCHEMA {elsewhere.rpartition('%3D')[2]}")
    open_postgres(elsewhere, seal_key_file=other, create=True).close()
    with pytest.raises(StoreUnusableError, match="not the one"):
        open_postgres(address, seal_key_file=other)
    key.chmod(0o644)
    with pytest.raises(StoreError, match="read by others"):
        open_postgres(address, seal_key_file=key)


def test_without_a_key_no_secret_is_made_that_could_not_be_had_again(
    address: str, service: IdentityService
) -> None:
    """Everything else can be done, such as making tokens."""
    acme = str(service.call(call("AddOrg", name="acme"))["id"])
    project = service.call(call("AddProject", acme, name="shop"))["id"]
    with closing(open_postgres(address)) as keyless:
        keyless.call(create("greet", acme, "k1"))
        with pytest.raises(StoreError, match="no key"):
            keyless.call(call("AddOIDCApp", acme, "k2", projectId=project, name="web"))

    assert verify(service.store) == []


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("DROP INDEX reconciler_objects_client", "reconciler_objects_client is missing"),
        (
            "DROP INDEX reconciler_objects_name",
            "reconciler_objects_name is missing",
        ),
        ("UPDATE reconciler_events SET payload = '{}' WHERE version = 1", "not what was written"),
        ("UPDATE reconciler_objects SET name = 'x'", "not what the log says"),
        ("DELETE FROM reconciler_events WHERE type = 'action.added'", "log does not end"),
    ],
)
def test_what_somebody_changed_by_hand_is_found(
    address: str, service: IdentityService, damage: str, finding: str
) -> None:
    """The database vouches for its pages, and the chain for what is in them."""
    acme = str(service.call(call("AddOrg", name="acme"))["id"])
    service.call(create("greet", acme))
    run(address, damage)

    assert any(finding in found for found in verify(service.store))


def test_rebuilding_mends_objects(address: str, service: IdentityService) -> None:
    """The log is the truth."""
    acme = str(service.call(call("AddOrg", name="acme"))["id"])
    service.call(create("greet", acme))
    run(address, "UPDATE reconciler_objects SET name = 'x', folded = id, organization = 'lost'")
    assert verify(service.store)

    assert rebuild(service.store) == 2
    assert verify(service.store) == []


def test_the_database_of_the_documentation_holds_a_store(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Who may log in may not make tables yet: since PostgreSQL 15 the owner alone may."""
    page = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(createuser|createdb) (.+)$", page, re.MULTILINE)
    assert [name for name, _ in commands] == ["createuser", "createdb"]
    for name, said in commands:
        words = [word for word in shlex.split(said) if word != "--pwprompt"]
        where = ["--host=127.0.0.1", f"--port={postgres.port}", f"--username={USER}"]
        subprocess.run([find_binaries() / name, *where, *words], check=True)
    address = f"postgresql://identity@127.0.0.1:{postgres.port}/identity"

    with closing(open_postgres(address, seal_key_file=tmp_path / "key", create=True)) as opened:
        opened.call(call("AddOrg", name="acme"))


def test_the_roles_of_the_documentation_can_do_what_it_says(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """A server can serve, a reader can only read, and neither can rewrite the log."""
    postgres.execute("CREATE DATABASE roles")
    owner = postgres.address().replace("/postgres", "/roles")
    key = tmp_path / "key"
    open_postgres(owner, seal_key_file=key, create=True).close()
    run(owner, documented_roles())

    server = owner.replace("//tests@", "//reconciler_server@")
    with closing(open_postgres(server, seal_key_file=key)) as opened:
        acme = str(opened.call(call("AddOrg", name="acme"))["id"])
        project = opened.call(call("AddProject", acme, name="shop"))["id"]
        opened.call(call("AddOIDCApp", acme, "key", projectId=project, name="web"))
        assert rebuild(opened.store) == 3
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(server, "DELETE FROM reconciler_events")
    reader = owner.replace("//tests@", "//reconciler_reader@")
    with closing(open_postgres(reader, read_only=True)) as opened:
        assert opened.call(call("ListObjects", acme, organizationId=acme))["objects"]
        assert verify(opened.store) == []
    with closing(open_postgres(reader)) as opened, pytest.raises(StoreReadOnlyError) as caught:
        opened.call(create("greet", acme))
    assert "docs/postgresql.md" in caught.value.remedy


@pytest.mark.parametrize(
    "option",
    ["-csearch_path%3D{}", "-c%20jit%3Doff%20--search-path%3D%5C{}", "-c%20Search_Path%3D{}"],
)
def test_a_pooler_that_drops_the_schema_of_the_address_leads_to_no_other_store(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """With `ignore_startup_parameters = options` PgBouncer does so without a word."""
    asked, usual = postgres.new_address(), postgres.new_address()
    schema = asked.rpartition("%3D")[2]
    asked = f"{postgres.address()}?options={option.format(schema)}"
    key = tmp_path / "seal-key"
    open_postgres(asked, seal_key_file=key, create=True).close()
    connect = BoundedConnection.connect

    def dropping(conninfo: str, *, autocommit: bool) -> BoundedConnection:
        connection = connect(conninfo, autocommit=autocommit)
        connection.execute(f"SET search_path TO {usual.rpartition('%3D')[2]}".encode())
        return connection

    monkeypatch.setattr(BoundedConnection, "connect", staticmethod(dropping))
    with pytest.raises(StoreUnusableError, match="does not pass on the options"):
        open_postgres(asked, seal_key_file=key, create=True)

    assert tables_at(usual) == set()
