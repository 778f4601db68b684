"""Keyless login of the command, as a job of GitHub, of GitLab, and of something else."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from starlette.types import Receive, Scope, Send

from tests.listening import listening
from tests.program import Ran, Run, program, started
from tests.running import Server, a_free_port, running_server
from tests.signing import RULE, Forge, github_claims

ORGANIZATION = """\
apiVersion: reconciler/v1
kind: Organization
metadata: {name: acme}
"""
ACTION = """\
---
apiVersion: reconciler/v1
kind: Action
metadata: {organization: acme, name: greet}
spec: {script: "function greet() {}"}
"""
APPLICATION = """\
---
apiVersion: reconciler/v1
kind: Project
metadata: {organization: acme, name: shop}
---
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: web}
spec:
  redirectUris: ["https://web.example.com/cb"]
  appType: OIDC_APP_TYPE_WEB
  authMethodType: OIDC_AUTH_METHOD_TYPE_BASIC
"""
BEARER = "the-runner-alone-knows-this"


@dataclass
class Runner:
    """The address at which a runner of GitHub gives signed tokens to its job."""

    forge: Forge
    life: int = 300
    run_id: str = "4711"
    asked: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode())
        headers = dict(scope["headers"])
        is_job = headers.get(b"authorization") == f"bearer {BEARER}".encode()
        self.asked += query["audience"]
        now = self.forge.now
        claims = {"aud": query["audience"][0], "run_id": self.run_id}
        token = self.forge.token(**claims, exp=now + self.life, iat=now, nbf=now)
        body = json.dumps({"value": token, "count": 1}) if is_job else "{}"
        head = {
            "status": 200 if is_job else 401,
            "headers": [(b"content-type", b"application/json")],
        }
        await send({"type": "http.response.start", **head})
        await send({"type": "http.response.body", "body": body.encode()})


@dataclass
class Job:
    """A job beside a service with a rule for it."""

    server: Server
    address: str
    runner: Runner
    forge: Forge
    run: Run
    folder: Path
    variables: Mapping[str, str]
    rule: tuple[str, ...] = ()

    def __call__(self, *arguments: str, **more: str) -> Ran:
        where = ("--service", self.address, "--keyless")
        return self.run(*arguments, *where, **{"CI": "true", **more})

    def trust(self, *words: str) -> None:
        ran = self.run("trust", *words, "--service", f"sqlite:{self.server.store}")
        assert ran.code == 0, ran.all


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Serve a store with a rule for the applies of a repository of GitHub."""
    forge, port, run = Forge(), a_free_port(), program(tmp_path)
    runner, address = Runner(forge), f"http://127.0.0.1:{port}"
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(ORGANIZATION + ACTION, encoding="ascii")
    (tmp_path / "keys.json").write_text(forge.keys, encoding="ascii")
    with (
        listening(runner) as asked_at,
        running_server(tmp_path, "--origin", address, "--listen", f"127.0.0.1:{port}") as server,
    ):
        variables = {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{asked_at}/token?api-version=2",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": BEARER,
        }
        made = Job(server, address, runner, forge, run, tmp_path, variables)
        claims = [word for name in RULE for word in ("--claim", f"{name}={RULE[name]}")]
        rule = ("--preset", "github", "--role", "editor", "--keys", "keys.json")
        made.rule = (*rule, "--organization", "acme", *claims)
        made.trust("add", "apply", *made.rule)
        yield made


def test_a_job_of_github_applies_without_any_secret(job: Job) -> None:
    """The signed token is made for the service that was named, and nothing of it is kept."""
    applied = job("apply", "--auto-approve", **job.variables)
    planned = job("plan", "--detailed-exitcode", **job.variables, RECONCILER_KEYLESS="1")

    assert applied.code == 0, applied.all
    assert planned.code == 0, planned.all
    assert set(job.runner.asked) == {job.address}
    signed = job.forge.token().split(".")[0]  # every token of the forge begins like this
    kept = [path for path in job.folder.rglob("*") if path.is_file()]
    assert [path for path in kept if signed in path.read_text("utf-8", "replace")] == []
    assert [path for path in kept if "rct_" in path.read_text("utf-8", "replace")] == []
    assert signed not in applied.all + planned.all
    assert "rct_" not in applied.all + planned.all


def test_a_job_elsewhere_has_its_token_in_a_variable_or_a_file(job: Job) -> None:
    """GitLab gives one for the whole job; a file may be replaced by a newer one."""
    token = job.forge.token(aud=job.address)
    (job.folder / "token").write_text(token + "\n", encoding="ascii")

    by_variable = job("plan", RECONCILER_ID_TOKEN=token)
    by_file = job("plan", "--id-token-file", "token")
    nonsense = {"RECONCILER_ID_TOKEN": "hello"}
    both = job("plan", "--id-token-file", "token", **nonsense)

    assert [by_variable.code, by_file.code, both.code] == [0, 0, 0], by_variable.all + by_file.all
    assert job.runner.asked == []


def test_a_token_beside_it_is_a_usage_error(job: Job) -> None:
    """A job that needs no secret must not have one."""
    (job.folder / "token").write_text("x", encoding="ascii")
    (job.folder / "token").chmod(0o600)
    given = [
        job("plan", **{**job.variables, "RECONCILER_TOKEN": "x"}),
        job("plan", "--token-file", "token", **job.variables),
        job("plan", "--key-file", "token", **job.variables),
    ]
    alone = job.run("plan", "--service", job.address, "--id-token-file", "token")
    nowhere = job("plan")

    for ran in given:
        assert (ran.code, "are two ways to sign in" in ran.err) == (1, True), ran.all
    assert (alone.code, "--id-token-file is for keyless login" in alone.err) == (1, True)
    assert (nowhere.code, "found no signed token of this job" in nowhere.err) == (1, True)
    assert "id-token: write" in nowhere.err
    assert job.runner.asked == []


def test_no_token_is_made_for_a_service_that_calls_itself_otherwise(job: Job) -> None:
    """A service could have one made for another, and use it there."""
    other = f"http://localhost:{a_free_port()}"
    port = other.rpartition(":")[2]
    with running_server(
        job.folder / "manifests", "--origin", "https://id.example.com", "--listen",
        f"127.0.0.1:{port}",
    ):  # fmt: skip
        ran = job.run("plan", "--service", other, "--keyless", **job.variables)

    assert (ran.code, "calls itself https://id.example.com" in ran.err) == (7, True), ran.all
    assert job.runner.asked == []


def test_a_refused_job_learns_where_the_reason_is(job: Job) -> None:
    """And one that may not ask for a token learns which permission it lacks."""
    job.trust("remove", "apply")
    refused = job("plan", **job.variables)
    unknown = job("plan", **{**job.variables, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"})

    assert refused.code == unknown.code == 7
    assert "the service gives no token for this job (status 400)" in refused.err
    assert "The log of the service says why" in refused.err
    assert "`permissions: id-token: write`" in unknown.err


@pytest.mark.slow
def test_an_apply_outlives_its_tokens(job: Job) -> None:
    """Each counts for two seconds; at two requests a second the apply takes longer."""
    job.runner.life = 2
    applied = job("apply", "--auto-approve", "--max-rps", "2", **job.variables)

    assert applied.code == 0, applied.all
    assert len(job.runner.asked) > 1
    assert job("plan", "--detailed-exitcode", **job.variables).code == 0


@pytest.mark.parametrize("run_id", ["4711", "4712"])
def test_an_apply_that_was_killed_goes_on_with_another_token(job: Job, run_id: str) -> None:
    """By a second attempt, or by another run: nothing is made twice, and no secret is lost."""
    with (job.folder / "manifests" / "all.yaml").open("a", encoding="ascii") as file:
        file.write(APPLICATION)
    arguments = ("apply", "--auto-approve", "--secrets-to", "file:secrets")
    killed = job(*arguments, **job.variables, RECONCILER_CRASHPOINT="C6")
    if run_id == "4712":
        shutil.rmtree(job.folder / ".reconciler")  # another machine
    job.runner.run_id = run_id

    again = job(*arguments, **job.variables)

    assert killed.code != 0
    assert again.code == 0, again.all
    assert [path for path in job.folder.glob("secrets/**/*web*") if path.is_file()]
    made = [event.type for event in job.server.events() if event.type.endswith(".added")]
    assert made.count("application.added") == made.count("action.added") == 1, made
    assert job("plan", "--detailed-exitcode", **job.variables).code == 0


def test_a_plan_of_a_rule_that_was_removed_is_not_applied(job: Job) -> None:
    signed = job.forge.signed(github_claims(job.forge.now, aud=job.address))
    held = job("plan", "--out", "saved.plan", RECONCILER_ID_TOKEN=signed)
    job.trust("remove", "apply")
    ran = job("apply", "saved.plan", RECONCILER_ID_TOKEN=signed)

    assert (held.code, ran.code) == (0, 7), held.all + ran.all


@pytest.mark.slow
def test_a_rule_that_is_removed_during_an_apply_ends_it(job: Job) -> None:
    """Its token stops at once. The apply waits a second for each request, so it is not over."""
    arguments = ("--service", job.address, "--keyless", "--auto-approve", "--max-rps", "1")
    variables = {**job.variables, "CI": "true"}
    with started(job.folder, "apply", *arguments, **variables) as applying:
        deadline = time.monotonic() + 60
        while not job.runner.asked:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        job.trust("remove", "apply")
        out, err = applying.communicate(120)
        code = applying.wait()
    job.trust("add", "apply", *job.rule)
    again = job("apply", "--auto-approve", **job.variables)

    assert code in {5, 7}, out + err
    assert "the service gives no token for this job" in err or "was removed" in err, err
    assert again.code == 0, again.all
    assert job("plan", "--detailed-exitcode", **job.variables).code == 0
