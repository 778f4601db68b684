"""Reading of ``reconciler.yaml``: a file becomes a configuration, or findings that say why not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.configuration.model import Configuration, Environment, Variable, VariableType
from reconciler.configuration.schema import configuration_schema
from reconciler.configuration.semantics import semantic_findings
from reconciler.diagnostics import Diagnostic, SourceLocation, by_place, error, name_as_text
from reconciler.manifests.discovery import MAX_FILE, opening_finding
from reconciler.manifests.files import OpeningError, git_root, open_folder, read_file
from reconciler.manifests.manifest import Manifest, Root, SourceFile
from reconciler.manifests.placeholders import VariableValue
from reconciler.manifests.text import TextError, decode
from reconciler.validation.schema import faults_in

_SHAPE = "Write one document with apiVersion: reconciler/v1 and kind: Configuration."


class Reading(NamedTuple):
    """The outcome of reading a file; ``configuration`` is None where an error was found."""

    configuration: Configuration | None
    findings: tuple[Diagnostic, ...]


def read_configuration(path: str) -> Reading:
    """Read and judge a file. Nothing that it can hold makes this raise."""
    shown = name_as_text(path)
    document, findings = _document(path, shown)
    if document is None:
        return Reading(None, tuple(findings))
    faults = faults_in(configuration_schema(), document.document)
    if faults:
        from reconciler.configuration.judging import schema_findings

        return Reading(None, by_place(schema_findings(document, faults)))
    folder = Path(path).parent.resolve()
    configuration = _configuration(document, shown, folder)
    found = list(semantic_findings(configuration, document))
    if any(finding.is_error for finding in found):
        return Reading(None, by_place(found))
    return Reading(configuration, by_place(found))


def _document(path: str, shown: str) -> tuple[Manifest | None, list[Diagnostic]]:
    """Return the one document of a file; where it cannot be used, None and the findings."""
    try:
        folder, name = os.path.split(path)
        with open_folder(folder or ".", follow=True) as handle:
            data = read_file(name, handle, MAX_FILE)
        text = decode(data)
    except OpeningError as fault:
        return None, [opening_finding(path, fault)]
    except TextError as fault:
        return None, [fault.finding(shown)]
    file = SourceFile(shown, text, Root(folder), ())
    documents = file.read()
    if documents is None:
        return None, file.trace().findings
    if len(documents) != 1 or not isinstance(documents[0], dict):
        summary = "the configuration is not one document with fields"
        return None, [error("CONFIG-SHAPE", summary, _SHAPE, SourceLocation(shown))]
    return Manifest(documents[0], file), []


def _configuration(document: Manifest, shown: str, folder: Path) -> Configuration:
    fields = document.document
    tree = fields.get("tree", "")
    return Configuration(
        file=shown,
        repository=git_root(folder) or folder,
        folder=folder,
        tree=tree,
        variables={
            name: _variable(document, name, each)
            for name, each in fields.get("variables", {}).items()
        },
        environments={
            name: _environment(document, name, each, tree)
            for name, each in fields.get("environments", {}).items()
        },
        **({"manifests": fields["manifests"]} if "manifests" in fields else {}),
    )


def _variable(document: Manifest, name: str, fields: Mapping[str, Any]) -> Variable:
    path = ("variables", name)
    given = {key: fields[key] for key in ("description", "pattern") if key in fields}
    if "default" in fields:
        given["default"] = VariableValue(fields["default"], document.place(*path, "default"))
    kind = VariableType(fields["type"])
    return Variable(name, kind, document.place_of_key(*path), **given)


def _environment(
    document: Manifest, name: str, fields: Mapping[str, Any], tree: str
) -> Environment:
    path = ("environments", name)
    names = ("service", "protected", "overlay", "capabilities")
    given = {key: fields[key] for key in names if key in fields}
    return Environment(
        name,
        document.place_of_key(*path),
        tree=fields.get("tree", tree),
        variables={
            variable: VariableValue(value, document.place(*path, "variables", variable))
            for variable, value in fields.get("variables", {}).items()
        },
        places={key: document.place(*path, key) for key in fields},
        **given,
    )
