"""``reconciler init``."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import click

from reconciler.cli.options import option
from reconciler.errors import LocalFileError
from reconciler.report.visible import visible
from reconciler.resources.schema_files import schema_folder

HERE = Path(__file__).parent
STARTER = HERE / "starter"
TEMPLATES = HERE / "templates"
HOOKS = TEMPLATES / "git-hooks"
SCHEMAS = ".schemas"


@click.command("init")
@click.argument("directory", default="manifests", metavar="[DIR]")
@option("--github", is_flag=True, help="Write GitHub workflows instead: plan, apply, drift.")
@option("--gitlab", is_flag=True, help="Write a GitLab pipeline instead.")
@option("--git-hooks", is_flag=True, help="Write Git hooks instead, for git push and nothing else.")
def init_command(directory: str, github: bool, gitlab: bool, git_hooks: bool) -> None:
    """Write a small organization into DIR, to begin from.

    With --github, --gitlab or --git-hooks: write those into the current folder, and no manifests.
    """
    wanted = [
        (github, TEMPLATES / "github", Path(".github")),
        (gitlab, TEMPLATES / "gitlab", Path(".gitlab")),
        (git_hooks, HOOKS, Path("githooks")),
    ]
    chosen = [(source, target) for asked, source, target in wanted if asked]
    try:
        if not chosen:
            _write_starter(Path(directory))
        for source, target in chosen:
            _write_templates(source, target)
    except OSError as failure:
        raise LocalFileError(
            f"cannot write {failure.filename or directory}: {failure.strerror}",
            remedy="Name a folder this user may write to.",
        ) from failure
    if not chosen:
        shown = "" if directory == "manifests" else f" {visible(directory)}"
        click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")


def _write_starter(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LocalFileError(
            f"{target} is there already and is not an empty folder",
            remedy="Name a folder that does not exist yet: reconciler init DIR.",
        )
    shutil.copytree(STARTER, target, dirs_exist_ok=True)
    shutil.copytree(schema_folder(), target / SCHEMAS)
    _tell(path for path in sorted(target.rglob("*")) if SCHEMAS not in path.parts)


def _write_templates(source: Path, target: Path) -> None:
    """Copy templates, if none of them is there yet."""
    files = {path: target / path.relative_to(source) for path in sorted(source.rglob("*"))}
    files = {path: copy for path, copy in files.items() if path.is_file()}
    for copy in files.values():
        if copy.exists():
            raise LocalFileError(
                f"{copy} is there already",
                remedy="Move it away first; nothing was written.",
            )
    for path, copy in files.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.parent == HOOKS:
            copy.chmod(0o755)
    _tell(files.values())


def _tell(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file():
            click.echo(f"wrote {visible(str(path))}")
