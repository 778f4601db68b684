"""``reconciler init``."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from reconciler.errors import LocalFileError
from reconciler.resources.schema_files import schema_folder

STARTER = Path(__file__).parent / "starter"
SCHEMAS = ".schemas"


@click.command("init")
@click.argument("directory", default="manifests", metavar="[DIR]")
def init_command(directory: str) -> None:
    """Write a small organization into DIR, to begin from."""
    target = Path(directory)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise LocalFileError(
                f"{directory} is there already and is not an empty folder",
                remedy="Name a folder that does not exist yet: reconciler init DIR.",
            )
        shutil.copytree(STARTER, target, dirs_exist_ok=True)
        shutil.copytree(schema_folder(), target / SCHEMAS)
    except OSError as failure:
        raise LocalFileError(
            f"cannot write into {directory}: {failure.strerror}",
            remedy="Name a folder this user may write to.",
        ) from failure
    for path in sorted(target.rglob("*")):
        if path.is_file() and SCHEMAS not in path.parts:
            click.echo(f"wrote {path}")
    shown = "" if directory == "manifests" else f" {directory}"
    click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")
