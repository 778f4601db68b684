"""Objects of a service as manifests: one document for each object, and the file it belongs in.

The folders are those of the example organization. Names that are no file names get one that
nobody else has; defaults are left unsaid; nothing depends on ids or on time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reconciler.resources.kinds import API_VERSION
from reconciler.resources.normal import DEFAULTS, TYPES
from reconciler.resources.ref import Kind, ResourceRef, fold
from reconciler.state import ObservedObject

SHORT_SCRIPT = 5  # lines that a manifest may hold itself
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", re.ASCII)
_LOOKS_MADE = re.compile(r".*-[0-9a-f]{16}", re.ASCII | re.DOTALL)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.ASCII | re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)


class Written(NamedTuple):
    """One object as a manifest.

    Attributes:
        path: File of the manifest, from the folder of them all.
        document: The manifest, its script in it.
        script_path: File for the script, where it is long; from the same folder.
    """

    path: str
    document: dict[str, Any]
    script_path: str = ""

    @property
    def ref(self) -> ResourceRef:
        """Return the object that the manifest is about."""
        metadata = self.document["metadata"]
        kind, name = Kind(self.document["kind"]), metadata["name"]
        organization = metadata.get("organization", name)
        return ResourceRef(kind, organization, metadata.get("project", ""), name)

    def with_script_file(self) -> dict[str, Any]:
        """Return the manifest as it stands in its file: a long script is named, not held."""
        if not self.script_path:
            return self.document
        spec = {name: value for name, value in self.document["spec"].items() if name != "script"}
        named = "scripts/" + self.script_path.rpartition("/")[2]
        return {**self.document, "spec": {**spec, "scriptFile": named}}


def declared_ref(document: Any) -> ResourceRef | None:
    """Return the ref of the object that a document declares; None if it has no clear one."""
    try:
        metadata = document["metadata"]
        kind, name = Kind(document["kind"]), metadata["name"]
        names = (metadata.get("organization", name), metadata.get("project", ""), name)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    if not all(isinstance(each, str) for each in names):
        return None
    return ResourceRef(kind, *names)


def manifest_of(held: ObservedObject) -> Written:
    """Return the manifest of an object."""
    kind = held.ref.kind
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": kind.value,
        "metadata": _metadata(held),
    }
    spec = _said(kind, held.spec)
    if spec:
        document["spec"] = spec
    folder = file_name(held.ref.organization)
    path = f"{folder}/{_place(held.ref)}.yaml"
    script = str(spec.get("script", "")) if kind is Kind.ACTION else ""
    if len(script.splitlines()) <= SHORT_SCRIPT:
        return Written(path, document)
    return Written(path, document, f"{folder}/actions/scripts/{file_name(held.ref.name)}.js")


def _place(ref: ResourceRef) -> str:
    """Return the file of a manifest beneath the folder of its organization."""
    own = file_name(ref.name)
    match ref.kind:
        case Kind.ORGANIZATION:
            return "organization"
        case Kind.PROJECT:
            return f"projects/{own}/project"
        case Kind.OIDC_APPLICATION:
            return f"projects/{file_name(ref.project)}/applications/{own}"
        case Kind.IDP_JWT_CONFIG:
            return f"identity-providers/{own}"
        case Kind.ACTION:
            return f"actions/{own}"


def file_name(name: str) -> str:
    """Return a file name for a name: the name itself, or one made from its digest.

    Two names that differ, ignoring case, have file names that differ, ignoring case.
    """
    if (
        _PLAIN.fullmatch(name)
        and not _LOOKS_MADE.fullmatch(name.lower())
        and not _RESERVED.fullmatch(name)
    ):
        return name
    slug = _ODD.sub("-", name).strip("-")[:40]
    digest = hashlib.sha256(fold(name).encode()).hexdigest()[:16]
    return f"{slug or 'name'}-{digest}"


def order_of(ref: ResourceRef) -> tuple[str, int, ResourceRef]:
    """Return where a manifest stands among others: organization by organization, owners first."""
    key = ref.key
    return key.organization, list(Kind).index(ref.kind), key


def _metadata(held: ObservedObject) -> dict[str, Any]:
    ref = held.ref
    metadata: dict[str, Any] = {}
    if ref.kind is not Kind.ORGANIZATION:
        metadata["organization"] = ref.organization
    if ref.kind is Kind.OIDC_APPLICATION:
        metadata["project"] = ref.project
    metadata["name"] = ref.name
    if held.prevent_delete:
        metadata["preventDelete"] = True
    if held.critical:
        metadata["critical"] = True
    return metadata


def _said(kind: Kind, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not at their defaults, the script last: it may be long."""
    defaults = DEFAULTS[kind]
    names = sorted(TYPES[kind], key="script".__eq__)
    return {name: spec[name] for name in names if spec.get(name) != defaults.get(name)}
