"""Jobs of CI set-ups: what stands in their files for environments, policies and a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.ci_jobs import policies_of, set_up, trust_lines
from reconciler.cli.ci_place import Place
from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.errors import UsageError
from tests.rows import each_row
from tests.runner.expressions import holds

HERE = SourceLocation("reconciler.yaml", 1, 1)
TOP = Place(Path(), "", "main")
FOLDER = Place(Path(), "apps/id", "main")


def configured(*named: Environment, **more: Any) -> Configuration:
    environments = {each.name: each for each in named}
    return Configuration("reconciler.yaml", Path(), Path(), environments=environments, **more)


def a_configuration(overlay: str = "", manifests: str = "identity/tree") -> Configuration:
    live = Environment("live", HERE, protected=True, overlay=overlay)
    return configured(live, Environment("test-1", HERE), manifests=manifests)


def made(
    name: str, configuration: Configuration | None, place: Place = TOP, *, is_keyless: bool = False
) -> dict[str, str]:
    """Return the files of a set-up by their names."""
    files = set_up(name, "stop", place, configuration, is_keyless=is_keyless)
    return {path.name: content.decode() for path, content in files.items()}


def beyond(files: dict[str, str], others: dict[str, str]) -> str:
    """Return the lines of a set-up that another one does not have."""
    known = {line for text in others.values() for line in text.splitlines()}
    lines = (line for text in files.values() for line in text.splitlines())
    return "\n".join(line.strip() for line in lines if line not in known)


def added(name: str, configuration: Configuration) -> str:
    """Return what a set-up has because of a configuration."""
    return beyond(made(name, configuration), made(name, None))


def test_folders_of_the_configuration_start_the_jobs_that_read_them() -> None:
    files = made("github", a_configuration("over/live"))

    live, test = (files[f"reconciler-apply-{name}.yml"] for name in ("live", "test-1"))
    assert '      - "identity/tree/**"\n      - "over/live/**"\n' in live
    assert "git ls-tree HEAD identity over reconciler.yaml |" in live
    assert "git ls-tree HEAD identity reconciler.yaml |" in test
    assert not any("manifests --" in text for text in files.values())


@each_row("name", ["github", "gitlab"])
def test_without_environments_the_jobs_read_the_folder_of_the_configuration(name: str) -> None:
    shown = added(name, configured(manifests="identity/tree"))

    assert " plan identity/tree" in shown
    assert "identity/tree/**" in shown


def test_environments_in_turn_are_one_workflow() -> None:
    """A chain of three: the last asks about both before it, since a skipped job says little."""
    after = {"dev": "", "live": "staging", "staging": "dev", "alone": ""}
    chain = [Environment(name, HERE, after=first, overlay=f"over-{name}/x")
             for name, first in after.items()]  # fmt: skip

    files = made("github", configured(*chain))

    applies = {name for name in files if "apply" in name}
    assert applies == {"reconciler-apply-dev.yml", "reconciler-apply-alone.yml"}
    jobs = yaml.safe_load(files["reconciler-apply-dev.yml"])["jobs"]
    assert list(jobs) == [
        f"{job}-{name}"
        for name in ("dev", "staging", "live")
        for job in ("plan", "review", "apply")
    ]
    assert jobs["apply-dev"]["needs"] == ["plan-dev", "review-dev"]
    assert jobs["apply-live"]["needs"] == [
        "plan-live", "review-live", "review-staging", "apply-staging", "review-dev", "apply-dev",
    ]  # fmt: skip
    # One stops because the branch has moved on: those behind it do, too.
    seen = re.findall(
        r"git ls-tree HEAD (.*) reconciler.yaml \|", files["reconciler-apply-dev.yml"]
    )
    assert seen == [
        "manifests over-dev", "manifests over-dev over-staging",
        "manifests over-dev over-live over-staging",
    ]  # fmt: skip
    condition = jobs["apply-live"]["if"]
    right = {job: {"result": "success", "outputs": {"changes": "true"}} for job in jobs}
    assert holds(condition, {"needs": right, "status": {"cancelled": False}})
    nothing = {**right, "apply-dev": {"result": "skipped"}, "apply-staging": {"result": "skipped"}}
    assert holds(condition, {"needs": nothing, "status": {"cancelled": False}})
    for job, result in (
        ("apply-dev", "failure"), ("apply-dev", "cancelled"), ("review-dev", "failure"),
        ("apply-staging", "cancelled"), ("review-staging", "skipped"), ("review-live", "failure"),
    ):  # fmt: skip
        wrong = {**nothing, job: {**right[job], "result": result}}
        assert not holds(condition, {"needs": wrong, "status": {"cancelled": False}}), (job, result)


def test_jobs_name_folders_in_their_normal_form() -> None:
    """Git and the filters of the jobs know no other form."""
    live = made("github", a_configuration("./over//live", "sub/../m"))["reconciler-apply-live.yml"]

    assert '      - "m/**"\n      - "over/live/**"\n' in live
    assert "git ls-tree HEAD m over reconciler.yaml |" in live


@each_row("folder", [".", "./", "../m", "..", "a b", "a;b", "$(a)", "-a", 'a"b', "a\nb"])
def test_a_folder_that_cannot_stand_in_a_script_is_refused(folder: str) -> None:
    for configuration in (
        a_configuration(folder), a_configuration(manifests=folder), configured(manifests=folder),
    ):  # fmt: skip
        for name in ("github", "gitlab"):
            with pytest.raises(UsageError, match="no jobs can be written"):
                made(name, configuration)


@each_row("name", ["plan", "apply", "review", "main", "reconciler", "secrets"])
def test_an_environment_may_have_a_name_that_the_jobs_have_too(name: str) -> None:
    place = Place(Path(), "apps/plan", "trunk")

    pipeline = yaml.safe_load(
        made("gitlab", configured(Environment(name, HERE)), place)[
            "reconciler-apps-plan.gitlab-ci.yml"
        ].replace("!reference", "")
    )
    workflow = made("github", configured(Environment(name, HERE)), place)

    job = pipeline[f"reconciler apps-plan apply {name}"]
    assert job["resource_group"] == f"reconciler-apps-plan-{name}"
    assert job["environment"] == {"name": f"reconciler-apps-plan-apply-{name}"}
    text = workflow[f"reconciler-apps-plan-apply-{name}.yml"]
    assert f"ARTIFACT: reconciler-apps-plan-plan-{name}\n" in text
    assert "github.ref == 'refs/heads/trunk'" in text
    assert "apps/plan/manifests/**" in text


def test_the_branch_is_quoted_where_it_is_a_part_of_an_address() -> None:
    apply = made("github", None, Place(Path(), "", "release/1"))["reconciler-apply.yml"]

    assert 'branches: ["release/1"]' in apply
    assert "git/trees/release%2F1" in apply
    with pytest.raises(UsageError, match="for the branch"):
        made("github", None, Place(Path(), "", "a b"))


@each_row("place", [TOP, FOLDER])
@each_row("name", ["github", "gitlab"])
def test_a_rule_of_trust_is_for_an_environment_of_a_job_that_signs_in(
    name: str, place: Place
) -> None:
    chain = configured(Environment("dev", HERE), Environment("live", HERE, after="dev"))

    lines = list(trust_lines(name, place, chain))

    files = made(name, chain, place, is_keyless=True)
    found = re.findall(rf" add {name}-(\S+) .* environment=(\S+)", "\n".join(lines))
    assert len(found) == 4
    for rule, environment in found:
        assert rule == environment
        assert any(f" {environment}\n" in text for text in files.values())
    workflows = set(re.findall(r"workflows/(\S+)@", "\n".join(lines)))
    assert workflows == ({f"{place.ours}-apply-dev.yml"} if name == "github" else set())
    assert not any("RECONCILER_TOKEN" in text for text in files.values())


# Policies: jobs name those of the target branch.

PLAIN = "policies"


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return the place of a tree with a folder of policies and no configuration."""
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), Path("apps/id")):
        (folder / PLAIN).mkdir(parents=True)
    return TOP


def with_policies(name: str, place: Place) -> str:
    """Return what is in a set-up because of the folder of policies in the current folder."""
    without = Place(Path("elsewhere"), place.folder, place.branch)
    return beyond(made(name, None, place), made(name, None, without))


def test_github_jobs_name_the_folder_of_the_target_branch(plain: Place) -> None:
    shown = with_policies("github", plain)

    assert len(re.findall(r"^policies$", shown, re.MULTILINE)) == 2  # checked out by both jobs
    assert "PATHS: policies manifests reconciler.yaml .github/" in shown
    assert "mkdir -p ../trusted/policies" in shown
    assert "plan manifests --policies policies \\" in shown
    assert "--trusted-policies ../trusted/policies \\" in shown
    assert "validate manifests --policies policies --format github" in shown
    assert 'plan manifests --policies policies --out "$plan"' in shown
    assert 'plan.json" manifests --policies policies \\' in shown


def test_gitlab_jobs_unpack_the_folder_of_the_target_branch(plain: Place) -> None:
    shown = with_policies("gitlab", plain)

    assert "- policies/**/*" in shown
    assert "FETCH_HEAD HEAD -- policies manifests reconciler.yaml :/.gitlab" in shown
    assert 'mkdir -p "$files/trusted/policies"' in shown
    assert 'git --work-tree="$files/trusted/policies"' in shown
    assert shown.count("reconciler validate manifests --policies policies") == 2
    assert "reconciler plan manifests --policies policies" in shown
    assert '--trusted-policies "$files"/trusted/policies' in shown
    assert "plan.json manifests --policies policies --revision" in shown


@pytest.mark.usefixtures("plain")
def test_in_a_folder_of_a_monorepo_paths_begin_at_the_top() -> None:
    github, gitlab = with_policies("github", FOLDER), with_policies("gitlab", FOLDER)

    assert "apps/id/policies\n" in github
    assert 'mkdir -p "$GITHUB_WORKSPACE"/trusted/apps/id/policies' in github
    assert '--trusted-policies "$GITHUB_WORKSPACE"/trusted/apps/id/policies' in github
    assert "PATHS: apps/id/policies apps/id/manifests" in github
    assert "- apps/id/policies/**/*" in gitlab
    assert '"$trusted:./policies"' in gitlab  # scripts run in the folder


@each_row("name", ["github", "gitlab"])
def test_the_configuration_names_the_policies_of_this_side(name: str) -> None:
    shown = added(name, configured(policies=("./rules/", "recommended")))

    assert re.search(r"--trusted-policies \S+trusted/rules", shown)
    assert "--trusted-policies recommended" in shown
    assert "--policies rules" not in shown.replace("--trusted-policies", "")


@pytest.mark.parametrize("folder", ["../policies", "a b", "$(touch x)", "a/../../b"])
def test_a_folder_of_policies_that_is_not_safe_in_a_script_is_refused(folder: str) -> None:
    with pytest.raises(UsageError, match="no jobs can be written for the policies in"):
        made("github", configured(policies=(folder,)))


def test_policies_are_those_of_the_configuration_or_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert policies_of(TOP, None) == ([], False)
    Path(PLAIN).mkdir()
    assert policies_of(TOP, None) == ([PLAIN], False)
    assert policies_of(TOP, configured(policies=("./rules/",))) == (["rules"], False)
    assert policies_of(TOP, configured(policies=("./recommended",))) == (["recommended"], False)
    assert policies_of(TOP, configured(policies=("recommended", "a"))) == (["a"], True)
    assert policies_of(TOP, configured()) == ([], False)
