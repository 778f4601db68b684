"""Reading of ``reconciler.yaml``: a file becomes a configuration, or findings that say why not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.configuration.model import (
    Configuration,
    Environment,
    Variable,
    VariableType,
)
from reconciler.configuration.semantics import semantic_findings
from reconciler.diagnostics import (
    Diagnostic,
    FindingError,
    SourceLocation,
    by_place,
    error,
    name_as_text,
)
from reconciler.manifests.discovery import MAX_FILE, opening_finding
from reconciler.manifests.files import OpeningError, git_root, read_path
from reconciler.manifests.manifest import Manifest, Root, SourceFile
from reconciler.manifests.placeholders import VariableValue
from reconciler.manifests.text import decode
from reconciler.resources.schemas import CONFIGURATION
from reconciler.validation.schema import accepts, faults

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
    if not accepts(CONFIGURATION, document.document):
        from reconciler.validation.explain import schema_findings

        wrong = faults(CONFIGURATION, document.document)
        return Reading(None, by_place(schema_findings(CONFIGURATION, document, wrong)))
    folder = Path(path).parent.resolve()
    configuration = _configuration(document, shown, folder)
    found = list(semantic_findings(configuration, document))
    if any(finding.is_error for finding in found):
        return Reading(None, by_place(found))
    return Reading(configuration, by_place(found))


def _document(path: str, shown: str) -> tuple[Manifest | None, list[Diagnostic]]:
    """Return the one document of a file; where it cannot be used, None and the findings."""
    try:
        text = decode(read_path(path, MAX_FILE), shown)
    except OpeningError as fault:
        return None, [opening_finding(path, fault)]
    except FindingError as fault:
        return None, [fault.finding]
    file = SourceFile(shown, text, Root(os.path.split(path)[0]), ())
    documents, findings, _ = file.read()
    if findings:
        return None, findings
    if len(documents) != 1 or not isinstance(documents[0], dict):
        summary = "the configuration is not one document with fields"
        return None, [error("CONFIG-SHAPE", summary, _SHAPE, SourceLocation(shown))]
    return Manifest(documents[0], file), []


def _configuration(document: Manifest, shown: str, folder: Path) -> Configuration:
    fields = document.document
    places = {key: document.place(key) for key in fields}
    return Configuration(
        file=shown,
        repository=git_root(folder) or folder,
        folder=folder,
        tree=fields.get("tree", ""),
        policies=tuple(fields.get("policies", ())),
        variables={
            name: _variable(document, name, each)
            for name, each in fields.get("variables", {}).items()
        },
        environments={
            name: _environment(document, name, each)
            for name, each in fields.get("environments", {}).items()
        },
        places=places,
        **({"manifests": fields["manifests"]} if "manifests" in fields else {}),
    )


def _variable(document: Manifest, name: str, fields: Mapping[str, Any]) -> Variable:
    path = ("variables", name)
    given = {key: fields[key] for key in ("description", "pattern") if key in fields}
    if "default" in fields:
        given["default"] = VariableValue(fields["default"], document.place(*path, "default"))
    kind = VariableType(fields["type"])
    return Variable(name, kind, document.place_of_key(*path), **given)


def _environment(document: Manifest, name: str, own: Mapping[str, Any]) -> Environment:
    path = ("environments", name)
    values = own.get("variables", {})
    shared = {"tree": document.document["tree"]} if "tree" in document.document else {}
    places = {key: document.place(key) for key in shared}
    fields = {
        **shared,
        **own,
        "variables": {
            variable: VariableValue(value, document.place(*path, "variables", variable))
            for variable, value in values.items()
        },
        "places": {**places, **{key: document.place(*path, key) for key in own}},
    }
    partial = fields.pop("allowPartial", True)
    return Environment(name, document.place_of_key(*path), allow_partial=partial, **fields)
