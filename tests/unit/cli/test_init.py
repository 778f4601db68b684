"""Jobs for environments: what is put into the templates, and a template that moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.init import GITHUB, GITLAB, TEMPLATES, for_environments
from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.errors import UsageError
from tests.rows import each_row

HERE = SourceLocation("reconciler.yaml", 1, 1)
WORKFLOWS = {
    GITHUB / path.name: path.read_bytes() for path in (TEMPLATES / "github" / "workflows").iterdir()
}


def a_configuration(overlay: str = "", manifests: str = "identity/tree") -> Configuration:
    live = Environment("live", HERE, protected=True, overlay=overlay)
    named = {"live": live, "test-1": Environment("test-1", HERE)}
    return Configuration("reconciler.yaml", Path(), Path(), manifests=manifests, environments=named)


def test_folders_of_the_configuration_start_the_jobs_that_read_them() -> None:
    made = for_environments(WORKFLOWS, a_configuration("over/live"))

    live, test = (made[GITHUB / f"reconciler-apply-{name}.yml"] for name in ("live", "test-1"))
    assert b'      - "identity/tree/**"\n      - "over/live/**"\n' in live
    assert b"git ls-tree HEAD identity over reconciler.yaml |" in live
    assert b"git ls-tree HEAD identity reconciler.yaml |" in test
    assert not any(b"@NAME@" in text or b"manifests --" in text for text in made.values())


def test_other_files_stay_as_they_are() -> None:
    hook = {Path("githooks", "pre-push"): b"echo @NAME@\n"}

    assert for_environments(hook, a_configuration()) == hook


def test_jobs_name_folders_in_their_normal_form() -> None:
    """Git and the filters of the jobs know no other form."""
    made = for_environments(WORKFLOWS, a_configuration("./over//live", "sub/../m"))

    live = made[GITHUB / "reconciler-apply-live.yml"]
    assert b'      - "m/**"\n      - "over/live/**"\n' in live
    assert b"git ls-tree HEAD m over reconciler.yaml |" in live


@each_row("folder", ["../m", "..", "a b", "a;b", "$(a)", "-a", 'a"b', "a\nb"])
def test_a_folder_that_cannot_stand_in_a_script_is_refused(folder: str) -> None:
    for configuration in (a_configuration(folder), a_configuration(manifests=folder)):
        with pytest.raises(UsageError, match="no jobs can be written"):
            for_environments(WORKFLOWS, configuration)


def test_a_template_that_moved_away_from_its_words_is_noticed() -> None:
    pipeline = (TEMPLATES / "gitlab" / GITLAB.name).read_bytes()
    moved = pipeline.replace(b"resource_group: reconciler\n", b"resource_group: other\n")

    assert (
        b"resource_group: reconciler-live\n"
        in for_environments({GITLAB: pipeline}, a_configuration())[GITLAB]
    )
    with pytest.raises(ValueError, match="resource_group"):
        for_environments({GITLAB: moved}, a_configuration())
