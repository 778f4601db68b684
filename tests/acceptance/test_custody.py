"""A one-time secret is in custody at every moment: killed here, delivered from another machine."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Run, an_application, write
from tests.custody import Machine, a_machine, secrets_in
from tests.running import Server, running_server
from tests.sinks import counted, hashes


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with the organization acme and its project shop."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


WEB = {"web.yaml": an_application("web")}


def a_runner(folder: Path, server: Server, **more: str) -> Machine:
    """Return an empty folder of a CI job with manifests, an address and a token."""
    return a_machine(
        folder,
        WEB,
        RECONCILER_SERVICE=server.address,
        RECONCILER_TOKEN=server.token(),
        RECONCILER_SECRETS_TO="file:kept",
        **more,
    )


@pytest.mark.parametrize("point", ["C4", "C10"])
def test_a_secret_of_a_killed_run_is_delivered_from_an_empty_folder(
    tmp_path: Path, server: Server, point: str
) -> None:
    """Nothing of the first machine is left: only the service knows."""
    first, second = a_runner(tmp_path / "one", server), a_runner(tmp_path / "two", server)
    killed = first.run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)
    assert killed.code == -signal.SIGKILL, killed.all
    before = counted(server.store)
    shutil.rmtree(first.folder)

    planned = second.run("plan", "--detailed-exitcode")
    told = second.run("plan", "--format", "json").json
    drift = second.run("drift", "--detailed-exitcode")
    refused = second.run("apply")
    applied = second.run("apply", "--auto-approve")

    assert planned.code == 2, planned.all
    assert "1 client secret is owed: reconciler apply delivers it" in planned.out
    assert told["summary"]["owed"] == len(told["owed"]) == 1
    assert (told["changes"], told["owed"][0]["by"]) == ([], "editor")
    assert "1 client secret is owed: reconciler apply delivers it" in drift.out
    assert drift.code == 0, drift.all
    assert (refused.code, secrets_in(second)) != (0, {})
    assert applied.code == 0, applied.all
    assert "delivered  OidcApplication acme/shop/web" in applied.out
    assert hashes(secrets_in(second)) == counted(server.store) == before
    assert second.run("plan", "--detailed-exitcode").code == 0


def test_what_another_tree_is_owed_is_counted_and_left_alone(
    tmp_path: Path, server: Server
) -> None:
    """Its own pipeline has the place where it belongs."""
    theirs, mine = a_runner(tmp_path / "one", server), a_runner(tmp_path / "two", server)
    theirs.run("apply", "--auto-approve", "--tree", "theirs", RECONCILER_CRASHPOINT="C4")

    planned = mine.run("plan", "--detailed-exitcode", "--format", "json")
    applied = mine.run("apply", "--auto-approve")
    nothing = mine.run("secret", "deliver")
    delivered = theirs.run("secret", "deliver", "--tree", "theirs")

    assert planned.code == 0
    assert (planned.json["owed"], planned.json["summary"]["owed_elsewhere"]) == ([], 1)
    assert applied.code == 0, applied.all
    assert "1 client secret is owed to other trees" in applied.out
    assert secrets_in(mine) == {}
    assert nothing.out == "No client secret is owed to tree default; 1 to other trees.\n"
    assert delivered.code == 0, delivered.all
    assert hashes(secrets_in(theirs)) == counted(server.store)


def test_what_is_owed_in_an_organization_that_was_left_is_told(run: Run, tree: Path) -> None:
    """Its manifests are gone, and the next apply would never look there."""
    write(tree / "acme.yaml", ORGANIZATION)
    write(tree / "web.yaml", an_application("web"))
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:3")
    (tree / "web.yaml").unlink()
    write(tree / "acme.yaml", ORGANIZATION.replace("acme", "globex"))

    planned = run("plan", "--format", "json")
    applied = run("apply", "--auto-approve")
    left = run("plan", "--detailed-exitcode")
    delivered = run("secret", "deliver")

    assert (planned.json["summary"]["owed"], planned.json["summary"]["owed_left"]) == (0, 1)
    assert (applied.code, left.code) == (0, 2), applied.all
    for told in (applied, left):
        assert "1 client secret is owed in organizations that the manifests no longer name: " in (
            told.out
        )
    assert "delivered  OidcApplication acme/shop/web" in delivered.out
    assert run("plan", "--detailed-exitcode").code == 0


def test_a_name_that_another_machine_took_keeps_its_secret(tmp_path: Path, server: Server) -> None:
    """The first run was killed before anything was sent, and makes nothing a second time."""
    first, second = a_runner(tmp_path / "one", server), a_runner(tmp_path / "two", server)
    first.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C2")
    assert second.run("apply", "--auto-approve").code == 0
    before = counted(server.store)

    again = first.run("apply", "--auto-approve")

    assert again.code == 0, again.all
    assert counted(server.store) == before == hashes(secrets_in(second))
    assert secrets_in(first) == {}


def test_a_secret_that_is_owed_needs_a_place_and_a_word(tmp_path: Path, server: Server) -> None:
    """An empty plan is approved like any other: with yes, a digest or a plan file."""
    job = a_runner(tmp_path / "one", server)
    job.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")

    unasked = job.run("apply")
    job.more.pop("RECONCILER_SECRETS_TO")
    blocked, planned = job.run("apply", "--auto-approve"), job.run("plan", "--out", "plan.json")
    digest = job.run("plan", "--format", "json").json["digest"]
    shown = job.run("show", "plan.json")
    applied = job.run("apply", "--digest", digest, "--secrets-to", "file:kept")

    assert (unasked.code, blocked.code) == (1, 3)
    assert "SECRET-NO-SINK" in planned.err
    assert "are owed to this tree, and no destination is chosen" in blocked.err
    assert "1 client secret is owed" in shown.out
    assert applied.code == 0, applied.all
    assert hashes(secrets_in(job)) == counted(server.store)
    assert job.run("apply", "plan.json").code == 0


def test_a_secret_that_cannot_be_opened_says_what_replaces_it(
    run: Run, tmp_path: Path, small: Path
) -> None:
    """The seal key was lost. The command that the error names ends it, and exits with 0."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:3")
    (tmp_path / ".reconciler" / "identity.db.seal-key").unlink()

    refused, alone = run("apply", "--auto-approve"), run("secret", "deliver")
    rotate = ("--rotate-missing", "OidcApplication/acme/shop/web")
    planned = run("plan", "--format", "json", *rotate)
    replaced = run("apply", "--auto-approve", *rotate)

    assert (refused.code, alone.code) == (1, 1)
    for told in (refused.all, alone.all):
        assert "the seal key that opens this secret is not the one of the service" in told
        assert "reconciler apply --rotate-missing OidcApplication/acme/shop/web" in told
    assert (len(planned.json["owed"]), planned.json["summary"]["owed"]) == (1, 0)
    assert replaced.code == 0, replaced.all
    assert run("plan", "--detailed-exitcode").code == 0


def test_only_who_may_make_a_secret_gets_an_owed_one(tmp_path: Path, server: Server) -> None:
    """A viewer sees that it is owed; another organization's editor learns nothing."""
    job = a_runner(tmp_path / "one", server)
    job.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")
    before = server.events()

    seen = job.run("plan", "--detailed-exitcode", RECONCILER_TOKEN=server.token("viewer"))
    viewer, stranger = (
        job.run("secret", "deliver", RECONCILER_TOKEN=server.token(name))
        for name in ("viewer", "stranger")
    )

    assert (seen.code, viewer.code) == (2, 7), viewer.all
    assert stranger.out == "No client secret is owed.\n"
    assert (secrets_in(job), server.events()) == ({}, before)


def test_a_command_that_fails_in_a_batch_is_given_the_rest_again(
    tmp_path: Path, server: Server
) -> None:
    """What it took is acknowledged; what it did not take is owed."""
    job, taken = a_runner(tmp_path / "one", server), tmp_path / "taken"
    write(job.folder / "manifests" / "api.yaml", an_application("api"))
    taker = write(
        tmp_path / "taker.py",
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f"    open({str(taken)!r}, 'a').write(line)\n"
        "    print(json.dumps({'client_id': json.loads(line)['client_id'], 'kept': True}))\n"
        "    sys.exit(3)\n",
    )
    job.more["RECONCILER_SECRETS_TO"] = f"exec-batch:{sys.executable} {taker}"

    made = job.run("apply", "--auto-approve")
    owed = job.run("plan", "--format", "json").json["summary"]["owed"]
    rest = job.run("apply", "--auto-approve")

    assert (made.code, owed, rest.code) == (5, 1, 0), made.all + rest.all
    given = [json.loads(line) for line in taken.read_text(encoding="utf-8").splitlines()]
    delivered = {each["client_id"]: each["client_secret"] for each in given}
    assert hashes(delivered) == counted(server.store)
    assert len(given) == len(delivered) == 2


def test_a_file_follows_its_application_on_a_server(tmp_path: Path, server: Server) -> None:
    """It gets the new name with a rename, and goes with a delete."""
    job = a_runner(tmp_path / "one", server)
    assert job.run("apply", "--auto-approve").code == 0
    (found,) = job.run("outputs", "--format", "json").json["applications"]
    before = secrets_in(job)
    manifest = json.loads(an_application("portal"))
    manifest["metadata"]["id"] = found["id"]
    write(job.folder / "manifests" / "web.yaml", json.dumps(manifest))

    renamed = job.run("apply", "--auto-approve")
    files = [path.name for path in (job.folder / "kept").glob("*.json")]
    kept = secrets_in(job)
    write(job.folder / "manifests" / "web.yaml", ORGANIZATION)
    removed = job.run("apply", "--auto-approve", "--prune", "--allow-deletes", "1")

    assert (renamed.code, removed.code) == (0, 0), renamed.all + removed.all
    assert "SECRET-MOVED" in renamed.all
    assert (files, kept) == (["acme.shop.portal.json"], before)
    assert "SECRET-REMOVED" in removed.all
    assert secrets_in(job) == {}


# Writes down the names under which it gets secrets, in one process for each or for all of them.
NAME_TAKER = """\
import json, os, sys
names = []
if sys.argv[1:] == ["has"]:
    sys.exit(0)
for line in sys.stdin:
    said = json.loads(line) if sys.argv[1:] else {}
    names.append(said.get("name") or os.environ["RECONCILER_SECRET_NAME"])
    print(json.dumps({"client_id": said.get("client_id"), "kept": True}))
with open("names", "a") as file:
    file.writelines(name + "\\n" for name in names)
"""


@pytest.mark.parametrize("scheme", ["exec", "exec-batch"])
def test_an_owed_secret_is_given_to_a_command_under_the_new_name(
    tmp_path: Path, server: Server, scheme: str
) -> None:
    """A command does not follow the rename that comes after the delivery."""
    job = a_runner(tmp_path / "one", server)
    job.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")
    (owed,) = job.run("plan", "--format", "json").json["owed"]
    manifest = json.loads(an_application("portal"))
    manifest["metadata"]["id"] = owed["id"]
    write(job.folder / "manifests" / "web.yaml", json.dumps(manifest))
    write(job.folder / "taker.py", NAME_TAKER)

    sink = f"{scheme}:{sys.executable} taker.py"
    applied = job.run("apply", "--auto-approve", "--secrets-to", sink)
    write(job.folder / "manifests" / "web.yaml", ORGANIZATION)
    removed = job.run(
        "apply", "--auto-approve", "--prune", "--allow-deletes", "1", "--secrets-to", sink
    )

    assert applied.code == 0, applied.all
    assert "delivered  OidcApplication acme/shop/portal" in applied.out
    assert "1 updated" in applied.out
    assert (job.folder / "names").read_text() == "portal\n"
    assert removed.code == 0, removed.all
    assert "1 deleted" in removed.out


# Takes minutes, as far as the service can tell: the lease runs out, and another machine, whose
# folder is the second argument, replaces the secret before this one is taken.
SLOW_TAKER = """\
import os, sqlite3, subprocess, sys
store, folder, address, token = sys.argv[1:]
secret = sys.stdin.read()
with sqlite3.connect(store, timeout=30) as database:
    database.execute("UPDATE leases SET expires_at = 1")
subprocess.run(
    [sys.executable, "-m", "reconciler", "secret", "rotate", "acme/shop/web", "--auto-approve"],
    cwd=folder,
    env={**os.environ, "RECONCILER_TOKEN": token, "RECONCILER_SECRETS_TO": "file:kept"},
    check=True,
    stdout=subprocess.DEVNULL,
)
with open("taken", "w") as taken:
    taken.write(secret)
"""


def test_a_secret_that_was_replaced_while_a_slow_command_took_it_is_told(
    tmp_path: Path, server: Server
) -> None:
    """The command has the older one, and only this run can know."""
    slow, other = a_runner(tmp_path / "one", server), a_runner(tmp_path / "two", server)
    write(slow.folder / "taker.py", SLOW_TAKER)
    command = [sys.executable, "taker.py", str(server.store), str(other.folder)]
    sink = f"exec:{shlex.join([*command, server.address, server.token()])}"

    late = slow.run("apply", "--auto-approve", "--secrets-to", sink)

    assert late.code == 5, late.all
    assert "SECRET-DELIVERED-LATE" in late.out
    assert "--rotate-missing OidcApplication/acme/shop/web" in late.out
    assert hashes(secrets_in(other)) == counted(server.store)
    assert (slow.folder / "taken").read_text() not in secrets_in(other).values()
    assert slow.run("plan", "--detailed-exitcode").code == 0


def test_a_restored_store_owes_what_it_owed_at_its_backup(
    run: Run, tmp_path: Path, small: Path
) -> None:
    """It is the same secret, delivered once more; a rebuild keeps it, too."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:3")
    store = tmp_path / ".reconciler" / "identity.db"
    assert run("store", "backup", "copy").code == 0
    assert run("apply", "--auto-approve").code == 0
    before = counted(store)

    assert run("store", "restore", "copy", "--auto-approve").code == 0
    assert run("store", "rebuild").code == 0
    shutil.rmtree(tmp_path / ".reconciler" / "secrets")
    planned, applied = run("plan", "--format", "json"), run("apply", "--auto-approve")

    assert planned.json["summary"]["owed"] == 1
    assert applied.code == 0, applied.all
    kept = secrets_in(Machine(tmp_path / ".reconciler"), "secrets")
    assert hashes(kept) == counted(store) == before


def test_a_secret_that_the_plan_ends_is_not_delivered_first(tmp_path: Path, server: Server) -> None:
    """A deleted application, and one that signs in without a secret from now on."""
    job = a_runner(tmp_path / "one", server)
    write(job.folder / "manifests" / "api.yaml", an_application("api"))
    job.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")
    (job.folder / "manifests" / "api.yaml").unlink()
    public = an_application(
        "web", authMethodType="OIDC_AUTH_METHOD_TYPE_NONE", appType="OIDC_APP_TYPE_USER_AGENT"
    )
    write(job.folder / "manifests" / "web.yaml", public)

    applied = job.run("apply", "--auto-approve", "--prune")

    assert applied.code == 0, applied.all
    assert "delivered" not in applied.out
    assert (secrets_in(job), counted(server.store)) == ({}, {})
    assert job.run("secret", "deliver").out == "No client secret is owed.\n"


def test_a_command_delivers_and_does_nothing_else(tmp_path: Path, server: Server) -> None:
    """All that is owed, or that of one application; a second time there is nothing."""
    job = a_runner(tmp_path / "one", server)
    write(job.folder / "manifests" / "api.yaml", an_application("api"))
    job.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")

    wrong = job.run("secret", "deliver", "acme/shop/nope")
    one = job.run("secret", "deliver", "acme/shop/API")
    again = job.run("secret", "deliver", "acme/shop/api")
    rest = job.run("secret", "deliver")
    none = job.run("secret", "deliver")

    assert wrong.code == 1
    assert one.code == 0, one.all
    assert one.out.count("delivered  OidcApplication acme/shop/api") == 1
    assert "web" not in one.out
    assert again.out == "No client secret of the applications named is owed.\n"
    assert rest.out.count("delivered  OidcApplication acme/shop/web") == 1
    assert none.out == "No client secret is owed.\n"
    assert hashes(secrets_in(job)) == counted(server.store)


def test_a_secret_is_replaced_only_where_that_is_approved(tmp_path: Path, server: Server) -> None:
    """It is a change with a digest, and a critical application is kept from it."""
    job = a_runner(tmp_path / "one", server)
    assert job.run("apply", "--auto-approve").code == 0
    before = secrets_in(job)
    rotate = ("--rotate-missing", "acme/shop/web")

    planned = job.run("plan", *rotate, "--detailed-exitcode")
    wrong = job.run("plan", "--rotate-missing", "acme/shop/nope")
    applied = job.run("apply", "--auto-approve", *rotate)

    assert planned.code == 2
    assert "    clientSecret: (held) -> (new)\n" in planned.out
    assert "    # asked for with --rotate-missing\n" in planned.out
    assert "secret-replaced" in planned.out
    assert wrong.code == 1
    assert "not a declared application with a client secret" in wrong.err
    assert applied.code == 0, applied.all
    assert "0 remaining" in applied.out
    assert hashes(secrets_in(job)) == counted(server.store)
    assert secrets_in(job) != before
    assert job.run("plan", "--detailed-exitcode").code == 0


def test_a_kill_between_an_update_and_its_secret_is_a_planned_change(run: Run, small: Path) -> None:
    """The application is declared with a secret and has none: nobody could sign in."""
    assert run("apply", "--auto-approve").code == 0
    write(small / "spa.yaml", an_application("spa"))
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4")
    for journal in (small.parent / ".reconciler").glob("apply-*.jsonl"):
        journal.unlink()

    planned = run("plan", "--detailed-exitcode")
    applied = run("apply", "--auto-approve")

    assert planned.code == 2
    assert "    clientSecret: (none) -> (new)\n" in planned.out
    assert applied.code == 0, applied.all
    assert len(counted(small.parent / ".reconciler" / "identity.db")) == 2


def test_every_secret_can_be_required(run: Run, tree: Path) -> None:
    """A job that deploys what is in the sink must not go on without it."""
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "web.yaml", an_application("web"))
    assert run("apply", "--auto-approve", "--require-secrets").code == 0
    shutil.rmtree(tree.parent / ".reconciler" / "secrets")

    usual, required = (
        run("apply", "--auto-approve", *flags) for flags in ((), ("--require-secrets",))
    )

    assert (usual.code, required.code) == (0, 5)
    assert "SECRET-NOT-IN-SINK" in required.all
