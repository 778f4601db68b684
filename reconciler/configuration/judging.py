"""``reconciler.yaml`` against its schema: what is wrong, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reconciler.configuration.schema import ENVIRONMENT_NAME, configuration_schema
from reconciler.diagnostics import Diagnostic, error
from reconciler.manifests.manifest import Manifest
from reconciler.resources.nearest import nearest, one_of
from reconciler.validation.problem import Problem, cut, wrong
from reconciler.validation.schema import SchemaFault, faults_in


def schema_findings(document: Manifest) -> list[Diagnostic]:
    """Return why a document does not fit the schema of a configuration, or nothing."""
    found = faults_in(configuration_schema(), document.document)
    return [finding for fault in found for finding in _findings(document, fault)]


def _findings(document: Manifest, fault: SchemaFault) -> Iterator[Diagnostic]:
    if fault.keyword == "additionalProperties":
        known = fault.schema["properties"]
        for name in fault.value:
            if name not in known:
                place = document.place_of_key(*fault.path, name)
                yield _unknown(name, [each for each in known if each not in fault.value]).at(place)
    elif fault.keyword == "required":
        for name in fault.expected:
            if name not in fault.value:
                summary = f"{_name(fault)} has no {name}"
                place = document.place_of_key(*fault.path)
                yield error("SCHEMA-MISSING-FIELD", summary, f"Write {name}.", place)
    elif isinstance(fault.value, str) and fault.schema.keys() == {"pattern"}:
        yield _wrong_name(fault).at(document.place_of_key(*fault.path, fault.value))
    else:
        words = _WORDS.get(fault.keyword, _other)
        yield words(fault).at(document.place(*fault.path))


def _unknown(name: str, known: list[str]) -> Problem:
    meant = nearest(name, known)
    hint = f"Did you mean {meant}?" if meant else f"Remove it. Fields are {', '.join(known)}."
    return wrong("SCHEMA-UNKNOWN-FIELD", f"unknown field {cut(name)}", hint)


def _wrong_name(fault: SchemaFault) -> Problem:
    if fault.expected == ENVIRONMENT_NAME:
        rule = "a small letter, then at most 39 small letters, digits and hyphens"
    else:
        rule = "a letter, then at most 63 letters, digits and underscores"
    what = "an environment" if fault.expected == ENVIRONMENT_NAME else "a variable"
    return wrong("CONFIG-NAME", f"{cut(fault.value)} cannot name {what}", f"Write {rule}.")


def _mistyped(fault: SchemaFault) -> Problem:
    wanted = fault.expected if isinstance(fault.expected, list) else [fault.expected]
    types = one_of(_TYPES[each] for each in wanted)
    return wrong("SCHEMA-TYPE", f"{_name(fault)} has a value of a wrong type", f"Write {types}.")


_TYPES = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "fields beneath it",
}


def _not_allowed(fault: SchemaFault) -> Problem:
    allowed = [fault.expected] if fault.keyword == "const" else fault.expected
    summary = f"{_name(fault)} cannot be {cut(fault.value)}"
    return wrong("SCHEMA-VALUE", summary, f"Write {one_of(allowed)}.")


def _with_nul(fault: SchemaFault) -> Problem:
    return wrong("SCHEMA-NUL", f"{_name(fault)} contains NUL", "Remove the NUL character.")


def _empty(fault: SchemaFault) -> Problem:
    return wrong("SCHEMA-EMPTY", f"{_name(fault)} is empty", "Write a value.")


def _too_many(fault: SchemaFault) -> Problem:
    summary = f"{_name(fault)} has more than {fault.expected} entries"
    return wrong("SCHEMA-TOO-LONG", summary, f"Keep at most {fault.expected}.")


def _too_long(fault: SchemaFault) -> Problem:
    summary = f"{_name(fault)} is longer than {fault.expected} characters"
    return wrong("SCHEMA-TOO-LONG", summary, "Shorten it.")


def _other(fault: SchemaFault) -> Problem:
    summary = f"{_name(fault)} breaks the rule {fault.keyword} of the schema"
    return wrong("SCHEMA-VALUE", summary, f"The rule says {cut(fault.expected)}.")


_WORDS: Mapping[str, Callable[[SchemaFault], Problem]] = {
    "type": _mistyped,
    "enum": _not_allowed,
    "const": _not_allowed,
    "minLength": _empty,
    "maxLength": _too_long,
    "maxProperties": _too_many,
    "pattern": _with_nul,
}


def _name(fault: SchemaFault) -> str:
    """Return the name of the value that a fault is about, for a sentence."""
    return str(fault.path[-1]) if fault.path else "the configuration"
