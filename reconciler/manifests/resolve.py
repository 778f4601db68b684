"""Written values become resolved ones, and every value keeps the place it came from.

This is the last step: ``scriptFile`` becomes ``script``, and variables in a script are replaced
where ``templated: true`` says so. Everything after it, digests included, sees resolved values
only. What cannot be resolved stays as it is written, with a finding; wrong types are left to the
schema.

A script file is opened beneath the folder of the manifests and nowhere else. Its path is taken
apart as text and walked folder by folder from an open handle of the root, without following a
link: there is no moment between looking and opening. What is read here is what is judged, shown
and sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from reconciler.diagnostics import Diagnostic, error
from reconciler.kinds.action.fields import MAX_SCRIPT, MAX_SCRIPT_BYTES
from reconciler.kinds.fields import KINDS
from reconciler.manifests.files import OpeningError, Reason, open_folder, read_file
from reconciler.manifests.manifest import Manifest, Root
from reconciler.manifests.placeholders import OPENING, left_over, may_have_left_over, position
from reconciler.manifests.variables import (
    SCRIPT,
    Variables,
    left_over_finding,
    unreplaced_note,
)
from reconciler.resources.ref import ACTION

_SCRIPT_FILE = KINDS[ACTION].instead["script"]


class Resolver:
    """Resolves the manifests of one run. A script that several share is read once."""

    def __init__(self, variables: Variables) -> None:
        self.findings: list[Diagnostic] = []
        self._variables = variables
        self._scripts: dict[tuple[str, tuple[str, ...]], str] = {}

    def resolve(self, manifest: Manifest) -> Manifest:
        """Return the manifest with its script read, and with the script's variables replaced.

        What metadata says for this step alone is gone afterwards.
        """
        document = manifest.document
        if not isinstance(document, dict) or document.get("kind") != ACTION.value:
            return manifest
        spec = document.get("spec")
        if not isinstance(spec, dict):
            return manifest
        if "scriptFile" in spec and "script" not in spec:
            path = spec["scriptFile"]
            if isinstance(path, str) and 0 < len(path) <= _SCRIPT_FILE.longest and "\0" not in path:
                manifest = self._with_script(manifest, path)
        metadata = document.get("metadata")
        if not (isinstance(metadata, dict) and "templated" in metadata):
            self._note_variable(manifest)
            return manifest
        templated = metadata["templated"]
        if not isinstance(templated, bool):
            place = manifest.place("metadata", "templated")
            self.findings.append(error("SCHEMA-TYPE", _NO_FLAG, _A_FLAG, place))
        return self._finished(manifest, templated=templated is True)

    def _with_script(self, manifest: Manifest, path: str) -> Manifest:
        written = manifest.origin("spec", "scriptFile")
        file = written.file
        try:
            parts = parts_beneath(file.folder, path)
            script = self._script(file.root, parts)
        except ScriptFileError as fault:
            place = manifest.place("spec", "scriptFile")
            self.findings.append(error(*fault.words, place))
            return manifest
        spec = dict(manifest.document["spec"])
        del spec["scriptFile"]
        origin = written._replace(script=file.root.shown + "/".join(parts))
        document = {**manifest.document, "spec": {**spec, "script": script}}
        read = manifest.changed(document, {SCRIPT: origin})
        token = left_over(script) if may_have_left_over(script) else None
        if token is not None:
            place = read.place_within(*position(script, token.start), *SCRIPT)
            self.findings.append(left_over_finding(token, place, in_script=True))
        return read

    def _note_variable(self, manifest: Manifest) -> None:
        script = manifest.document["spec"].get("script")
        if not (isinstance(script, str) and OPENING in script):
            return
        if token := self._variables.unreplaced(script):
            place = manifest.place_within(*position(script, token.start), *SCRIPT)
            self.findings.append(unreplaced_note(token, place))

    def _finished(self, manifest: Manifest, *, templated: bool) -> Manifest:
        """Return a manifest without its ``templated``, and its script as it is to run."""
        document, spec = dict(manifest.document), manifest.document["spec"]
        document["metadata"] = {**document["metadata"]}
        del document["metadata"]["templated"]
        script = spec.get("script")
        if not (templated and isinstance(script, str)):
            return manifest.changed(document, {})
        document["spec"] = {**spec, "script": self._variables.in_script(manifest, script)}
        return manifest.changed(document, {SCRIPT: manifest.origin(*SCRIPT)._replace(text=script)})

    def _script(self, root: Root, parts: tuple[str, ...]) -> str:
        key = (root.path, parts)
        if key not in self._scripts:
            self._scripts[key] = read_script(root, parts)
        return self._scripts[key]


_NO_FLAG = "templated is not true or false"
_A_FLAG = "Write true or false, without quotes."

MAX_SCRIPT_FILE = 64 * 1024  # bytes, more than any service takes; the rest is told apart

REMEDIES = {
    Reason.SYMLINK: "Links are not followed: name the file itself, or put it here.",
    Reason.MISSING: "Check the path; it starts from the folder of the manifest.",
    Reason.NOT_REGULAR: "Name a regular file; folders, pipes, sockets and devices are not read.",
    Reason.NOT_A_FOLDER: "Check the path; a part of it before the last is not a folder.",
    Reason.TOO_DEEP: "Keep scripts in fewer levels of folders.",
    Reason.TOO_LARGE: f"A script has at most {MAX_SCRIPT} characters; on a ZITADEL, at most "
    f"{MAX_SCRIPT_BYTES} bytes.",
    Reason.UNREADABLE: "Give the user who runs this command the right to read it.",
}


class ScriptFileError(Exception):
    """A script file cannot be used: code, summary and remedy of the finding."""

    def __init__(self, code: str, summary: str, remedy: str) -> None:
        super().__init__(summary)
        self.words = (code, summary, remedy)


def parts_beneath(folder: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the way from the root to a path that is written in a manifest of a folder.

    Raises:
        ScriptFileError: the path leads out of the root, or nowhere.
    """
    if path.startswith("/"):
        raise ScriptFileError(
            "SCRIPT-ABSOLUTE",
            "an absolute path",
            "Write the path from the folder of the manifest, such as scripts/greet.js.",
        )
    parts = list(folder)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise ScriptFileError(
                    "SCRIPT-OUTSIDE",
                    "a path that leads out of the folder of the manifests",
                    "Keep scripts beneath the folder that is given on the command line.",
                )
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not parts:
        raise _refusal(OpeningError(Reason.NOT_REGULAR))
    return tuple(parts)


def read_script(root: Root, parts: Sequence[str]) -> str:
    """Return the text of a script file, unchanged.

    Raises:
        ScriptFileError: it cannot be read, or is not UTF-8.
    """
    try:
        with ExitStack() as handles:
            folder = handles.enter_context(open_folder(root.path, follow=True))
            for part in parts[:-1]:
                folder = handles.enter_context(open_folder(part, folder))
            data = read_file(parts[-1], folder, MAX_SCRIPT_FILE)
    except OpeningError as fault:
        raise _refusal(fault) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise ScriptFileError(
            "SCRIPT-ENCODING",
            f"the script is not UTF-8 (byte 0x{data[fault.start]:02x} in its line {line})",
            "Save the script as UTF-8.",
        ) from None


def _refusal(fault: OpeningError) -> ScriptFileError:
    code = f"SCRIPT-{fault.reason.name.replace('_', '-')}"
    return ScriptFileError(code, f"the script file {fault}", REMEDIES[fault.reason])
