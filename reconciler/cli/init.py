"""``reconciler init``."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from reconciler.cli.ci_install import install_files
from reconciler.cli.options import option
from reconciler.errors import LocalFileError, UsageError
from reconciler.report.visible import visible
from reconciler.resources.schema_files import SCHEMAS, schema_folder

HERE = Path(__file__).parent
STARTER = HERE / "starter"
TEMPLATES = HERE / "templates"
TOOL = "reconciler"
"""The folder, beside what a CI set-up reads, that its jobs install the tool from."""


@click.command("init")
@click.argument("directory", default="manifests", metavar="[DIR]")
@option("--github", is_flag=True, help="Write GitHub workflows instead: plan, apply, drift.")
@option("--gitlab", is_flag=True, help="Write a GitLab pipeline instead.")
@option("--git-hooks", is_flag=True, help="Write Git hooks instead, for git push and nothing else.")
@click.option(
    "--from",
    "release",
    metavar="URL#sha256=HASH",
    help="With --github or --gitlab: the wheel of a release, for the jobs to install. Otherwise a "
    "wheel of this installation is written beside them.",
)
def init_command(
    directory: str, github: bool, gitlab: bool, git_hooks: bool, release: str | None
) -> None:
    """Write a small organization into DIR, to begin from.

    With --github, --gitlab or --git-hooks: write those into the current folder, and no manifests.
    """
    if release is not None and not (github or gitlab):
        raise UsageError(
            "--from is for --github and --gitlab: it says where their jobs install the tool from",
            remedy="Add one of the two, or leave --from out.",
        )
    wanted = [
        (github, "github", Path(".github")),
        (gitlab, "gitlab", Path(".gitlab")),
        (git_hooks, "git-hooks", Path("githooks")),
    ]
    chosen = [(name, target) for asked, name, target in wanted if asked]
    try:
        if not chosen:
            _write_starter(Path(directory))
        else:
            _write_new(_files_for(chosen, release))
    except OSError as failure:
        raise LocalFileError(
            f"cannot write {failure.filename or directory}: {failure.strerror}",
            remedy="Name a folder this user may write to.",
        ) from failure
    if chosen:
        click.echo("Next: the comments at the top of these files say what to set up once.")
    else:
        shown = "" if directory == "manifests" else f" {visible(directory)}"
        click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")


def _files_for(
    chosen: Sequence[tuple[str, Path]], release: str | None
) -> Mapping[Path, tuple[bytes, int]]:
    """Return content and mode of each file that the chosen set-ups need, by path."""
    files = {
        target / path.relative_to(TEMPLATES / name): (
            path.read_bytes(),
            0o755 if name == "git-hooks" else 0o644,
        )
        for name, target in chosen
        for path in sorted((TEMPLATES / name).rglob("*"))
        if path.is_file()
    }
    for _, target in [one for one in chosen if one[0] != "git-hooks"]:
        for file, content in install_files(release).items():
            files[target / TOOL / file] = (content, 0o644)
    return files


def _write_starter(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LocalFileError(
            f"{target} is there already and is not an empty folder",
            remedy="Name a folder that does not exist yet: reconciler init DIR.",
        )
    shutil.copytree(STARTER, target, dirs_exist_ok=True)
    shutil.copytree(schema_folder(), target / SCHEMAS)
    _tell(path for path in sorted(target.rglob("*")) if SCHEMAS not in path.parts)


def _write_new(files: Mapping[Path, tuple[bytes, int]]) -> None:
    """Write files, if none of them is there yet."""
    for path in files:
        if path.exists():
            raise LocalFileError(
                f"{path} is there already",
                remedy="Move it away first; nothing was written.",
            )
    for path, (content, mode) in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if mode & 0o111:
            path.chmod(mode)
    _tell(files)


def _tell(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file():
            click.echo(f"wrote {visible(str(path))}")
