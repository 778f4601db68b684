"""A walk through the jobs of two environments: staging on merge, production once it is approved."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.conftest import ORGANIZATION, an_action, an_application, write
from tests.acceptance.test_ci_templates import WRITTEN, audit, audited, github
from tests.acceptance.test_github_jobs import ME, Team, installs, site
from tests.program import program
from tests.release import wheel
from tests.runner.gitlab import REVIEW_TOKEN, Variable, gitlab_project
from tests.runner.jobs import Event, Run, Runner, is_started_by
from tests.runner.site import Site
from tests.running import Server, running_server
from tests.warm_client import warm_program

__all__ = ["ME", "audited", "github", "installs", "site"]


def a_configuration(folder: Path, staging: str, production: str, **more: Any) -> None:
    """Write the configuration of two environments; more fields of production by keyword."""
    host = {"type": "string", "pattern": "^[a-z.]+$"}
    known = {
        "apiVersion": "reconciler/v1",
        "kind": "Configuration",
        "variables": {"shopHost": host},
        "environments": {
            "staging": {"service": staging, "variables": {"shopHost": "staging.example.com"}},
            "production": {
                "service": production,
                "protected": True,
                "variables": {"shopHost": "shop.example.com"},
                **more,
            },
        },
    }
    write(folder / "reconciler.yaml", json.dumps(known, indent=1))


class TwoServices(Team):
    """A team with a service for staging, and one for production."""

    production: Server

    def apply(self, name: str) -> Run:
        """Run what the last push to main starts for an environment."""
        sha = self.git("rev-parse", "main")
        changed = self.git("diff", "--name-only", f"{sha}~1", sha).splitlines()
        assert is_started_by(self.workflow(f"apply-{name}", sha), "push", changed)
        before = self.git("rev-parse", f"{sha}~1")
        return self.runner.start(f"reconciler-apply-{name}", Event("push", sha, {"before": before}))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the set-ups for two environments."""
    folder = tmp_path_factory.mktemp("written")
    a_configuration(folder, "https://a.example.com", "https://b.example.com", overlay="over/live")
    assert program(folder)("init", "--github", "--gitlab", "--from", str(wheel())).code == 0
    return folder


@pytest.fixture
def team(site: Site, written: Path, tmp_path: Path, installs: Path) -> Iterator[TwoServices]:
    """Return a team whose main branch has two environments and their jobs, and nothing applied."""
    names = ("staging", "production", "desk", "jobs")
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    desk = folders["desk"]
    with running_server(folders["staging"]) as first, running_server(folders["production"]) as last:
        runner = Runner(site, folders["jobs"], installs, program=warm_program())
        made = TwoServices(site, runner, first, desk)
        made.production = last
        for name, server in (("staging", first), ("production", last)):
            sink = f"age:~/reconciler-secrets?recipient={made.key.to_public()}"
            known = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": sink}
            for job, token in (("plan", "viewer"), ("apply", "editor")):
                site.variables[f"reconciler-{job}-{name}"] = known
                site.secrets[f"reconciler-{job}-{name}"] = {"RECONCILER_TOKEN": server.token(token)}
        shutil.copytree(written / ".github", desk / ".github")
        a_configuration(desk, first.address, last.address)
        made.git("init", "--quiet", "-b", "main")
        made.git("remote", "add", "origin", str(site.bare))
        made.commit("main", o=ORGANIZATION)
        yield made


def test_staging_is_applied_on_merge_and_production_by_digest_once_it_is_approved(
    team: TwoServices,
) -> None:
    """The pull request has one comment for each, side by side."""
    web = an_application("web", redirectUris=["https://${shopHost}/cb"])
    team.commit("more", web=web)

    pull_request = team.pull_request("more")

    assert set(pull_request.results.values()) == {"success"}, pull_request.results
    first, last = team.comments()
    for name, server, comment, host in (
        ("staging", team.server, first, "staging.example.com"),
        ("production", team.production, last, "shop.example.com"),
    ):
        place = f"environment={name} service={server.address} tree=default"
        assert comment.startswith(f"<!-- reconciler-plan {place} -->\n## Plan: 1 to create")
        assert f"https://{host}/cb" in comment
    before = team.production.event_count()

    team.merge_to_main("more")
    staging = team.apply("staging")

    assert set(staging.results.values()) == {"success"}, staging.jobs["review"].log
    assert "This plan was reviewed in pull request #1." in staging.jobs["review"].log
    assert "Apply complete!" in staging.jobs["apply"].log
    assert "reviewers" not in str(staging.workflow)
    # The runner asks nobody: what stands here happens while the job waits for its reviewers.
    seen: list[str] = []
    team.runner.before["apply"] = lambda: seen.append(str(team.production.event_count()))
    production = team.apply("production")
    assert seen == [str(before)]
    assert set(production.results.values()) == {"success"}, production.jobs["review"].log
    jobs = production.workflow["jobs"]
    assert jobs["apply"]["environment"] == "reconciler-apply-production"
    digest = production.jobs["plan"].outputs["digest"]
    assert f"Digest: `{digest}`" in production.jobs["plan"].summary
    assert team.production.event_count() > before
    assert set(team.secrets(production.number)) == {"web"}


def test_a_pull_request_that_changes_what_judges_it_is_red_and_says_why(team: TwoServices) -> None:
    """Its plans ask neither service, and both comments are there."""
    a_configuration(
        team.desk, team.server.address, team.production.address, protected=False, tree="theirs"
    )
    team.commit("hostile", web=an_application("web"))
    asked = [server.event_count() for server in (team.server, team.production)]

    run = team.pull_request("hostile")

    assert {name.partition("-")[0]: result for name, result in run.results.items()} == {
        "validate": "success", "plan": "failure", "comment": "success", "verdict": "failure",
    }  # fmt: skip
    for comment in team.comments():
        assert "## Nothing was planned: the service was not asked" in comment
        assert "tree of environment production is not as in the trusted configuration" in comment
        assert "protected of environment production is not as in" in comment
    assert len(team.comments()) == 2
    assert asked == [server.event_count() for server in (team.server, team.production)]


def test_the_workflows_of_environments_pass_the_audit(written: Path, audited: Path) -> None:
    """As those for one service do."""
    for path in (written / ".github" / "workflows").iterdir():
        shutil.copy2(path, audited / WRITTEN)

    passed = audit(audited)

    assert passed.returncode == 0, passed.stdout + passed.stderr


def test_each_environment_has_jobs_tokens_and_paths_of_its_own(written: Path) -> None:
    workflows = written / ".github" / "workflows"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in workflows.iterdir()}

    assert texts.keys() == {
        "reconciler-plan",
        *(f"reconciler-{job}-{name}" for job in ("apply", "drift")
          for name in ("staging", "production")),
    }  # fmt: skip
    plan = yaml.safe_load(texts["reconciler-plan"])
    assert list(plan["jobs"]) == [
        "validate", "plan-staging", "comment-staging", "plan-production", "comment-production",
        "verdict",
    ]  # fmt: skip
    assert plan["jobs"]["verdict"]["needs"] == list(plan["jobs"])[:-1]
    (changes,) = [step for step in plan["jobs"]["validate"]["steps"] if step.get("id") == "changes"]
    assert changes["env"]["PATHS"].startswith("manifests over/live reconciler.yaml .github/")
    apply = {name: texts[f"reconciler-apply-{name}"] for name in ("staging", "production")}
    assert "over/live/**" not in apply["staging"]
    assert "git ls-tree HEAD manifests over reconciler.yaml |" in apply["production"]
    assert "with required reviewers" in apply["production"]
    assert "without reviewers" in apply["staging"]
    for name, text in texts.items():
        for used in re.findall(r"^    environment: (.*)$", text, re.MULTILINE):
            assert name == "reconciler-plan" or used.endswith(name.rpartition("-")[2])


def test_the_pipeline_has_a_manual_job_for_a_protected_environment_only(written: Path) -> None:
    text = (written / ".gitlab" / "reconciler.gitlab-ci.yml").read_text(encoding="utf-8")
    parts = re.split(r"^(reconciler [a-z -]+):$", text, flags=re.MULTILINE)
    jobs = dict(zip(parts[1::2], parts[2::2], strict=True))

    assert list(jobs) == [
        "reconciler validate",
        *(f"reconciler {job} {name}" for name in ("staging", "production")
          for job in ("plan", "comment", "review", "apply", "approve", "drift")),
    ]  # fmt: skip
    assert "when: manual" not in jobs["reconciler apply staging"]
    assert "when: manual" in jobs["reconciler apply production"]
    assert '--env production --trusted-config "$files/reconciler.yaml"' in " ".join(
        jobs["reconciler plan production"].split()
    )
    assert "needs: [reconciler plan production]" in jobs["reconciler comment production"]
    assert "resource_group: reconciler-staging" in jobs["reconciler apply staging"]


def test_the_pipeline_applies_what_was_reviewed_to_each_environment(
    written: Path, tmp_path: Path
) -> None:
    """Staging by itself; production waits for somebody who starts its job."""
    (tmp_path / "production").mkdir()
    with (
        running_server(tmp_path) as staging,
        running_server(tmp_path / "production") as production,
        gitlab_project(tmp_path) as project,
    ):
        project.variables["RECONCILER_REVIEW_TOKEN"] = Variable(REVIEW_TOKEN, protected=True)
        for name, server in (("staging", staging), ("production", production)):
            for job, token, role in (("plan", "READ", "viewer"), ("apply", "WRITE", "editor")):
                project.variables |= {
                    f"RECONCILER_{token}_TOKEN@{name}": Variable(
                        server.token(role), environment=f"reconciler-{job}-{name}"
                    ),
                    f"RECONCILER_SERVICE@{job}-{name}": Variable(
                        server.address, environment=f"reconciler-{job}-{name}"
                    ),
                }
        shutil.copytree(written / ".gitlab", project.desk / ".gitlab")
        write(project.desk / ".gitlab-ci.yml", "include: {local: .gitlab/reconciler.gitlab-ci.yml}")
        a_configuration(project.desk, staging.address, production.address)
        write(project.desk / "manifests" / "organization.yaml", ORGANIZATION)
        project.commit("Set the reconciler up")
        project.git("checkout", "--quiet", "-b", "idea")
        write(project.desk / "manifests" / "greet.yaml", an_action())
        head = project.commit("Greet")
        planned = project.merge_request()
        assert {name: ran.status for name, ran in planned.ran.items()} == {
            "reconciler validate": "success",
            **{f"reconciler {job} {name}": "success"
               for job in ("plan", "comment") for name in ("staging", "production")},
        }, planned.ran  # fmt: skip
        project.git("checkout", "--quiet", "main")
        project.git("merge", "--quiet", "--squash", "idea")
        project.merged(head, project.commit("Merge"))
        before = production.event_count()

        pipeline = project.push()

        assert {name: ran.status for name, ran in pipeline.ran.items()} == {
            **{f"reconciler {job} {name}": "success"
               for job in ("plan", "review") for name in ("staging", "production")},
            "reconciler apply staging": "success",
            "reconciler apply production": "manual",
            "reconciler approve staging": "manual",
            "reconciler approve production": "manual",
        }, pipeline.ran  # fmt: skip
        assert "Apply complete!" in pipeline.ran["reconciler apply staging"].log
        assert production.event_count() == before
        applied = pipeline.play("reconciler apply production")
        assert "Apply complete!" in applied.log
        digest = "sha256:" + "0" * 64
        refused = pipeline.play("reconciler approve staging", RECONCILER_DIGEST=digest)
        assert refused.status == "failed"
