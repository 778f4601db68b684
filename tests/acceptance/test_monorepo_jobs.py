"""Trees in folders of one repository: their jobs are at its top, side by side, for each folder."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.acceptance.conftest import ORGANIZATION, ROOT, an_action, an_application, write
from tests.acceptance.test_ci_templates import WRITTEN, audit, audited, github
from tests.acceptance.test_github_jobs import ME, Team, installs, site
from tests.direct import Direct
from tests.program import program
from tests.release import wheel
from tests.runner.gitlab import (
    COMMENT_TOKEN,
    REVIEW_TOKEN,
    Pipeline,
    Project,
    Variable,
    gitlab_project,
)
from tests.runner.jobs import Event, Run, Runner, is_started_by
from tests.runner.site import REPOSITORY, Site
from tests.running import Server, running_server
from tests.warm_client import warm_program

__all__ = ["ME", "audited", "github", "installs", "site"]

SHOP, DESK = "services/shop", "desk"
NAMES = {SHOP: "services-shop", DESK: "desk"}
SHOP_APPLY, DESK_APPLY = "reconciler-services-shop-apply-staging", "reconciler-desk-apply"
IN_TURN = [f"{job}-{name}" for name in ("staging", "production")
           for job in ("plan", "review", "apply")]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the top of a repository with the set-ups of two trees, one in two environments."""
    top = tmp_path_factory.mktemp("written")
    (top / ".git").mkdir()
    write(top / ".git" / "HEAD", "ref: refs/heads/trunk\n")
    configure(top / SHOP, "https://a.example.com", "https://b.example.com")
    write(top / SHOP / "manifests" / "o.yaml", "")
    (top / DESK).mkdir()
    for folder in (f"{SHOP}/manifests", DESK):
        made = program(top / folder)("init", "--github", "--gitlab", "--from", str(wheel()))
        assert made.code == 0, made.all
    return top


def configure(folder: Path, staging: str, production: str) -> None:
    known: dict[str, Any] = {
        "apiVersion": "reconciler/v1",
        "kind": "Configuration",
        "environments": {
            "production": {"service": production, "after": "staging", "protected": True},
            "staging": {"service": staging},
        },
    }
    write(folder / "reconciler.yaml", json.dumps(known, indent=1))


def test_each_tree_has_files_and_jobs_of_its_own_at_the_top(written: Path) -> None:
    """They share the folder of the tool; a second init of the same folder writes nothing."""
    top = {path.relative_to(written).parts[0] for path in written.rglob("*") if path.is_file()}
    assert top == {".git", ".github", ".gitlab", "services"}
    workflows = {path.stem for path in (written / ".github" / "workflows").iterdir()}
    assert workflows == {
        *(f"reconciler-desk-{job}" for job in ("plan", "apply", "drift")),
        "reconciler-services-shop-plan",
        "reconciler-services-shop-apply-staging",
        *(f"reconciler-services-shop-drift-{name}" for name in ("staging", "production")),
    }
    pipelines = {path.name for path in (written / ".gitlab").glob("*.yml")}
    assert pipelines == {f"reconciler-{name}.gitlab-ci.yml" for name in NAMES.values()}
    tool = {path.name for path in (written / ".github" / "reconciler").iterdir()}
    assert tool == {wheel().name, "requirements.txt", "review"}

    again = program(written / SHOP)("init", "--github", "--from", str(wheel()))
    assert (again.code, "is there already" in again.err) == (1, True)
    write(written / "third" / "x", "")
    (written / ".github" / "reconciler" / "requirements.txt").rename(written / "kept")
    write(written / ".github" / "reconciler" / "requirements.txt", "another version\n")
    other = program(written / "third")("init", "--github", "--from", str(wheel()))
    (written / "kept").rename(written / ".github" / "reconciler" / "requirements.txt")
    assert other.code == 1
    assert "requirements.txt is there already" in other.err
    assert "nothing was written" in other.err


def test_the_configuration_of_a_tree_starts_its_jobs(written: Path) -> None:
    """Also of one without environments, whose ``reconciler.yaml`` may be written later."""
    for folder, apply in ((SHOP, "reconciler-services-shop-apply-staging"),
                          (DESK, "reconciler-desk-apply")):  # fmt: skip
        name = NAMES[folder]
        workflows = written / ".github" / "workflows"
        plan = (workflows / f"reconciler-{name}-plan.yml").read_text(encoding="utf-8")
        assert f" {folder}/manifests {folder}/reconciler.yaml .github/" in plan
        filtered = yaml.safe_load((workflows / f"{apply}.yml").read_text(encoding="utf-8"))
        assert f"{folder}/reconciler.yaml" in filtered[True]["push"]["paths"]
        pipeline = written / ".gitlab" / f"reconciler-{name}.gitlab-ci.yml"
        changes = f"  - {folder}/manifests/**/*\n  - {folder}/reconciler.yaml\n"
        assert changes in pipeline.read_text(encoding="utf-8")


def test_the_workflows_of_folders_pass_the_audit(written: Path, audited: Path) -> None:
    """As those for one tree do."""
    for path in (written / ".github" / "workflows").iterdir():
        shutil.copy2(path, audited / WRITTEN)

    passed = audit(audited)

    assert passed.returncode == 0, passed.stdout + passed.stderr


class Monorepo(Team):
    """A team with two trees and the default branch ``trunk``; ``tree`` is the tree at work."""

    production: Server
    tree: str = SHOP

    def commit(self, branch: str, **files: str | None) -> str:
        self.git("checkout", "--quiet", "-B", branch)
        for name, text in files.items():
            write(self.desk / self.tree / "manifests" / f"{name}.yaml", text or "")
        return self.push(branch)

    def started(self, event: str, changed: list[str], sha: str) -> list[str]:
        """Return the workflows that a change of these files starts."""
        listing = self.git("ls-tree", "--name-only", sha, ".github/workflows/").splitlines()
        names = [Path(name).stem for name in listing]
        return [
            name
            for name in names
            if is_started_by(
                yaml.safe_load(self.git("show", f"{sha}:.github/workflows/{name}.yml")),
                event,
                changed,
            )
        ]

    def proposed(self, branch: str, number: int = 1) -> Mapping[str, Run]:
        """Run what a pull request of a branch starts; return the run of each tree."""
        head, base = self.git("rev-parse", branch), self.git("rev-parse", "trunk")
        ref = f"refs/pull/{number}/merge"
        self.git("push", "--quiet", "--force", "origin", f"{head}:{ref}")
        changed = self.git("diff", "--name-only", base, head).splitlines()
        names = {tree: f"reconciler-{name}-plan" for tree, name in NAMES.items()}
        assert {*names.values()} == {*self.started("pull_request", changed, head)}
        shown = {"sha": head, "ref": branch, "repo": {"full_name": REPOSITORY}}
        self.site.keep_pull(number, shown, "trunk")
        payload = {"pull_request": {"number": number, "base": {"sha": base}, "head": shown}}
        event = Event("pull_request", head, payload, ref=ref)
        return {tree: self.runner.start(name, event) for tree, name in names.items()}

    def queued(self, branch: str) -> Run:
        """Run the workflow of the tree at work in a merge queue that would merge a branch."""
        head, base = self.git("rev-parse", branch), self.git("rev-parse", "trunk")
        name = f"reconciler-{NAMES[self.tree]}-plan"
        assert name in self.started("merge_group", ["any"], head)
        payload = {"merge_group": {"base_sha": base, "head_sha": head}}
        ref = "refs/heads/gh-readonly-queue/trunk/pr-1"
        return self.runner.start(name, Event("merge_group", head, payload, ref=ref))

    def merged(self, branch: str) -> Mapping[str, Run]:
        """Run what the merge of a branch starts; return the runs by the names of the workflows."""
        before = self.git("rev-parse", "trunk")
        self.git("checkout", "--quiet", "trunk")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", branch)
        self.git("push", "--quiet", "origin", "trunk")
        sha = self.git("rev-parse", "HEAD")
        self.site.merged(branch, sha, "trunk")
        changed = self.git("diff", "--name-only", before, sha).splitlines()
        event = Event("push", sha, {"before": before}, ref="refs/heads/trunk")
        return {name: self.runner.start(name, event) for name in self.started("push", changed, sha)}

    def reviewed(self, branch: str) -> Mapping[str, Run]:
        """Propose a branch and merge it."""
        self.proposed(branch)
        return self.merged(branch)

    def told(self, run: Run, job: str) -> Run:
        """Start what the summary of a job says that applies its plan."""
        found = re.search(
            r"^gh workflow run (\S+)\.yml --ref (\S+) -f digest=(\S+)$",
            run.jobs[job].summary,
            re.MULTILINE,
        )
        assert found is not None, run.jobs[job].summary
        return self.by_hand(found[3], found[2], found[1])

    def by_hand(self, digest: str, ref: str = "trunk", name: str = SHOP_APPLY) -> Run:
        event = Event(
            "workflow_dispatch", self.git("rev-parse", ref), {"inputs": {"digest": digest}},
            ref=f"refs/heads/{ref}",
        )  # fmt: skip
        return self.runner.start(name, event)


@pytest.fixture
def team(site: Site, written: Path, tmp_path: Path, installs: Path) -> Iterator[Monorepo]:
    """Return a team whose default branch has both trees with their jobs, and nothing applied."""
    site.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    folders = {name: tmp_path / name for name in ("one", "two", "clone", "jobs")}
    for folder in folders.values():
        folder.mkdir()
    with running_server(folders["one"]) as one, running_server(folders["two"]) as two:
        runner = Runner(site, folders["jobs"], installs, program=warm_program())
        made = Monorepo(site, runner, one, folders["clone"])
        made.production = two
        for name, server in (
            ("services-shop-{}-staging", one),
            ("services-shop-{}-production", two),
            ("desk-{}", one),
        ):
            sink = f"age:~/reconciler-secrets?recipient={made.key.to_public()}"
            known = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": sink}
            for job, role in (("plan", "viewer"), ("apply", "editor")):
                environment = f"reconciler-{name.format(job)}"
                site.variables[environment] = known
                site.secrets[environment] = {"RECONCILER_TOKEN": server.token(role)}
        shutil.copytree(written / ".github", made.desk / ".github")
        configure(made.desk / SHOP, one.address, two.address)
        write(made.desk / DESK / "reconciler.yaml", "{apiVersion: reconciler/v1, "
              "kind: Configuration, tree: desk}")  # fmt: skip
        made.git("init", "--quiet", "-b", "trunk")
        made.git("remote", "add", "origin", str(site.bare))
        write(made.desk / DESK / "manifests" / "o.yaml", ORGANIZATION)
        made.commit("trunk", o=ORGANIZATION)
        yield made


def test_a_change_of_one_tree_is_planned_and_applied_in_its_folder(team: Monorepo) -> None:
    """Production waits for staging, and the other tree has no part in it but a green check."""
    team.commit("more", web=an_application("web"))

    shown = team.proposed("more")
    assert set(shown[SHOP].results.values()) == {"success"}, shown[SHOP].jobs["plan-staging"].log
    assert shown[DESK].results == {
        "validate": "success", "plan": "skipped", "comment": "skipped", "verdict": "success",
    }  # fmt: skip
    assert len(team.comments()) == 2
    checks = [run.workflow["jobs"]["verdict"]["name"] for run in shown.values()]
    assert checks == [f"reconciler {name}" for name in NAMES.values()]
    queue = team.queued("more")
    triggers = cast(Any, queue.workflow)[True]  # YAML 1.1 reads the key "on" as a boolean
    assert triggers["merge_group"] == {"branches": ["trunk"]}
    assert {name.partition("-")[0]: result for name, result in queue.results.items()} == {
        "validate": "success", "plan": "success", "comment": "skipped", "verdict": "success",
    }  # fmt: skip

    run = team.merged("more")[SHOP_APPLY]

    assert list(run.results) == IN_TURN
    assert set(run.results.values()) == {"success"}, run.jobs["review-staging"].log
    for name in ("staging", "production"):
        assert "This plan was reviewed in pull request #1." in run.jobs[f"review-{name}"].log
    assert (run.number, f"reconciler-services-shop-secrets-staging-{run.number}-1") in (
        team.site.artifacts
    )
    team.tree = DESK
    team.commit("other", greet=an_action())
    other = team.reviewed("other")
    assert list(other) == [DESK_APPLY]
    assert set(other[DESK_APPLY].results.values()) == {"success"}, (
        other[DESK_APPLY].jobs["review"].log
    )
    assert "Apply complete! 1 created" in other[DESK_APPLY].jobs["apply"].log


def test_a_plan_that_was_reviewed_for_one_tree_is_not_taken_for_another(team: Monorepo) -> None:
    """Both are merged at once; between review and merge somebody changes what is of one alone."""
    team.tree = DESK
    team.commit("first", greet=an_action())
    assert set(team.reviewed("first")[DESK_APPLY].results.values()) == {"success"}
    write(team.desk / SHOP / "manifests" / "bow.yaml", an_action("bow"))
    team.commit("both", greet=an_action(timeout="6s"))
    team.proposed("both", 2)
    Direct(team.server.store).change("greet", timeout="9s")

    runs = team.merged("both")

    assert set(runs[SHOP_APPLY].results.values()) == {"success"}
    assert runs[DESK_APPLY].results == {
        "plan": "success", "review": "failure", "apply": "skipped",
    }  # fmt: skip
    assert "pull request #2 showed another plan" in runs[DESK_APPLY].jobs["review"].summary
    theirs = runs[SHOP_APPLY].jobs["plan-staging"].outputs["digest"]
    assert team.by_hand(theirs, name=DESK_APPLY).results["review"] == "failure"
    right = team.told(runs[DESK_APPLY], "review")
    assert set(right.results.values()) == {"success"}, right.jobs["review"].log
    assert "Apply complete! 0 created, 1 updated" in right.jobs["apply"].log


def test_production_is_not_applied_where_staging_failed(team: Monorepo) -> None:
    """It is where staging has nothing to do, and a later run goes on."""
    team.commit("more", web=an_application("web"))
    team.runner.injected["Apply"] = {"RECONCILER_CRASHPOINT": "C6"}

    run = team.reviewed("more")[SHOP_APPLY]

    assert run.results == {
        **dict.fromkeys(IN_TURN, "success"),
        "apply-staging": "failure", "apply-production": "skipped",
    }  # fmt: skip
    team.runner.injected.clear()
    team.runner.run_failed_again(run)
    assert set(run.results.values()) == {"success"}
    jobs = run.workflow["jobs"]
    assert jobs["apply-production"]["needs"] == [
        "plan-production", "review-production", "review-staging", "apply-staging",
    ]  # fmt: skip
    assert jobs["apply-production"]["environment"].endswith("-apply-production")
    assert jobs["apply-production"]["concurrency"]["group"].endswith("-apply-production")
    assert "concurrency" not in run.workflow
    team.commit("quiet", more="# nothing\n")
    again = team.reviewed("quiet")[SHOP_APPLY]
    assert again.results == {
        **dict.fromkeys(IN_TURN, "success"),
        "apply-staging": "skipped", "apply-production": "skipped",
    }  # fmt: skip


def test_a_digest_applies_the_plan_of_one_environment_in_its_turn(team: Monorepo) -> None:
    """Production waits until staging is applied, also where only staging was not reviewed."""
    team.commit("first", greet=an_action())
    assert set(team.reviewed("first")[SHOP_APPLY].results.values()) == {"success"}
    team.commit("later", greet=an_action(timeout="6s"))
    team.proposed("later")
    Direct(team.server.store).change("greet", timeout="9s")
    staging, production = team.server.event_count(), team.production.event_count()

    pushed = team.merged("later")[SHOP_APPLY]

    passed = dict.fromkeys(IN_TURN, "success")
    stopped = {**passed, "review-staging": "failure", "apply-staging": "skipped",
               "apply-production": "skipped"}  # fmt: skip
    assert pushed.results == stopped
    last = pushed.jobs["plan-production"].outputs["digest"]
    early = team.by_hand(last)
    assert early.results == stopped
    assert team.server.event_count() == staging

    first = team.told(pushed, "review-staging")

    assert first.results == {
        **passed, "review-production": "failure", "apply-production": "skipped",
    }  # fmt: skip
    assert "the digest that was given is not that of this plan" in (
        first.jobs["review-production"].summary
    )
    assert team.production.event_count() == production
    done = team.told(first, "review-production")
    assert done.results == {**passed, "apply-staging": "skipped"}
    assert done.event.payload["inputs"]["digest"] == last
    assert team.production.event_count() > production


def test_each_tree_has_an_issue_of_its_own_for_drift(team: Monorepo) -> None:
    """A quiet night of one does not close that of the other."""
    team.tree = DESK
    team.commit("greets", greet=an_action())
    assert set(team.reviewed("greets")[DESK_APPLY].results.values()) == {"success"}
    Direct(team.server.store).change("greet", timeout="9s")
    night = Event("schedule", team.git("rev-parse", "trunk"), ref="refs/heads/trunk")
    for name in ("desk-drift", "services-shop-drift-staging"):
        run = team.runner.start(f"reconciler-{name}", night)
        assert run.results == {"look": "success", "tell": "success"}, run.jobs["look"].log

    assert [(issue["title"], issue["state"]) for issue in team.site.issues] == [
        ("The identity service has drift, or owes client secrets (desk)", "open")
    ]


def test_a_finding_names_the_file_from_the_top(team: Monorepo) -> None:
    """GitHub shows it at its line."""
    team.commit("wrong", greet=an_action(timeout="1 minute"))

    run = team.proposed("wrong")[SHOP]

    assert run.results["validate"] == "failure"
    assert f"::error file={SHOP}/manifests/greet.yaml,line=1" in run.jobs["validate"].log


Servers = Mapping[str, Server]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Return the services of two environments, by their names."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with running_server(tmp_path / "one") as one, running_server(tmp_path / "two") as two:
        yield {"staging": one, "production": two}


@pytest.fixture
def project(tmp_path: Path, servers: Servers) -> Iterator[Project]:
    """Return a project whose environments have variables of their own."""
    one, two = servers.values()
    with gitlab_project(tmp_path) as project:
        for name, server in (
            ("services-shop-{}-staging", one), ("services-shop-{}-production", two),
            ("{}-staging", one), ("{}-production", two), ("desk-{}", one),
        ):  # fmt: skip
            for job, role, key in (("plan", "viewer", "READ"), ("apply", "editor", "WRITE")):
                given = {f"RECONCILER_{key}_TOKEN": server.token(role),
                         "RECONCILER_SERVICE": server.address,
                         "RECONCILER_SECRETS_TO": "file:reconciler-secrets"}  # fmt: skip
                project.scoped[f"reconciler-{name.format(job)}"] = given
        for prefix in ("", "services-shop-", "desk-"):
            token = {"RECONCILER_REVIEW_TOKEN": REVIEW_TOKEN}
            project.scoped[f"reconciler-{prefix}review"] = token
        project.variables["RECONCILER_COMMENT_TOKEN"] = Variable(COMMENT_TOKEN)
        yield project


def proposed(project: Project, files: Mapping[str, str]) -> Pipeline:
    """Run the pipeline of a merge request with these files."""
    project.git("checkout", "--quiet", "-b", f"idea-{next(project.numbers)}", "main")
    for name, text in files.items():
        write(project.desk / name, text)
    project.commit("An idea")
    return project.merge_request()


def merged(project: Project) -> Pipeline:
    """Merge the merge request, and run the pipeline of that push."""
    head = project.git("rev-parse", "HEAD")
    project.git("checkout", "--quiet", "main")
    project.git("merge", "--quiet", "--squash", head)
    project.merged(head, project.commit("Merge"))
    return project.push()


def statuses(pipeline: Pipeline, start: str = "") -> dict[str, str]:
    """Return the status of each job, without this start of all names."""
    return {name.removeprefix(f"reconciler {start}"): one.status
            for name, one in pipeline.ran.items()}  # fmt: skip


def both(status: str, *jobs: str) -> dict[str, str]:
    """Return jobs of both environments with a status."""
    return {f"{job} {name}": status for job in jobs for name in ("staging", "production")}


def digest_of(pipeline: Pipeline, job: str) -> str:
    """Return the digest that the log of a job says what to do with."""
    (digest,) = re.findall(r"^  RECONCILER_DIGEST = (\S+)$", pipeline.ran[job].log, re.MULTILINE)
    return str(digest)


def test_the_pipelines_of_two_trees_are_side_by_side(
    project: Project, servers: Servers, written: Path
) -> None:
    """Each in its folder; production is a manual job that waits for staging."""
    shutil.copytree(written / ".gitlab", project.desk / ".gitlab")
    included = [f"{{local: .gitlab/reconciler-{name}.gitlab-ci.yml}}" for name in NAMES.values()]
    write(project.desk / ".gitlab-ci.yml", f"include: [{', '.join(included)}]")
    addresses = [server.address for server in servers.values()]
    configure(project.desk / SHOP, *addresses)
    write(project.desk / DESK / "reconciler.yaml", "{apiVersion: reconciler/v1, "
          "kind: Configuration, tree: desk}")  # fmt: skip
    for folder in (SHOP, DESK):
        write(project.desk / folder / "manifests" / "o.yaml", ORGANIZATION)
    project.commit("Set the reconciler up")

    asked = proposed(project, {f"{SHOP}/manifests/web.yaml": an_application("web")})

    assert statuses(asked, "services-shop ") == {
        "validate": "success", **both("success", "plan", "comment"), "reconciler desk validate":
        "success",
    }  # fmt: skip
    nothing = "Nothing here concerns the identity service."
    assert nothing in asked.ran["reconciler desk validate"].log
    assert nothing not in asked.ran["reconciler services-shop validate"].log
    shop = merged(project)
    assert statuses(shop, "services-shop ") == {
        **both("success", "plan", "review"), "apply staging": "success",
        "apply production": "manual", "approve staging": "manual", "approve production": "manual",
    }, shop.ran  # fmt: skip
    review = shop.ran["reconciler services-shop review production"]
    assert "This plan was reviewed in merge request !7." in review.log
    done = shop.play("reconciler services-shop apply production")
    assert done.status == "success", done.log
    kept = (".gitignore", "acme.shop.web.json")
    assert {*done.artifacts} == {f"{SHOP}/reconciler-secrets/{name}" for name in kept}

    proposed(project, {f"{DESK}/manifests/greet.yaml": an_action()})
    assert set(statuses(merged(project)).values()) == {"success", "manual"}
    proposed(project, {f"{DESK}/manifests/greet.yaml": an_action(timeout="6s"),
                       f"{SHOP}/manifests/bow.yaml": an_action("bow")})  # fmt: skip
    Direct(servers["staging"].store).change("greet", timeout="9s")
    pipeline = merged(project)
    assert statuses(pipeline, "services-shop ") == {
        **both("success", "plan", "review"), "apply staging": "success",
        "apply production": "manual", "approve staging": "manual", "approve production": "manual",
        "reconciler desk plan": "success", "reconciler desk review": "failed",
        "reconciler desk apply": "skipped", "reconciler desk approve": "manual",
    }  # fmt: skip
    review = pipeline.ran["reconciler desk review"]
    assert "merge request !7 showed another plan, with the digest" in review.log
    assert "start the job `reconciler desk approve` with the variable" in review.log
    digest = digest_of(pipeline, "reconciler desk review")
    approved = pipeline.play("reconciler desk approve", RECONCILER_DIGEST=digest)
    assert approved.status == "success", approved.log

    proposed(project, {f"{DESK}/manifests/nod.yaml": an_action("nod"),
                       ".gitlab/reconciler/comment": "raise SystemExit\n"})  # fmt: skip
    hostile = merged(project).ran["reconciler desk review"]
    assert hostile.status == "failed"
    assert "merge request !7 had another CI configuration than the target branch" in hostile.log


def in_turn(project: Project, servers: Servers, **more: Any) -> None:
    """Put production after staging on main; more fields of staging by keyword."""
    configure(project.desk, *(server.address for server in servers.values()))
    file = project.desk / "reconciler.yaml"
    known = json.loads(file.read_text(encoding="utf-8"))
    known["environments"]["staging"] |= more
    write(file, json.dumps(known))
    made = program(project.desk)("init", "--gitlab", "--from", str(wheel()))
    assert made.code == 0, made.all
    write(project.desk / ".gitlab-ci.yml", "include: {local: .gitlab/reconciler.gitlab-ci.yml}")
    write(project.desk / "manifests" / "o.yaml", ORGANIZATION)
    project.commit("Set the reconciler up")


def test_a_manual_job_is_waited_for(project: Project, servers: Servers) -> None:
    """Where staging is protected as well, production can be started once staging is applied."""
    in_turn(project, servers, protected=True)
    proposed(project, {"manifests/greet.yaml": an_action()})

    pipeline = merged(project)

    first, last = (f"reconciler apply {name}" for name in ("staging", "production"))
    assert (pipeline.ran[first].status, pipeline.ran[last].status) == ("manual", "waiting")
    assert pipeline.ran["reconciler approve production"].status == "waiting"
    assert pipeline.play(first).status == "success", pipeline.ran[first].log
    assert pipeline.ran[last].status == "manual"
    assert pipeline.play(last).status == "success", pipeline.ran[last].log


def test_production_waits_for_a_staging_that_was_not_reviewed(
    project: Project, servers: Servers
) -> None:
    """Staging is approved by its digest; once its review has seen that, production goes on."""
    in_turn(project, servers)
    proposed(project, {"manifests/greet.yaml": an_action()})
    assert merged(project).play("reconciler apply production").status == "success"
    proposed(project, {"manifests/greet.yaml": an_action(timeout="6s")})
    Direct(servers["staging"].store).change("greet", timeout="9s")
    before = servers["production"].event_count()

    pipeline = merged(project)

    assert statuses(pipeline) == {
        **both("success", "plan"), **both("skipped", "apply"), "review staging": "failed",
        "review production": "success", "approve staging": "manual",
        "approve production": "skipped",
    }  # fmt: skip
    digest = digest_of(pipeline, "reconciler review staging")
    approved = pipeline.play("reconciler approve staging", RECONCILER_DIGEST=digest)
    assert approved.status == "success", approved.log
    assert pipeline.ran["reconciler apply production"].status == "skipped"
    for job in ("plan", "review"):
        assert pipeline.play(f"reconciler {job} staging").status == "success"
    assert "Nothing to apply." in pipeline.ran["reconciler apply staging"].log
    assert pipeline.ran["reconciler apply production"].status == "manual"
    assert servers["production"].event_count() == before
    done = pipeline.play("reconciler apply production")
    assert done.status == "success", done.log
    assert servers["production"].event_count() > before


def test_the_pages_say_how_folders_are_named(written: Path) -> None:
    """A reader finds the names that the files have."""
    for page in ("ci-github.md", "ci-gitlab.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        (section,) = re.findall(
            r"^## In a folder of a repository\n(.*?)^## ", text, re.DOTALL | re.MULTILINE
        )
        assert "reconciler-services-shop" in section
