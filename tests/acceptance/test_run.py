"""The loop without a person: what a push does, what is healed, and what is only said."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from reconciler.cli.run.command import run_command
from reconciler.cli.settings import TOKEN
from reconciler.service.build import open_postgres
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request
from tests.acceptance.conftest import ORGANIZATION, PLACES, Run, an_action, an_application, an_idp
from tests.acceptance.test_policies import a_policy, a_waiver
from tests.acceptance.zitadel import ServeZitadel
from tests.direct import Direct
from tests.effort import IS_USUAL
from tests.plain_http import NO_TRUST
from tests.postgres_server import PostgresServer
from tests.program import ROOT, Ran, environment, program
from tests.repository import PASSWORD, USER, Repository, a_signing_key, hosted
from tests.running import running_server
from tests.unit.policy.test_limits import doubled
from tests.warm import Copy

WITHIN = 30.0
_LISTENING = re.compile(r"listening on (https?://\S+)")
SMALL = {
    "manifests/organization.yaml": ORGANIZATION,
    "manifests/greet.yaml": an_action(),
    "manifests/partner.yaml": an_idp(),
}


@dataclass
class Loop:
    """A repository, a service, and a run between them.

    Attributes:
        more: Options of every round.
        address: Of the repository, where that is not its folder.
        known: Variables of every round.
    """

    repository: Repository
    folder: Path
    direct: Direct
    run: Run
    service: str
    known: Mapping[str, str]
    more: tuple[str, ...] = ()
    address: str = ""

    def options(self, mode: str, state: str = "state") -> Sequence[str]:
        return (
            *(
                "--repository",
                self.address or str(self.repository.folder),
                "--service",
                self.service,
            ),
            *("--state", str(self.folder / state), "--mode", mode, *self.more),
        )

    def once(self, mode: str, *more: str, state: str = "state", **known: str) -> Ran:
        given = {**self.known, **known}
        return self.run("run", *self.options(mode, state), "--once", *more, **given)

    def push(self, files: Mapping[str, str | None], key: Path | None = None) -> str:
        return self.repository.commit(files, key)

    def held(self, ref: str) -> dict[str, Any]:
        return self.direct.objects()[ref]

    def events(self) -> int:
        """Return how many events the store has."""
        with closing(sqlite3.connect(self.direct.store)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
        return int(count)

    def applied(self, organization: str = "acme") -> str:
        """Return the commit that the service has on record for the tree in an organization."""
        if not self.direct.store.exists():
            return ""
        found = [
            record["commit"]
            for each in self.direct("ListHeads")["organizations"]
            for record in each["applied"]
            if (each["name"], record["tree"]) == (organization, "default")
        ]
        return found[0] if found else ""


# What the repository decides, whichever way the service is asked: `make laws` tries both.
as_committed = pytest.mark.parametrize("loop", PLACES[:1] if IS_USUAL else PLACES, indirect=True)


@pytest.fixture(params=PLACES)
def loop(
    run: Run,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loop]:
    """Return a loop over a repository with the small tree; nothing is applied yet."""
    repository = Repository.new(tmp_path / "origin")
    repository.commit(SMALL)
    if request.param == "embedded":
        store = tmp_path / "store" / "id.db"
        yield Loop(repository, tmp_path, Direct(store), run, f"sqlite:{store}", {})
        return
    with running_server(tmp_path_factory.mktemp("server")) as server:
        known = {"RECONCILER_TOKEN": server.token("admin")}
        yield Loop(repository, tmp_path, Direct(server.store), run, server.address, known)


@pytest.fixture
def embedded(run: Run, tmp_path: Path) -> Loop:
    """Return a loop over a store of this machine, for what does not depend on the service."""
    repository = Repository.new(tmp_path / "origin")
    repository.commit(SMALL)
    store = tmp_path / "store" / "id.db"
    return Loop(repository, tmp_path, Direct(store), run, f"sqlite:{store}", {})


def test_to_observe_writes_nothing(loop: Loop) -> None:
    """What an apply would do, and what was changed by hand, is said."""
    pending = loop.once("observe")
    assert pending.code == 2, pending.all
    assert loop.applied() == ""

    assert loop.once("apply").code == 0
    assert loop.once("observe").code == 0
    loop.direct.change("greet", timeout="1s")
    count = loop.events()
    drifted = loop.once("observe")

    assert drifted.code == 2
    assert "Action acme/greet was changed on the service (timeout) by ana" in drifted.err
    assert loop.events() == count


def test_a_push_is_applied_as_a_whole_and_recorded(loop: Loop) -> None:
    """Every object has the commit as its revision; a round after it writes nothing."""
    first = loop.repository.head
    assert loop.once("apply").code == 0
    assert loop.applied() == first

    second = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    done = loop.once("apply")
    count = loop.events()

    assert done.code == 0, done.all
    assert f"commit {second} is applied: 1 change(s)" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "5s"
    assert loop.applied() == second
    assert loop.once("apply").code == 0
    assert loop.events() == count


def test_the_log_tells_what_became_of_each_object(embedded: Loop) -> None:
    """An update and a delete are not called made; of a secret it says which one moved and where."""
    web = json.loads(an_application("web"))
    embedded.push({"manifests/web.yaml": json.dumps(web), "manifests/log.yaml": an_action("log")})
    made = embedded.once("apply", "--secrets-to", "file:secrets")
    web["metadata"] |= {"name": "shop-web", "id": embedded.held("web")["id"]}
    embedded.push({"manifests/web.yaml": json.dumps(web), "manifests/log.yaml": None})

    done = embedded.once("apply", "--secrets-to", "file:secrets", "--prune")

    assert made.code == 0, made.all
    assert "OidcApplication acme/shop/web created" in made.err
    assert done.code == 0, done.all
    assert "OidcApplication acme/shop/shop-web updated" in done.err
    assert "Action acme/log deleted" in done.err
    assert " made" not in done.err
    assert (
        "SECRET-MOVED: the secret of a renamed application has a new place. OidcApplication "
        "acme/shop/web is now acme/shop/shop-web"
    ) in done.err


@as_committed
def test_a_commit_without_changes_is_recorded(loop: Loop) -> None:
    """Also one that only removes a manifest: nothing is deleted without --prune."""
    assert loop.once("apply").code == 0
    for files in ({"README.md": "hello"}, {"manifests/partner.yaml": None}):
        commit = loop.push(files)
        assert loop.once("apply").code == 0
        assert loop.applied() == commit
    assert "partner" in loop.direct.objects()


@as_committed
def test_with_prune_a_removed_manifest_is_deleted(loop: Loop) -> None:
    """Unless another file of the repository declares it: the whole commit is searched."""
    loop.push({"manifests/other.yaml": an_idp("other")})
    assert loop.once("apply").code == 0
    loop.push({"manifests/partner.yaml": None, "elsewhere/partner.yaml": an_idp()})
    kept = loop.once("apply", "--prune")
    assert kept.code == 3, kept.all
    assert "elsewhere/partner.yaml" in kept.err
    assert "partner" in loop.direct.objects()

    commit = loop.push({"elsewhere/partner.yaml": None})
    assert loop.once("apply", "--prune").code == 0
    assert "partner" not in loop.direct.objects()
    assert loop.applied() == commit


@as_committed
def test_what_a_commit_on_record_still_lacks_is_said(loop: Loop) -> None:
    """It is not applied again: only an operator knows with which flags and variables it was."""
    loop.push({"manifests/other.yaml": an_idp("other")})
    assert loop.once("apply").code == 0
    loop.push({"manifests/partner.yaml": None})
    assert loop.once("apply").code == 0
    count = loop.events()

    found = loop.once("apply", "--prune")

    assert found.code == 2
    assert "is on record as applied, and its plan is not empty" in found.err
    assert loop.events() == count


@as_committed
def test_a_commit_that_does_not_validate_leaves_the_last_one_healed(loop: Loop) -> None:
    """Its findings are said with their places."""
    good = loop.repository.head
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="soon")})
    loop.direct.change("greet", timeout="1s")

    done = loop.once("apply")

    assert done.code == 1, done.all
    assert "manifests/greet.yaml:1:" in done.err
    assert "Action acme/greet is healed" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "20s"
    assert loop.applied() == good


@as_committed
def test_a_commit_that_a_guard_blocks_is_not_applied(loop: Loop) -> None:
    many = {f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(12)}
    good = loop.push(many)
    assert loop.once("apply").code == 0
    loop.push({f"manifests/a{n}.yaml": an_action(f"a{n}", timeout="5s") for n in range(12)})

    done = loop.once("apply")

    assert done.code == 3, done.all
    assert "--allow-updates" in done.err
    assert loop.applied() == good
    assert loop.held("a0")["spec"]["timeout"] == "20s"
    assert loop.once("apply", "--allow-updates", "12").code == 0
    assert loop.held("a0")["spec"]["timeout"] == "5s"


def test_only_signed_commits_are_applied_and_healed_towards(embedded: Loop, tmp_path: Path) -> None:
    key, line = a_signing_key(tmp_path)
    other, _ = a_signing_key(tmp_path, "other")
    signers = tmp_path / "signers"
    signers.write_text(line, encoding="ascii")
    loop = replace(embedded, more=("--signed-by", str(signers)))

    unsigned = loop.once("apply")
    assert unsigned.code == 3
    assert "is not signed by an allowed key" in unsigned.err
    assert loop.applied() == ""

    signed = loop.push({"README.md": "1"}, key)
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")}, other)
    loop.direct.change("greet", timeout="1s")
    done = loop.once("apply")

    assert done.code == 3, done.all
    assert loop.applied() == signed
    assert loop.held("greet")["spec"]["timeout"] == "20s"


def test_a_rewritten_ref_waits_until_it_is_accepted(loop: Loop) -> None:
    """Also with a new state elsewhere: the record of the service tells."""
    first = loop.repository.head
    assert loop.once("apply").code == 0
    second = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    assert loop.once("apply").code == 0
    loop.repository.git("reset", "--quiet", "--hard", first)
    other = loop.push({"manifests/greet.yaml": an_action(timeout="7s")})

    for state in ("state", "other"):
        done = loop.once("apply", state=state)
        assert done.code == 3, done.all
        assert "the ref was rewritten" in done.err
        assert loop.applied() == second
    assert loop.held("greet")["spec"]["timeout"] == "5s"

    assert loop.once("apply", "--accept", second).code == 3
    assert loop.once("apply", "--accept", other).code == 0
    assert loop.applied() == other
    assert loop.held("greet")["spec"]["timeout"] == "7s"


CONFIGURATION = """\
apiVersion: reconciler/v1
kind: Configuration
environments:
  production:
    protected: {protected}
"""


def test_a_protected_environment_is_only_watched(embedded: Loop) -> None:
    """It is healed where the command line says so; a commit cannot take the protection away."""
    loop = replace(embedded, more=("--env", "production"))
    loop.push({"reconciler.yaml": CONFIGURATION.format(protected="false")})
    assert loop.once("apply").code == 0
    protected = loop.push({"reconciler.yaml": CONFIGURATION.format(protected="true")})
    assert loop.once("apply").code == 3
    watched = loop.once("apply", "--trust-commit", protected)
    assert watched.code in {0, 2}, watched.all
    assert loop.applied() != protected

    loop.direct.change("greet", timeout="1s")
    left = loop.once("heal")
    assert left.code == 2
    assert "environment production is protected: mode observe" in left.err
    assert loop.held("greet")["spec"]["timeout"] == "1s"
    assert "is healed" in loop.once("heal", "--heal-protected").err
    assert loop.held("greet")["spec"]["timeout"] == "20s"


def test_a_commit_that_takes_the_protection_away_does_not_count(embedded: Loop) -> None:
    """Until the run is started with that commit."""
    loop = replace(embedded, more=("--env", "production"))
    loop.push({"reconciler.yaml": CONFIGURATION.format(protected="true")})
    assert loop.once("apply").code == 2
    bad = loop.push({"reconciler.yaml": CONFIGURATION.format(protected="false")})

    done = loop.once("apply")
    assert done.code == 3, done.all
    assert "protected of environment production is false, was true" in done.err
    assert loop.applied() == ""

    assert loop.once("apply", "--trust-commit", bad).code == 0
    assert loop.applied() == bad


def test_an_edit_by_hand_is_healed_and_what_is_more_is_said(loop: Loop) -> None:
    """A deleted object and one that was switched off stay as they are."""
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    loop.direct.change("greet", timeout="1s", allowedToFail=True)
    partner = loop.held("partner")["id"]
    loop.direct("RemoveOrgIDP", idpId=partner)

    done = loop.once("heal")

    assert loop.held("greet")["spec"]["timeout"] == "20s"
    assert loop.held("greet")["spec"]["allowedToFail"] is False
    assert "partner" not in loop.direct.objects()
    assert "IdpJwtConfig acme/partner is not healed: it was deleted" in done.err
    assert done.code == 2


def test_what_was_undone_stays_undone(loop: Loop) -> None:
    """Other objects are healed; a commit that brings the values back waits, and another counts."""
    loop.push({"manifests/other.yaml": an_action("other")})
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    assert loop.once("apply").code == 0
    run_id = str(loop.held("greet")["context"]["run"])
    undone = loop.run(
        "undo", run_id, "--service", loop.service, "--auto-approve", "--reason", "logins fail",
        **loop.known,
    )  # fmt: skip
    assert undone.code == 0, undone.all
    assert loop.held("greet")["spec"]["timeout"] == "20s"
    loop.direct.change("other", allowedToFail=True)

    healed = loop.once("apply")
    count = loop.events()
    loop.once("apply")

    assert loop.held("other")["spec"]["allowedToFail"] is False, healed.all
    assert loop.held("greet")["spec"]["timeout"] == "20s"
    assert loop.events() == count
    loop.push({"manifests/note.yaml": an_action("note")})
    blocked = loop.once("apply")
    assert blocked.code == 3, blocked.all
    assert "GUARD-UNDONE" in blocked.err
    good = loop.push({"manifests/greet.yaml": an_action(timeout="7s")})
    assert loop.once("apply").code == 0
    assert (loop.held("greet")["spec"]["timeout"], loop.applied()) == ("7s", good)


def test_without_a_record_nothing_is_healed(loop: Loop) -> None:
    """Objects that somebody else made as the manifests say are no reason to write."""
    assert loop.once("apply").code == 0
    loop.direct.record("acme", "f" * 40)
    loop.direct.change("greet", timeout="1s")

    done = loop.once("heal", state="new")

    assert "no commit that can be read is on record as applied" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "1s"


def test_what_a_responder_switched_off_stays_off(loop: Loop) -> None:
    assert loop.once("apply").code == 0
    loop.direct("DeactivateAction", id=loop.held("greet")["id"])
    count = loop.events()

    for mode in ("heal", "apply"):
        assert loop.once(mode).code in {0, 2}
    assert loop.events() == count


def test_a_context_is_no_record(loop: Loop) -> None:
    """Every writer can claim a tree and a commit."""
    first = loop.repository.head
    assert loop.once("apply").code == 0
    other = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    held = loop.held("greet")
    claimed = json.dumps({"tree": "default", "revision": other, "plan": "sha256:" + "0" * 64})
    loop.direct.change_as(claimed, "greet", timeout="9s")

    loop.once("heal")

    assert loop.applied() == first
    assert loop.held("greet")["id"] == held["id"]
    assert loop.held("greet")["spec"]["timeout"] != "5s"


def test_a_paused_tree_is_left_alone(loop: Loop) -> None:
    good = loop.repository.head
    assert loop.once("apply").code == 0
    loop.direct.of_tree("PauseTree", reason="incident", seconds=600)
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    loop.direct.change("greet", timeout="1s")

    paused = loop.once("apply")

    assert "paused until" in paused.err
    assert "incident" in paused.err
    assert loop.held("greet")["spec"]["timeout"] == "1s"
    assert loop.applied() == good
    loop.direct.of_tree("ResumeTree")
    assert loop.once("apply").code == 0
    assert loop.held("greet")["spec"]["timeout"] == "5s"


@as_committed
def test_without_its_repository_a_run_goes_on_healing(loop: Loop) -> None:
    """With what it knows; the failure is said."""
    assert loop.once("apply").code == 0
    away = loop.repository.folder.with_name("away")
    loop.repository.folder.rename(away)
    loop.direct.change("greet", timeout="1s")

    done = loop.once("apply")

    assert done.code == 1
    assert "git ls-remote failed" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "20s"


def test_a_run_that_is_killed_is_finished_by_another_one_elsewhere(loop: Loop) -> None:
    """With a new state: nothing is made twice, and the commit is recorded once."""
    loop.push({f"manifests/a{n}.yaml": an_action(f"a{n}") for n in range(5)})
    killed = loop.once("apply", RECONCILER_CRASHPOINT="C6")
    assert killed.code == -signal.SIGKILL, killed.all
    assert loop.applied() == ""

    done = loop.once("apply", state="elsewhere")

    assert done.code == 0, done.all
    assert loop.applied() == loop.repository.head
    names = [each["name"] for each in loop.direct.objects().values()]
    assert len(names) == len({*names})


def test_a_manifest_behind_a_link_is_an_error(embedded: Loop) -> None:
    """Without it, the object would count as no longer declared."""
    assert embedded.once("apply").code == 0
    manifests = embedded.repository.folder / "manifests"
    (manifests / "partner.yaml").rename(embedded.repository.folder / "partner.yaml")
    (manifests / "partner.yaml").symlink_to("../partner.yaml")
    embedded.push({})

    done = embedded.once("apply", "--prune")

    assert done.code == 1
    assert "manifests/partner.yaml: this symbolic link is not read" in done.err
    assert "partner" in embedded.direct.objects()


def test_a_state_is_of_one_run(embedded: Loop) -> None:
    assert embedded.once("apply").code == 0
    other = replace(embedded, more=("--ref", "refs/heads/other"))

    refused = other.once("apply")

    assert refused.code == 1
    assert "is the state of another run" in refused.err


@dataclass
class Following:
    """A run that goes on."""

    process: Copy
    address: str
    log: Path

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.address + path, headers=headers, verify=NO_TRUST)

    def until(self, is_so: Any) -> dict[str, Any]:
        """Return the state once it is so."""
        deadline = time.monotonic() + WITHIN
        while True:
            assert self.process.poll() is None
            try:
                found: dict[str, Any] = self.get("/status.json").json()
            except httpx.TransportError:
                found = {"last_round": None}
            if found["last_round"] and is_so(found):
                return found
            assert time.monotonic() < deadline, json.dumps({**found, "plan": None})
            time.sleep(0.05)


def following(loop: Loop, mode: str, *more: str, state: str = "state") -> Following:
    """Start a run that goes on, and wait until it answers."""
    options = ("run", *loop.options(mode, state), "--listen", "127.0.0.1:0", *more)
    log = loop.folder / f"{state}.log"
    with log.open("wb") as stderr:
        process = Copy(options, loop.folder, environment(**loop.known), stderr=stderr.fileno())
    deadline = time.monotonic() + WITHIN
    while (found := _LISTENING.search(log.read_text(encoding="utf-8"))) is None:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return Following(process, found[1], log)


def test_a_trigger_starts_a_round_and_a_signal_ends_the_run(loop: Loop, tmp_path: Path) -> None:
    """The interval is long, so that only the trigger can have done it."""
    token = tmp_path / "token"
    token.write_text("let-me-in", encoding="ascii")
    token.chmod(0o600)
    more = ("--interval", "60m", "--trigger-token-file", str(token))
    follows = following(loop, "apply", *more)
    first = follows.until(lambda state: state["commit_applied"])
    assert first["conditions"] == []
    assert follows.get("/readyz").status_code == 200
    assert follows.get("/healthz").status_code == 200
    assert "reconciler_run_rounds_total 1" in follows.get("/metrics").text

    commit = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    trigger = partial(httpx.post, f"{follows.address}/trigger", verify=NO_TRUST)
    assert trigger().status_code == 401
    assert trigger(headers={"authorization": "Bearer wrong"}).status_code == 401
    assert trigger(headers={"authorization": "Bearer let-me-in"}).status_code == 202
    assert trigger(headers={"authorization": "Bearer let-me-in"}).status_code == 202
    follows.until(lambda state: state["commit_applied"] == commit)

    follows.process.send_signal(signal.SIGTERM)
    assert follows.process.wait(WITHIN) == 128 + signal.SIGTERM


def test_a_hangup_starts_a_round(embedded: Loop) -> None:
    follows = following(embedded, "apply", "--interval", "60m")
    follows.until(lambda state: state["commit_applied"])
    commit = embedded.push({"README.md": "1"})

    follows.process.send_signal(signal.SIGHUP)

    follows.until(lambda state: state["commit_applied"] == commit)
    follows.process.send_signal(signal.SIGINT)
    assert follows.process.wait(WITHIN) == 128 + signal.SIGINT


def test_of_two_runs_one_leads_and_the_other_takes_over(loop: Loop) -> None:
    """After a kill; a dead process of the same machine is known to be dead."""
    if not loop.service.startswith("http"):
        return  # a store of this machine is led only while it is written to
    first = following(loop, "apply", "--interval", "60m")
    first.until(lambda state: state["commit_applied"])
    commit = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})

    watching = loop.once("apply", state="other")
    assert watching.code == 6, watching.all
    assert "another run leads this tree" in watching.err
    assert loop.applied() != commit

    first.process.send_signal(signal.SIGKILL)
    first.process.wait(WITHIN)
    assert loop.once("apply", state="other").code == 0
    assert loop.applied() == commit


def test_an_object_that_two_writers_want_is_left(embedded: Loop) -> None:
    """After three heals within an hour; the other one is named."""
    follows = following(embedded, "heal", "--interval", "1s")
    assert embedded.once("apply", state="other").code == 0
    follows.until(lambda state: state["commit_applied"])
    for count in range(3):
        embedded.direct.change("greet", timeout=f"{count + 1}s")
        follows.until(lambda _: embedded.held("greet")["spec"]["timeout"] == "20s")

    embedded.direct.change("greet", timeout="9s")
    state = follows.until(lambda state: "contested" in state["conditions"])

    (left,) = state["left"]
    assert left["ref"]["name"] == "greet"
    assert "contested" in left["why"]
    assert [each["by"] for each in state["drift"]["drift"]] == ["ana"]
    rounds = _rounds(follows)
    follows.until(lambda _: _rounds(follows) > rounds + 1)
    assert embedded.held("greet")["spec"]["timeout"] == "9s"
    follows.process.send_signal(signal.SIGTERM)
    follows.process.wait(WITHIN)


def test_client_secrets_go_to_the_sink_and_nowhere_else(loop: Loop, tmp_path: Path) -> None:
    """Without a sink, a commit that makes one is blocked."""
    loop.push({"manifests/web.yaml": an_application("web")})
    if loop.service.startswith("http"):
        blocked = loop.once("apply")
        assert blocked.code == 3
        assert "no destination is chosen" in blocked.err

    done = loop.once("apply", "--secrets-to", "file:secrets")

    assert done.code == 0, done.all
    (kept,) = (tmp_path / "secrets").glob("*.json")
    secret = json.loads(kept.read_text(encoding="utf-8"))["client_secret"]
    assert len(secret) == 64
    assert secret not in done.all
    for path in (tmp_path / "state").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_after_a_restore_the_commit_is_applied_again(embedded: Loop) -> None:
    """The record went back with the store."""
    first = embedded.repository.head
    assert embedded.once("apply").code == 0
    kept = {path: path.read_bytes() for path in embedded.direct.store.parent.iterdir()}
    follows = following(embedded, "apply", "--interval", "1s")
    second = embedded.push({"manifests/greet.yaml": an_action(timeout="5s")})
    follows.until(lambda state: state["commit_applied"] == second)
    follows.process.send_signal(signal.SIGSTOP)
    for path in embedded.direct.store.parent.iterdir():
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
    assert embedded.applied() == first

    follows.process.send_signal(signal.SIGCONT)
    follows.until(lambda _: embedded.applied() == second)

    assert embedded.held("greet")["spec"]["timeout"] == "5s"
    follows.process.send_signal(signal.SIGTERM)
    follows.process.wait(WITHIN)


def test_what_ci_applied_is_not_applied_again(loop: Loop) -> None:
    """A complete apply of a clean commit leaves the same record; a new state goes on from it."""
    here = program(loop.repository.folder)
    known = {**loop.known, "RECONCILER_SERVICE": loop.service}
    done = here("apply", "manifests", "--auto-approve", **known)
    assert done.code == 0, done.all
    assert loop.applied() == loop.repository.head
    count = loop.events()

    assert loop.once("apply").code == 0
    assert loop.events() == count

    loop.direct.change("greet", timeout="1s")
    assert "is healed" in loop.once("heal", state="new").err


def test_a_run_that_leads_does_not_hold_up_an_apply_by_hand(loop: Loop) -> None:
    """Its record ends the leadership; the run goes on from there."""
    follows = following(loop, "apply", "--interval", "60m")
    follows.until(lambda state: state["commit_applied"])
    commit = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})

    known = {**loop.known, "RECONCILER_SERVICE": loop.service}
    done = program(loop.repository.folder)("apply", "manifests", "--auto-approve", **known)
    assert done.code == 0, done.all
    assert loop.applied() == commit
    follows.process.send_signal(signal.SIGHUP)
    state = follows.until(lambda state: state["commit_seen"] == commit)

    assert state["commit_applied"] == commit
    loop.direct.change("greet", timeout="1s")
    deadline = time.monotonic() + WITHIN
    while loop.held("greet")["spec"]["timeout"] != "5s":
        assert time.monotonic() < deadline
        follows.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
    follows.process.send_signal(signal.SIGTERM)
    assert follows.process.wait(WITHIN) == 128 + signal.SIGTERM


def test_a_tree_of_two_organizations_is_recorded_in_both(loop: Loop) -> None:
    """A commit that only one of them has on record is not healed towards."""
    other = ORGANIZATION.partition("---")[0].replace("acme", "globex")
    theirs = an_action().replace('"acme"', '"globex"')
    commit = loop.push({"manifests/globex.yaml": other, "manifests/theirs.yaml": theirs})
    assert loop.once("apply").code == 0
    assert loop.applied() == commit
    assert loop.applied("globex") == commit

    claimed = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    loop.direct.record("acme", claimed)
    loop.direct.change("greet", timeout="1s")
    done = loop.once("heal")

    assert "greet is healed" not in done.err, done.all
    assert loop.held("greet")["spec"]["timeout"] == "1s"


def test_a_tree_of_another_organization_with_the_same_name_is_left_alone(loop: Loop) -> None:
    """Its pause does not pause this one, and its record is no record of this one."""
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    loop.direct("AddOrg", name="globex")
    loop.direct.of_tree("PauseTree", "globex", reason="theirs", seconds=600)
    loop.direct.record("globex", "f" * 40)

    assert loop.once("apply").code == 0

    assert loop.applied() == loop.repository.head
    assert loop.applied("globex") == "f" * 40


def test_a_database_is_followed_like_any_other_service(
    embedded: Loop, postgres: PostgresServer
) -> None:
    """What was changed by hand there is healed, and the record is kept."""
    service = postgres.new_address()
    loop = replace(embedded, service=service, more=("--seal-key-file", "seal-key"))
    assert loop.once("apply").code == 0
    with closing(open_postgres(service, seal_key_file=loop.folder / "seal-key")) as opened:
        admin = Caller("ana", Role.ADMIN)

        def call(operation: str, **fields: Any) -> dict[str, Any]:
            return opened.call(Request(operation, fields, caller=admin))

        (acme,) = call("ListHeads")["organizations"]
        assert [each["commit"] for each in acme["applied"]] == [loop.repository.head]
        found = call("ListObjects", organizationId=acme["id"])["objects"]
        (held,) = [each for each in found if each["name"] == "greet"]
        changed = {"id": held["id"], "name": "greet", **held["spec"], "timeout": "1s"}
        call("UpdateAction", **changed)

    healed = loop.once("heal", state="elsewhere")

    assert healed.code == 0, healed.all
    assert "Action acme/greet is healed" in healed.err


def test_the_deployment_says_what_run_understands() -> None:
    """A flag that was renamed is renamed there, too; probes are asked at the port that answers."""
    page = (ROOT / "docs" / "continuous" / "kubernetes.yaml").read_text(encoding="utf-8")
    pod = yaml.safe_load(page)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    flags = {flag for option in run_command.params for flag in option.opts}
    known = {str(option.envvar) for option in run_command.params if hasattr(option, "envvar")}

    command, *words = container["args"]
    assert command == "run"
    assert {word for word in words if word.startswith("--")} <= flags
    assert {each["name"] for each in container["env"]} <= known | {TOKEN}
    (port,) = container["ports"]
    assert words[words.index("--listen") + 1].endswith(f":{port['containerPort']}")
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert words[words.index("--state") + 1] in mounted


def test_a_repository_behind_https_is_followed(embedded: Loop, tmp_path: Path) -> None:
    """With a credential and an authority of its own, in files outside of it."""
    credentials = tmp_path / "credentials"
    with hosted(embedded.repository, tmp_path) as server:
        address = server.address.replace("https://", f"https://{USER}:{PASSWORD}@")
        credentials.write_text(address.removesuffix("/.git") + "\n", encoding="ascii")
        loop = replace(
            embedded,
            address=server.address,
            more=("--git-credentials-file", "credentials", "--git-ca-file", str(server.authority)),
        )

        assert loop.once("apply").code == 0
        commit = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
        done = loop.once("apply")

    assert done.code == 0, done.all
    assert loop.applied() == commit
    assert PASSWORD not in done.all


def test_a_zitadel_is_told_what_was_applied(
    run: Run, tmp_path: Path, a_zitadel: ServeZitadel
) -> None:
    """It keeps no record, so a new state knows none; an edit by hand is healed."""
    repository = Repository.new(tmp_path / "origin")
    first = repository.commit({"manifests/greet.yaml": an_action()})
    with a_zitadel() as (fake, environ):
        known = {"RECONCILER_TOKEN": environ["RECONCILER_TOKEN"]}
        service = environ["RECONCILER_SERVICE"]
        store = tmp_path / "none.db"
        loop = Loop(repository, tmp_path, Direct(store), run, service, known)

        assert loop.once("observe").code == 2
        unknown = loop.once("apply")
        assert unknown.code == 3, unknown.all
        assert "--applied COMMIT" in unknown.err
        assert fake.named("actions", "greet") == []

        second = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
        assert loop.once("apply", "--applied", first).code == 0
        (made,) = fake.named("actions", "greet")
        assert made["timeout"] == "5s"

        fake._changed("actions", made, {"timeout": "9s"})
        done = loop.once("heal")
        assert "Action acme/greet is healed" in done.err, done.all
        (found,) = fake.named("actions", "greet")
        assert found["timeout"] == "5s"
        kept = json.loads((tmp_path / "state" / "run.json").read_text(encoding="utf-8"))
        assert kept["memory"]["applied"] == second


def test_an_idle_round_reads_heads_alone(loop: Loop) -> None:
    """No object is listed and no event is written where nothing happened."""
    if not loop.service.startswith("http"):
        return
    follows = following(loop, "apply", "--interval", "1s", "--verbose")
    first = follows.until(lambda state: state["commit_applied"] and not state["conditions"])
    count = loop.events()
    rounds = _rounds(follows)
    deadline = time.monotonic() + WITHIN
    while _rounds(follows) < rounds + 4:
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert loop.events() == count
    follows.process.send_signal(signal.SIGTERM)
    assert follows.process.wait(WITHIN) == 128 + signal.SIGTERM
    assert first
    after = follows.log.read_text(encoding="utf-8").rpartition("is applied")[2]
    assert after.count("/reconciler/v1/heads") >= 4
    assert after.count("/objects") <= 2  # the round after the apply looks once more


def _rounds(follows: Following) -> int:
    (line,) = [
        line
        for line in follows.get("/metrics").text.splitlines()
        if line.startswith("reconciler_run_rounds_total ")
    ]
    return int(line.split()[1])


SHORT = "after.timeout <= duration('10s')"
LONGER = "after.timeout <= duration('60s')"


def policed(rule: str = SHORT, *more: str, **spec: Any) -> dict[str, str | None]:
    """Return a commit with one policy of actions, and other documents beside it."""
    policy = a_policy("short", rule, kinds=["Action"], **spec)
    return {
        "reconciler.yaml": "apiVersion: reconciler/v1\nkind: Configuration\npolicies: [policies]\n",
        "policies/all.yaml": "\n---\n".join((policy, *more)),
        "manifests/greet.yaml": an_action(timeout="10s"),
    }


def test_a_commit_that_a_policy_refuses_is_not_applied(embedded: Loop) -> None:
    """The one before it stays, and goes on being healed."""
    loop = embedded
    good = loop.push(policed())
    assert loop.once("apply").code == 0
    loop.push({"manifests/greet.yaml": an_action(timeout="20s")})
    loop.direct.change("greet", timeout="1s")

    done = loop.once("apply")

    assert done.code == 3, done.all
    assert "POLICY: policy short: short says no." in done.err
    assert loop.applied() == good
    assert loop.held("greet")["spec"]["timeout"] == "10s"


def test_a_commit_does_not_take_its_own_policies_away(embedded: Loop) -> None:
    """Neither by a looser rule, nor by a waiver, nor without the policy, nor without its folder."""
    loop = embedded
    good = loop.push(policed())
    assert loop.once("apply").code == 0
    waiver = a_waiver("moving", "short", "Action/acme/greet")
    without = {**policed(), "policies/all.yaml": a_policy("other", LONGER, kinds=["Action"])}
    found = {}
    for name, files in {
        "policy short is changed": policed(LONGER),
        "waiver moving is new": policed(SHORT, waiver),
        "policy short is taken out": without,
        "the list of policies is none, was policies": {
            "reconciler.yaml": None,
            "policies/all.yaml": None,
        }
        | {"reconciler.yaml": "apiVersion: reconciler/v1\nkind: Configuration\ntree: default\n"},
    }.items():
        tip = loop.push({**files, "manifests/greet.yaml": an_action(timeout="20s")})
        done = loop.once("apply")
        found[name] = (done.code, name in done.err, tip in done.err)
        assert loop.applied() == good
    assert set(found.values()) == {(3, True, True)}, found

    assert loop.once("apply", "--trust-commit", tip).code == 0
    assert loop.held("greet")["spec"]["timeout"] == "20s"


def test_what_a_waiver_lets_pass_stands_with_the_event(embedded: Loop) -> None:
    loop = embedded
    waiver = a_waiver("moving", "short", "Action/acme/greet")
    tip = loop.push({**policed(SHORT, waiver), "manifests/greet.yaml": an_action(timeout="20s")})

    done = loop.once("apply", "--trust-commit", tip)
    shown = loop.run("history", "Action/acme/greet", "--service", loop.service, "--format", "json")

    assert done.code == 0, done.all
    assert shown.json["events"][0]["waived"] == "short by moving"


def test_a_new_policy_of_a_commit_counts_at_once(embedded: Loop) -> None:
    """It only judges harder, so that nobody has to trust it first."""
    loop = embedded
    assert loop.once("apply").code == 0
    configured = {"reconciler.yaml": policed()["reconciler.yaml"], "policies/all.yaml": ""}
    other = a_policy("quick", LONGER, kinds=["Action"])
    loop.push({**configured, "policies/all.yaml": other})
    first = loop.once("apply", "--trust-commit", loop.repository.head)
    assert first.code == 0, first.all
    before = loop.applied()

    files = policed(SHORT, other)
    loop.push({**files, "manifests/greet.yaml": an_action(timeout="15s")})
    refused = loop.once("apply")
    loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
    applied = loop.once("apply")

    assert (refused.code, "policy short: short says no." in refused.err) == (3, True), refused.all
    assert (applied.code, loop.applied()) == (0, loop.repository.head), applied.all
    assert before != loop.repository.head


def test_a_heal_passes_the_policies_too(embedded: Loop) -> None:
    """What was applied before a policy was there is not brought back against it."""
    loop = embedded
    loop.push({"manifests/greet.yaml": an_action(timeout="20s")})
    assert loop.once("apply").code == 0
    files = {**policed(changes=["update"]), "manifests/greet.yaml": an_action(timeout="20s")}
    strict = loop.push(files)
    assert loop.once("heal", "--trust-commit", strict).code == 0
    loop.direct.change("greet", timeout="1s")

    done = loop.once("heal", "--trust-commit", strict)

    assert done.code == 3, done.all
    assert "nothing is healed: POLICY: policy short" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "1s"


@pytest.mark.parametrize(
    "bomb",
    [
        "size([1,2,3,4,5,6,7,8,9].map(a," * 9 + "[1,2,3,4,5,6,7,8,9]" + "))" * 9 + " > 0",
        doubled("[[1, 2]]", 28) + " == []",  # ends the process that judges
    ],
    ids=["steps", "memory"],
)
def test_a_rule_that_cannot_be_judged_stops_its_own_commit_alone(embedded: Loop, bomb: str) -> None:
    """The commit before it goes on being healed."""
    loop = embedded
    good = loop.push(policed())
    assert loop.once("apply").code == 0
    bombed = policed(SHORT, a_policy("bomb", bomb, kinds=["Action"]))
    loop.push({**bombed, "manifests/greet.yaml": an_action(timeout="9s")})
    loop.direct.change("greet", timeout="1s")

    done = loop.once("apply")

    assert done.code == 3, done.all
    assert "POLICY-ERROR" in done.err
    assert loop.applied() == good
    assert loop.held("greet")["spec"]["timeout"] == "10s", done.all


def test_wrong_policies_make_a_commit_invalid(embedded: Loop) -> None:
    """Their findings are said with their places."""
    loop = embedded
    good = loop.repository.head
    assert loop.once("apply").code == 0
    loop.push(policed("after.timeouts == ''"))

    done = loop.once("apply")

    assert done.code == 1, done.all
    assert "policies/all.yaml:1:" in done.err
    assert loop.applied() == good


HIDES = """\
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: (
    None if name.startswith("cel_expr_python") else find(name, *more)
)
"""
MISSING = "policies need the extra policy, which is not installed"


def without_extra(loop: Loop, mode: str) -> Ran:
    """Make a round in an interpreter that does not find the engine of policies."""
    hidden = loop.folder / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(HIDES, encoding="ascii")
    return loop.once(mode, PYTHONPATH=f"{hidden}:{ROOT}")


def test_a_commit_with_policies_is_not_applied_and_the_one_before_is_healed(
    embedded: Loop,
) -> None:
    """The message names what to install."""
    loop, good = embedded, embedded.repository.head
    assert loop.once("apply").code == 0
    tip = loop.push(policed())
    loop.direct.change("greet", timeout="1s")

    done = without_extra(loop, "apply")

    assert done.code == 1, done.all
    assert f"commit {tip} is not applied (invalid): {MISSING}" in done.err
    assert "Action acme/greet is healed" in done.err
    assert loop.held("greet")["spec"]["timeout"] == "20s"
    assert loop.applied() == good


def test_nothing_is_healed_past_policies_that_cannot_judge_it(embedded: Loop) -> None:
    """It is said why, also behind a commit that has none; with the extra, healing goes on."""
    loop, good = embedded, embedded.push(policed())
    assert loop.once("apply").code == 0
    loop.direct.change("greet", timeout="1s")
    for files in ({}, {"reconciler.yaml": None, "policies/all.yaml": None}):
        loop.push(files)
        done = without_extra(loop, "apply")

        assert done.code != 0, done.all
        why = f"commit {good}, which is on record as applied, is not healed towards: {MISSING}"
        assert why in done.err, done.all
        assert loop.held("greet")["spec"]["timeout"] == "1s"
        assert loop.applied() == good

    assert "is healed" in loop.once("heal").err
    assert loop.held("greet")["spec"]["timeout"] == "10s"


def test_what_is_left_to_others_is_neither_drift_nor_healed(embedded: Loop) -> None:
    """A field in metadata.ignore keeps what another writer set, over heals and new commits."""
    loop = embedded
    action = yaml.safe_load(an_action())
    action["metadata"]["ignore"] = ["timeout"]
    loop.push({"manifests/greet.yaml": yaml.safe_dump(action)})
    assert loop.once("apply").code == 0

    loop.direct.change("greet", timeout="1s")
    assert loop.once("heal").code == 0
    loop.direct.change("greet", timeout="2s", allowedToFail=True)
    healed = loop.once("heal")
    loop.push({"manifests/partner.yaml": an_idp(jwtEndpoint="https://partner.example.com/new")})
    applied = loop.once("apply")

    assert (healed.code, applied.code) == (0, 0), healed.all + applied.all
    spec = loop.held("greet")["spec"]
    assert (spec["timeout"], spec["allowedToFail"]) == ("2s", False)
