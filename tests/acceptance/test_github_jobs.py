"""Every job of the GitHub workflows, run step by step: real Git, a real service, real installs."""

from __future__ import annotations

import base64
import copy
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pyrage
import pytest
import yaml

from tests.acceptance.conftest import ORGANIZATION, ROOT, an_action, an_application, write
from tests.architecture.test_house_rules import FILES
from tests.direct import Direct
from tests.program import program
from tests.release import wheel
from tests.runner import gh
from tests.runner.actions import QUICK
from tests.runner.jobs import Event, Run, Runner, is_started_by
from tests.runner.site import REPOSITORY, Site, a_site
from tests.running import Server, running_server
from tests.warm_client import warm_program

ME = ["-c", "user.name=A Person", "-c", "user.email=person@example.com",
      "-c", "commit.gpgsign=false", *QUICK]  # fmt: skip
TOOL = ".github/reconciler"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what ``init --github`` writes, for a team that may push to main."""
    folder = tmp_path_factory.mktemp("written")
    made = program(folder)("init", "--github", "--on-unreviewed", "apply", "--from", str(wheel()))
    assert made.code == 0, made.all
    return folder


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what ``init --github`` writes without more options."""
    folder = tmp_path_factory.mktemp("strict")
    assert program(folder)("init", "--github", "--from", str(wheel())).code == 0
    return folder


@pytest.fixture(scope="session")
def installs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which installations are kept, for all workers of a test session."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    (folder / "installs").mkdir(exist_ok=True)
    return folder / "installs"


@dataclass
class Team:
    """A repository on the site, the service behind it, and a clone to work in."""

    site: Site
    runner: Runner
    server: Server
    desk: Path
    key: Any = field(default_factory=pyrage.x25519.Identity.generate)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *ME, *arguments], cwd=self.desk, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, branch: str, **files: str | None) -> str:
        """Commit manifests to a branch and push it; None removes one. Return the commit."""
        self.git("checkout", "--quiet", "-B", branch)
        for name, text in files.items():
            path = self.desk / "manifests" / f"{name}.yaml"
            path.unlink() if text is None else write(path, text)
        return self.push(branch)

    def push(self, branch: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Change {branch}")
        self.git("push", "--quiet", "--force", "origin", branch)
        return self.git("rev-parse", "HEAD")

    def begin(self, written: Path) -> None:
        """Put the set-up and a small tree on main."""
        shutil.copytree(written, self.desk, dirs_exist_ok=True)
        self.commit("main", o=ORGANIZATION, greet=an_action())

    def pull_request(self, branch: str, number: int = 1, *, fork: bool = False) -> Run:
        """Run the workflow of a pull request of a branch against main."""
        head, base = self.git("rev-parse", branch), self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "--detach", base)
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", head)
        sha = self.git("rev-parse", "HEAD")
        self.git("push", "--quiet", "--force", "origin", f"{sha}:refs/pull/{number}/merge")
        self.git("checkout", "--quiet", branch)
        changed = self.git("diff", "--name-only", base, sha).splitlines()
        assert is_started_by(self.workflow("plan", sha), "pull_request", changed)
        whose = "stranger/identity" if fork else REPOSITORY
        proposed = {"sha": head, "ref": branch, "repo": {"full_name": whose}}
        self.site.keep_pull(number, proposed)
        payload = {"pull_request": {"number": number, "base": {"sha": base}, "head": proposed}}
        ref = f"refs/pull/{number}/merge"
        event = Event("pull_request", sha, payload, is_from_fork=fork, ref=ref)
        return self.runner.start("reconciler-plan", event)

    def queued(self, branch: str) -> Run:
        """Run the workflow of a merge queue that would merge a branch into main."""
        base = self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "--detach", base)
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", branch)
        sha, ref = self.git("rev-parse", "HEAD"), "refs/heads/gh-readonly-queue/main/pr-1"
        self.git("push", "--quiet", "--force", "origin", f"{sha}:{ref}")
        self.git("checkout", "--quiet", branch)
        assert is_started_by(self.workflow("plan", sha), "merge_group", ["any"])
        payload = {"merge_group": {"base_sha": base, "head_sha": sha}}
        return self.runner.start("reconciler-plan", Event("merge_group", sha, payload, ref=ref))

    def merge_to_main(self, branch: str) -> Event:
        """Merge a branch into main; return the event of that push."""
        before = self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", branch)
        self.git("push", "--quiet", "origin", "main")
        sha = self.git("rev-parse", "HEAD")
        self.site.merged(branch, sha)
        return Event("push", sha, {"before": before})

    def merge(self, branch: str) -> Run:
        """Merge a branch into main and run the workflow of that push."""
        event = self.merge_to_main(branch)
        before = event.payload["before"]
        changed = self.git("diff", "--name-only", before, event.sha).splitlines()
        assert is_started_by(self.workflow("apply", event.sha), "push", changed)
        return self.runner.start("reconciler-apply", event)

    def by_hand(self, digest: str, ref: str = "main") -> Run:
        """Start the workflow that applies by hand, with the digest of a plan."""
        sha = self.git("rev-parse", ref)
        assert is_started_by(self.workflow("apply", sha), "workflow_dispatch", ["any"])
        event = Event(
            "workflow_dispatch", sha, {"inputs": {"digest": digest}}, ref=f"refs/heads/{ref}"
        )
        return self.runner.start("reconciler-apply", event)

    def night(self) -> Run:
        """Run the workflow of the night on main."""
        sha = self.git("rev-parse", "main")
        assert is_started_by(self.workflow("drift", sha), "schedule", [])
        return self.runner.start("reconciler-drift", Event("schedule", sha))

    def workflow(self, name: str, sha: str) -> Any:
        text = self.git("show", f"{sha}:.github/workflows/reconciler-{name}.yml")
        return yaml.safe_load(text)

    def comments(self, number: int = 1) -> list[str]:
        return [comment["body"] for comment in self.site.comments.get(number, [])]

    def secrets(self, run: int, attempt: int = 1) -> dict[str, str]:
        """Return the client secrets of an artifact, by the name of the application."""
        files = self.site.artifacts[run, f"reconciler-secrets-{run}-{attempt}"]
        opened = [
            json.loads(pyrage.decrypt(base64.b64decode(content), [self.key]))
            for content in files.values()
        ]
        return {one["ref"]["name"]: one["client_secret"] for one in opened}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Return a site with an empty repository."""
    bare = tmp_path / "team.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", bare], check=True)
    for name, value in (("uploadpack.allowAnySHA1InWant", "true"), ("core.compression", "0")):
        subprocess.run(["git", "config", name, value], cwd=bare, check=True)
    with a_site(bare) as site:
        yield site


@pytest.fixture
def team(site: Site, tmp_path: Path, installs: Path) -> Iterator[Team]:
    """Return a team with an empty repository; its environments are set up as the files say."""
    folders = {name: tmp_path / name for name in ("server", "desk", "jobs")}
    for folder in folders.values():
        folder.mkdir()
    with running_server(folders["server"]) as server:
        runner = Runner(site, folders["jobs"], installs, program=warm_program())
        team = Team(site, runner, server, folders["desk"])
        team.git("init", "--quiet", "-b", "main")
        team.git("remote", "add", "origin", str(site.bare))
        sink = f"age:~/reconciler-secrets?recipient={team.key.to_public()}"
        for environment, token in (("reconciler-plan", "viewer"), ("reconciler-apply", "editor")):
            known = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": sink}
            site.variables[environment] = known
            site.secrets[environment] = {"RECONCILER_TOKEN": server.token(token)}
        yield team


def test_the_first_pull_request_is_validated_and_the_next_push_applied(
    team: Team, written: Path
) -> None:
    """Main has none of the files yet: no job with a token installs any, and none is red."""
    team.runner.program = ""  # each job runs what it has installed
    write(team.desk / "README.md", "Identity\n")
    team.push("main")
    shutil.copytree(written, team.desk, dirs_exist_ok=True)
    team.commit("begin", o=ORGANIZATION, web=an_application("web"))

    first = team.pull_request("begin")

    assert first.results == {
        "validate": "success", "plan": "success", "comment": "skipped", "verdict": "success",
    }  # fmt: skip
    assert "Merge .github/reconciler and the workflows" in first.jobs["plan"].summary
    assert "::notice title=Nothing is planned yet::" in first.jobs["plan"].log
    assert first.jobs["plan"].step("Install the tool").outcome == "skipped"
    assert first.jobs["plan"].step("Plan").outcome == "skipped"
    assert (team.comments(), team.site.artifacts) == ([], {})

    unseen = team.merge("begin")

    assert unseen.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "pull request #1 had other workflow or tool files" in unseen.jobs["review"].summary
    assert "## Plan: 1 to create" in unseen.jobs["plan"].summary
    assert "SECRET-NO-SINK" not in unseen.jobs["plan"].summary
    digest = unseen.jobs["plan"].outputs["digest"]
    command = f"gh workflow run reconciler-apply.yml --ref main -f digest={digest}"
    assert command in unseen.jobs["review"].summary

    applied = team.by_hand(digest)

    assert set(applied.results.values()) == {"success"}, applied.jobs["review"].log
    assert "Apply complete!" in applied.jobs["apply"].log
    assert set(team.secrets(applied.number)) == {"web"}
    assert set(team.site.artifacts) == {
        (2, "reconciler-plan"), (3, "reconciler-plan"), (3, "reconciler-secrets-3-1"),
    }  # fmt: skip


def test_a_pull_request_has_one_comment_and_a_blocked_plan_is_red(
    team: Team, written: Path
) -> None:
    """The comment is brought up to date. What the pull request brings never runs in a job."""
    team.runner.program = ""  # what is installed must not take the modules of the pull request
    team.begin(written)
    direct, organization = Direct(team.server.store), team.server.known.organization
    many = [f"a{number}" for number in range(10)]
    for name in many:
        direct("CreateAction", organization, name=name, script=f"function {name}() {{}}")
    team.commit("more", web=an_application("web"))
    first = team.pull_request("more")
    assert set(first.results.values()) == {"success"}, first.jobs["plan"].log
    (before,) = team.comments()
    # What the pull request would install, and what stands where Python and Git might find it.
    write(team.desk / TOOL / "requirements.txt", "./other.whl --hash=sha256:" + "0" * 64)
    for name in ("yaml.py", "manifests/yaml.py", "pip.py"):
        write(team.desk / name, "raise SystemExit('owned')")
    team.commit("more", **{name: an_action(name, timeout="1s") for name in many})

    second = team.pull_request("more")

    marker = f"<!-- reconciler-plan service={team.server.address} tree=default -->\n"
    assert before.startswith(f"{marker}## Plan: 2 to create")
    assert "SECRET-NO-SINK" not in before
    assert second.results == {
        "validate": "success", "plan": "failure", "comment": "success", "verdict": "failure",
    }  # fmt: skip
    (after,) = team.comments()
    assert after.startswith(marker)
    assert "**Blocked by 1 guard" in after
    assert "GUARD-MANY-UPDATES" in after
    assert "::error title=The plan is blocked::" in second.jobs["plan"].log

    team.git("checkout", "--quiet", "main", "--", TOOL)
    team.push("more")
    merged = team.merge("more")
    assert merged.results == {"plan": "failure", "review": "skipped", "apply": "skipped"}
    assert "**Blocked by 1 guard" in merged.jobs["plan"].summary
    assert "owned" not in merged.jobs["plan"].log


def test_the_check_is_red_where_the_comment_shows_the_plan_of_an_earlier_commit(
    team: Team, strict: Path
) -> None:
    """Whoever reads the comment would approve what is not merged."""
    team.begin(strict)
    team.commit("idea", greet=an_action(timeout="5s"))
    team.pull_request("idea")
    (before,) = team.comments()
    team.commit("idea", greet=an_action(timeout="9s"))
    team.runner.before["comment"] = team.site.artifacts.clear  # as a job that is cut short

    run = team.pull_request("idea")

    assert team.comments() == [before]
    assert (run.results["plan"], run.results["comment"]) == ("success", "failure")
    assert run.results["verdict"] == "failure"


def test_a_fork_is_validated_and_gets_no_secret(team: Team, written: Path) -> None:
    """Its manifests are judged by the team's own tool; nothing is planned or commented."""
    team.begin(written)
    team.commit("idea", greet=an_action(timeout="1 minute"))

    run = team.pull_request("idea", fork=True)

    assert run.results == {
        "validate": "failure", "plan": "skipped", "comment": "skipped", "verdict": "failure",
    }  # fmt: skip
    assert "::error file=manifests/greet.yaml,line=1" in run.jobs["validate"].log
    team.commit("idea", greet=an_action(timeout="10s"))
    run = team.pull_request("idea", fork=True)
    assert run.results == {
        "validate": "success", "plan": "skipped", "comment": "skipped", "verdict": "success",
    }  # fmt: skip
    assert team.comments() == []
    merged = team.merge("idea")
    assert merged.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "pull request #1 is from a fork" in merged.jobs["review"].summary


def test_a_plan_that_is_stale_when_it_is_approved_writes_nothing(team: Team, written: Path) -> None:
    """What was reviewed is applied, or nothing; and main must still have the same manifests."""
    team.begin(written)
    team.commit("more", web=an_application("web"))
    direct = Direct(team.server.store)
    made = {"name": "greet", "script": "function greet() {}", "timeout": "1s"}
    organization = team.server.known.organization
    team.runner.before["apply"] = lambda: direct("CreateAction", organization, **made)
    before = team.server.event_count()

    stale = team.merge("more")

    assert stale.results == {"plan": "success", "review": "success", "apply": "failure"}
    assert "PLAN-STALE" in stale.jobs["apply"].step("Apply").log
    assert team.server.event_count() == before + 1
    assert stale.jobs["apply"].step("Keep the encrypted secrets").outcome == "success"
    team.runner.before["apply"] = lambda: team.commit("main", greet=None)
    team.commit("later", spa=an_application("spa"))
    late = team.merge("later")
    assert late.results == {"plan": "success", "review": "success", "apply": "success"}
    assert late.jobs["apply"].step("Apply").outcome == "skipped"
    assert "main has other manifests by now" in late.jobs["apply"].log


def test_a_killed_apply_is_told_of_and_gone_on_with(team: Team, written: Path) -> None:
    """The service has the secret that the first job could not deliver; one application is made."""
    team.begin(written)
    team.commit("more", web=an_application("web"))
    team.runner.injected["Apply"] = {"RECONCILER_CRASHPOINT": "C6"}

    run = team.merge("more")

    assert run.results == {"plan": "success", "review": "success", "apply": "failure"}
    assert run.jobs["apply"].step("Keep the encrypted secrets").outcome == "success"
    assert (1, "reconciler-secrets-1-1") not in team.site.artifacts
    night = team.night()
    assert night.results == {"look": "success", "tell": "success"}
    (issue,) = team.site.issues
    assert "1 client secret is owed: reconciler apply delivers it" in issue["body"]
    assert "1 client secret is owed" in night.jobs["look"].summary

    team.runner.injected.clear()
    team.runner.run_failed_again(run)

    assert set(run.results.values()) == {"success"}, run.jobs["apply"].log
    assert "Every change of this plan is done already." in run.jobs["apply"].log
    assert "1 of 1 owed secrets delivered" in run.jobs["apply"].log
    assert set(team.secrets(1, attempt=2)) == {"web"}
    assert issue["state"] == "open"
    quiet = team.night()
    assert quiet.results == {"look": "success", "tell": "success"}
    assert (issue["state"], len(team.site.issues)) == ("closed", 1)
    assert issue["comment"] == "This has ended: no drift, and no secret is owed."


def test_a_cancelled_apply_keeps_what_it_delivered(team: Team, written: Path) -> None:
    """Each attempt has an artifact of its own; what was not acknowledged is delivered again."""
    team.begin(written)
    team.commit("more", web=an_application("web"))
    team.runner.injected["Apply"] = {"RECONCILER_CRASHPOINT": "C10"}
    team.runner.cancelled.add("Apply")

    run = team.merge("more")

    assert run.results == {"plan": "success", "review": "success", "apply": "cancelled"}
    kept = team.secrets(run.number)
    assert set(kept) == {"web"}
    team.runner.injected.clear()
    team.runner.cancelled.clear()
    team.commit("idea", greet=an_action(timeout="5s"))
    assert set(team.pull_request("idea").results.values()) == {"success"}
    assert "1 client secret is owed" in team.comments()[0]
    team.git("checkout", "--quiet", "main")

    team.runner.run_all_again(run)

    assert set(run.results.values()) == {"success"}, run.jobs["apply"].log
    told = run.jobs["plan"].outputs
    assert (told["changes"], told["owed"]) == ("false", "true")
    assert team.secrets(run.number, attempt=2) == kept


def test_what_was_reviewed_is_applied_and_any_other_plan_by_its_digest_only(
    team: Team, strict: Path
) -> None:
    """Between the review and the merge somebody else changed what would be written."""
    team.begin(strict)
    pushed = team.runner.start(
        "reconciler-apply", Event("push", team.git("rev-parse", "main"), {"before": "0" * 40})
    )
    assert pushed.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "Nothing was applied: it was pushed without a pull request." in (
        pushed.jobs["review"].summary
    )
    assert set(team.by_hand(pushed.jobs["plan"].outputs["digest"]).results.values()) == {"success"}
    team.commit("sooner", greet=an_action(timeout="5s"))
    reviewed = team.pull_request("sooner")
    assert "**Next:** Merge to apply this. CI then plans again" in team.comments()[0]

    same = team.merge("sooner")

    assert set(same.results.values()) == {"success"}, same.jobs["review"].log
    assert "This plan was reviewed in pull request #1." in same.jobs["review"].log
    digest = same.jobs["plan"].outputs["digest"]
    assert f"Digest: `{digest}`" in reviewed.jobs["plan"].summary

    team.commit("later", greet=an_action(timeout="6s"))
    team.pull_request("later", 2)
    Direct(team.server.store).change("greet", timeout="9s")
    team.site.comments[2][0]["body"] = "edited by somebody"
    before = team.server.event_count()
    other = team.merge("later")
    assert other.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "pull request #2 showed another plan, with the digest sha256:" in (
        other.jobs["review"].summary
    )
    assert '"9s"' in other.jobs["plan"].summary or "9s" in other.jobs["plan"].summary
    wrong = team.by_hand(digest)
    assert wrong.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "the digest that was given is not that of this plan" in (wrong.jobs["review"].summary)
    assert team.server.event_count() == before
    right = team.by_hand(other.jobs["plan"].outputs["digest"])
    assert set(right.results.values()) == {"success"}
    assert "Apply complete!" in right.jobs["apply"].log


def reviewing(
    team: Team, run: Run, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[int, str]]:
    """Return the comparison of a run, in this process: it returns its exit code and its summary.

    A job for each of many cases would take most of its time to start programs.
    """
    loader = SourceFileLoader("review", str(team.desk / TOOL / "review"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = spec_from_loader("review", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    monkeypatch.setattr(module, "_gh", gh_here)
    (step,) = [
        step for step in run.workflow["jobs"]["review"]["steps"] if step["name"] == "Compare"
    ]
    permissions = run.workflow["jobs"]["review"]["permissions"]
    known = {
        **step["env"],
        "BEFORE": run.event.payload["before"],
        "COMMIT": run.event.sha,
        "EVENT": run.event.name,
        "GH_STAND_IN": team.site.address,
        "GH_TOKEN": team.site.token_for(permissions),
        "GITHUB_STEP_SUMMARY": str(team.desk / "summary"),
        "RUNNER_INSTALLS": str(team.runner.installs),
        "REPOSITORY": REPOSITORY,
    }
    for name, value in known.items():
        monkeypatch.setenv(name, value)

    def review() -> tuple[int, str]:
        summary = write(team.desk / "summary", "")
        code = module.main(run.jobs["plan"].outputs["digest"])
        return code, summary.read_text(encoding="utf-8")

    return review


def gh_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Do what the stand-in for ``gh`` does, in this process."""
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            {"api": gh.api, "run": gh.run}[arguments[0]](list(arguments[1:]))
    except SystemExit as refused:
        return subprocess.CompletedProcess(arguments, 1, "", str(refused))
    return subprocess.CompletedProcess(arguments, 0, out.getvalue(), "")


def test_a_plan_counts_only_if_the_workflow_made_it_for_the_last_head(
    team: Team, strict: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may open pull requests and edit comments gets nothing applied that was not reviewed."""
    team.begin(strict)
    team.commit("idea", greet=an_action(timeout="5s"))
    planned = team.pull_request("idea")
    run = team.merge("idea")
    assert run.results["review"] == "success", run.jobs["review"].log
    site = team.site
    (genuine,) = [one for one in site.runs if one["id"] == planned.number]

    def another_run(**more: Any) -> None:
        site.runs.remove(genuine)
        site.runs.append({**genuine, **more})

    def another_last_run() -> None:
        site.runs.append({**genuine, "id": 99, "run_number": 99})

    def another_pull(base: str) -> None:
        site.keep_pull(7, site.pulls[1]["head"], base)

    def other_plan(text: str) -> None:
        content = base64.b64encode(text.encode()).decode()
        site.artifacts[planned.number, "reconciler-plan"] = {"plan.json": content}

    cases: list[tuple[str, Callable[[], object]]] = [
        ("the last commit of pull request #1 was not planned", lambda: another_run(head_sha="0")),
        ("was not planned", lambda: another_run(head_branch="other")),
        ("was not planned", lambda: another_run(event="push")),
        ("was not planned", lambda: another_run(path=".github/workflows/theirs.yml")),
        ("was not planned", lambda: another_run(head_repository={"full_name": "them/identity"})),
        ("was not planned", lambda: another_run(head_repository=None)),
        ("was not planned", lambda: another_run(created_at="2026-10-01T00:00:00Z")),
        ("the last run for pull request #1 kept no plan", another_last_run),
        ("kept no plan", lambda: site.artifacts.pop((planned.number, "reconciler-plan"))),
        ("kept no plan", lambda: other_plan("[]")),
        ("showed another plan, with the digest x", lambda: other_plan('{"digest": "x"}')),
        ("was proposed to another branch, too", lambda: another_pull("theirs")),
        ("proposed to another", lambda: site.events.update({1: ["base_ref_changed"]})),
        ("is from a fork", lambda: site.pulls[1]["head"].update(repo=None)),
        ("not the merge of one pull request", lambda: site.pulls.update({2: site.pulls[1]})),
    ]
    review = reviewing(team, run, monkeypatch)
    assert review() == (0, "")
    for told, happens in cases:
        before = copy.deepcopy((site.runs, site.artifacts, site.pulls, site.events))
        happens()
        code, summary = review()
        assert (code, told in summary) == (1, True), (told, summary)
        assert f"-f digest={run.jobs['plan'].outputs['digest']}" in summary
        site.runs, site.artifacts, site.pulls, site.events = before
        (genuine,) = [one for one in site.runs if one["id"] == planned.number]
    assert review() == (0, "")


@pytest.mark.parametrize("file", ["workflows/reconciler-plan.yml", "reconciler/review"])
def test_a_head_that_changes_what_judges_it_does_not_count(
    team: Team, strict: Path, file: str
) -> None:
    """Its run may have made up the plan, and a merge does not make it right afterwards."""
    team.begin(strict)
    path = team.desk / ".github" / file
    path.write_text(path.read_text(encoding="utf-8") + "# Changed.\n", encoding="utf-8")
    team.commit("idea", greet=an_action(timeout="5s"))
    assert team.pull_request("idea").results["verdict"] == "success"

    run = team.merge("idea")

    assert run.results == {"plan": "success", "review": "failure", "apply": "skipped"}
    assert "had other workflow or tool files than the target branch" in run.jobs["review"].summary


def test_only_main_can_be_applied_by_hand(team: Team, strict: Path) -> None:
    team.begin(strict)
    team.commit("idea", greet=an_action(timeout="5s"))

    run = team.by_hand("sha256:" + "0" * 64, "idea")

    assert set(run.results.values()) == {"skipped"}


def test_the_required_check_is_green_where_nothing_concerns_it(team: Team, strict: Path) -> None:
    """Also in a merge queue, and even where main has manifests that are not valid."""
    team.begin(strict)
    team.commit("main", greet=an_action(timeout="1 minute"))
    team.git("checkout", "--quiet", "-b", "readme")
    write(team.desk / "README.md", "Identity\n")
    team.push("readme")

    run = team.pull_request("readme")

    untouched = {
        "validate": "success", "plan": "skipped", "comment": "skipped", "verdict": "success",
    }  # fmt: skip
    assert run.results == untouched
    assert "Nothing here concerns the identity service." in run.jobs["validate"].summary
    assert run.jobs["validate"].step("Install").outcome == "skipped"
    assert run.workflow["jobs"]["verdict"]["name"] == "reconciler"
    assert team.queued("readme").results == untouched


def test_a_value_of_the_configuration_alone_is_planned_and_applied(
    team: Team, strict: Path
) -> None:
    """It changes what the manifests mean, and no file of them."""
    known = {"apiVersion": "reconciler/v1", "kind": "Configuration"}
    team.begin(strict)
    for branch, host in (("main", "shop.example.com"), ("idea", "other.example.net")):
        values = {"variables": {"host": {"type": "string", "default": host}}}
        write(team.desk / "reconciler.yaml", json.dumps({**known, **values}))
        web = an_application("web", redirectUris=["https://${host}/callback"])
        team.commit(branch, web=web)
    changed = team.git("diff", "--name-only", "main", "idea")

    proposed = team.pull_request("idea")
    merged = team.merge("idea")

    assert changed == "reconciler.yaml"
    assert set(proposed.results.values()) == {"success"}, proposed.jobs["plan"].log
    (comment,) = team.comments()
    assert "https://other.example.net/callback" in comment
    assert set(merged.results.values()) == {"success"}, merged.jobs["review"].log
    assert "Apply complete!" in merged.jobs["apply"].log


def test_a_merge_queue_plans_what_would_be_merged(team: Team, strict: Path) -> None:
    """With the token that reads, the tool of main, and no comment."""
    team.begin(strict)
    team.commit("idea", greet=an_action(timeout="5s"))

    right = team.queued("idea")
    team.commit("idea", greet=an_action(timeout="1 minute"))
    wrong = team.queued("idea")

    assert right.results == {
        "validate": "success", "plan": "success", "comment": "skipped", "verdict": "success",
    }  # fmt: skip
    assert "## Plan: 1 to create" in right.jobs["plan"].summary
    assert wrong.results["verdict"] == "failure"


def test_findings_take_the_place_of_the_comment_that_showed_a_plan(
    team: Team, strict: Path
) -> None:
    """The plan that a reviewer reads is never that of an earlier commit."""
    team.begin(strict)
    team.commit("idea", greet=an_action(timeout="5s"))
    team.pull_request("idea")
    (before,) = team.comments()
    team.commit("idea", greet=an_action(timeout="1 minute"))

    run = team.pull_request("idea")

    assert run.results == {
        "validate": "failure", "plan": "failure", "comment": "success", "verdict": "failure",
    }  # fmt: skip
    (after,) = team.comments()
    assert after.splitlines()[0] == before.splitlines()[0]
    assert "## Not planned: the manifests are not valid\n\n- 1 error\n" in after
    assert "manifests/greet.yaml:1:" in after
    assert "Digest" not in after
    assert "plan.json" not in team.site.artifacts[run.number, "reconciler-plan"]


def test_a_night_finds_drift_and_keeps_one_issue(team: Team, written: Path) -> None:
    """The same issue is brought up to date, by a job that cannot ask the service."""
    team.begin(written)
    applied = team.runner.start("reconciler-apply", Event("push", team.git("rev-parse", "main")))
    assert set(applied.results.values()) == {"success"}, applied.jobs["plan"].log
    direct = Direct(team.server.store)
    direct.change("greet", timeout="3s")
    team.night()
    direct.change("greet", timeout="4s")

    night = team.night()

    assert night.results == {"look": "success", "tell": "success"}
    (issue,) = team.site.issues
    assert issue["title"] == "The identity service has drift, or owes client secrets"
    assert "timeout" in issue["body"]
    assert "4s" in issue["body"]
    assert "ana" in issue["body"]
    assert f"actions/runs/{night.number})" in issue["body"]
    patch = team.site.artifacts[night.number, "reconciler-drift"]["accepted.patch"]
    assert '"timeout": "4s"' in base64.b64decode(patch).decode()


def test_the_action_installs_itself_from_its_own_checkout(
    site: Site, installs: Path, tmp_path: Path
) -> None:
    """By hashes, once for a job; the next step of the job plans with it."""
    for path in FILES:
        copy = tmp_path / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    for arguments in (
        ("init", "--quiet", "-b", "main"),
        ("add", "--all", "--force"),
        ("commit", "--quiet", "--message", "All"),
        ("push", "--quiet", str(site.bare), "main"),
    ):
        subprocess.run(["git", *ME, *arguments], cwd=tmp_path / "source", check=True)
    sha = site.git("rev-parse", "main")
    runner = Runner(site, tmp_path / "jobs", installs)

    run = runner.start("manifests", Event("pull_request", sha))

    assert run.results == {"plan": "success"}, run.jobs["plan"].log
    assert "## Plan: " in run.jobs["plan"].summary
    tool = tmp_path / "jobs" / "1-1-plan" / "temp" / "reconciler-tool"
    assert list(tool.glob("lib/python*/site-packages/reconciler/cli/main.py"))


def a_rule(rule: str) -> str:
    """Return a policy about applications."""
    spec = {"kinds": ["OidcApplication"], "rule": rule, "message": "No development mode."}
    head = {"apiVersion": "reconciler/v1", "kind": "Policy", "metadata": {"name": "no-dev-mode"}}
    return json.dumps({**head, "spec": spec})


def test_a_pull_request_is_judged_by_the_policies_of_its_target_branch(
    team: Team, tmp_path: Path
) -> None:
    """One that loosens a policy is planned and blocked by it; one that keeps it is applied."""
    made = tmp_path / "made"
    write(made / "policies" / "all.yaml", a_rule("!after.devMode"))
    assert program(made)("init", "--github", "--from", str(wheel())).code == 0
    locked = (made / ".github" / "reconciler" / "requirements.txt").read_text(encoding="utf-8")
    assert "cel-expr-python==" in locked
    team.begin(made)
    write(team.desk / "policies" / "all.yaml", a_rule("true"))
    team.commit("loose", web=an_application("web", devMode=True))

    refused = team.pull_request("loose")

    (comment,) = team.comments()
    assert refused.results["validate"] == "success", refused.jobs["validate"].log
    assert (refused.results["plan"], refused.results["verdict"]) == ("failure", "failure")
    assert "error POLICY: policy no-dev-mode: No development mode" in comment
    assert "POLICY-AFTER-MERGE: policy no-dev-mode is changed" in comment

    team.git("checkout", "--quiet", "main", "--", "policies")
    team.commit("loose", web=an_application("web"))
    assert set(team.pull_request("loose").results.values()) == {"success"}
    merged = team.merge("loose")
    assert set(merged.results.values()) == {"success"}, merged.jobs["apply"].log
