"""Manifests that a command makes, as files of a folder or as one stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from reconciler.errors import LocalFileError
from reconciler.manifests.export import Written
from reconciler.resources.installation import SCHEMAS, schema_folder, schema_path
from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import Kind


def as_stream(manifests: Iterable[Written]) -> str:
    """Return manifests as one stream, scripts in it."""
    return "---\n".join(written.text() for written in manifests)


def as_files(manifests: Iterable[Written]) -> Mapping[str, str]:
    """Return every file with its content: modelines first, long scripts in files of their own.

    The modelines name the schemas in the folder ``SCHEMAS`` beside the manifests.
    """
    files: dict[str, str] = {}
    for written in manifests:
        files[written.path] = _modeline(written) + written.text(script_beside=True)
        if written.script_path:
            files[written.script_path] = written.document["spec"]["script"]
    return files


def _modeline(written: Written) -> str:
    """Return the line that tells an editor's YAML language server which schema a file has."""
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
        raise cannot_write(folder, failure) from failure


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files, and beside them the schemas that their modelines lead to.

    Raises:
        LocalFileError: one of them cannot be written.
    """
    schemas = {f"{SCHEMAS}/{path.name}": path for path in sorted(schema_folder().glob("*.json"))}
    missing = {
        name: path.read_text(encoding="utf-8")
        for name, path in schemas.items()
        if not (folder / name).exists()
    }
    try:
        for name, content in {**files, **missing}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(path, content.encode())
    except OSError as failure:
        raise cannot_write(folder, failure) from failure


def _write_file(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(content)


def cannot_write(folder: Path, failure: OSError) -> LocalFileError:
    """Return the error that a folder cannot be written."""
    return LocalFileError(
        f"cannot write into {folder}: {failure.strerror or failure}",
        remedy="Name a folder this user may write to.",
    )
