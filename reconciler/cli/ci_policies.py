"""Policies in CI set-ups: the jobs judge by those of the target branch.

A tree has policies where ``reconciler.yaml`` names some, or, in a tree without one, where a folder
``policies`` stands beside the manifests. Its jobs name the target branch's folder as trusted, and
are started by changes of policies as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.cli.ci_place import Place, check_safe
from reconciler.configuration.model import Configuration
from reconciler.resources.schemas import RECOMMENDED

DEFAULT_FOLDER = "policies"


class Named(NamedTuple):
    """The policies of a tree.

    Attributes:
        folders: Their folders, from the folder of the tree.
        has_recommended: Whether those of the package judge as well.
        is_configured: Whether ``reconciler.yaml`` names them, so that no flag has to.
    """

    folders: Sequence[str] = ()
    has_recommended: bool = False
    is_configured: bool = True

    def __bool__(self) -> bool:
        return bool(self.folders) or self.has_recommended

    @property
    def own(self) -> str:
        """Return the flags that name them, each with a blank after it; empty where none must."""
        names = () if self.is_configured else self.folders
        return "".join(f"--policies {name} " for name in names)

    def trusted(self, above: str) -> str:
        """Return the flags that name those of the target branch, which are in a folder."""
        names = [f"{above}/{folder}" for folder in self.folders]
        names += [RECOMMENDED] if self.has_recommended else []
        return " ".join(f"--trusted-policies {name}" for name in names)


def policies_of(place: Place, configuration: Configuration | None) -> Named:
    """Return the policies of a tree.

    Raises:
        UsageError: a folder has a name that would not be safe in a script.
    """
    if configuration is None:
        is_there = (place.tree / DEFAULT_FOLDER).is_dir()
        return Named([DEFAULT_FOLDER] if is_there else [], is_configured=False)
    named = [each.removeprefix("./").rstrip("/") for each in configuration.policies]
    folders = [each for each in named if each != RECOMMENDED]
    for folder in folders:
        do = "Put them into a folder beneath that of reconciler.yaml, with a name"
        check_safe("policies in", folder, do)
    return Named(folders, RECOMMENDED in configuration.policies)


def with_policies(files: Mapping[Path, str], named: Named, folder: str) -> dict[Path, str]:
    """Return the files of a set-up for the top of a repository with the policies of a tree.

    ``folder`` is that of the tree, from the top.
    """
    made = dict(files)
    for path, text in files.items() if named else ():
        if path.name == "reconciler-plan.yml":
            made[path] = _github_plan(text, named)
        elif path.name == "reconciler.gitlab-ci.yml":
            made[path] = _gitlab(text, named, f"{folder}/" if folder else "")
        elif path.name.startswith("reconciler-apply") and named.own:
            made[path] = _github_apply(text, named)
    return made


def _github_plan(text: str, named: Named) -> str:
    above = "../trusted"
    made = "".join(f"\n          mkdir -p {above}/{folder}" for folder in named.folders)
    listed = "".join(f"            {folder}\n" for folder in named.folders)
    return _replaced(
        text,
        (r"(?<= PATHS: )", "".join(f"{folder} " for folder in named.folders)),
        (
            r"sparse-checkout: (\.github/reconciler\n)",
            rf"sparse-checkout: |\n            \1{listed}" if listed else r"\g<0>",
        ),
        (r'(?<=mkdir "\$RUNNER_TEMP/out")', made),
        (r"--detailed-exitcode \\\n", rf"\g<0>            {named.own}{named.trusted(above)} \\\n"),
        (r"(?<= )(?=--format github')", named.own),
    )


def _github_apply(text: str, named: Named) -> str:
    return _replaced(
        text,
        (r"(?<= plan manifests )(?=--out)", named.own),
        (r'(?<=plan\.json" manifests )', named.own),
    )


_UNPACKED = (
    r'(?<=archive "\$trusted" \.gitlab/reconciler \| tar -x -C "\$files" --strip-components 1)'
)


def _gitlab(text: str, named: Named, above_tree: str) -> str:
    archived = "".join(
        f'\n      mkdir -p "$files/trusted/{folder}"'
        f'\n      if tree=$(git rev-parse --quiet --verify "$trusted:./{folder}"); then'
        # Not git archive: an export-ignore in the folder would leave policies out.
        f'\n        GIT_INDEX_FILE="$files/trusted/{folder}.index" \\'
        f'\n          git --work-tree="$files/trusted/{folder}" read-tree --reset -u "$tree"'
        "\n      fi"
        for folder in named.folders
    )
    changes = "".join(f"  - {above_tree}{folder}/**/*\n" for folder in named.folders)
    folders = "".join(f"{folder} " for folder in named.folders)
    above = '"$files"/trusted'
    text = _replaced(
        text,
        (r"(?<=^\.reconciler changes: &changes\n)", changes),
        (r"(?<=HEAD -- )", folders),
        (_UNPACKED, archived),
        (
            r"(?<=--detailed-exitcode)(?=\s+--format markdown --on-merge)",
            f" {named.trusted(above)}",
        ),
    )
    if not named.own:
        return text
    return _replaced(
        text,
        (r"(- reconciler (?:validate|plan) manifests)(?= |$)", rf"\1 {named.own.rstrip()}"),
        (r"(?<=plan\.json manifests )", named.own),
    )


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    """Return a template with each pattern replaced.

    Raises:
        ValueError: the template lacks one of them: it was changed, and this module was not.
    """
    for pattern, by in pairs:
        text, count = re.subn(pattern, by, text, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"the template has no {pattern!r}, where policies are named")
    return text
