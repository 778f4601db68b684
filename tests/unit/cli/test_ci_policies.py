"""Policies in CI set-ups: where jobs name those of the target branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.ci_place import Place, at_place
from reconciler.cli.ci_policies import Named, policies_of, with_policies
from reconciler.cli.init import TARGETS, TEMPLATES
from reconciler.configuration.model import Configuration
from reconciler.errors import UsageError

TEMPLATE = {
    name: {
        TARGETS[name] / path.relative_to(TEMPLATES / name): path.read_text()
        for path in sorted((TEMPLATES / name).rglob("*"))
        if path.is_file()
    }
    for name in ("github", "gitlab")
}
CONFIGURED = Named(["rules"], has_recommended=True)
PLAIN = Named(["policies"], is_configured=False)


def added(name: str, named: Named, folder: str = "") -> str:
    """Return the lines of a set-up that policies add or change."""
    place = Place(Path(), folder, "main")
    before = at_place(TEMPLATE[name], place)
    after = at_place(with_policies(TEMPLATE[name], named, folder), place)
    known = {line for text in before.values() for line in text.splitlines()}
    lines = (line for text in after.values() for line in text.splitlines())
    return "\n".join(line.strip() for line in lines if line not in known)


def test_a_tree_without_policies_has_the_same_jobs() -> None:
    for files in TEMPLATE.values():
        assert with_policies(files, Named(), "") == files


def test_github_jobs_name_the_folder_of_the_target_branch() -> None:
    shown = added("github", PLAIN)

    assert shown.count("policies\n") >= 2  # checked out with the tool, by both jobs
    assert "PATHS: policies manifests reconciler.yaml .github/" in shown
    assert "mkdir -p ../trusted/policies" in shown
    assert "--policies policies --trusted-policies ../trusted/policies \\" in shown
    assert "validate manifests --policies policies --format github" in shown
    assert 'plan manifests --policies policies --out "$plan"' in shown
    assert 'plan.json" manifests --policies policies \\' in shown


def test_the_configuration_names_the_policies_of_this_side() -> None:
    shown = added("github", CONFIGURED)

    assert "--trusted-policies ../trusted/rules --trusted-policies recommended \\" in shown
    assert "--policies rules" not in shown.replace("--trusted-policies", "")


def test_gitlab_jobs_unpack_the_folder_of_the_target_branch() -> None:
    shown = added("gitlab", PLAIN)

    assert "- policies/**/*" in shown
    assert "FETCH_HEAD HEAD -- policies manifests reconciler.yaml :/.gitlab" in shown
    assert 'mkdir -p "$files/trusted/policies"' in shown
    assert 'git --work-tree="$files/trusted/policies"' in shown
    assert shown.count("reconciler validate manifests --policies policies") == 2
    assert "reconciler plan manifests --policies policies --out" in shown
    assert '--trusted-policies "$files"/trusted/policies' in shown
    assert "plan.json manifests --policies policies --revision" in shown


def test_in_a_folder_of_a_monorepo_paths_begin_at_the_top() -> None:
    github, gitlab = added("github", PLAIN, "apps/id"), added("gitlab", PLAIN, "apps/id")

    assert "apps/id/policies\n" in github
    assert 'mkdir -p "$GITHUB_WORKSPACE"/trusted/apps/id/policies' in github
    assert '--trusted-policies "$GITHUB_WORKSPACE"/trusted/apps/id/policies' in github
    assert "PATHS: apps/id/policies apps/id/manifests" in github
    assert "- apps/id/policies/**/*" in gitlab
    assert '"$trusted:./policies"' in gitlab  # scripts run in the folder


@pytest.mark.parametrize("folder", ["../policies", "a b", "$(touch x)", "a/../../b"])
def test_a_folder_that_is_not_safe_in_a_script_is_refused(folder: str) -> None:
    configuration = Configuration("reconciler.yaml", Path(), Path(), policies=(folder,))

    with pytest.raises(UsageError, match="no jobs can be written for the policies in"):
        policies_of(Place(Path(), "", "main"), configuration)


def test_policies_are_those_of_the_configuration_or_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(Path(), "", "main")
    configuration = Configuration("reconciler.yaml", Path(), Path(), policies=("./rules/",))

    assert not policies_of(place, None)
    Path("policies").mkdir()
    assert policies_of(place, None) == PLAIN
    assert policies_of(place, configuration) == Named(["rules"])
    assert not policies_of(place, Configuration("reconciler.yaml", Path(), Path()))
