"""``reconciler render``; and files of manifests, which ``export`` writes as well."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import click

from reconciler.cli.configured import Need, configured
from reconciler.cli.manifests import read_offline
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import hint, show_warnings
from reconciler.errors import LocalFileError, cannot_write
from reconciler.kinds.fields import KINDS
from reconciler.manifests.export import Written, manifest_resolved, order_of
from reconciler.report.visible import visible
from reconciler.resources.files import NotRegularError, open_regular
from reconciler.resources.installation import SCHEMAS, schema_folder, schema_path
from reconciler.resources.ref import Kind

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


@command("render", example="--env production --out resolved", need=Need.ONE)
@paths_argument
def render_command(paths: tuple[str, ...], out: str, overwrite: bool) -> None:
    """Write the manifests of an environment, with variables, defaults and overlay resolved.

    No service is asked. They plan the same as what they are made from, in a folder without
    reconciler.yaml. Values have their long spelling, and scripts stand in the manifests or beside
    them. Without --out everything goes to stdout as one stream.

    PATHS are files and folders; the default is the folder manifests.
    """
    if out:
        check_folder(Path(out), overwrite=overwrite)
    desired, warnings = read_offline(paths, configured())
    show_warnings(warnings)
    resources = sorted(desired.resources.values(), key=lambda each: order_of(each.ref))
    write_manifests([manifest_resolved(resource) for resource in resources], out)


def write_manifests(manifests: Sequence[Written], out: str) -> None:
    """Write manifests into a folder; without one to stdout as one stream, scripts in it.

    Raises:
        LocalFileError: a file cannot be written.
    """
    if out:
        write_files(Path(out), as_files(manifests))
        count = len(manifests)
        hint(f"Wrote {count} manifest{'' if count == 1 else 's'} into {visible(out)}.")
        return
    click.echo(as_stream(manifests), nl=False)


def as_stream(manifests: Iterable[Written]) -> str:
    """Return manifests as one stream, scripts in it."""
    return "---\n".join(written.text() for written in manifests)


def as_files(manifests: Iterable[Written]) -> Mapping[str, str]:
    """Return every file with its content: modelines first, long scripts in files of their own.

    The modelines name the schemas in the folder ``SCHEMAS`` beside the manifests.
    """
    files: dict[str, str] = {}
    for written in manifests:
        files[written.path] = _modeline(written) + written.text(scripts_beside=True)
        folder = written.path.rpartition("/")[0]
        for name, path in written.scripts.items():
            files[f"{folder}/{path}"] = written.document["spec"][name]
    return files


def _modeline(written: Written) -> str:
    """Return the line that names a file's schema for the YAML language server of an editor."""
    up = "../" * written.path.count("/")
    name = schema_path(KINDS[Kind(written.document["kind"])].schema).name
    return f"# yaml-language-server: $schema={up}{SCHEMAS}/{name}\n"


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that others wrote into, unless ``overwrite`` allows it.

    Raises:
        LocalFileError: it is not an empty folder, or cannot be looked into.
    """
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not overwrite)):
            raise LocalFileError(
                f"{folder} is there already and is not an empty folder",
                remedy="Name another folder, or give --overwrite to write into this one.",
            )
    except OSError as failure:
        raise folder_unwritten(folder, failure) from failure


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files, and beside them the schemas that their modelines lead to.

    Raises:
        LocalFileError: one of them cannot be written.
    """
    schemas = {f"{SCHEMAS}/{path.name}": path for path in sorted(schema_folder().glob("*.json"))}
    try:
        missing = {
            name: path.read_text(encoding="utf-8")
            for name, path in schemas.items()
            if not (folder / name).exists()
        }
        _check_links(folder, [*files, *missing])
        for name, content in {**files, **missing}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(open_regular(path, _FLAGS, mode=0o666), "wb") as file:
                file.write(content.encode())
    except OSError as failure:
        raise folder_unwritten(folder, failure) from failure


def _check_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse files below a link to a folder: it may lead anywhere, and nothing there is read."""
    for inner in sorted({parent for name in names for parent in PurePath(name).parents}):
        if inner.name and (folder / inner).is_symlink():
            raise LocalFileError(
                f"{folder / inner} is a symbolic link",
                remedy="Remove it, or name another folder. Nothing was written.",
            )


def folder_unwritten(folder: Path, failure: OSError) -> LocalFileError:
    """Return the error that a folder cannot be written, or a file that has another's name."""
    if isinstance(failure, NotRegularError):
        return cannot_write(
            f"write {failure.filename}", failure, "Remove it, or name another folder."
        )
    return cannot_write(f"write into {folder}", failure, "Name a folder this user may write to.")
