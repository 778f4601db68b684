"""The keyless set-ups of both forges, job by job: no secret of the service is anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.acceptance import test_github_jobs
from tests.acceptance.conftest import ORGANIZATION, an_action, write
from tests.acceptance.test_github_jobs import Team as GitHubTeam
from tests.acceptance.test_gitlab import APPLY, KEY, PLAN, REVIEW, approve, digest_of
from tests.acceptance.test_gitlab import Team as GitLabTeam
from tests.listening import listening
from tests.program import environment, program
from tests.release import wheel
from tests.runner.gitlab import COMMENT_TOKEN, REVIEW_TOKEN, Variable, gitlab_project
from tests.runner.id_tokens import IdTokens
from tests.runner.jobs import Runner
from tests.runner.site import REPOSITORY, Site
from tests.running import Server, a_free_port, running_server
from tests.signing import GITHUB, GITLAB
from tests.warm_client import warm_program

# Fixtures of these names.
site, installs = test_github_jobs.site, test_github_jobs.installs
WORDS = ("RECONCILER_TOKEN", "READ_TOKEN", "WRITE_TOKEN", "secrets.RECONCILER")


@dataclass(frozen=True)
class Written:
    """What ``init --keyless`` wrote, and the commands that it showed."""

    folder: Path
    commands: str


def written_by(folder: Path, forge: str) -> Written:
    made = program(folder)("init", f"--{forge}", "--keyless", "--from", str(wheel()))
    assert made.code == 0, made.all
    _, _, commands = made.out.partition("run once:\n")
    return Written(folder, commands)


@contextmanager
def a_service(folder: Path) -> Iterator[Server]:
    """Serve a store that knows its own address."""
    port = a_free_port()
    address = f"http://127.0.0.1:{port}"
    with running_server(folder, "--origin", address, "--listen", f"127.0.0.1:{port}") as server:
        yield server


def make_rules(written: Written, server: Server, tokens: IdTokens, **known: str) -> None:
    """Run the commands that were shown, in a shell, with the numbers of the project."""
    folder = server.store.parent
    script = written.commands
    for word, value in {"OWNER/NAME": REPOSITORY, "NUMBER": "1", "NAME": "acme"}.items():
        script = script.replace(word, value)
    (folder / "bin").mkdir()
    for name, text in (
        ("reconciler", warm_program()),
        ("gh", '#!/bin/sh\ncase "$*" in *owner*) echo 77 ;; *) echo 1001 ;; esac\n'),
    ):
        (folder / "bin" / name).write_text(text, encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    (folder / "keys.json").write_text(tokens.forge.keys, encoding="ascii")
    more = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "RECONCILER_SERVICE": f"sqlite:{server.store}",
        "RECONCILER_KEYS": "keys.json",
    }
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Made the rule") == 2, done.stderr


def logs_show_no_token(tokens: IdTokens, logs: str) -> None:
    assert tokens.signed
    assert not any(token in logs for token in tokens.signed)
    assert "rct_" not in logs


@pytest.fixture
def github(
    site: Site,
    tmp_path: Path,
    installs: Path,
) -> Iterator[tuple[GitHubTeam, IdTokens]]:
    """Return a team on GitHub whose environments have no secret."""
    folders = {name: tmp_path / name for name in ("server", "desk", "jobs", "written")}
    for folder in folders.values():
        folder.mkdir()
    written, tokens = written_by(folders["written"], "github"), IdTokens(GITHUB)
    with a_service(folders["server"]) as server, listening(tokens) as tokens.address:
        make_rules(written, server, tokens)
        runner = Runner(site, folders["jobs"], installs, program=warm_program())
        runner.id_tokens = tokens.variables
        team = GitHubTeam(site, runner, server, folders["desk"])
        team.git("init", "--quiet", "-b", "main")
        team.git("remote", "add", "origin", str(site.bare))
        sink = f"age:~/reconciler-secrets?recipient={team.key.to_public()}"
        for name in ("reconciler-plan", "reconciler-apply"):
            known = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": sink}
            site.variables[name] = known
        team.begin(written.folder)
        yield team, tokens


def test_jobs_of_github_plan_and_apply(github: tuple[GitHubTeam, IdTokens]) -> None:
    """The plan of a pull request reads, the apply of the merge writes; drift is looked for."""
    team, tokens = github
    team.commit("idea", hello=an_action("hello"))
    planned = team.pull_request("idea")
    merged = team.merge("idea")
    night = team.night()

    assert team.site.secrets == {}
    assert set(planned.results.values()) == {"success"}, planned.jobs["plan"].log
    assert set(merged.results.values()) == {"success"}, merged.jobs["apply"].log
    assert "Apply complete!" in merged.jobs["apply"].log
    assert set(night.results.values()) == {"success"}, night.results
    runs = (planned, merged, night)
    logs_show_no_token(tokens, "".join(job.log for run in runs for job in run.jobs.values()))
    last = team.server.events()[-1]
    assert last.writer == "trust:github-reconciler-apply"
    assert '"run": "' in last.context or '"run":"' in last.context


def test_a_job_of_github_that_changes_itself_cannot_apply(
    github: tuple[GitHubTeam, IdTokens],
) -> None:
    """A pull request may rewrite the workflow that it runs; its token says that it is one."""
    team, _ = github
    team.commit("evil", hello=an_action("hello"))
    path = team.desk / ".github" / "workflows" / "reconciler-plan.yml"
    text = path.read_text(encoding="utf-8")
    text = text.replace("environment: reconciler-plan", "environment: reconciler-apply")
    text = text.replace(
        'reconciler" plan manifests', 'reconciler" apply manifests --auto-approve; exit 9 #'
    )
    path.write_text(text, encoding="utf-8")
    team.push("evil")
    before = team.server.event_count()

    run = team.pull_request("evil")

    assert run.results["plan"] == "failure"
    assert "the service gives no token for this job" in run.jobs["plan"].log
    assert team.server.event_count() == before


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[tuple[GitLabTeam, IdTokens]]:
    """Return a team on GitLab whose project has no token of the service."""
    folder = tmp_path / "written"
    folder.mkdir()
    written, tokens = written_by(folder, "gitlab"), IdTokens(GITLAB)
    with a_service(tmp_path) as server, gitlab_project(tmp_path) as project:
        make_rules(written, server, tokens)
        project.id_token = tokens.token
        sink = f"age:reconciler-secrets?recipient={KEY.to_public()}"
        project.variables |= {
            "RECONCILER_SERVICE": Variable(server.address),
            "RECONCILER_SECRETS_TO": Variable(sink),
            "RECONCILER_REVIEW_TOKEN": Variable(
                REVIEW_TOKEN, protected=True, environment="reconciler-review"
            ),
            "RECONCILER_COMMENT_TOKEN": Variable(COMMENT_TOKEN, environment="reconciler-comment"),
        }
        team = GitLabTeam(project, server)
        team.branch("set-up")
        shutil.copytree(folder / ".gitlab", project.desk / ".gitlab")
        write(project.desk / ".gitlab-ci.yml", "include: {local: .gitlab/reconciler.gitlab-ci.yml}")
        write(team.manifests / "organization.yaml", ORGANIZATION)
        write(team.manifests / "greet.yaml", an_action())
        project.commit("Set the reconciler up")
        yield team, tokens


def test_jobs_of_gitlab_plan_and_apply(gitlab: tuple[GitLabTeam, IdTokens]) -> None:
    """The pipeline of a merge request reads, that of the protected branch writes."""
    team, tokens = gitlab
    team.merge()
    first = team.project.push()
    approved = approve(first, RECONCILER_DIGEST=digest_of(first))
    team.branch()
    write(team.manifests / "hello.yaml", an_action("hello"))
    team.project.commit()
    planned = team.project.merge_request()
    team.merge()
    merged = team.project.push()
    night = team.project.night()

    assert approved.status == "success", approved.log
    assert planned.ran[PLAN].status == "success", planned.ran[PLAN].log
    statuses = [merged.ran[name].status for name in (PLAN, REVIEW, APPLY)]
    assert statuses == ["success"] * 3, merged.ran[APPLY].log
    assert {ran.status for ran in night.ran.values()} == {"success"}
    logs = "".join(ran.log for run in (first, planned, merged, night) for ran in run.ran.values())
    logs_show_no_token(tokens, logs + approved.log)
    assert team.server.events()[-1].writer == "trust:gitlab-reconciler-apply"


@pytest.mark.parametrize("forge", ["github", "gitlab"])
@pytest.mark.parametrize("with_environments", [False, True])
def test_no_set_up_names_a_secret_of_the_service(
    tmp_path: Path, forge: str, *, with_environments: bool
) -> None:
    """And each environment has its rules: an editor for the job that applies, and nothing more."""
    flags = ["--environments"] if with_environments else []
    made = program(tmp_path)("init", f"--{forge}", "--keyless", "--from", str(wheel()), *flags)
    files = [path for path in tmp_path.rglob(f".{forge}/**/*.yml") if path.is_file()]
    rules = [line for line in made.out.splitlines() if "trust add" in line]
    environments = ["-staging", "-production"] if with_environments else [""]

    assert made.code == 0, made.all
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in WORDS), path
        assert "KEYLESS" in text
        if forge == "github":
            jobs = yaml.safe_load(text)["jobs"].values()
            for job in jobs:
                asks = job["permissions"].get("id-token") == "write"
                assert asks is ("RECONCILER_KEYLESS" in str(job))
    expected = {
        (f"{forge}-reconciler-{kind}{name}", role)
        for name in environments
        for kind, role in (("plan", "viewer"), ("apply", "editor"))
    }
    assert {(line.split()[3], line.split("--role ")[1].split()[0]) for line in rules} == expected


@pytest.mark.parametrize("folder", ["", "services/shop-2.0"])
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_names_with_hyphens_and_dots_change_nothing(
    tmp_path: Path, forge: str, folder: str
) -> None:
    """A job that plans is a viewer's, and no other job gets a token than those that sign in."""
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".git" / "HEAD", "ref: refs/heads/main\n")
    services = (f"  {name}: {{service: 'https://{name}.example.com'}}" for name in ("test-1", "b"))
    head = "apiVersion: reconciler/v1\nkind: Configuration\nenvironments:"
    write(tmp_path / folder / "reconciler.yaml", "\n".join([head, *services]))
    made = program(tmp_path / folder)(
        "init", f"--{forge}", "--keyless", "--from", str(wheel())
    )  # fmt: skip

    assert made.code == 0, made.all
    tree = "services-shop-2.0-" if folder else ""
    expected = {
        (f"{forge}-reconciler-{tree}{kind}-{name}", role)
        for name in ("test-1", "b")
        for kind, role in (("plan", "viewer"), ("apply", "editor"))
    }
    rules = [line for line in made.out.splitlines() if "trust add" in line]
    assert {(line.split()[3], line.split("--role ")[1].split()[0]) for line in rules} == expected
    if forge == "gitlab":
        (pipeline,) = (tmp_path / ".gitlab").glob("*.yml")
        text = re.sub(r"!reference \[(.*)\]", r"'\1'", pipeline.read_text(encoding="utf-8"))
        jobs = {name: job for name, job in yaml.safe_load(text).items() if isinstance(job, dict)}
        signed = {name for name, job in jobs.items() if "id_tokens" in job}
        assert signed == {name for name, job in jobs.items() if "RECONCILER_KEYLESS" in str(job)}
        assert {name.split()[-2] for name in signed} == {"plan", "apply", "drift"}


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_rules_are_for_the_default_branch(tmp_path: Path, forge: str) -> None:
    """As the jobs are."""
    subprocess.run(["git", "init", "--quiet", "-b", "trunk"], cwd=tmp_path, check=True)
    made = program(tmp_path)("init", f"--{forge}", "--keyless", "--from", str(wheel()))
    (editor,) = [line for line in made.out.splitlines() if "--role editor" in line]

    assert "trunk" in editor
    assert "main" not in editor


def test_keyless_is_for_ci(tmp_path: Path) -> None:
    ran = program(tmp_path)("init", "--keyless")

    assert (ran.code, "--keyless is for --github or --gitlab" in ran.err) == (1, True)
