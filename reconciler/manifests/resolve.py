"""Written values become resolved ones, and every value keeps the place it came from.

Today that is ``scriptFile``, which becomes ``script``. Everything after this step, digests
included, sees resolved values only. What cannot be resolved stays as it is written, with a
finding; wrong types are left to the schema.
"""

from __future__ import annotations

from reconciler.diagnostics import Diagnostic, error
from reconciler.manifests.manifest import Manifest, Origin
from reconciler.manifests.script_file import ScriptFileError, parts_beneath, read_script
from reconciler.manifests.source_file import Root
from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import ACTION

_SCRIPT_FILE = KINDS[ACTION].instead["script"]


class Resolver:
    """Resolves the manifests of one run. A script that several share is read once."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        self._scripts: dict[tuple[str, tuple[str, ...]], str] = {}

    def resolve(self, manifest: Manifest) -> Manifest:
        """Return the manifest with its references to files replaced by what the files hold."""
        document = manifest.document
        if not isinstance(document, dict) or document.get("kind") != "Action":
            return manifest
        spec = document.get("spec")
        if not isinstance(spec, dict) or "script" in spec or "scriptFile" not in spec:
            return manifest
        path = spec["scriptFile"]
        if not isinstance(path, str) or not 0 < len(path) <= _SCRIPT_FILE.longest or "\0" in path:
            return manifest
        return self._with_script(manifest, path)

    def _with_script(self, manifest: Manifest, path: str) -> Manifest:
        file = manifest.file
        try:
            parts = parts_beneath(file.folder, path)
            script = self._script(file.root, parts)
        except ScriptFileError as fault:
            place = manifest.place("spec", "scriptFile")
            self.findings.append(error(*fault.words, place))
            return manifest
        spec = dict(manifest.document["spec"])
        del spec["scriptFile"]
        origin = Origin(("spec", "scriptFile"), file.root.shown + "/".join(parts))
        return Manifest(
            {**manifest.document, "spec": {**spec, "script": script}},
            file,
            manifest.index,
            {("spec", "script"): origin},
        )

    def _script(self, root: Root, parts: tuple[str, ...]) -> str:
        key = (root.path, parts)
        if key not in self._scripts:
            self._scripts[key] = read_script(root, parts)
        return self._scripts[key]
