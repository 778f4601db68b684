"""The pipeline that ``init --gitlab`` writes, executed job by job against a served service."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyrage
import pytest
import yaml

from tests.acceptance.conftest import ORGANIZATION, ROOT, an_action, an_application, write
from tests.program import program
from tests.runner.gitlab import COMMENT_TOKEN, Pipeline, Project, Variable, gitlab_project
from tests.running import Server, running_server
from tests.sinks import counted, hashes

VALIDATE, PLAN, COMMENT, APPLY, DRIFT = (
    f"reconciler {name}" for name in ("validate", "plan", "comment", "apply", "drift")
)
KEY = pyrage.x25519.Identity.generate()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the command writes."""
    folder = tmp_path_factory.mktemp("written")
    assert program(folder)("init", "--gitlab").code == 0
    return folder / ".gitlab"


@dataclass(frozen=True)
class Team:
    """A project that is set up as the docs say, and its service."""

    project: Project
    server: Server

    @property
    def manifests(self) -> Path:
        return self.project.desk / "manifests"

    def branch(self, name: str = "idea") -> None:
        self.project.git("checkout", "--quiet", "-B", name, "main")

    def merge(self) -> None:
        branch = self.project.git("branch", "--show-current")
        self.project.git("checkout", "--quiet", "main")
        self.project.git("merge", "--quiet", "--squash", branch)
        self.project.commit(f"Merge {branch}")

    def our_notes(self) -> list[str]:
        return [note["body"] for note in self.project.notes if note["author"]["id"] == 4]


@pytest.fixture
def team(tmp_path: Path, written: Path) -> Iterator[Team]:
    """Return a team whose branch has the set-up and its first manifests; main has neither."""
    with running_server(tmp_path) as server, gitlab_project(tmp_path) as project:
        project.variables |= {
            "RECONCILER_SERVICE": Variable(server.address),
            "RECONCILER_SECRETS_TO": Variable(
                f"age:reconciler-secrets?recipient={KEY.to_public()}"
            ),
            "RECONCILER_READ_TOKEN": Variable(
                server.token("viewer"), environment="reconciler-plan"
            ),
            "RECONCILER_WRITE_TOKEN": Variable(
                server.token("editor"), protected=True, environment="reconciler-apply"
            ),
            "RECONCILER_COMMENT_TOKEN": Variable(COMMENT_TOKEN, environment="reconciler-comment"),
        }
        made = Team(project, server)
        made.branch("set-up")
        shutil.copytree(written, project.desk / ".gitlab")
        write(project.desk / ".gitlab-ci.yml", "include: {local: .gitlab/reconciler.gitlab-ci.yml}")
        write(made.manifests / "organization.yaml", ORGANIZATION)
        write(made.manifests / "greet.yaml", an_action())
        project.commit("Set the reconciler up")
        yield made
        tokens = (server.token("viewer"), server.token("editor"), COMMENT_TOKEN)
        logs = [path.read_text(encoding="utf-8") for path in tmp_path.glob("job-*/log")]
        assert not any(token in log for token in tokens for log in logs)


@pytest.fixture
def merged(team: Team) -> Team:
    """Return the team with its set-up on main, and nothing applied yet."""
    team.merge()
    team.branch()
    return team


def statuses(pipeline: Pipeline) -> dict[str, str]:
    """Return the status of each job."""
    return {name.removeprefix("reconciler "): one.status for name, one in pipeline.ran.items()}


def opened(artifacts: Mapping[str, bytes]) -> dict[str, str]:
    """Return the secrets that our key opens, by client id."""
    files = [json.loads(pyrage.decrypt(content, [KEY])) for content in artifacts.values()]
    return {one["client_id"]: one["client_secret"] for one in files}


def test_the_first_merge_request_is_validated_and_says_what_to_merge(team: Team) -> None:
    """The target branch has no tool yet; a job with a token installs nothing."""
    pipeline = team.project.merge_request()

    assert statuses(pipeline) == {"validate": "success", "plan": "success", "comment": "success"}
    assert "The manifests are valid." in pipeline.ran[VALIDATE].log
    assert pipeline.ran[VALIDATE].installed_from.endswith("/builds/project/.gitlab/reconciler")
    assert "Merge .gitlab first; the next\nmerge request is planned." in pipeline.ran[PLAN].log
    assert pipeline.ran[PLAN].installed_from == ""
    assert "fatal" not in pipeline.ran[VALIDATE].log + pipeline.ran[PLAN].log
    assert team.our_notes() == []


def test_what_is_merged_is_planned_approved_and_applied(team: Team) -> None:
    """With a token each that does no more than its job."""
    write(team.manifests / "web.yaml", an_application("web"))
    team.project.commit("An application")
    team.merge()

    pipeline = team.project.push()
    assert statuses(pipeline) == {"plan": "success", "apply": "manual"}
    assert "SECRET-NO-SINK" not in pipeline.ran[PLAN].log
    applied = pipeline.play(APPLY)

    assert applied.status == "success", applied.log
    assert hashes(opened(applied.artifacts)) == counted(team.server.store)
    assert len(applied.artifacts) == 1
    assert not any(secret in applied.log for secret in opened(applied.artifacts).values())
    again = pipeline.play(APPLY)
    assert again.status == "success", again.log
    assert applied.artifacts_name != again.artifacts_name
    write(team.manifests / "note.yaml", "# A comment.\n" + an_action())
    (team.manifests / "greet.yaml").unlink()
    team.project.commit("Move a file")
    assert "Nothing to apply." in team.project.push().play(APPLY).log


def test_a_merge_request_has_one_comment_for_each_service_and_tree(merged: Team) -> None:
    """Each pipeline brings it up to date, with the tool of the target branch."""
    write(merged.project.desk / ".gitlab" / "reconciler" / "requirements.txt", "not the tool\n")
    write(merged.manifests / "web.yaml", an_application("web"))
    merged.project.commit("An application, and another tool")

    pipeline = merged.project.merge_request()

    assert statuses(pipeline) == {"validate": "success", "plan": "success", "comment": "success"}
    (note,) = merged.our_notes()
    assert "2 to create" in note
    write(merged.manifests / "api.yaml", an_application("api"))
    merged.project.commit("Another application")
    merged.project.merge_request()
    (note,) = merged.our_notes()
    assert "3 to create" in note
    plan = pipeline.ran[PLAN]
    _, _, rest = plan.artifacts["reconciler-out/plan.md"].partition(b"\n")
    theirs = b"<!-- reconciler-plan service=x tree=theirs -->\n" + rest
    pipeline.ran[PLAN] = replace(plan, artifacts={"reconciler-out/plan.md": theirs})
    assert pipeline.play(COMMENT).status == "success"
    assert len(merged.our_notes()) == 2


def test_a_merge_request_from_a_fork_is_validated_without_a_token(merged: Team) -> None:
    """Whoever runs the pipeline: no job that has a token is in it."""
    write(merged.manifests / "greet.yaml", an_action(timeout="1 minute"))
    merged.project.commit("Greet")

    pipeline = merged.project.merge_request(fork=True)

    assert statuses(pipeline) == {"validate": "failed"}
    assert "manifests/greet.yaml:1:" in pipeline.ran[VALIDATE].log
    installed = Path(pipeline.ran[VALIDATE].installed_from)
    assert installed.relative_to(merged.project.folder).parts[1] == "tmp"


def test_a_blocked_plan_is_red_and_told(merged: Team) -> None:
    """In the merge request, and on main, where it cannot be applied."""
    server = merged.server
    run = program(merged.project.folder)
    for number in range(12):
        write(merged.manifests / f"a{number}.yaml", an_action(f"a{number}"))
    known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("editor")}
    assert run("apply", str(merged.manifests), "--auto-approve", **known).code == 0
    for number in range(12):
        write(merged.manifests / f"a{number}.yaml", an_action(f"a{number}", timeout="1s"))
    merged.project.commit("All of them")

    pipeline = merged.project.merge_request()

    assert statuses(pipeline) == {"validate": "success", "plan": "failed", "comment": "success"}
    (note,) = merged.our_notes()
    assert "### Blocked" in note
    merged.merge()
    assert statuses(merged.project.push()) == {"plan": "failed", "apply": "skipped"}


def test_a_stale_plan_is_refused(merged: Team) -> None:
    """What was approved is not what would happen now."""
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    merged.project.commit("Greet sooner")
    merged.merge()
    pipeline = merged.project.push()
    server = merged.server
    known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("editor")}
    theirs = write(merged.project.folder / "theirs" / "greet.yaml", an_action(timeout="9s"))
    run = program(merged.project.folder)
    assert run("apply", str(theirs), "--tree", "theirs", "--auto-approve", **known).code == 0
    before = server.event_count()

    applied = pipeline.play(APPLY)

    assert applied.status == "failed"
    assert "PLAN-STALE" in applied.log
    assert server.event_count() == before
    write(merged.manifests / "greet.yaml", an_action(timeout="6s"))
    merged.project.commit("Later")
    late = pipeline.play(APPLY)
    assert (late.status, "main has other manifests by now" in late.log) == ("success", True)


@pytest.mark.parametrize("point", ["C6", "C10"])
def test_a_killed_apply_is_run_again_and_loses_nothing(merged: Team, point: str) -> None:
    """What the killed job delivered is in its artifact, and the rest is owed by the service.

    Where the runner is gone with its folder, nothing was delivered yet.
    """
    for name in ("web", "api"):
        write(merged.manifests / f"{name}.yaml", an_application(name))
    merged.project.commit("Two applications")
    merged.merge()
    pipeline = merged.project.push()

    is_lost = point == "C6"
    killed = pipeline.play(APPLY, is_lost=is_lost, RECONCILER_CRASHPOINT=point)
    assert killed.status == "failed"
    assert len(counted(merged.server.store)) > 0
    if is_lost:
        assert "owed" in merged.project.push().ran[PLAN].log
        assert "owed" in merged.project.night().ran[DRIFT].log
    again = pipeline.play(APPLY)

    assert again.status == "success", again.log
    assert bool(killed.artifacts) is not is_lost
    kept = opened(killed.artifacts) | opened(again.artifacts)
    assert hashes(kept) == counted(merged.server.store)
    assert len(kept) == 2


def test_a_night_with_drift_is_red_and_says_who(merged: Team) -> None:
    """And a quiet one is green."""
    merged.project.git("checkout", "--quiet", "main")
    pipeline = merged.project.push()
    assert pipeline.play(APPLY).status == "success"
    assert statuses(merged.project.night()) == {"drift": "success"}
    server = merged.server
    known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("admin")}
    theirs = write(merged.project.folder / "theirs" / "greet.yaml", an_action(timeout="9s"))
    run = program(merged.project.folder)
    assert run("apply", str(theirs), "--tree", "theirs", "--auto-approve", **known).code == 0

    night = merged.project.night()

    assert statuses(night) == {"drift": "failed"}
    report = night.ran[DRIFT].artifacts["reconciler-out/drift.md"].decode()
    assert "greet" in report
    assert "admin" in report


def test_a_protected_read_token_is_not_given_to_merge_requests(merged: Team) -> None:
    """The docs say so; the message helps who did not read them."""
    name = "RECONCILER_READ_TOKEN"
    known = merged.project.variables[name]
    merged.project.variables[name] = Variable(known.value, protected=True)
    write(merged.manifests / "web.yaml", an_application("web"))
    merged.project.commit("An application")

    pipeline = merged.project.merge_request()

    assert statuses(pipeline)["plan"] == "failed"
    assert "RECONCILER_TOKEN is set and empty" in pipeline.ran[PLAN].log
    assert "There is no plan to comment on." in pipeline.ran[COMMENT].log


def test_the_guide_lists_what_to_set_up_and_the_image_can_be_given_a_digest(written: Path) -> None:
    """A digest that was not verified is never written: the line that prints it is there instead."""
    text = (written / "reconciler.gitlab-ci.yml").read_text(encoding="utf-8")
    image = yaml.safe_load(text)[".reconciler"]["image"]

    guide = (ROOT / "docs" / "ci-gitlab.md").read_text(encoding="utf-8")
    variables = set(re.findall(r"RECONCILER_\w+", text)) - {"RECONCILER_TOKEN"}
    assert {name for name in variables if f"| `{name}` |" not in guide} == set()
    assert image.count(".") == 2
    assert f"imagetools inspect {image} " in text
