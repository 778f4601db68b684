"""Jobs for environments: what is put into the templates, and a template that moved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from reconciler.cli.init import GITHUB, GITLAB, TEMPLATES, for_environments
from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.errors import UsageError
from tests.rows import each_row
from tests.runner.expressions import holds

HERE = SourceLocation("reconciler.yaml", 1, 1)
WORKFLOWS = {
    GITHUB / path.name: path.read_text() for path in (TEMPLATES / "github" / "workflows").iterdir()
}


def a_configuration(overlay: str = "", manifests: str = "identity/tree") -> Configuration:
    live = Environment("live", HERE, protected=True, overlay=overlay)
    named = {"live": live, "test-1": Environment("test-1", HERE)}
    return Configuration("reconciler.yaml", Path(), Path(), manifests=manifests, environments=named)


def test_folders_of_the_configuration_start_the_jobs_that_read_them() -> None:
    made = for_environments(WORKFLOWS, a_configuration("over/live"))

    live, test = (made[GITHUB / f"reconciler-apply-{name}.yml"] for name in ("live", "test-1"))
    assert '      - "identity/tree/**"\n      - "over/live/**"\n' in live
    assert "git ls-tree HEAD identity over reconciler.yaml |" in live
    assert "git ls-tree HEAD identity reconciler.yaml |" in test
    assert not any("@NAME@" in text or "manifests --" in text for text in made.values())


def test_environments_in_turn_are_one_workflow() -> None:
    """A chain of three: the last asks about both before it, since a skipped job says little."""
    after = {"dev": "", "live": "staging", "staging": "dev", "alone": ""}
    named = {
        name: Environment(name, HERE, after=first, overlay=f"over-{name}/x")
        for name, first in after.items()
    }
    configuration = Configuration("reconciler.yaml", Path(), Path(), environments=named)

    made = for_environments(WORKFLOWS, configuration)

    applies = {path.stem for path in made if "apply" in path.name}
    assert applies == {"reconciler-apply-dev", "reconciler-apply-alone"}
    jobs = yaml.safe_load(made[GITHUB / "reconciler-apply-dev.yml"])["jobs"]
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
    files = made[GITHUB / "reconciler-apply-dev.yml"]
    seen = re.findall(r"git ls-tree HEAD (.*) reconciler.yaml \|", files)
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


def test_other_files_stay_as_they_are() -> None:
    hook = {Path("githooks", "pre-push"): "echo @NAME@\n"}

    assert for_environments(hook, a_configuration()) == hook


def test_jobs_name_folders_in_their_normal_form() -> None:
    """Git and the filters of the jobs know no other form."""
    made = for_environments(WORKFLOWS, a_configuration("./over//live", "sub/../m"))

    live = made[GITHUB / "reconciler-apply-live.yml"]
    assert '      - "m/**"\n      - "over/live/**"\n' in live
    assert "git ls-tree HEAD m over reconciler.yaml |" in live


@each_row("folder", ["../m", "..", "a b", "a;b", "$(a)", "-a", 'a"b', "a\nb"])
def test_a_folder_that_cannot_stand_in_a_script_is_refused(folder: str) -> None:
    for configuration in (a_configuration(folder), a_configuration(manifests=folder)):
        with pytest.raises(UsageError, match="no jobs can be written"):
            for_environments(WORKFLOWS, configuration)


def test_a_template_that_moved_away_from_its_words_is_noticed() -> None:
    pipeline = (TEMPLATES / "gitlab" / GITLAB.name).read_text()
    moved = pipeline.replace("resource_group: reconciler\n", "resource_group: other\n")

    assert (
        "resource_group: reconciler-live\n"
        in for_environments({GITLAB: pipeline}, a_configuration())[GITLAB]
    )
    with pytest.raises(ValueError, match="resource_group"):
        for_environments({GITLAB: moved}, a_configuration())
