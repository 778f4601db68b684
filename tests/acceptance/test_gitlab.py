"""The pipeline that ``init --gitlab`` writes, executed job by job against a served service."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyrage
import pytest
import yaml

from tests.acceptance.conftest import ORGANIZATION, ROOT, an_action, an_application, write
from tests.direct import Direct
from tests.program import program
from tests.release import wheel
from tests.runner.gitlab import (
    COMMENT_TOKEN,
    REVIEW_TOKEN,
    Pipeline,
    Project,
    Ran,
    Variable,
    gitlab_project,
)
from tests.running import Server, running_server
from tests.sinks import counted, hashes

VALIDATE, PLAN, COMMENT, REVIEW, APPLY, APPROVE, DRIFT = (
    f"reconciler {name}"
    for name in ("validate", "plan", "comment", "review", "apply", "approve", "drift")
)
KEY = pyrage.x25519.Identity.generate()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the command writes."""
    folder = tmp_path_factory.mktemp("written")
    assert program(folder)("init", "--gitlab", "--from", str(wheel())).code == 0
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
        head = self.project.git("rev-parse", "HEAD")
        self.project.git("checkout", "--quiet", "main")
        self.project.git("merge", "--quiet", "--squash", branch)
        self.project.merged(head, self.project.commit(f"Merge {branch}"))

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
            "RECONCILER_REVIEW_TOKEN": Variable(
                REVIEW_TOKEN, protected=True, environment="reconciler-review"
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
        tokens = (server.token("viewer"), server.token("editor"), COMMENT_TOKEN, REVIEW_TOKEN)
        logs = [path.read_text(encoding="utf-8") for path in tmp_path.glob("job-*/log")]
        assert not any(token in log for token in tokens for log in logs)


@pytest.fixture
def merged(team: Team) -> Team:
    """Return the team with its set-up on main, and nothing applied yet."""
    team.merge()
    team.branch()
    return team


def digest_of(pipeline: Pipeline) -> str:
    """Return the digest of the plan of a pipeline."""
    return str(json.loads(pipeline.ran[PLAN].artifacts["reconciler-out/plan.json"])["digest"])


def approve(pipeline: Pipeline, *, is_lost: bool = False, **more: str) -> Ran:
    """Start the job that applies a plan by its digest, which is that of the pipeline."""
    given = {"RECONCILER_DIGEST": digest_of(pipeline), **more}
    return pipeline.play(APPROVE, is_lost=is_lost, **given)


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
    """With a token each that does no more than its job; nobody has planned the first one."""
    write(team.manifests / "web.yaml", an_application("web"))
    team.project.commit("An application")
    team.merge()

    pipeline = team.project.push()
    assert statuses(pipeline) == {
        "plan": "success", "review": "failed", "apply": "skipped", "approve": "manual",
    }  # fmt: skip
    assert "SECRET-NO-SINK" not in pipeline.ran[PLAN].log
    applied = approve(pipeline)

    assert applied.status == "success", applied.log
    assert hashes(opened(applied.artifacts)) == counted(team.server.store)
    assert len(applied.artifacts) == 1
    assert not any(secret in applied.log for secret in opened(applied.artifacts).values())
    again = approve(pipeline)
    assert again.status == "success", again.log
    assert applied.artifacts_name != again.artifacts_name
    write(team.manifests / "note.yaml", "# A comment.\n" + an_action())
    (team.manifests / "greet.yaml").unlink()
    team.project.commit("Move a file")
    nothing = team.project.push()
    assert "The plan changes nothing." in nothing.ran[REVIEW].log
    assert "Nothing to apply." in nothing.ran[APPLY].log


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


def test_what_was_reviewed_is_applied_and_any_other_plan_by_its_digest_only(merged: Team) -> None:
    """Between the review and the merge somebody else changed what would be written."""
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    merged.project.commit("Greet sooner")
    reviewed = merged.project.merge_request()
    assert "Merge to apply this. CI then plans again" in merged.our_notes()[0]
    merged.merge()

    same = merged.project.push()

    assert statuses(same) == {
        "plan": "success", "review": "success", "apply": "success", "approve": "manual",
    }  # fmt: skip
    assert "This plan was reviewed in merge request !7." in same.ran[REVIEW].log
    assert "Apply complete!" in same.ran[APPLY].log
    assert digest_of(same) == digest_of(reviewed)

    merged.branch("later")
    write(merged.manifests / "greet.yaml", an_action(timeout="6s"))
    merged.project.commit("Greet later")
    merged.project.merge_request()
    Direct(merged.server.store).change("greet", timeout="9s")
    merged.project.notes[-1]["body"] = "edited by somebody"
    before = merged.server.event_count()
    merged.merge()
    other = merged.project.push()
    assert statuses(other) == {
        "plan": "success", "review": "failed", "apply": "skipped", "approve": "manual",
    }  # fmt: skip
    assert "merge request !7 showed another plan, with the digest sha256:" in other.ran[REVIEW].log
    assert f"`reconciler approve` with the variable\n  RECONCILER_DIGEST = {digest_of(other)}" in (
        other.ran[REVIEW].log
    )
    assert "Give the variable RECONCILER_DIGEST." in other.play(APPROVE).log
    wrong = other.play(APPROVE, RECONCILER_DIGEST=digest_of(same))
    assert (wrong.status, "no longer the one that was approved" in wrong.log) == ("failed", True)
    assert merged.server.event_count() == before
    assert approve(other).status == "success"


def test_a_plan_counts_only_if_the_pipeline_made_it_for_the_last_head(merged: Team) -> None:
    """Who may open merge requests and edit comments gets nothing applied that was not reviewed."""
    project = merged.project
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    project.commit("Greet sooner")
    planned = project.merge_request()
    merged.merge()
    run = project.push()
    assert run.ran[REVIEW].status == "success", run.ran[REVIEW].log
    (genuine,) = [one for one in project.pipelines if one["id"] == planned.number]
    job, (request,) = genuine["jobs"][PLAN], project.merge_requests

    def other_plan(text: str) -> None:
        project.artifacts[job] = {"reconciler-out/plan.json": text.encode()}

    another_ref = "refs/heads/idea"
    cases: list[tuple[str, Callable[[], object]]] = [
        ("last commit of merge request !7 was not planned", lambda: genuine.update(sha="0")),
        ("was not planned", lambda: genuine.update(ref=another_ref)),
        ("was not planned", lambda: genuine.update(source="web")),
        ("was not planned", lambda: genuine.update(project_id=2)),
        ("kept no plan", lambda: project.pipelines.append({**genuine, "id": 999, "jobs": {}})),
        ("kept no plan", lambda: project.artifacts.update({job: {}})),
        ("kept no plan", lambda: other_plan("[]")),
        ("another plan, with the digest x", lambda: other_plan('{"digest": "x"}')),
        ("is from a fork", lambda: request.update(source_project_id=2)),
        ("pushed without a merge request", lambda: request.update(state="opened")),
        ("pushed without a merge request", lambda: request.update(target_branch="theirs")),
        ("not the merge of one", lambda: project.merge_requests.append(request)),
        (
            "RECONCILER_REVIEW_TOKEN is not set",
            lambda: project.variables.pop("RECONCILER_REVIEW_TOKEN"),
        ),
    ]
    for told, happens in cases:
        state: list[dict[Any, Any]] = [
            genuine, request, project.variables, cast("dict[Any, Any]", project.artifacts),
        ]  # fmt: skip
        kept = [dict(each) for each in state]
        happens()
        ran = run.play(REVIEW)
        assert (ran.status, told in ran.log) == ("failed", True), (told, ran.log)
        project.pipelines[:] = [one for one in project.pipelines if one["id"] != 999]
        del project.merge_requests[1:]
        for now, then in zip(state, kept, strict=True):
            now.clear()
            now.update(then)
    assert run.play(REVIEW).status == "success"


@pytest.mark.parametrize("file", [".gitlab/reconciler/review", ".gitlab-ci.yml", "build.yml"])
def test_a_head_that_changes_what_judges_it_does_not_count(merged: Team, file: str) -> None:
    """Not even by a file of its own that the configuration of the project includes."""
    project = merged.project
    includes = "include: [{local: .gitlab/reconciler.gitlab-ci.yml}, {local: build.yml}]\n"
    project.git("checkout", "--quiet", "main")
    write(project.desk / ".gitlab-ci.yml", includes)
    write(project.desk / "build.yml", "build: {script: [make]}\n")
    project.commit("Build")
    merged.branch()
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    path = project.desk / file
    path.write_text(path.read_text(encoding="utf-8") + "# Changed.\n", encoding="utf-8")
    project.commit("Greet sooner")
    assert statuses(project.merge_request())["plan"] == "success"
    merged.merge()

    run = project.push()

    assert (run.ran[REVIEW].status, run.ran[APPLY].status) == ("failed", "skipped")
    assert "had another CI configuration than the target branch" in run.ran[REVIEW].log


def test_a_push_by_hand_is_applied_where_init_was_told_so(merged: Team) -> None:
    """Where the token is missing nobody knows whether it was one."""
    path = merged.project.desk / ".gitlab" / "reconciler.gitlab-ci.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("ON_UNREVIEWED: stop", "ON_UNREVIEWED: apply"), encoding="utf-8")
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    merged.project.commit("Greet sooner")
    merged.merge()

    run = merged.project.push()

    assert run.ran[APPLY].status == "success", run.ran[REVIEW].log
    del merged.project.variables["RECONCILER_REVIEW_TOKEN"]
    assert "RECONCILER_REVIEW_TOKEN is not set" in run.play(REVIEW).log
    assert run.ran[REVIEW].status == "failed"


def test_every_merge_request_has_a_pipeline_and_one_into_another_branch_no_plan(
    merged: Team,
) -> None:
    """So that "Pipelines must succeed" blocks none that does not concern the identity service."""
    merged.project.git("checkout", "--quiet", "main")
    write(merged.manifests / "greet.yaml", an_action(timeout="1 minute"))
    merged.project.commit("Not valid")
    merged.branch("readme")
    write(merged.project.desk / "README", "A team of two.\n")
    merged.project.commit("Readme")

    pipeline = merged.project.merge_request()

    assert statuses(pipeline) == {"validate": "success"}
    assert "Nothing here concerns the identity service." in pipeline.ran[VALIDATE].log
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    merged.project.commit("Greet")
    merged.project.git("push", "--quiet", "origin", "main:refs/heads/theirs")
    assert statuses(merged.project.merge_request(target="theirs")) == {"validate": "success"}


def test_a_value_of_the_configuration_alone_is_planned_and_applied(merged: Team) -> None:
    """It changes what the manifests mean, and no file of them."""
    project = merged.project
    write(merged.manifests / "web.yaml", an_application(redirectUris=["https://${host}/callback"]))
    for branch, host in (("main", "shop.example.com"), ("idea", "other.example.net")):
        values = {"variables": {"host": {"type": "string", "default": host}}}
        known = {"apiVersion": "reconciler/v1", "kind": "Configuration", **values}
        if branch != "main":
            merged.branch(branch)
        else:
            project.git("checkout", "--quiet", "main")
        write(project.desk / "reconciler.yaml", json.dumps(known))
        project.commit("The host")

    pipeline = project.merge_request()
    merged.merge()
    pushed = project.push()

    assert pipeline.ran[PLAN].status == "success", pipeline.ran[PLAN].log
    assert "https://other.example.net/callback" in merged.our_notes()[0]
    assert pushed.ran[APPLY].status == "success", pushed.ran[REVIEW].log
    assert "Apply complete!" in pushed.ran[APPLY].log


def test_findings_take_the_place_of_the_comment_that_showed_a_plan(merged: Team) -> None:
    """The plan that a reviewer reads is never that of an earlier commit."""
    write(merged.manifests / "greet.yaml", an_action(timeout="5s"))
    merged.project.commit("Greet sooner")
    merged.project.merge_request()
    (before,) = merged.our_notes()
    write(merged.manifests / "greet.yaml", an_action(timeout="1 minute"))
    merged.project.commit("Greet")

    pipeline = merged.project.merge_request()

    assert statuses(pipeline) == {"validate": "failed", "plan": "failed", "comment": "success"}
    (after,) = merged.our_notes()
    assert after.splitlines()[0] == before.splitlines()[0]
    assert "## Not planned: the manifests are not valid\n\n- 1 error\n" in after
    assert "manifests/greet.yaml:1:" in after


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
    pushed = merged.project.push()
    assert pushed.ran[PLAN].status == "failed"
    assert {pushed.ran[name].status for name in (REVIEW, APPLY, APPROVE)} == {"skipped"}


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

    applied = approve(pipeline)

    assert applied.status == "failed"
    assert "PLAN-STALE" in applied.log
    assert server.event_count() == before
    write(merged.manifests / "greet.yaml", an_action(timeout="6s"))
    merged.project.commit("Later")
    late = approve(pipeline)
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
    killed = approve(pipeline, is_lost=is_lost, RECONCILER_CRASHPOINT=point)
    assert killed.status == "failed"
    assert len(counted(merged.server.store)) > 0
    kept = opened(killed.artifacts)
    if is_lost:
        assert "owed" in merged.project.night().ran[DRIFT].log
        # Nothing is left to change, so nothing to review: what is owed is delivered.
        pushed = merged.project.push()
        assert "owed" in pushed.ran[PLAN].log
        kept |= opened(pushed.ran[APPLY].artifacts)
    again = approve(pipeline)

    assert again.status == "success", again.log
    assert bool(killed.artifacts) is not is_lost
    kept |= opened(again.artifacts)
    assert hashes(kept) == counted(merged.server.store)
    assert len(kept) == 2


def test_a_night_with_drift_is_red_and_says_who(merged: Team) -> None:
    """And a quiet one is green."""
    merged.project.git("checkout", "--quiet", "main")
    pipeline = merged.project.push()
    assert approve(pipeline).status == "success"
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
    patch = night.ran[DRIFT].artifacts["reconciler-out/accepted.patch"].decode()
    assert "+++ b" in patch
    assert '"timeout": "9s"' in patch


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
    of_jobs = {"RECONCILER_TOKEN", "RECONCILER_DIGEST"}
    variables = set(re.findall(r"RECONCILER_\w+", text)) - of_jobs
    assert {name for name in variables if f"| `{name}` |" not in guide} == set()
    assert image.count(".") == 2
    assert f"imagetools inspect {image} " in text


def a_rule(rule: str) -> str:
    """Return a policy about applications."""
    spec = {"kinds": ["OidcApplication"], "rule": rule, "message": "No development mode."}
    head = {"apiVersion": "reconciler/v1", "kind": "Policy", "metadata": {"name": "no-dev-mode"}}
    return json.dumps({**head, "spec": spec})


def test_a_merge_request_is_judged_by_the_policies_of_its_target_branch(
    team: Team, tmp_path: Path
) -> None:
    """One that loosens a policy is planned and blocked by it, whatever Git attributes say."""
    write(tmp_path / "made" / "policies" / "all.yaml", a_rule("!after.devMode"))
    write(tmp_path / "made" / "policies" / ".gitattributes", "* export-ignore")
    assert program(tmp_path / "made")("init", "--gitlab", "--from", str(wheel())).code == 0
    shutil.copytree(tmp_path / "made", team.project.desk, dirs_exist_ok=True)
    team.project.commit("Policies")
    team.merge()
    team.branch()
    write(team.project.desk / "policies" / "all.yaml", a_rule("true"))
    write(team.manifests / "web.yaml", an_application("web", devMode=True))
    team.project.commit("Loosen the policy")

    refused = team.project.merge_request()

    assert statuses(refused) == {"validate": "success", "plan": "failed", "comment": "success"}
    (note,) = team.our_notes()
    assert "error POLICY: policy no-dev-mode: No development mode" in note
    assert "POLICY-AFTER-MERGE: policy no-dev-mode is changed" in note
