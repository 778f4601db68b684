"""``reconciler doctor``: a line for each thing that is set up, true in every surrounding."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import __version__
from reconciler.cli.clients import open_client
from reconciler.cli.connection import Connection
from reconciler.resources.installation import WHEEL
from reconciler.service_client.locks import LocalLock, this_process
from tests.acceptance.conftest import Ran, Run, write
from tests.acceptance.test_environments import a_configuration
from tests.acceptance.zitadel import ServeZitadel
from tests.certificates import DAY, a_certificate
from tests.faults.http_client.strange import JSON, Strange
from tests.listening import listening
from tests.postgres_server import PostgresServer
from tests.program import environment, program
from tests.rows import each_row
from tests.running import running_server
from tests.zitadel.stand_in import MEMBER

NAMES = ["configuration", "settings", "variables", "address", "certificate", "clock", "token",
         "service", "rights", "lock", "sink", "git", "ci"]  # fmt: skip
CANARY = "rct_canary-that-must-not-be-seen"
RELEASE = f"https://dl.example.com/{WHEEL}#sha256={'0' * 64}"


class Told(dict[str, Any]):
    """The checks of a run, by name."""

    def __init__(self, ran: Ran) -> None:
        shown = ran.json
        super().__init__({each["name"]: each for each in shown["checks"]})
        assert [*self] == NAMES
        assert all(
            set(each) == {"name", "status", "text", "remedy", "facts"} for each in self.values()
        )
        assert shown["format_version"] == "1.0"
        self.failed = sorted(name for name in self if self[name]["status"] == "failed")
        assert shown["healthy"] is (not self.failed)
        assert ran.code == (1 if self.failed else 0)
        for each in self.values():
            assert bool(each["remedy"]) is (each["status"] in {"warning", "failed"}), each

    def status(self, *names: str) -> list[str]:
        """Return the status of some checks."""
        return [self[name]["status"] for name in names]


def examined(run: Run, *arguments: str, **more: str) -> Told:
    """Return what the doctor finds."""
    return Told(run("doctor", "--format", "json", *arguments, **more))


def everything_in(folder: Path) -> dict[str, bytes]:
    """Return each file beneath a folder, and each folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def test_in_an_empty_folder_all_is_well_and_stays_empty(run: Run, tmp_path: Path) -> None:
    told = examined(run)
    text = run("doctor")

    assert told.failed == []
    assert told.status("address", "service", "git", "ci") == [
        "ok", "not_checked", "not_checked", "not_checked",
    ]  # fmt: skip
    assert [line.split()[0] for line in text.out.splitlines()[:2]] == ["ok", "ok"]
    assert len(text.out.splitlines()) == len(NAMES) + 1
    assert text.out.endswith("8 ok, 5 not checked\n")
    assert everything_in(tmp_path) == {}


def test_a_store_is_looked_at_and_left_as_it_is(run: Run, small: Path, tmp_path: Path) -> None:
    """A lock is seen where one is held, and not taken."""
    assert run("apply", "--auto-approve").code == 0
    before = everything_in(tmp_path)

    free = examined(run)
    after = everything_in(tmp_path)
    with open_client(Connection(f"sqlite:{tmp_path}/.reconciler/identity.db")) as client:
        client.acquire(["acme"])
        held = examined(run)
        client.release()

    assert free.failed == []
    assert free.status("service", "rights", "lock", "sink") == ["ok"] * 4
    assert free["service"]["facts"]["version"] == __version__
    assert {name: free["lock"][name] for name in ("text", "facts")} == {
        "text": "free", "facts": {"held_by": []},
    }  # fmt: skip
    assert free["sink"]["text"] == "file:.reconciler/secrets takes secrets"
    assert after == before
    assert held.failed == []
    assert held.status("lock") == ["warning"]
    assert held["lock"]["text"].startswith("held for acme by ")


def test_a_wrong_path_of_our_own_service_is_told_as_that(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """It is not taken for a ZITADEL, nor its answer for an object that was removed."""
    with running_server(tmp_path) as server:
        wrong = {
            "RECONCILER_SERVICE": f"{server.address}/management/v1",
            "RECONCILER_TOKEN": server.token("admin"),
        }
        told = examined(run, **wrong)
        planned = run("plan", **wrong)

    assert told.failed == ["service"]
    assert planned.code == 1
    for remedy in (told["service"]["remedy"], planned.err):
        assert "Correct the path of the address in --service" in remedy


def test_a_server_over_tls_tells_certificate_version_role_and_end(run: Run, tmp_path: Path) -> None:
    """Of the certificate, of the token, and what organizations the token sees."""
    certificate, key = a_certificate(tmp_path, ends=100 * DAY)
    with running_server(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        made = run("token", "create", "--service", f"sqlite:{server.store}", "--name", "robot",
                   "--role", "editor", "--organization", "acme", "--expires", "30d")  # fmt: skip
        shared = {"RECONCILER_SERVICE": server.address, "SSL_CERT_FILE": str(certificate)}
        told = examined(run, **shared, RECONCILER_TOKEN=made.out.strip())
        admin = examined(run, **shared, RECONCILER_TOKEN=server.token("admin"))
        distrusted = examined(run, "--service", server.address, RECONCILER_TOKEN=CANARY)
        unknown = examined(run, **shared, RECONCILER_TOKEN=CANARY)

    assert told.failed == []
    ends = datetime.fromisoformat(told["certificate"]["facts"]["ends"])
    assert timedelta(99) < ends - datetime.now(UTC) < timedelta(101)
    assert told["address"]["text"] == f"{server.address} answers"
    assert abs(told["clock"]["facts"]["ahead_seconds"]) <= 30
    assert told["token"]["facts"] == {"from": "RECONCILER_TOKEN"}
    assert told["service"]["facts"]["kind"] == "reconciler"
    assert told["service"]["facts"]["version"] == __version__
    rights = told["rights"]["facts"]
    assert (rights["role"], rights["organizations"]) == ("editor", ["acme"])
    assert (
        timedelta(29) < datetime.fromisoformat(rights["ends"]) - datetime.now(UTC) < timedelta(31)
    )
    assert told.status("lock", "sink") == ["not_checked", "not_checked"]
    assert admin["rights"]["text"] == "role admin, all organizations, end never"
    assert distrusted.failed == ["certificate"]
    assert "is of an unknown authority" in distrusted["certificate"]["text"]
    assert distrusted.status("address", "token", "service") == ["ok", "ok", "not_checked"]
    assert unknown.failed == ["service"]
    assert "not known to this service" in unknown["service"]["text"]


def test_a_zitadel_tells_its_generation_and_the_roles_of_its_user(
    run: Run, tmp_path: Path, a_zitadel: ServeZitadel
) -> None:
    """What it does not tell is said; the lock of this machine is seen."""
    with a_zitadel() as (fake, environ), ExitStack() as stack:
        told = examined(run, **{**environ, "RECONCILER_TOKEN": MEMBER})
        lock = LocalLock(tmp_path / ".reconciler", this_process())
        (tmp_path / ".reconciler").mkdir()
        lock.acquire(told["service"]["facts"]["instance"])
        stack.callback(lock.release)
        locked = examined(run, **environ)

    assert told.failed == []
    is_4 = fake.version.startswith("4.") or fake.version > "4"
    assert told["service"]["facts"]["generation"] == (4 if is_4 else 3)
    assert ("from 4.0 on" if is_4 else "before 4.0") in told["service"]["text"]
    assert "its version is not reported by the service" in told["service"]["text"]
    assert told["rights"]["facts"] == {
        "role": ["ORG_OWNER of the organization acme"], "organizations": ["acme"], "ends": None,
    }  # fmt: skip
    assert told["rights"]["text"].endswith("end not reported by the service")
    assert told["lock"]["text"] == "free"
    assert locked.status("lock") == ["warning"]
    assert locked["lock"]["text"].startswith("held by ")


@each_row(
    ("environ", "failed"),
    [
        ({"RECONCILER_TOKEN_FILE": "open"}, {"token"}),
        ({"RECONCILER_TOKEN_FILE": "missing"}, {"token"}),
        ({"RECONCILER_TOKEN_FILE": ""}, {"settings", "variables", "token"}),
        ({"RECONCILER_TOKEN": ""}, {"variables", "token"}),
        ({}, {"token"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_KEY_FILE": "missing"}, {"token"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_MAX_RPS": "many"}, {"settings"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_SERVCE": "sqlite:x"}, {"variables"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_ENV": "staging"}, {"configuration"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_SECRETS_TO": "file:open/x"}, {"sink"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_SECRETS_TO": "exec:no-such-program-here"},
         {"sink"}),
        ({"RECONCILER_TOKEN": CANARY, "RECONCILER_SECRETS_TO": "vault:x"}, {"sink"}),
        ({"RECONCILER_TOKEN": CANARY, "XDG_CONFIG_HOME": "/nobody", "HOME": "/nobody"}, set()),
    ],
)  # fmt: skip
def test_a_failure_hides_no_other_and_no_line_that_does_not_need_it(
    run: Run, tmp_path: Path, environ: dict[str, str], failed: set[str]
) -> None:
    """Such as with the variables of another user; the service then still refuses the token."""
    write(tmp_path / "open", f"{CANARY}\n").chmod(0o644)
    with listening(Strange((401, JSON, b'{"code": 16, "message": "no such token"}'))) as address:
        ran = run("doctor", "--format", "json", "--service", address, **environ)
    told = Told(ran)

    asks = not failed & {"token"}
    assert set(told.failed) == failed | ({"service"} if asks else set()), told
    assert told.status("address", "certificate", "clock") == ["ok"] * 3
    assert told["service"]["status"] == ("failed" if asks else "not_checked")
    assert CANARY not in ran.all


def test_what_answers_at_a_wrong_address_is_named(run: Run) -> None:
    """Each in the line that it belongs to."""
    page = Strange((200, {"content-type": "text/html"}, b"<html>"))
    with listening(page) as address:
        website = examined(run, "--service", address, RECONCILER_TOKEN=CANARY)
    nothing = examined(run, "--service", "http://127.0.0.1:1", RECONCILER_TOKEN=CANARY)
    odd = examined(run, "--service", "ftp://id.example.com", RECONCILER_TOKEN=CANARY)
    unencrypted = examined(run, "--service", "http://id.example.com", RECONCILER_TOKEN=CANARY)

    assert website.failed == ["service"]
    assert "is not an identity service: it answered with a web page" in website["service"]["text"]
    assert nothing.failed == ["address"]
    assert nothing["certificate"]["text"] == "see address"
    assert "address" in odd.failed
    assert "address" in unencrypted.failed


@pytest.mark.parametrize(("ends", "status"), [(3 * DAY, "warning"), (-DAY, "failed")])
def test_a_certificate_that_ends_is_told_in_time(
    run: Run, tmp_path: Path, ends: timedelta, status: str
) -> None:
    certificate, key = a_certificate(tmp_path, begins=-9 * DAY, ends=ends)
    with listening(Strange((200, JSON, b"{}")), certificate, key) as address:
        told = examined(run, "--service", address, RECONCILER_TOKEN=CANARY,
                        SSL_CERT_FILE=str(certificate))  # fmt: skip

    assert told.status("address", "certificate") == ["ok", status]
    words = {"warning": "2 days from now", "failed": "has expired"}
    assert words[status] in told["certificate"]["text"]


def test_each_value_is_told_with_where_it_is_from(run: Run, small: Path) -> None:
    """Files, variables and flags; a value of the manifests' variables may be private."""
    folder = small.parent
    variables = {name: {"type": "string", "default": "x"} for name in ("host", "port")}
    a_configuration(folder, variables=variables)
    write(folder / "sink", "#!/bin/sh\n").chmod(0o700)

    ran = run("doctor", "--env", "production", "--format", "json", "--secrets-to",
              "exec:./sink --key=geheim", RECONCILER_VAR_host="geheim",
              RECONCILER_TREE="other")  # fmt: skip
    told = Told(ran)
    none = examined(run)
    text = run("doctor", "--env", "production").out
    written = (folder / "reconciler.yaml").read_text(encoding="utf-8")
    column = written.index('"production"') + 1

    assert told.failed == []
    assert told["configuration"]["facts"] == {
        "file": "reconciler.yaml",
        "environments": ["staging", "production"],
        "environment": "production",
        "protected": True,
        "variables": {"host": "RECONCILER_VAR_host", "port": "reconciler.yaml:1:"
                      + told["configuration"]["facts"]["variables"]["port"].rpartition(":")[2]},
    }  # fmt: skip
    assert told["settings"]["facts"] == {
        "service": {
            "value": "sqlite:.reconciler/production/identity.db",
            "from": f"reconciler.yaml:1:{column}",
        },
        "tree": {"value": "other", "from": "RECONCILER_TREE"},
        "secrets-to": {"value": "exec:...", "from": "--secrets-to"},
    }
    assert "geheim" not in ran.all
    assert "reconciler.yaml; environment production from --env, protected" in text
    assert none.failed == ["settings"]
    assert "no environment is chosen" in none["settings"]["text"]
    assert none.status("token", "address", "sink") == ["not_checked"] * 3


@pytest.mark.parametrize(
    "address",
    [
        f"https://{CANARY}@127.0.0.1:1",
        f"https://ben:{CANARY}@127.0.0.1:1/x",
        f"https://127.0.0.1:1/?token={CANARY}",
        f"http://127.0.0.1:1/id#{CANARY}",
        f"postgresql://me@127.0.0.1:1/db?password={CANARY}",
    ],
)
def test_what_may_be_a_secret_in_an_address_is_not_shown(run: Run, address: str) -> None:
    """The address is refused for it, and so is no reason to show it."""
    for form in ("text", "json"):
        told = run("doctor", "--service", address, "--format", form, RECONCILER_TOKEN=CANARY)

        assert told.code == 1
        assert CANARY not in told.all


def test_a_broken_configuration_hides_nothing_that_was_named_beside_it(
    run: Run, tmp_path: Path
) -> None:
    write(tmp_path / "reconciler.yaml", "apiVersion: reconciler/v1\nkind: Configuraton\n")
    with listening(Strange((404, JSON, b'{"code": 5, "message": "no"}'))) as address:
        named = examined(run, "--service", address, RECONCILER_TOKEN=CANARY)
    alone = examined(run)

    assert named.failed == ["configuration", "rights"]
    assert "reconciler.yaml:2:7: " in named["configuration"]["text"]
    assert named.status("address", "token", "ci") == ["ok", "ok", "not_checked"]
    assert alone.failed == ["configuration"]
    assert alone.status("address", "service", "sink") == ["not_checked"] * 3


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_each_answer_to_the_flags_of_init_is_known(run: Run, tmp_path: Path, forge: str) -> None:
    """Jobs that apply what nobody reviewed are as this version writes them, too."""
    given = ("--from", RELEASE, "--on-unreviewed", "apply")
    assert run("init", f"--{forge}", *given).code == 0
    as_asked = examined(run)
    (file,) = [*tmp_path.glob(".gitlab/*.yml"), *tmp_path.glob(".github/*/reconciler-apply.yml")]
    text = file.read_text(encoding="utf-8")
    assert "ON_UNREVIEWED: apply" in text
    file.write_text(text.replace("ON_UNREVIEWED: apply", "ON_UNREVIEWED: never"), encoding="utf-8")
    changed = examined(run)

    assert as_asked["ci"]["text"] == f"{forge}: as this version writes them"
    assert changed["ci"]["facts"]["other"] == [str(file.relative_to(tmp_path))]


@pytest.mark.parametrize(
    ("manifests", "said"),
    [("manifests", "github: as this version"), ("my manifests", "no jobs can be written")],
)
def test_set_ups_of_a_tree_without_environments_are_looked_at(
    run: Run, tmp_path: Path, manifests: str, said: str
) -> None:
    """Hooks are for an environment, so there are none to compare."""
    assert run("init", "--github", "--from", RELEASE).code == 0
    kind = "apiVersion: reconciler/v1\nkind: Configuration"
    (tmp_path / "reconciler.yaml").write_text(f"{kind}\nmanifests: {manifests}\n")

    assert said in examined(run)["ci"]["text"]


def test_a_set_up_of_another_tree_is_not_looked_at(tmp_path: Path) -> None:
    """All trees of a repository share the folder of the tool."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for folder, forge in (("shop", "gitlab"), ("desk", "github")):
        (tmp_path / folder).mkdir()
        made = program(tmp_path / folder)("init", f"--{forge}", "--from", RELEASE)
        assert made.code == 0, made.all

    looked = examined(program(tmp_path / "shop"))

    assert looked["ci"]["text"] == "gitlab: as this version writes them"


def test_git_and_the_files_of_ci_are_looked_at(run: Run, tmp_path: Path) -> None:
    """A file that was changed, or is of another version, is named; what to do stands beside it."""
    empty_home = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=tmp_path, check=True,
                   env={**os.environ, **empty_home})  # fmt: skip
    assert run("init", "--github", "--from", RELEASE).code == 0
    written = examined(run)
    workflow = tmp_path / ".github" / "workflows" / "reconciler-plan.yml"
    workflow.write_text(f"{workflow.read_text(encoding='utf-8')}# mine\n", encoding="utf-8")
    requirements = tmp_path / ".github" / "reconciler" / "requirements.txt"
    text = requirements.read_text(encoding="utf-8").replace(WHEEL, "older.whl")
    requirements.write_text(text, encoding="utf-8")
    changed = examined(run)

    assert written["git"]["facts"] == {"root": str(tmp_path), "branch": "trunk", "commit": None}
    assert written["ci"]["text"] == "github: as this version writes them"
    assert changed.failed == []
    assert changed.status("ci") == ["warning"]
    assert changed["ci"]["facts"]["other"] == [
        ".github/workflows/reconciler-plan.yml", ".github/reconciler/requirements.txt",
    ]  # fmt: skip


def test_the_remedy_for_files_of_ci_makes_those_of_this_version(tmp_path: Path) -> None:
    """The jobs depend on the environments, so an empty folder would get other ones."""
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    tree.mkdir()
    run, asked = program(tree), ("init", "--github", "--from", RELEASE)
    assert (run("init", "--environments").code, run(*asked).code) == (0, 0)
    written = everything_in(tree)
    workflow = next((tree / ".github").rglob("*staging*.yml"))
    workflow.write_text("of another version")
    remedy = examined(run)["ci"]["remedy"]

    shutil.copytree(tree, copy)
    shutil.rmtree(copy / ".github")

    assert "In a copy of the repository, remove what `reconciler init` wrote for CI" in remedy
    assert program(copy)(*asked).code == 0
    assert everything_in(copy) == written


def test_help_and_completion_know_it(run: Run, small: Path) -> None:
    """As of the other commands."""
    a_configuration(small.parent)
    shown = run("doctor", "--help")
    line = "reconciler doctor --env p"
    offered = run(_RECONCILER_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD="3")

    assert shown.code == 0
    assert re.search(r"--env NAME", shown.out)
    assert json.dumps(offered.out) == json.dumps("plain,production\n")
    assert run("doctor", "--no-such-flag").code == 1


def test_a_store_in_postgresql_is_looked_at(
    run: Run, small: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Before the first apply, and after it."""
    service = {"RECONCILER_SERVICE": postgres.new_address()}
    sealed = ("--seal-key-file", str(tmp_path / "seal-key"))
    new, keyless = examined(run, *sealed, **service), examined(run, **service)
    assert run("apply", "--auto-approve", *sealed, **service).code == 0
    made = examined(run, **service, RECONCILER_SEAL_KEY_FILE=sealed[1])

    assert new.failed == keyless.failed == made.failed == []
    assert new["address"]["text"].endswith(" holds no store yet: apply makes it")
    assert new.status("address") == made.status("address") == ["ok"]
    assert keyless.status("address") == ["warning"]
    assert "--seal-key-file" in keyless["address"]["remedy"]
    assert made.status("service", "rights", "lock", "sink") == ["ok"] * 4


def test_an_address_that_only_a_file_of_the_repository_names_gets_no_token(
    run: Run, small: Path
) -> None:
    """It is looked at without one, and the line says how to name it."""
    strange = Strange((200, JSON, b"{}"))
    with listening(strange) as address:
        a_configuration(small.parent, environments={"staging": {"service": address}})
        told = examined(run, "--env", "staging", RECONCILER_TOKEN=CANARY)

    assert told.failed == ["token"]
    assert "only reconciler.yaml names the service" in told["token"]["text"]
    assert told.status("address", "service") == ["ok", "not_checked"]
    assert [headers.get("authorization") for headers in strange.headers] == [None]


def test_every_wrong_setting_is_told_at_once(run: Run) -> None:
    """None of them hides the next one."""
    told = examined(
        run,
        RECONCILER_MAX_RPS="many",
        RECONCILER_TOKEN_FILE="",
        RECONCILER_KEY_FILE="",
        RECONCILER_SERVCE="x",
        RECONCILER_SECRETS_TO="vault:geheim",
    )

    assert told.failed == ["settings", "sink", "token", "variables"]
    assert "many" in told["settings"]["text"]
    assert all(name in told["settings"]["text"] for name in ("TOKEN_FILE", "KEY_FILE"))
    assert all(name in told["variables"]["text"] for name in ("TOKEN_FILE", "KEY_FILE", "SERVCE"))
    assert "Did you mean RECONCILER_SERVICE?" in told["variables"]["remedy"]


def test_a_current_folder_that_is_gone_is_told_as_that(tmp_path: Path) -> None:
    """As after a checkout of another branch in another terminal."""
    command = (
        f"mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -m reconciler doctor"
    )

    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    failed = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if "failed  " in line]
    told = "the current folder is gone. Change to a folder that exists."
    assert failed == [["sink", told], ["git", told], ["ci", told]], done.stdout
