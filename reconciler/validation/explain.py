"""Words for what a schema refuses: what is wrong, where, and what to write instead.

A value that was probably meant is named and never put in silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from reconciler.diagnostics import Diagnostic, cut, error
from reconciler.kinds.fields import KINDS
from reconciler.manifests.manifest import Manifest
from reconciler.resources.fields import (
    NANOSECONDS,
    NO_NUL,
    format_duration,
    parse_duration,
)
from reconciler.resources.nearest import letters, nearest, one_of
from reconciler.resources.normal import LIMITS
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import CONFIGURATION, DEFAULTS, Judged, spellings
from reconciler.validation.schema import (
    MAX_FAULTS,
    SchemaFault,
    schema_of,
    unshown,
)

_LONGEST = {limits.pattern: limits.longest for limits in LIMITS}

# Fields that people look for, by their letters alone, and what to do instead.
_NOT_WRITTEN = {
    **dict.fromkeys(
        ("secret", "clientsecret", "clientsecrets", "password", "token", "apikey", "accesstoken"),
        "Remove it: no secret belongs in a file of the repository. The service makes client "
        "secrets, and apply puts them where --secrets-to says (docs/secrets.md). A token is given "
        "by RECONCILER_TOKEN or --token-file. One that was committed is known: replace it.",
    ),
    "clientid": "Remove it: the service makes client ids. `reconciler outputs` lists them.",
}


def schema_findings(
    judged: Judged, manifest: Manifest, every: Sequence[SchemaFault]
) -> list[Diagnostic]:
    """Return why a resolved document does not fit its schema, in words; never nothing."""
    mistyped = {fault.path for fault in every if fault.keyword == "type"}
    incomplete = set()
    found = []
    for fault in every:
        if fault.keyword == "required":  # there is one fault for each field, and all name all
            if fault.path in incomplete:
                continue
            incomplete.add(fault.path)
        if fault.keyword == "type" or fault.path not in mistyped:
            found.append(fault)
    told = (each for fault in found for each in _findings(judged, manifest, fault))
    findings = list(islice(told, MAX_FAULTS))
    more = sum(len(each.names) if each.keyword in _BY_NAME else 1 for each in found) - len(findings)
    if more > 0 and findings:
        place = findings[-1].location or manifest.place()
        findings.append(unshown(more, is_error=True).at(place))
    return findings or [_PARITY.at(manifest.place())]


_BY_NAME = {"additionalProperties", "required"}
"""Keywords whose faults have a finding for each of their names."""

_PARITY = error(
    "SCHEMA-INTERNAL",
    "the manifest is refused, and nothing can say why",
    "This is a mistake in the reconciler: please report it with the manifest.",
)


def _findings(judged: Judged, manifest: Manifest, fault: SchemaFault) -> Iterator[Diagnostic]:
    if fault.keyword == "additionalProperties":
        for name in fault.names[:MAX_FAULTS]:
            path = (*fault.path, name)
            yield _unknown(judged, fault, name).at(manifest.place_of_key(*path))
    elif fault.keyword == "required":
        for name in fault.names:
            yield _missing(judged, fault, name).at(manifest.place_of_key(*fault.path))
    elif fault.keyword in {"oneOf", "not"}:
        yield _one_of_two(judged, fault).at(manifest.place_of_key(*fault.path))
    elif fault.schema.keys() == {"pattern"}:
        yield _wrong_name(fault).at(manifest.place_of_key(*fault.path, fault.value))
    else:
        words = _WORDS.get(fault.keyword, _plain)
        yield words(fault).at(manifest.place(*fault.path))


def _unknown(judged: Judged, fault: SchemaFault, name: str) -> Diagnostic:
    code, summary = "SCHEMA-UNKNOWN-FIELD", f"unknown field {cut(name)}"
    known = fault.schema["properties"]
    advice = _NOT_WRITTEN.get(letters(name))
    if advice is not None:
        return error(code, summary, advice)
    is_kind = judged == DEFAULTS and fault.path == ("spec",)
    meant = nearest(name, (other for other in known if is_kind or other not in fault.value))
    section = _section_of(judged, name)
    if section is not None and section != fault.path[:1]:
        where = section[0] if section else "the top of the document"
        return error(code, summary, f"Move {cut(name)} to {where}.")
    if meant is not None:
        return error(code, summary, f"Did you mean {meant}?")
    if not known:
        return error(code, summary, f"{_name_of(fault)} of this kind has no fields: remove it.")
    return error(code, summary, f"Remove it. Known fields are {', '.join(known)}.")


def _section_of(judged: Judged, name: str) -> tuple[str, ...] | None:
    """Return where a field that stands in the wrong part of the manifest belongs."""
    properties = schema_of(judged)["properties"]
    if name in properties:
        return ()
    parts = (part for part in ("metadata", "spec") if part in properties)
    return next(((part,) for part in parts if name in properties[part]["properties"]), None)


def _missing(judged: Judged, fault: SchemaFault, name: str) -> Diagnostic:
    known = fault.schema["properties"]
    misspelt = nearest(name, (other for other in fault.value if other not in known))
    hint = f"Is {cut(misspelt)} meant to be {name}?" if misspelt else f"Write {name}."
    described = known[name].get("description", "")
    whole = "the configuration" if judged == CONFIGURATION else "the manifest"
    return error(
        "SCHEMA-MISSING-FIELD",
        f"{_name_of(fault) if fault.path else whole} has no {name}",
        f"{hint} {described}".rstrip(),
    )


def _one_of_two(judged: Judged, fault: SchemaFault) -> Diagnostic:
    """Return why a field and the path of its file cannot both be left out, nor both be given."""
    field, other = fault.names
    if field in fault.value:
        return error(
            "SCHEMA-SCRIPT",
            f"both {field} and {other} are given",
            f"Keep one of them: the {field} itself, or the path of its file.",
        )
    return error(
        "SCHEMA-SCRIPT",
        f"the {KINDS[Kind(str(judged))].noun} has no {field}",
        f"Write {field} with the JavaScript itself, or {other} with the path of its file.",
    )


def _wrong_name(fault: SchemaFault) -> Diagnostic:
    """Return why a key of a configuration cannot name what it stands for."""
    what, rule = "a variable", "a letter, then at most 63 letters, digits and underscores"
    if fault.path == ("environments",):
        what = "an environment"
        rule = "a small letter, then at most 39 small letters, digits and hyphens"
    return error("CONFIG-NAME", f"{cut(fault.value)} cannot name {what}", f"Write {rule}.")


def _mistyped(fault: SchemaFault) -> Diagnostic:
    expected = [fault.expected] if isinstance(fault.expected, str) else fault.expected
    wanted = [each for each in expected if each != "null"]
    value = fault.value
    longest = _LONGEST.get(fault.schema.get("pattern", ""))
    if longest is not None and _type(value) == "number":
        return duration_problem(_name_of(fault), value, longest)
    types = one_of(_ARTICLES[each] for each in wanted)
    summary = f"{_name_of(fault)} is {_ARTICLES[_type(value)]}, not {types}"
    hint = _typing_hint(wanted[0], value) if len(wanted) == 1 else f"Write {types}."
    return error("SCHEMA-TYPE", summary, hint)


def _typing_hint(wanted: str, value: Any) -> str:
    if value is None:
        return "Write a value, or remove the field."
    if wanted == "string" and isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f'Put it in quotes if text is meant: "{cut(text)}".'
    if wanted == "array" and isinstance(value, str):
        return f"Write a list, also of one item: [{cut(value)}]."
    return _HINTS[wanted]


_HINTS = {
    "boolean": "Write true or false, without quotes.",
    "string": "Write a single text.",
    "array": "Write a list: one item per line, each after a dash.",
    "object": "Write fields beneath it, indented, each with a colon.",
}
_ARTICLES = {
    "string": "a text",
    "boolean": "true or false",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = ((str, "string"), (list, "array"), (dict, "object"))
    return next((name for kind, name in names if isinstance(value, kind)), "number")


def _not_in_enum(fault: SchemaFault) -> Diagnostic:
    words = [fault.expected] if fault.keyword == "const" else fault.expected
    words = [word for word in words if word is not None]
    meant = nearest(fault.value, words) if isinstance(fault.value, str) else None
    allowed = _in_one_spelling(words, meant)
    hint = f"Did you mean {meant}? " if meant and len(allowed) > 1 else ""
    code = "MANIFEST-API-VERSION" if fault.path == ("apiVersion",) else "SCHEMA-VALUE"
    return error(
        code,
        f"{_name_of(fault)} cannot be {cut(fault.value)}",
        f"{hint}Write {one_of(allowed)}.",
    )


def _in_one_spelling(words: list[str], meant: str | None) -> list[str]:
    """Return the short spellings of words that have them, or the long ones if one was meant."""
    short = spellings(words)
    if not short:
        return words
    return [*short.values()] if meant in short.values() else [*short]


def _wrong_pattern(fault: SchemaFault) -> Diagnostic:
    if fault.expected in _LONGEST:
        return duration_problem(_name_of(fault), fault.value, _LONGEST[fault.expected])
    if fault.path == ("metadata", "id"):
        return error(
            "SCHEMA-ID",
            "the id is not valid",
            "Write the id as the service shows it: letters, digits, - and _, at most 200.",
        )
    if fault.path == ("metadata", "name") and fault.expected != NO_NUL:  # of a policy or a waiver
        return error(
            "SCHEMA-VALUE",
            f"name cannot be {cut(fault.value)}",
            "Write 1 to 63 small letters, digits and hyphens, such as no-dev-mode.",
        )
    return _plain(fault)


# Code, problem and remedy by keyword, where the keyword and what it says are all that counts.
_EMPTY = ("SCHEMA-EMPTY", "is empty", "Write a value.")
_PLAIN = {
    "minLength": _EMPTY,
    "minItems": _EMPTY,
    "maxItems": ("SCHEMA-TOO-LONG", "has {length} items", "Keep at most {expected}."),
    "maxProperties": ("SCHEMA-TOO-LONG", "has {length} entries", "Keep at most {expected}."),
    "maxLength": (
        "SCHEMA-TOO-LONG",
        "is longer than {expected} characters",
        "It has {length}; shorten it to at most {expected}.",
    ),
}
_NUL = ("SCHEMA-NUL", "contains NUL", "Remove the NUL character.")
_RULE = ("SCHEMA-VALUE", "breaks the rule {keyword} of the schema", "The rule says {expected}.")


def _plain(fault: SchemaFault) -> Diagnostic:
    """Return the problem of a value whose fault needs no more than a row of words."""
    value, keyword = fault.value, fault.keyword
    has_nul = keyword == "pattern" and isinstance(value, str) and "\0" in value
    code, problem, remedy = _NUL if has_nul else _PLAIN.get(keyword, _RULE)
    length = len(value) if isinstance(value, str | list | dict) else 0
    facts = {"length": length, "expected": cut(fault.expected), "keyword": keyword}
    return error(code, f"{_name_of(fault)} {problem.format(**facts)}", remedy.format(**facts))


def _name_of(fault: SchemaFault) -> str:
    """Return the name of the value a fault is about, for a sentence."""
    *_, last = fault.path
    return f"item {last + 1} of {fault.path[-2]}" if isinstance(last, int) else last


def _not_one(fault: SchemaFault) -> Diagnostic:
    if "properties" not in fault.schema:  # names of one's own, and too many of them
        return _plain(fault)
    names = one_of([*fault.schema["properties"]])
    count = len(fault.value) or "none"
    return error(
        "SCHEMA-VALUE", f"{_name_of(fault)} has {count} of its fields, not one", f"Write {names}."
    )


_WORDS: Mapping[str, Callable[[SchemaFault], Diagnostic]] = {
    "minProperties": _not_one,
    "maxProperties": _not_one,
    "type": _mistyped,
    "enum": _not_in_enum,
    "const": _not_in_enum,
    "pattern": _wrong_pattern,
}


_CODE = "SCHEMA-DURATION"
_SECONDS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), Decimal("1e-3")),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86_400)),
}
_MEASURED = re.compile(r"\+?([0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}) ?([a-zµ]*)")


def duration_problem(field: str, written: str | float, longest: int) -> Diagnostic:
    """Return why a value is no duration of a field, and what to write.

    Args:
        field: Name of the field, for the sentence.
        written: The value: a text, or a number without a unit.
        longest: The limit, in nanoseconds.
    """
    limit = format_duration(longest)
    meant = _nanoseconds(str(written))
    if meant is not None and meant > longest:
        exact = format_duration(meant)
        shown = f"{cut(written)} is {exact}" if exact != written else exact
        return error(_CODE, f"{field} is too long: {shown}", f"Write at most {limit}.")
    summary = f"{field} is not a duration: {cut(written)}"
    form = f"seconds followed by s, from 0s to {limit}: 5s or 1.5s"
    return error(_CODE, summary, f"Write {form if meant is None else format_duration(meant)}.")


def _nanoseconds(text: str) -> int | None:
    """Return the nanoseconds that a text means to a person, or None; a bare number is seconds."""
    try:
        return parse_duration(text)
    except ValueError:
        found = _MEASURED.fullmatch(text.strip().lower())
    if found is None or found[2] not in _SECONDS:
        return None
    exact = Decimal(found[1]) * _SECONDS[found[2]] * NANOSECONDS
    return int(exact) if exact == int(exact) else None
