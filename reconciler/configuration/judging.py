"""``reconciler.yaml`` against its schema: what is wrong, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.configuration.schema import ENVIRONMENT_NAME
from reconciler.diagnostics import Diagnostic, cut, error
from reconciler.manifests.manifest import Manifest
from reconciler.resources.nearest import nearest, one_of
from reconciler.validation.explain import empty, name_of, rule_broken, with_nul
from reconciler.validation.schema import SchemaFault


def schema_findings(document: Manifest, faults: Iterable[SchemaFault]) -> list[Diagnostic]:
    """Return why a document does not fit the schema of a configuration, in words."""
    return [finding for fault in faults for finding in _findings(document, fault)]


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
        words = _WORDS.get(fault.keyword, rule_broken)
        yield words(fault).at(document.place(*fault.path))


def _unknown(name: str, known: list[str]) -> Diagnostic:
    meant = nearest(name, known)
    hint = f"Did you mean {meant}?" if meant else f"Remove it. Fields are {', '.join(known)}."
    return error("SCHEMA-UNKNOWN-FIELD", f"unknown field {cut(name)}", hint)


def _wrong_name(fault: SchemaFault) -> Diagnostic:
    if fault.expected == ENVIRONMENT_NAME:
        rule = "a small letter, then at most 39 small letters, digits and hyphens"
    else:
        rule = "a letter, then at most 63 letters, digits and underscores"
    what = "an environment" if fault.expected == ENVIRONMENT_NAME else "a variable"
    return error("CONFIG-NAME", f"{cut(fault.value)} cannot name {what}", f"Write {rule}.")


def _mistyped(fault: SchemaFault) -> Diagnostic:
    wanted = fault.expected if isinstance(fault.expected, list) else [fault.expected]
    types = one_of(_TYPES[each] for each in wanted)
    return error("SCHEMA-TYPE", f"{_name(fault)} has a value of a wrong type", f"Write {types}.")


_TYPES = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "fields beneath it",
}


def _not_allowed(fault: SchemaFault) -> Diagnostic:
    allowed = [fault.expected] if fault.keyword == "const" else fault.expected
    summary = f"{_name(fault)} cannot be {cut(fault.value)}"
    return error("SCHEMA-VALUE", summary, f"Write {one_of(allowed)}.")


def _too_many(fault: SchemaFault) -> Diagnostic:
    summary = f"{_name(fault)} has more than {fault.expected} entries"
    return error("SCHEMA-TOO-LONG", summary, f"Keep at most {fault.expected}.")


def _too_long(fault: SchemaFault) -> Diagnostic:
    summary = f"{_name(fault)} is longer than {fault.expected} characters"
    return error("SCHEMA-TOO-LONG", summary, "Shorten it.")


_WORDS: Mapping[str, Callable[[SchemaFault], Diagnostic]] = {
    "type": _mistyped,
    "enum": _not_allowed,
    "const": _not_allowed,
    "minLength": empty,
    "maxLength": _too_long,
    "maxProperties": _too_many,
    "pattern": with_nul,
}


def _name(fault: SchemaFault) -> str:
    return name_of(fault, "the configuration")
