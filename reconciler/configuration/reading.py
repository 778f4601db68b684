"""Reading of ``reconciler.yaml``: a file becomes a configuration, or findings that say why not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.configuration.model import (
    Configuration,
    Environment,
    Variable,
    VariableType,
)
from reconciler.configuration.semantics import semantic_findings
from reconciler.diagnostics import Diagnostic, SourceLocation, by_place, cut, error, name_as_text
from reconciler.manifests.discovery import MAX_FILE, opening_finding
from reconciler.manifests.extent import CONFIGURATION
from reconciler.manifests.files import OpeningError, git_root, read_path
from reconciler.manifests.manifest import Manifest, Root, SourceFile
from reconciler.manifests.placeholders import VariableValue
from reconciler.manifests.text import TextError, decode
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.schemas import schema_file
from reconciler.validation.schema import SchemaFault, faults_in

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
    faults = faults_in(schema_file(CONFIGURATION), document.document)
    if faults:
        found = [each for fault in faults for each in _schema_findings(document, fault)]
        return Reading(None, by_place(found))
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
    except TextError as fault:
        return None, [fault.finding]
    file = SourceFile(shown, text, Root(os.path.split(path)[0]), ())
    documents, findings = file.read()
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


def _schema_findings(document: Manifest, fault: SchemaFault) -> Iterator[Diagnostic]:
    """Yield in words why a document does not fit the schema of a configuration."""
    # Loaded here, since nearly every configuration is right.
    from reconciler.validation.explain import name_of, plain

    name = name_of(fault, "the configuration")
    if fault.keyword == "additionalProperties":
        known = fault.schema["properties"]
        left = [each for each in known if each not in fault.value]
        for field in fault.names:
            yield _unknown(field, left).at(document.place_of_key(*fault.path, field))
    elif fault.keyword == "required":
        for field in fault.names:
            place = document.place_of_key(*fault.path)
            summary = f"{name} has no {field}"
            yield error("SCHEMA-MISSING-FIELD", summary, f"Write {field}.", place)
    elif isinstance(fault.value, str) and fault.schema.keys() == {"pattern"}:
        yield _wrong_name(fault).at(document.place_of_key(*fault.path, fault.value))
    else:
        found = _wrong_value(fault, name) or plain(fault)
        yield found.at(document.place(*fault.path))


def _unknown(name: str, known: list[str]) -> Diagnostic:
    meant = nearest(name, known)
    hint = f"Did you mean {meant}?" if meant else f"Remove it. Fields are {', '.join(known)}."
    return error("SCHEMA-UNKNOWN-FIELD", f"unknown field {cut(name)}", hint)


def _wrong_name(fault: SchemaFault) -> Diagnostic:
    what, rule = "a variable", "a letter, then at most 63 letters, digits and underscores"
    if fault.path == ("environments",):
        what = "an environment"
        rule = "a small letter, then at most 39 small letters, digits and hyphens"
    return error("CONFIG-NAME", f"{cut(fault.value)} cannot name {what}", f"Write {rule}.")


_TYPES = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "fields beneath it",
}


def _wrong_value(fault: SchemaFault, name: str) -> Diagnostic | None:
    """Return what is wrong with a value by the rules that a configuration words its own way."""
    expected = fault.expected
    match fault.keyword:
        case "type":
            wanted = expected if isinstance(expected, list) else [expected]
            types = one_of(_TYPES[each] for each in wanted)
            return error("SCHEMA-TYPE", f"{name} has a value of a wrong type", f"Write {types}.")
        case "enum" | "const":
            allowed = [expected] if fault.keyword == "const" else expected
            summary = f"{name} cannot be {cut(fault.value)}"
            return error("SCHEMA-VALUE", summary, f"Write {one_of(allowed)}.")
        case "maxLength":
            summary = f"{name} is longer than {expected} characters"
            return error("SCHEMA-TOO-LONG", summary, "Shorten it.")
        case "maxProperties" | "maxItems":
            summary = f"{name} has more than {expected} entries"
            return error("SCHEMA-TOO-LONG", summary, f"Keep at most {expected}.")
        case _:
            return None
