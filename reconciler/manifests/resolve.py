"""Written values become resolved ones, and every value keeps the place it came from.

This is the last step: a script that stands in a file is read (``scriptFile`` becomes ``script``),
and its variables are replaced where ``templated: true`` says so. Everything after it, digests
included, sees resolved values only. What cannot be resolved stays as it is written, with a finding;
wrong types are left to the schema.

A script file is opened beneath the folder of the manifests and nowhere else. Its path is taken
apart as text and walked folder by folder from an open handle of the root, without following a
link: there is no moment between looking and opening. What is read here is what is judged, shown
and sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from reconciler.diagnostics import Diagnostic, FindingError, error
from reconciler.kinds.fields import KINDS
from reconciler.manifests.files import OpeningError, Reason, folder_beneath, read_file
from reconciler.manifests.manifest import Manifest, Origin, Path, kind_of
from reconciler.manifests.placeholders import OPENING, left_over, may_have_left_over, position
from reconciler.manifests.variables import Variables, left_over_finding, unreplaced_note
from reconciler.resources.fields import Field
from reconciler.resources.kinds import KindRow

_READ = {kind: row for kind, row in KINDS.items() if row.instead}


class Resolver:
    """Resolves the manifests of one run. A script that several share is read once."""

    def __init__(self, variables: Variables) -> None:
        self.findings: list[Diagnostic] = []
        self._variables = variables
        self._script = cache(read_script)

    def resolve(self, manifest: Manifest) -> Manifest:
        """Return the manifest with its scripts read, and with their variables replaced.

        What metadata says for this step alone is gone afterwards.
        """
        document = manifest.document
        kind = kind_of(document)
        row = _READ.get(kind) if kind else None
        if row is None or not isinstance(document.get("spec"), dict):
            return manifest
        for name, field in row.instead.items():
            manifest = self._with_script(manifest, name, field)
        for flag in row.reading:
            manifest = self._finished(manifest, row, flag.name)
        return manifest

    def _with_script(self, manifest: Manifest, name: str, field: Field) -> Manifest:
        """Return the manifest with the script of a file in place of the path, if it has one."""
        spec = manifest.document["spec"]
        path = spec.get(field.name)
        is_path = isinstance(path, str) and 0 < len(path) <= field.longest and "\0" not in path
        if name in spec or not is_path:
            return manifest
        written = manifest.origin("spec", field.name)
        file = written.file
        try:
            parts = parts_beneath(file.folder, path)
            script = self._script(file.root.path, parts)
        except FindingError as fault:
            self.findings.append(fault.finding.at(manifest.place("spec", field.name)))
            return manifest
        rest = {key: value for key, value in spec.items() if key != field.name}
        origin = written._replace(script=file.root.shown + "/".join(parts))
        document = {**manifest.document, "spec": {**rest, name: script}}
        read = manifest.changed(document, {("spec", name): origin})
        token = left_over(script) if may_have_left_over(script) else None
        if token is not None:
            place = read.place_within(*position(script, token.start), "spec", name)
            self.findings.append(left_over_finding(token, place, in_script=True))
        return read

    def _finished(self, manifest: Manifest, row: KindRow, flag: str) -> Manifest:
        """Return a manifest without its flag, and its scripts as they are to run."""
        document = manifest.document
        metadata, spec = document.get("metadata"), document["spec"]
        scripts = {name: spec[name] for name in row.instead if isinstance(spec.get(name), str)}
        if not (isinstance(metadata, dict) and flag in metadata):
            self._note_variables(manifest, scripts, flag)
            return manifest
        if not isinstance(metadata[flag], bool):
            problem, remedy = f"{flag} is not true or false", "Write true or false, without quotes."
            place = manifest.place("metadata", flag)
            self.findings.append(error("SCHEMA-TYPE", problem, remedy, place))
        rest = {name: value for name, value in metadata.items() if name != flag}
        origins: dict[Path, Origin] = {}
        if metadata[flag] is True:
            spec = {**spec}
            for name, script in scripts.items():
                spec[name] = self._variables.in_script(manifest, script, ("spec", name))
                origins["spec", name] = manifest.origin("spec", name)._replace(text=script)
        return manifest.changed({**document, "metadata": rest, "spec": spec}, origins)

    def _note_variables(self, manifest: Manifest, scripts: Mapping[str, str], flag: str) -> None:
        for name, script in scripts.items():
            token = self._variables.unreplaced(script) if OPENING in script else None
            if token is not None:
                place = manifest.place_within(*position(script, token.start), "spec", name)
                self.findings.append(unreplaced_note(token, place, name, flag))


MAX_SCRIPT_FILE = 64 * 1024
"""Bytes, more than any service takes; other limits have findings of their own."""

REMEDIES = {
    Reason.SYMLINK: "Links are not followed: name the file itself, or put it here.",
    Reason.MISSING: "Check the path; it starts from the folder of the manifest.",
    Reason.NOT_REGULAR: "Name a regular file; folders, pipes, sockets and devices are not read.",
    Reason.NOT_A_FOLDER: "Check the path; a part of it before the last is not a folder.",
    Reason.TOO_DEEP: "Keep scripts in fewer levels of folders.",
    Reason.TOO_LARGE: " ".join(
        f"A {field.name} has at most {field.of_source or field.longest} characters; on a ZITADEL, "
        f"at most {field.longest} bytes."
        for row in _READ.values()
        for field in row.fields
        if field.name in row.instead
    ),
    Reason.UNREADABLE: "Give the user who runs this command the right to read it.",
}


def parts_beneath(folder: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the way from the root to a path that is written in a manifest of a folder.

    Raises:
        FindingError: the path leads out of the root, or nowhere.
    """
    if path.startswith("/"):
        remedy = "Write the path from the folder of the manifest, such as scripts/greet.js."
        raise FindingError(error("SCRIPT-ABSOLUTE", "an absolute path", remedy))
    parts = list(folder)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                summary = "a path that leads out of the folder of the manifests"
                remedy = "Keep scripts beneath the folder that is given on the command line."
                raise FindingError(error("SCRIPT-OUTSIDE", summary, remedy))
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not parts:
        raise _refusal(OpeningError(Reason.NOT_REGULAR))
    return tuple(parts)


def read_script(root: str, parts: Sequence[str]) -> str:
    """Return the text of a script file beneath a folder, unchanged.

    Raises:
        FindingError: it cannot be read, or is not UTF-8.
    """
    try:
        with folder_beneath(root, parts[:-1]) as folder:
            data = read_file(parts[-1], folder, MAX_SCRIPT_FILE)
    except OpeningError as fault:
        raise _refusal(fault) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        summary = f"the script is not UTF-8 (byte 0x{data[fault.start]:02x} in its line {line})"
        remedy = "Save the script as UTF-8."
        raise FindingError(error("SCRIPT-ENCODING", summary, remedy)) from None


def _refusal(fault: OpeningError) -> FindingError:
    code = f"SCRIPT-{fault.reason.name.replace('_', '-')}"
    return FindingError(error(code, f"the script file {fault}", REMEDIES[fault.reason]))
