"""The place that CI set-ups are for: a repository, its default branch, the folder of one tree.

GitHub and GitLab read their files at the top of a repository. In a folder of a monorepo, ``init``
writes to the top as well. The jobs of each folder have names, files and environments of their own,
so that several trees are side by side; they share the folder that the tool is installed from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from reconciler.cli.git import default_branch
from reconciler.errors import UsageError
from reconciler.manifests.files import find_configuration, git_root
from reconciler.report.visible import visible

_FOLDER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]*", re.ASCII)
_SHARED = "plan|apply|drift|comment|review|secrets"
# Not the marker of a comment, nor the folder that a sink of the team's own settings names.
_NAME = re.compile(rf"(?<!<!-- )(?<![~:]/)(?<!age:)\breconciler-({_SHARED})\b(?![/?])")


# Folders of policies: of the target branch, and among what is checked out of it.
_POLICIES = re.compile(r"\.\./trusted/(?!reconciler\.yaml)")
_CHECKED_OUT = re.compile(r"(sparse-checkout: \|\n {12}\.github/reconciler\n)((?: {12}\S+\n)+)")
_PATHS = re.compile(r"(?<= PATHS: ).*")


class Place(NamedTuple):
    """The place of set-ups, and the tree that their jobs are for.

    Attributes:
        top: The top of the repository, from the current folder.
        folder: The folder of the tree, from the top; empty where it is the top.
        branch: The branch whose manifests are applied.
    """

    top: Path
    folder: str
    branch: str

    @property
    def tree(self) -> Path:
        """Return the folder of the tree, from the current folder."""
        return Path(os.path.relpath(self.top / self.folder))

    @property
    def name(self) -> str:
        """Return the folder as a part of names."""
        return self.folder.replace("/", "-")


def place_here() -> Place:
    """Return the place of the tree in the current folder.

    The tree is in the folder of the nearest ``reconciler.yaml``, or in the current one.

    Raises:
        UsageError: the folder has a name that would not be safe in a script.
    """
    here = Path.cwd()
    found = find_configuration(here)
    tree = found.parent if found else here
    root = git_root(here) or tree
    folder = "" if tree == root else tree.relative_to(root).as_posix()
    if folder:
        check_safe("folder", folder)
    return Place(Path(os.path.relpath(root, here)), folder, default_branch(root) or "main")


def check_safe(what: str, name: str, do: str = "Give it a name") -> None:
    """Refuse a name that would not be safe in a script, or that leads out of the repository."""
    if not _FOLDER.fullmatch(name) or ".." in name.split("/"):
        raise UsageError(
            f"no jobs can be written for the {what} {visible(name)}",
            remedy=f"{do} of letters, digits and . _ - /: it stands in their scripts.",
        )


def for_branch(files: Mapping[Path, str], branch: str) -> dict[Path, str]:
    """Return set-ups for a branch, made from those for ``main``.

    It is for the templates alone: a folder or an environment may be called ``main`` as well.

    Raises:
        UsageError: the branch has a name that would not be safe in a script.
    """
    check_safe("branch", branch)
    return {
        path: _on_branch(text, branch) if _is_workflow(path) else text
        for path, text in files.items()
    }


def _is_workflow(path: Path) -> bool:
    return path.parts[:2] == (".github", "workflows")


def _on_branch(text: str, branch: str) -> str:
    if branch == "main":
        return text
    written = {"branches: [": f'"{branch}"', "git/trees/": quote(branch, safe="")}
    return re.sub(
        r"(branches: \[|git/trees/|(?<![\w-]))main(?![\w-])",
        lambda found: found[1] + written.get(found[1], branch),
        text,
    )


def at_place(files: Mapping[Path, str], place: Place) -> dict[Path, str]:
    """Return set-ups for the folder of a place, made from those for the top of a repository."""
    if not place.folder:
        return dict(files)
    made = {}
    for path, text in files.items():
        if path.suffix == ".yml":
            name = path.name.replace("reconciler", f"reconciler-{place.name}", 1)
            change = _workflow if _is_workflow(path) else _pipeline
            made[path.with_name(name)] = change(text, place.folder, place.name)
        else:
            made[path] = text
    return made


def _workflow(text: str, folder: str, name: str) -> str:
    """Return a workflow of the tree in a folder."""
    text = _NAME.sub(rf"reconciler-{name}-\1", text)
    text = text.replace("\nname: reconciler ", f"\nname: reconciler {name} ")
    text = text.replace("\n    name: reconciler\n", f"\n    name: reconciler {name}\n")
    text = text.replace("to require is `reconciler`", f"to require is `reconciler {name}`")
    text = re.sub(r"(?m)^( +TITLE: .*)$", rf"\1 ({folder})", text)
    text = _PATHS.sub(lambda found: _beneath(folder, found[0]), text)
    text = text.replace("working-directory: proposed\n", f"working-directory: proposed/{folder}\n")
    text = text.replace('"manifests/**"', f'"{folder}/manifests/**"')
    text = text.replace('- "reconciler.yaml"\n', f'- "{folder}/reconciler.yaml"\n')
    text = _POLICIES.sub(f'"$GITHUB_WORKSPACE"/trusted/{folder}/', text)
    text = _CHECKED_OUT.sub(lambda found: _in_folder(folder, found), text)
    text = text.replace("../trusted/reconciler.yaml", '"$GITHUB_WORKSPACE"/trusted/reconciler.yaml')
    if "trusted/reconciler.yaml" in text:
        text = text.replace("trusted/reconciler.yaml", f"trusted/{folder}/reconciler.yaml")
        both = f"sparse-checkout: |\n            .github/reconciler\n            {folder}\n"
        text = text.replace("sparse-checkout: .github/reconciler\n", both)
    text = re.sub(r"git/trees/([\w.%-]+)", rf"contents/{folder}?ref=\1", text)
    return text.replace("'.tree[] |", "'.[] | {path: .name, sha} |")


def _in_folder(folder: str, found: re.Match[str]) -> str:
    return found[1] + found[2].replace(" " * 12, f"{' ' * 12}{folder}/")


def _beneath(folder: str, paths: str) -> str:
    """Return paths of a tree in a folder from the top, where those of CI files are already."""
    return " ".join(
        path if path.startswith(".github/") else f"{folder}/{path}" for path in paths.split()
    )


def _pipeline(text: str, folder: str, name: str) -> str:
    """Return a pipeline of the tree in a folder. Its scripts run there."""
    text = _NAME.sub(rf"reconciler-{name}-\1", text)
    for pattern, by in (
        (r"(\.gitlab/reconciler)(?=\.gitlab-ci\.yml)", rf"\1-{name}"),
        (r"(^|extends: |\[)\.reconciler\b", rf"\1.reconciler {name}"),
        (r"(extends: |!reference \[)reconciler ", rf"\1reconciler {name} "),
        (rf"^\.reconciler {re.escape(name)}:\n", rf"\g<0>  before_script:\n    - cd {folder}\n"),
        (
            r"(^|job: |_JOB: )reconciler (?=[a-z]+(?: [a-z0-9-]+)?(?::|$| #))",
            rf"\1reconciler {name} ",
        ),
        (r"`reconciler (approve|validate)\b", rf"`reconciler {name} \1"),
        (r"resource_group: reconciler", rf"\g<0>-{name}"),
        (r"environment \*-NAME", f"environment reconciler-{name}-*-NAME"),
        (r"(RECONCILER_SERVICE +its address)$", rf"\1, environment reconciler-{name}-*"),
        (r"^  - (?=manifests/|reconciler\.yaml$)", f"  - {folder}/"),
        (r"(dotenv|junit): ", rf"\g<0>{folder}/"),
    ):
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    text = _in_lists(text, "  needs", "reconciler ", f"reconciler {name} ")
    return _in_lists(text, "    paths", "reconciler-", f"{folder}/reconciler-")


def _in_lists(text: str, key: str, old: str, new: str) -> str:
    """Replace a part of the entries of each list of a key that is on one line."""
    lists = re.compile(rf"^{key}: \[.*\]$", re.MULTILINE)
    return lists.sub(lambda found: found[0].replace(old, new), text)
