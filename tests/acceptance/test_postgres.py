"""The main job on a store in PostgreSQL: in process, and through two servers that share it."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from reconciler.service.build import open_postgres
from tests.acceptance.conftest import ORGANIZATION, Run, an_action, write
from tests.acceptance.test_accept import commit
from tests.acceptance.test_bad_stores import EACH_DAMAGE, check_rebuild
from tests.acceptance.test_serve import port_of, serving, status_of
from tests.postgres_server import PostgresServer, a_server, a_standby, documented_roles
from tests.raw_http import exchange, request
from tests.running import furnish
from tests.unit.cli.test_manifests import git

UNCHANGED = 0
CHANGES = 2
KEY = ("--seal-key-file", "seal-key")


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """Return the address of an empty database."""
    return postgres.new_address()


def tables_at(address: str) -> int:
    with psycopg.connect(address) as connection:
        counting = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
        found = connection.execute(counting).fetchone()
    return int(found[0]) if found else 0


def test_every_command_does_its_job_on_a_database(
    run: Run, small: Path, tmp_path: Path, database: str
) -> None:
    """Plan, apply, plan again, and what looks after the store."""
    here = {"RECONCILER_SERVICE": database}

    planned = run("plan", "--detailed-exitcode", **here)
    assert planned.code == CHANGES, planned.err
    assert tables_at(database) == 0
    applied = run("apply", "--auto-approve", *KEY, **here)
    assert applied.code == 0, applied.err
    assert run("plan", "--detailed-exitcode", **here).code == UNCHANGED
    again = run("apply", "--auto-approve", *KEY, **here)
    assert (again.code, "No changes." in again.out) == (0, True)

    outputs = run("outputs", "--format", "json", **here).json["applications"]
    assert all(application["client_id"] for application in outputs)
    for looking in (
        ("drift", "--detailed-exitcode"),
        ("export",),
        ("history", "Action acme/greet"),
    ):
        looked = run(*looking, **here)
        assert looked.code == 0, looked.all
    assert run("store", "verify", **here).out.startswith("Sound:")
    assert "Rebuilt 6 objects" in run("store", "rebuild", **here).out
    assert run("token", "create", "--name", "ci", "--role", "viewer", **here).out.startswith("rct_")
    assert "ci  viewer" in run("token", "list", **here).out
    assert (tmp_path / ".reconciler" / ".gitignore").read_text() == "*\n"
    assert list((tmp_path / ".reconciler").glob("apply-*.jsonl"))
    secret = tmp_path / ".reconciler" / "secrets" / "acme.shop.web.json"
    assert json.loads(secret.read_text())
    assert secret.read_text() not in applied.all


def test_the_reader_of_the_documentation_can_plan_and_look(run: Run, small: Path) -> None:
    """It has no right to read tokens; every command that only looks does without."""
    with a_server() as server:
        owner = {"RECONCILER_SERVICE": server.address()}
        assert run("apply", "--auto-approve", *KEY, **owner).code == 0
        server.execute(documented_roles())
        reader = server.address().replace("//tests@", "//reconciler_reader@")
        here = {"RECONCILER_SERVICE": reader}

        assert run("plan", "--detailed-exitcode", **here).code == UNCHANGED
        for looking in (
            ("drift",),
            ("outputs",),
            ("export",),
            ("secret", "list"),
            ("history", "Action", "acme/greet"),
            ("compare", "--at", "1h"),
            ("undo", "--last", "--out", "undo.json"),
            ("doctor",),
            ("store", "verify"),
        ):
            looked = run(*looking, **here)
            assert looked.code == 0, looked.all
        refused = run("store", "rebuild", **here)
        assert (refused.code, "docs/postgresql.md" in refused.err) == (1, True)


@EACH_DAMAGE
def test_a_damaged_log_in_a_database_is_not_made_the_truth(
    run: Run, small: Path, database: str, statement: str, finding: str, loss: str
) -> None:
    """As in a file; a copy is a thing of the database's own tools, whatever the damage."""
    here = {"RECONCILER_SERVICE": database}
    assert run("apply", "--auto-approve", *KEY, **here).code == 0
    before = run("export", **here).out
    with psycopg.connect(database) as connection:
        assert connection.execute(statement.format("reconciler_").encode()).rowcount > 0

    for damaged in ([], ["--damaged"]):
        saved = run("store", "backup", "copy.db", *damaged, **here)
        assert (saved.code, "pg_dump" in saved.err) == (1, True)
    check_rebuild(run, (before, finding), loss, **here)


def test_pauses_and_records_are_kept_in_a_database(
    run: Run, small: Path, tmp_path: Path, database: str
) -> None:
    """As in a file: seen by every plan, and verified with the rest."""
    here = {"RECONCILER_SERVICE": database}
    git(tmp_path, "init", "--quiet")
    write(tmp_path / ".gitignore", ".reconciler\nseal-key\nsecrets\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    sink = ("--secrets-to", "file:secrets")
    assert run("apply", "--auto-approve", *KEY, *sink, **here).code == 0
    paused = run("pause", "--reason", "incident 7", *KEY, **here)
    assert paused.code == 0, paused.err

    assert run("apply", "--auto-approve", *KEY, *sink, **here).code == 3
    assert "incident 7" in run("plan", **here).all
    assert run("resume", *KEY, **here).code == 0
    history = run("history", "Organization", "acme", **here).out
    assert f"commit {git(tmp_path, 'rev-parse', 'HEAD')}" in history
    assert run("store", "verify", **here).code == 0
    assert run("store", "rebuild", **here).code == 0
    assert run("apply", "--auto-approve", *KEY, *sink, **here).code == 0


def test_a_plan_that_was_killed_goes_on_in_a_database(run: Run, small: Path, database: str) -> None:
    """What is done is known by the events there, as in a file."""
    here = {"RECONCILER_SERVICE": database}
    assert run("plan", "--out", "plan.json", **here).code == 0
    killed = run("apply", "plan.json", *KEY, **here, RECONCILER_CRASHPOINT="C4:3")

    rest = run("apply", "plan.json", *KEY, **here)

    assert killed.code == -signal.SIGKILL, killed.all
    assert rest.code == 0, rest.all
    assert "Going on with this plan: 6 of 6 done already." not in rest.err
    assert "done already." in rest.err
    assert run("plan", "--detailed-exitcode", **here).code == UNCHANGED


def test_drift_in_a_database_is_accepted(run: Run, small: Path, database: str) -> None:
    """What another tree applied is written into the files of this one."""
    here = {"RECONCILER_SERVICE": database}
    write(small.parent / ".gitignore", ".reconciler\nseal-key\n")
    commit(small.parent)
    assert run("apply", "--auto-approve", *KEY, **here).code == 0
    hot = write(small.parent / "hot" / "greet.yaml", an_action(timeout="5s"))
    assert run("apply", str(hot), "--tree", "hot", "--auto-approve", *KEY, **here).code == 0

    done = run("drift", "--accept", "--auto-approve", **here)

    assert done.code == 0, done.all
    assert (small / "greet.yaml").read_text() == hot.read_text()
    assert run("plan", "--detailed-exitcode", **here).code == UNCHANGED


def test_nothing_is_made_without_the_key_that_servers_share(
    run: Run, small: Path, tmp_path: Path, database: str
) -> None:
    """It is asked for before anybody approves anything."""
    refused = run("apply", "--auto-approve", "--service", database)

    assert refused.code == 1
    assert "--seal-key-file" in refused.err
    assert tables_at(database) == 0
    assert not (tmp_path / ".reconciler").exists()
    served = run("serve", "--listen", "127.0.0.1:0", "--service", database)
    assert (served.code, "--seal-key-file" in served.err) == (1, True)


def test_what_the_database_does_better_is_refused_in_words(
    run: Run, tmp_path: Path, database: str
) -> None:
    """Copies are its own tools' business."""
    assert run("token", "create", "--name", "a", "--role", "admin", "--service", database).code == 0

    for command in (("backup", "copy"), ("restore", "copy")):
        refused = run("store", *command, "--service", database)
        assert refused.code == 1
        assert "the database's own tools" in refused.err
    assert not (tmp_path / "copy").exists()


def test_a_password_in_the_address_is_not_taken_and_not_shown(run: Run, small: Path) -> None:
    """The address stands in logs and lists of processes."""
    refused = run("plan", "--service", "postgresql://me:hunter2@127.0.0.1/identity")

    assert refused.code == 1
    assert "PGPASSFILE" in refused.err
    assert "hunter2" not in refused.all


def test_two_servers_share_a_database(run: Run, tree: Path, tmp_path: Path, database: str) -> None:
    """What is applied through one is held by the other, and a token ends in both at once."""
    write(tree / "organization.yaml", ORGANIZATION)
    assert run("apply", "--auto-approve", "--service", database, *KEY).code == 0
    made = ("token", "create", "--name", "ci", "--role", "editor", "--organization", "acme")
    token = run(*made, "--service", database).out.strip()
    write(tree / "greet.yaml", an_action())
    with ExitStack() as stack:
        servers = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            arguments = ("--service", database, "--seal-key-file", str(tmp_path / "seal-key"))
            started = stack.enter_context(serving(folder, *arguments))
            servers.append(f"http://127.0.0.1:{port_of(*started)}")
        first, second = servers
        here = {"RECONCILER_TOKEN": token}

        applied = run("apply", "--auto-approve", "--service", first, **here)
        assert applied.code == 0, applied.err
        planned = run("plan", "--detailed-exitcode", "--service", second, **here)
        assert planned.code == UNCHANGED, planned.all
        assert run("token", "revoke", "ci", "--service", database).code == 0
        codes = [run("plan", "--service", server, **here).code for server in servers]

    assert codes == [7, 7]
    assert run("store", "verify", "--service", database).code == 0


def test_a_server_over_a_standby_is_not_ready_until_it_is_promoted(tmp_path: Path) -> None:
    """It answers reads; a balancer sends nobody there whose writes would be refused."""
    key = tmp_path / "seal-key"
    with ExitStack() as stack:
        primary = stack.enter_context(a_server())
        opened = open_postgres(primary.address(), seal_key_file=key, create=True)
        with closing(opened) as service:
            token = furnish(service).tokens["editor"]
        standby = stack.enter_context(a_standby(primary))
        arguments = ("--service", standby.address(), "--seal-key-file", str(key))
        process, said = stack.enter_context(serving(tmp_path, *arguments))
        port = port_of(process, said)
        bearer = {"authorization": f"Bearer {token}"}

        def statuses() -> tuple[int, int, int]:
            fields = {"name": "greet", "script": "function greet() {}"}
            headers = {**bearer, "content-type": "application/json"}
            body = json.dumps(fields).encode()
            make = request("POST", "/management/v1/actions", headers, body)
            answer = exchange(port, make)
            assert answer is not None
            read = status_of(port, "GET", "/management/v1/orgs/me", bearer)
            return status_of(port, "GET", "/readyz"), read, answer.status

        assert [statuses() for _ in range(3)] == [(503, 200, 503)] * 3
        assert status_of(port, "GET", "/healthz") == 200
        assert said.read_text(encoding="utf-8").count("can only be read") == 1
        standby.execute("SELECT pg_promote()")
        assert status_of(port, "GET", "/readyz") == 200
        assert statuses() == (200, 200, 200)
        assert said.read_text(encoding="utf-8").count("can be used again") == 1
