"""``reconciler export``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from reconciler import __version__
from reconciler.cli.connection import service_options
from reconciler.cli.exporting import Export, export_of
from reconciler.cli.options import option
from reconciler.cli.output import hint
from reconciler.cli.saved_files import save
from reconciler.cli.wiring import open_inquiry
from reconciler.diagnostics import name_as_text
from reconciler.errors import LocalFileError, ObjectNotFoundError, ServiceError
from reconciler.plan.snapshot import SnapshotFile, snapshot_content
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.port import ServiceInquiry
from reconciler.state import ObservedState

NOT_EXPORTED = "NOT-EXPORTED.txt"


@click.command("export")
@service_options
@option("--out", default="", metavar="DIR", help="Write files into DIR, which is made.")
@option(
    "--organization",
    "organizations",
    multiple=True,
    metavar="NAME",
    help="What to export; can be given again. Without it: all that the token may see.",
)
@option("--overwrite", is_flag=True, help="Write into DIR although there are files in it.")
@option(
    "--snapshot",
    default="",
    metavar="FILE",
    help="Save what is held, for plan --against FILE, instead of manifests.",
)
def export_command(
    service: str, out: str, organizations: Sequence[str], overwrite: bool, snapshot: str
) -> None:
    """Write what a service holds as manifests.

    A plan of the export is empty. What manifests cannot express is named on stderr, and in the
    folder in NOT-EXPORTED.txt. Without --out everything goes to stdout as one stream.
    """
    if out:
        _check_folder(Path(out), overwrite=overwrite)
    with open_inquiry(service) as inquiry:
        observed = _observed(inquiry, organizations)
    if snapshot:
        _save_snapshot(observed, service, organizations, snapshot)
        if not out:
            return
    export = export_of(observed)
    if out:
        _write(Path(out), export)
    else:
        click.echo(export.stream(), nl=False)
        sys.stdout.flush()
    _tell(export)


def _observed(inquiry: ServiceInquiry, organizations: Sequence[str]) -> ObservedState:
    """Return what is held, all of it.

    Raises:
        ObjectNotFoundError: there is no organization of a name.
        ServiceError: only a part could be listed.
    """
    observed = inquiry.observe(organizations or inquiry.organizations())
    held = {key.organization for key in observed.objects if key.kind is Kind.ORGANIZATION}
    missing = [name for name in organizations if fold(name) not in held]
    if missing:
        raise ObjectNotFoundError(
            f"there is no organization {missing[0]}",
            remedy="Correct the name, or use a token that may see it.",
        )
    if observed.incomplete:
        raise ServiceError(
            f"the service's listing is not complete: {observed.incomplete[0]}",
            remedy="Run the command again. Nothing was written: half a picture is none.",
        )
    return observed


def _save_snapshot(
    observed: ObservedState, service: str, organizations: Sequence[str], path: str
) -> None:
    file = SnapshotFile(
        observed,
        __version__,
        name_as_text(service),
        int(time.time()),
        tuple(sorted({fold(name) for name in organizations})) or None,
    )
    save(path, snapshot_content(file))
    hint(f"Saved {len(observed.objects)} objects to: {visible(path)}")


def _check_folder(folder: Path, *, overwrite: bool) -> None:
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not overwrite)):
            raise LocalFileError(
                f"{folder} is there already and is not an empty folder",
                remedy="Name another folder, or give --overwrite to write into this one.",
            )
    except OSError as failure:
        raise _cannot_write(folder, failure) from failure


def _write(folder: Path, export: Export) -> None:
    files: dict[str, str] = dict(export.files())
    if export.left_out:
        files[NOT_EXPORTED] = "".join(f"{visible(line)}\n" for line in export.left_out)
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(path, content.encode())
        others = _others(folder, files)
    except OSError as failure:
        raise _cannot_write(folder, failure) from failure
    hint(f"Wrote {len(export.manifests)} manifests into {visible(str(folder))}.")
    for name in others:
        click.echo(f"left alone, and not of this export: {visible(name)}", err=True)


def _write_file(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(content)


def _others(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return manifests and scripts in the folder that this export did not write."""
    found = (path for path in folder.rglob("*") if path.suffix in {".yaml", ".yml", ".js"})
    names = sorted(path.relative_to(folder).as_posix() for path in found if path.is_file())
    return [name for name in names if name not in files]


def _tell(export: Export) -> None:
    for line in export.left_out:
        click.echo(f"not exported: {visible(line)}", err=True)


def _cannot_write(folder: Path, failure: OSError) -> LocalFileError:
    return LocalFileError(
        f"cannot write into {folder}: {failure.strerror or failure}",
        remedy="Name a folder this user may write to.",
    )
