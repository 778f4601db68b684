"""``reconciler export``: the objects of a service as manifests, and what no manifest can express.

Everything that is exported was judged as ``validate`` judges it and read back as ``plan`` reads
it, so that a plan of the export is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from reconciler.cli.clients import open_reader
from reconciler.cli.connection import Connection
from reconciler.cli.moments import check_complete, held_at, log_of, sequences_at
from reconciler.cli.options import command
from reconciler.cli.output import hint, say, show_warnings
from reconciler.cli.parameter_types import At, RefType
from reconciler.cli.plan_files import save_snapshot
from reconciler.cli.render import (
    as_files,
    check_folder,
    folder_unwritten,
    write_files,
    write_manifests,
)
from reconciler.errors import (
    LocalFileError,
    ObjectNotFoundError,
    ServiceError,
    UnseenOrganizationError,
    UsageError,
)
from reconciler.loop import with_generation
from reconciler.manifests.export import Written, escapes, manifest_of, order_of
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import Growth, Loaded, Manifest, Root, SourceFile, declared_ref
from reconciler.manifests.placeholders import NO_LAYERS
from reconciler.manifests.variables import Variables
from reconciler.manifests.yaml_source import read_documents
from reconciler.plan.advice import unidentified
from reconciler.plan.diff import OPTIONS, OPTIONS_IN_WORDS
from reconciler.report.visible import visible
from reconciler.resources.capabilities import CAPABILITIES, SOURCE, uses
from reconciler.resources.nearest import one_of
from reconciler.resources.ref import Kind, ResourceRef, fold, owner_of
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import ObservedObject, ObservedState, is_in_step
from reconciler.validation.desired import judge

NOT_EXPORTED = "NOT-EXPORTED.txt"


@command("export", example="--out manifests")
@click.argument("refs", nargs=-1, type=RefType(), metavar="[REF]...")
def export_command(
    refs: Sequence[ResourceRef],
    connection: Connection,
    out: str,
    organization: Sequence[str],
    with_console: bool,
    overwrite: bool,
    snapshot: str,
    at: At | None,
) -> None:
    """Write what a service holds as manifests: everything, or the objects that are named.

    REF is Kind/organization[/project]/name, such as Action/acme/greet. A named object is written
    into a folder that holds other manifests, unless one of them declares it.

    With --at it is what the service held then: at a time such as 2026-11-22T14:30:00Z, some time
    ago such as 2h, or before the first event of a run.

    A plan of the export is empty. What manifests cannot express is named on stderr, and in the
    folder in NOT-EXPORTED.txt. Without --out everything goes to stdout as one stream.
    """
    _check_options(refs, organization, snapshot, at)
    if out:
        check_folder(Path(out), overwrite=overwrite or bool(refs))
    with open_reader(connection) as reader:
        wanted = organization or sorted({ref.organization for ref in refs})
        if at:
            observed = held_at(reader, sequences_at(reader, log_of(reader, wanted), at), at)
        else:
            observed = _observed(reader, wanted, is_kept=bool(snapshot))
    if snapshot:
        save_snapshot(observed, connection.service, organization, snapshot)
        if not out:
            return
    show_warnings(list(unidentified(observed)))
    if refs:
        export = _of_refs(export_of(observed), refs)
    else:
        export = export_of(observed if with_console else _without_console(observed))
    if out:
        _check_declared(Path(out), export, may_replace=overwrite)
    write_manifests(export.manifests, out)
    if out and not refs:
        _finish(Path(out), export)
    _show_rest(export)


def _check_options(
    refs: Sequence[ResourceRef], organization: Sequence[str], snapshot: str, at: At | None
) -> None:
    if refs and (organization or snapshot):
        raise UsageError(
            "a REF does not go with --organization or --snapshot",
            remedy="Name objects, or organizations, or save a snapshot of all.",
        )
    if at and snapshot:
        raise UsageError(
            "--at does not go with --snapshot",
            remedy="A snapshot is of what is held now. Write manifests with --out DIR.",
        )


def _show_rest(export: Export) -> None:
    """Print what was left out, and which capabilities ``validate`` needs for the manifests."""
    for line in export.left_out:
        say(f"not exported: {visible(line)}", err=True)
    used = [
        use
        for each in export.manifests
        for use in uses(each.ref.kind, each.document.get("spec") or {})
    ]
    names = [name for name, each in CAPABILITIES.items() if all(map(each.takes, used))]
    if names and SOURCE not in names:
        hint(f"To check these manifests: reconciler validate --capabilities {one_of(names)}.")


def _observed(
    reader: ReadOnlyService, organizations: Sequence[str], *, is_kept: bool
) -> ObservedState:
    """Return what is held, all of it.

    A plan against what is kept must know what the service takes, so that is asked, too.
    """
    observed = reader.observe(organizations or reader.organizations())
    held = {key.organization for key in observed.objects if key.kind is Kind.ORGANIZATION}
    missing = [name for name in organizations if fold(name) not in held]
    if missing and observed.missing_role:
        raise UnseenOrganizationError(missing, remedy=observed.missing_role)
    if missing:
        raise ObjectNotFoundError(
            f"there is no organization {missing[0]}",
            remedy="Correct the name, or use a token that may see it.",
        )
    check_complete(observed)
    return with_generation(observed, reader) if is_kept else observed


def _check_declared(folder: Path, export: Export, *, may_replace: bool) -> None:
    """Refuse an export that would declare an object a second time.

    ``may_replace`` allows a file of the export's own name, which is then written over.
    """
    if not folder.exists():
        return
    written = {each.ref.key: each for each in export.manifests}
    loaded = load([folder])
    for finding in loaded.diagnostics:
        if finding.is_error and finding.location and finding.code.startswith("YAML-"):
            raise LocalFileError(
                f"{finding.location} cannot be read: {finding.summary}",
                remedy="Correct it or move it away: it may declare an object of this export. "
                "Nothing was written.",
            )
    for manifest in loaded.manifests:
        declared = declared_ref(manifest.document)
        found = written.get(declared.key) if declared else None
        own = found is not None and Path(manifest.file.name) == folder / found.path
        if found is None or (own and may_replace):
            continue
        raise LocalFileError(
            f"{manifest.file.name} declares {found.ref} already",
            remedy="Remove it there, or export into another folder. "
            "--overwrite replaces only a file of the same name. Nothing was written.",
        )


def _finish(folder: Path, export: Export) -> None:
    """Write what could not be exported, and name the manifests that are not of this export."""
    if export.left_out:
        lines = "".join(f"{visible(line)}\n" for line in export.left_out)
        write_files(folder, {NOT_EXPORTED: lines})
    try:
        found = (path for path in folder.rglob("*") if path.suffix in {".yaml", ".yml", ".js"})
        names = {path.relative_to(folder).as_posix() for path in found if path.is_file()}
    except OSError as failure:
        raise folder_unwritten(folder, failure) from failure
    for name in sorted(names - as_files(export.manifests).keys()):
        say(f"left alone, because it is not part of this export: {visible(name)}", err=True)


@dataclass(frozen=True, slots=True)
class Export:
    """A body of manifests.

    Attributes:
        manifests: In the order in which they are applied, organization by organization.
        left_out: What no manifest can express, in sentences; hostile text as it came.
    """

    manifests: tuple[Written, ...]
    left_out: tuple[str, ...]


def _without_console(observed: ObservedState) -> ObservedState:
    """Return what is held without the project of the service's own console, which it names."""
    objects = observed.objects
    own = next((held for held in objects.values() if held.id == observed.own_project), None)
    if own is None:
        return observed
    rest = {key: held for key, held in objects.items() if not observed.is_own(held)}
    clashes = tuple(held for held in observed.name_clashes if not observed.is_own(held))
    line = f"{own.ref} and its applications: the service's own console (--with-console exports it)"
    unexpressed = (*observed.unexpressed, line)
    return replace(observed, objects=rest, name_clashes=clashes, unexpressed=unexpressed)


def _of_refs(export: Export, refs: Sequence[ResourceRef]) -> Export:
    """Return the part of an export that is about some objects."""
    manifests = {written.ref.key: written for written in export.manifests}
    for ref in refs:
        if ref.key in manifests:
            continue
        reasons = [line for line in export.left_out if line.startswith(f"{ref}: ")]
        if reasons:
            raise ServiceError(
                f"this object cannot be exported: {reasons[0]}",
                remedy="Change the object on the service so that a manifest can express it.",
            )
        raise ObjectNotFoundError(
            f"the service holds no {ref}",
            remedy="Correct the name. `reconciler export` without a REF writes everything.",
        )
    names = tuple(f"{ref}: " for ref in refs)
    return Export(
        tuple(manifests[key] for key in dict.fromkeys(ref.key for ref in refs)),
        tuple(line for line in export.left_out if line.startswith(names)),
    )


def export_of(observed: ObservedState) -> Export:
    """Return all that was observed as manifests, as far as manifests can express it."""
    objects = sorted(observed.objects.values(), key=lambda held: order_of(held.ref))
    shared = {held.ref.key for held in observed.name_clashes}
    candidates = {held.ref.key: (held, manifest_of(held)) for held in objects}
    reasons = {
        key: "another object has the same name, and a manifest could mean either"
        for key in shared
        if key in candidates
    }
    reasons.update(_refused(candidates))
    for key, (held, _) in candidates.items():
        owner = owner_of(held.ref)
        if key not in reasons and owner is not None and owner.key in reasons:
            reasons[key] = f"{owner} is not exported"
    return Export(
        tuple(written for key, (_, written) in candidates.items() if key not in reasons),
        (
            *observed.unexpressed,
            *(f"{candidates[key][0].ref}: {why}" for key, why in reasons.items()),
            *_unsaid(held for held in objects if held.ref.key not in reasons),
        ),
    )


_Candidates = Mapping[ResourceRef, tuple[ObservedObject, Written]]


def _refused(candidates: _Candidates) -> Mapping[ResourceRef, str]:
    """Return what ``validate`` would refuse, and what would not read back as it is held."""
    manifests = [_manifest(written) for _, written in candidates.values()]
    variables = Variables(NO_LAYERS, Growth())
    for manifest in manifests:
        variables.replace(manifest)
    judgement = judge(Loaded(tuple(manifests), (), whole=True))
    reasons: dict[ResourceRef, str] = {}
    by_file = {written.path: key for key, (_, written) in candidates.items()}
    for finding in (*variables.findings, *judgement.diagnostics):
        place = finding.location.file if finding.location else ""
        if finding.is_error and place in by_file:
            reasons.setdefault(by_file[place], f"{finding.summary} ({finding.code})")
    for key, (held, written) in candidates.items():
        if key in reasons and held.uncarried:
            reasons[key] = f"it has {', '.join(held.uncarried)}, which no manifest can declare"
        resource = judgement.desired.resources.get(key)
        is_same = resource is not None and is_in_step(resource, held)
        if key not in reasons and not (
            is_same and read_documents(written.text()).documents == [escapes(written.document)]
        ):
            reasons[key] = "its fields cannot be written in a manifest as they are"
    return reasons


def _manifest(written: Written) -> Manifest:
    """Return a manifest as it is read, before its variables are replaced."""
    *folder, _ = written.path.split("/")
    file = SourceFile(written.path, written.text(), Root("."), tuple(folder))
    return Manifest(escapes(written.document), file)


def _unsaid(objects: Iterable[ObservedObject]) -> Iterator[str]:
    """Yield what exported objects hold beside their manifests; an update keeps it."""
    for held in objects:
        if not OPTIONS.isdisjoint(held.carried):
            yield f"{held.ref}: {OPTIONS_IN_WORDS}"
        if names := sorted({*held.carried, *held.uncarried} - OPTIONS):
            yield f"{held.ref}: fields that this version does not know ({', '.join(names)})"
