"""The objects of a service as manifests, and what of them no manifest can express.

Everything that is exported was judged as ``validate`` judges it and read back as ``plan`` reads
it, so that a plan of the export is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.errors import ObjectNotFoundError, ServiceError
from reconciler.manifests.emitter import emit
from reconciler.manifests.layout import Written, manifest_of, order_of
from reconciler.manifests.manifest import Loaded, Manifest
from reconciler.manifests.source_file import Root, SourceFile
from reconciler.manifests.yaml_source import read_documents
from reconciler.resources.ref import Kind, ResourceRef, owner_of
from reconciler.resources.schema_files import SCHEMAS, schema_path
from reconciler.state import ObservedObject, ObservedState, is_in_step
from reconciler.validation.desired import judge


@dataclass(frozen=True, slots=True)
class Export:
    """A body of manifests.

    Attributes:
        manifests: In the order in which they are applied, organization by organization.
        left_out: What no manifest can express, in sentences; hostile text as it came.
    """

    manifests: tuple[Written, ...]
    left_out: tuple[str, ...]

    def files(self) -> Mapping[str, str]:
        """Return every file with its content: modelines first, long scripts in files of their own.

        The modelines name the schemas in the folder ``SCHEMAS`` beside the manifests.
        """
        files: dict[str, str] = {}
        for written in self.manifests:
            files[written.path] = _modeline(written) + emit(written.with_script_file())
            if written.script_path:
                files[written.script_path] = written.document["spec"]["script"]
        return files

    def stream(self) -> str:
        """Return every manifest as one stream, scripts in it."""
        return "---\n".join(emit(written.document) for written in self.manifests)


def _modeline(written: Written) -> str:
    """Return the line that tells an editor's YAML language server which schema a file has."""
    up = "../" * written.path.count("/")
    name = schema_path(Kind(written.document["kind"])).name
    return f"# yaml-language-server: $schema={up}{SCHEMAS}/{name}\n"


def of_refs(export: Export, refs: Sequence[ResourceRef]) -> Export:
    """Return the part of an export that is about some objects.

    Raises:
        ObjectNotFoundError: one of them is not held.
        ServiceError: one of them cannot be expressed as a manifest.
    """
    manifests = {written.ref.key: written for written in export.manifests}
    for ref in refs:
        if ref.key in manifests:
            continue
        told = [line for line in export.left_out if line.startswith(f"{ref}: ")]
        if told:
            raise ServiceError(
                f"this object cannot be exported: {told[0]}",
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
    shared = {held.ref.key for held in observed.doubles}
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
            *_unsaid(objects),
        ),
    )


_Candidates = Mapping[ResourceRef, tuple[ObservedObject, Written]]


def _refused(candidates: _Candidates) -> Mapping[ResourceRef, str]:
    """Return what ``validate`` would refuse, and what would not read back as it is held."""
    manifests = [_manifest(written) for _, written in candidates.values()]
    judgement = judge(Loaded(tuple(manifests), (), whole=True))
    reasons: dict[ResourceRef, str] = {}
    by_file = {written.path: key for key, (_, written) in candidates.items()}
    for finding in judgement.diagnostics:
        place = finding.location.file if finding.location else ""
        if finding.is_error and place in by_file:
            reasons.setdefault(by_file[place], f"{finding.summary} ({finding.code})")
    for key, (held, written) in candidates.items():
        resource = judgement.desired.resources.get(key)
        read = read_documents(emit(written.document))
        if key in reasons:
            continue
        if resource is None or not is_in_step(resource, held) or read != [written.document]:
            reasons[key] = "its fields cannot be written in a manifest as they are"
    return reasons


def _manifest(written: Written) -> Manifest:
    *folder, _ = written.path.split("/")
    file = SourceFile(written.path, emit(written.document), Root("."), tuple(folder))
    return Manifest(written.document, file)


def _unsaid(objects: Sequence[ObservedObject]) -> Iterator[str]:
    for held in objects:
        names = sorted({*held.carried, *held.uncarried})
        if names:
            yield f"{held.ref}: fields that this version does not know ({', '.join(names)})"
