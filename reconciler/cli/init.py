"""``reconciler init``: an organization to begin from, and CI set-ups."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import click

from reconciler.cli.ci_jobs import (
    ANSWERS,
    HOOKS,
    HOOKS_NAME,
    TARGETS,
    configuration_of,
    policies_of,
    set_up,
    trust_lines,
)
from reconciler.cli.ci_place import place_here
from reconciler.cli.options import command
from reconciler.cli.own_wheel import TOOL, install_files
from reconciler.cli.parameter_types import complete_folders
from reconciler.errors import LocalFileError, UsageError, cannot_write
from reconciler.report.visible import visible
from reconciler.resources.installation import SCHEMAS, schema_folder

_HERE = Path(__file__).parent
ONE = _HERE / "starter"
"""An organization for one service."""

TWO = _HERE / "starter-environments"
"""An organization in two environments, with its ``reconciler.yaml``."""


@command("init", example="--environments --github")
@click.argument("directory", default="manifests", metavar="[DIR]", shell_complete=complete_folders)
def init_command(
    directory: str,
    github: bool,
    gitlab: bool,
    environments: bool,
    git_hooks: bool,
    on_unreviewed: str | None,
    environment: str | None,
    source: str | None,
    published: bool,
    keyless: bool,
) -> None:
    """Write a small example organization into DIR.

    With --environments: write one in two environments into the current folder.

    With --github, --gitlab or --git-hooks: write those into the current folder, and no manifests.
    Where reconciler.yaml has environments, each has jobs of its own.
    """
    ci_flags = {
        "--from": source,
        "--published": published,
        "--on-unreviewed": on_unreviewed,
        "--keyless": keyless,
    }
    _check_together(
        ("--github or --gitlab", github or gitlab, ci_flags),
        ("--git-hooks", git_hooks, {"--env": environment}),
    )
    unreviewed = on_unreviewed or ANSWERS[0]
    answers = (unreviewed, unreviewed, environment)
    asked = zip(TARGETS, (github, gitlab, git_hooks), answers, strict=True)
    chosen = {name: answer for name, is_asked, answer in asked if is_asked}
    is_here = bool(chosen or environments)
    _check_folder(directory, is_here=is_here)
    try:
        if environments:
            _write_new(_files_of(TWO, Path()) | _files_of(schema_folder(), Path(SCHEMAS)))
        if chosen:
            tool = partial(install_files, source, is_published=published)
            _write_new(_chosen(chosen, tool, is_keyless=keyless))
        if not is_here:
            _write_starter(Path(directory))
    except OSError as failure:
        what = f"write {failure.filename or directory}"
        raise cannot_write(what, failure, "Name a folder this user may write to.") from failure
    if environments:
        click.echo("Next: reconciler validate, then plan --env staging, then apply --env staging.")
    elif chosen:
        click.echo("Next: the comments at the top of these files say what to set up once.")
    else:
        shown = "" if directory == "manifests" else f" {visible(directory)}"
        click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")
    if keyless:
        _show_trust(chosen)


def _show_trust(names: Collection[str]) -> None:
    """Print the commands that make the rules of the jobs, to be run once."""
    click.echo("Then, where the store is or with an admin's token (docs/keyless.md), run once:")
    place = place_here()
    configuration = configuration_of(place)
    for name in names:
        if name != HOOKS_NAME:
            for line in trust_lines(name, place, configuration):
                click.echo(f"  {visible(line)}")


def _check_together(*rows: tuple[str, bool, Mapping[str, object]]) -> None:
    """Refuse a flag without the one that it belongs to."""
    for belongs, is_there, flags in rows:
        for flag, value in flags.items():
            if value and not is_there:
                raise UsageError(
                    f"{flag} is for {belongs}",
                    remedy=f"Add {belongs}, or leave {flag} out.",
                )


def _check_folder(directory: str, *, is_here: bool) -> None:
    """Refuse another folder for what is written into the current one."""
    if is_here and Path(directory) not in (Path(), Path("manifests")):
        raise UsageError(
            f"these files are written into the current folder, not into {directory}",
            remedy=f"Run it in that folder: cd {shlex.quote(directory)}.",
        )


def _files_of(folder: Path, target: Path) -> dict[Path, bytes]:
    """Return the files of a folder by where they are to be beneath another one."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {target / path.relative_to(folder): path.read_bytes() for path in paths}


def _chosen(
    answers: Mapping[str, str | None],
    tool: Callable[..., Mapping[str, bytes]],
    *,
    is_keyless: bool,
) -> Mapping[Path, bytes]:
    """Return the files of each set-up that has an answer here, with the tool where jobs run it."""
    made: dict[Path, bytes] = {}
    place = place_here()
    configuration = configuration_of(place)
    has_policies = any(policies_of(place, configuration))
    for name, answer in answers.items():
        made |= set_up(name, answer, place, configuration, is_keyless=is_keyless)
        if name != HOOKS_NAME:
            folder = place.top / TARGETS[name] / TOOL
            installed = tool(has_policies=has_policies)
            made |= {folder / file: content for file, content in installed.items()}
    return made


def _write_starter(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LocalFileError(
            f"{target} is there already and is not an empty folder",
            remedy="Name a folder that does not exist yet: reconciler init DIR.",
        )
    _write_new(_files_of(ONE, target) | _files_of(schema_folder(), target / SCHEMAS))


def _write_new(files: Mapping[Path, bytes]) -> None:
    """Write files, if none of them is there yet."""
    for path, content in files.items():
        if path.exists() and not _is_kept(path, content):
            raise LocalFileError(
                f"{path} is there already",
                remedy="Move it away first; nothing was written.",
            )
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.parts[0] == HOOKS:
            path.chmod(0o755)
    for path in files:
        if SCHEMAS not in path.parts:
            click.echo(f"wrote {visible(str(path))}")


def _is_kept(path: Path, content: bytes) -> bool:
    """Return whether a file of the tool's folder is there as it would be written.

    The trees of one repository share that folder.
    """
    return path.parts[-2:-1] == (TOOL,) and path.is_file() and path.read_bytes() == content
