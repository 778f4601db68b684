"""JSON Schemas of the documents that people write, made from the declarations of the kinds.

Those of policies, waivers and the configuration are files, written by hand.

Each document has two schemas. The one of the stage ``WRITTEN`` is public, for editors: a value may
be a variable, and what Defaults may give may be missing. The one of the stage ``RESOLVED`` judges
documents whose variables are replaced; of a manifest it requires every required field.

A patch names a manifest of the base and only the fields that it changes; a field that it sets to
null counts as not written in the base.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal, NamedTuple, TypeAlias

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import NO_NUL, Field, Form
from reconciler.resources.installation import schema_path
from reconciler.resources.kinds import API_VERSION, IGNORE, OVERLAID
from reconciler.resources.ref import Kind

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEFAULTS: Literal["Defaults"] = "Defaults"
"""The kind of a document with values for the manifests of its folder and below."""

CONFIGURATION: Literal["Configuration"] = "Configuration"
"""The kind of ``reconciler.yaml``, which is no manifest."""

POLICY: Literal["Policy"] = "Policy"
"""The kind of a document with a rule of a team's own over plans."""

WAIVER: Literal["Waiver"] = "Waiver"
"""The kind of a document that lets a policy pass for some objects until a day."""

POLICY_KINDS = (POLICY, WAIVER)
"""The kinds of documents that stand in a folder of policies and declare no resource."""

POLICIES = "policies"
"""The folder of policies beside manifests that no ``reconciler.yaml`` belongs to."""

RECOMMENDED = "recommended"
"""The word that stands for the policies in the package, in place of a folder."""

VERSION: Schema = {"description": "Version of the manifest format.", "const": API_VERSION}
KIND = "What the document declares."
_VARIABLE = r"\$\{[A-Za-z][A-Za-z0-9_]*\}"
_AS_HELD = "Left out, it stays as the service holds it."
_A_VARIABLE: Schema = {"pattern": f"^{_VARIABLE}$", "type": "string"}
_WITH_VARIABLES: Schema = {"pattern": _VARIABLE, "type": "string"}


class Stage(Enum):
    """Stages of a document that a schema judges."""

    WRITTEN = auto()
    RESOLVED = auto()


class Patch(NamedTuple):
    """The patches of a kind's manifests."""

    kind: Kind


Judged: TypeAlias = Kind | Patch | Literal["Configuration", "Defaults", "Policy", "Waiver"]
"""The documents of a schema: manifests of a kind, patches of them, or those of other kinds."""


def schema_for(judged: Judged, stage: Stage) -> Schema:
    """Return the JSON Schema of a document, complete in itself."""
    if isinstance(judged, Patch):
        return _patch_schema(judged.kind, stage)
    if judged in (CONFIGURATION, *POLICY_KINDS):
        # Neither variables nor Defaults change these, so that the public schema judges as well.
        return schema_file(judged)
    return _defaults_schema(stage) if judged == DEFAULTS else _manifest_schema(Kind(judged), stage)


def schema_file(kind: str) -> Schema:
    """Return the public schema of a kind of documents that is written by hand."""
    schema: Schema = json.loads(schema_path(kind.lower()).read_text(encoding="utf-8"))
    return schema


def _manifest_schema(kind: Kind, stage: Stage) -> Schema:
    row = KINDS[kind]
    if stage is Stage.WRITTEN:  # Defaults may give all but the name
        metadata = object_schema((*row.owner, *row.metadata, *row.reading), stage, [row.name.name])
        spec = _spec(kind, stage)
    else:
        metadata = object_schema((*row.owner, *row.metadata), stage)
        spec = _whole_spec(kind)
    return _document(
        kind.value,
        f"{kind.value} manifest",
        row.about,
        {"description": "What identifies the resource.", **metadata},
        {"description": "The fields of the resource.", **spec},
        needed=["metadata", *(["spec"] if "required" in spec or "oneOf" in spec else [])],
    )


def _patch_schema(kind: Kind, stage: Stage) -> Schema:
    row = KINDS[kind]
    name, *changed = row.metadata
    # Defaults of the overlay may give the owners, which must be there after resolution.
    owners = () if stage is Stage.WRITTEN else row.owner
    named = [each.name for each in (*owners, name)]
    fields = (*row.owner, *row.metadata, *row.reading, *OVERLAID)
    nullable = [each.name for each in (*changed, *row.reading)]
    metadata = object_schema(fields, stage, named, nullable)
    spec = {**_spec(kind, stage, nullable=True), "type": ["object", "null"]}
    return _document(
        kind.value,
        f"{kind.value} patch",
        f"Changes of an overlay to one manifest of the base. {row.about}",
        {"description": "What identifies the manifest that is changed.", **metadata},
        {"description": "The fields that are changed; null takes one out.", **spec},
        needed=["metadata"],
    )


def _defaults_schema(stage: Stage) -> Schema:
    owners = {each.name: each for row in KINDS.values() for each in row.owner}.values()
    specs = {kind.value: {"description": KINDS[kind].about, **_spec(kind, stage)} for kind in Kind}
    ignored = {kind.value: row.ignore[0] for kind, row in KINDS.items() if row.ignore}
    by_kind = closed({kind: field_schema(field, stage) for kind, field in ignored.items()})
    metadata = object_schema(owners, stage, [])
    metadata["properties"][IGNORE.name] = {
        "description": "Fields that another writer keeps, by the kind of the resources.",
        **by_kind,
    }
    return _document(
        DEFAULTS,
        "Defaults",
        "Values for the manifests of its folder and below that do not say otherwise.",
        {"description": "Owners and marks, for manifests that name none.", **metadata},
        {"description": "Fields of resources, by their kind.", **closed(specs)},
        needed=[],
    )


def _document(
    kind: str, title: str, about: str, metadata: Schema, spec: Schema, needed: Sequence[str]
) -> Schema:
    return {
        "$schema": DIALECT,
        "title": title,
        "description": about,
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", *needed],
        "properties": {
            "apiVersion": VERSION,
            "kind": {"description": KIND, "const": kind},
            "metadata": metadata,
            "spec": spec,
        },
    }


def example_spec(kind: Kind) -> Schema:
    """Return the schema of fields of an object of a kind; any of them may be missing."""
    return object_schema(KINDS[kind].fields, Stage.RESOLVED, [])


def _whole_spec(kind: Kind) -> Schema:
    """Return the schema of a spec after resolution: everything that is required is there."""
    optional = {name for pair in KINDS[kind].alternatives for name in pair}
    fields = KINDS[kind].fields
    required = [each.name for each in fields if each.default is None and each.name not in optional]
    schema = closed(_spec_properties(kind, Stage.RESOLVED, nullable=False), required)
    for one, other in KINDS[kind].alternatives:
        schema["oneOf"] = [{"required": [one]}, {"required": [other]}]
    return schema


def _spec(kind: Kind, stage: Stage, *, nullable: bool = False) -> Schema:
    """Return the schema of a part of a spec: no field is required."""
    schema = closed(_spec_properties(kind, stage, nullable=nullable))
    for one, other in KINDS[kind].alternatives:
        schema["not"] = {"required": [one, other]}
        if nullable:  # null takes one out, so that the other can take its place
            written = {"not": {"type": "null"}}
            schema["not"] |= {"properties": {one: written, other: written}, "type": "object"}
    return schema


def _spec_properties(kind: Kind, stage: Stage, *, nullable: bool) -> Mapping[str, Schema]:
    instead = KINDS[kind].instead
    properties: dict[str, Schema] = {}
    for field in KINDS[kind].fields:
        properties[field.name] = field_schema(field, stage, nullable=nullable)
        if other := instead.get(field.name):  # names a file, in which no variable may stand
            properties[other.name] = field_schema(other, Stage.RESOLVED, nullable=nullable)
    return properties


def object_schema(
    fields: Iterable[Field],
    stage: Stage,
    required: Sequence[str] | None = None,
    nullable: Sequence[str] = (),
) -> Schema:
    """Return the schema of a mapping with these fields and no others.

    Args:
        fields: In the order in which they are shown.
        stage: Stage of the document.
        required: Names of fields that must be there; by default those without a default.
        nullable: Names of fields that may be null.
    """
    fields = list(fields)
    if required is None:
        required = [each.name for each in fields if each.default is None]
    properties = {
        each.name: field_schema(each, stage, nullable=each.name in nullable) for each in fields
    }
    return closed(properties, required)


def closed(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Return the schema of a mapping with these fields and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(properties),
        **({"required": [*required]} if required else {}),
    }


def field_schema(field: Field, stage: Stage, *, nullable: bool = False) -> Schema:
    """Return the schema of one field, its keys in the order of the alphabet.

    An empty text as default stands for a field that is not set, which is no default to show. Nor
    has a field that is left as it is held.
    """
    value = or_null(_value(field, stage)) if nullable else _value(field, stage)
    if stage is Stage.WRITTEN:
        value = _or_variable(value)
    about = f"{field.about} {_AS_HELD}" if field.left_as_held else field.about
    schema: Schema = {"description": about, **value}
    if field.default is not None and field.default != "" and not field.left_as_held:
        schema["default"] = field.default
    if field.examples:
        schema["examples"] = [*field.examples]
    return dict(sorted(schema.items()))


def _value(field: Field, stage: Stage) -> Schema:
    if field.form is Form.FLAG:
        return {"type": "boolean"}
    if field.form is Form.VARIANT:
        texts = {name: object_schema(texts, stage, []) for name, texts in field.variants.items()}
        return {**closed(texts), "minProperties": 1, "maxProperties": 1}
    one = _one_of(field) if field.words else _text(field)
    if field.python_type is list:
        return {"type": "array", "items": _or_variable(one) if stage is Stage.WRITTEN else one}
    return one


def _one_of(field: Field) -> Schema:
    words = [*field.short, *field.words]
    allowed = {"const": words[0]} if len(words) == 1 else {"enum": words}
    return {**allowed, "type": "string"}


def spellings(words: Sequence[str]) -> Mapping[str, str]:
    """Return the short words of an enum of a field's schema, each with its long spelling."""
    half = len(words) // 2
    pairs = dict(zip(words[:half], words[half:], strict=False))
    return pairs if all(long.endswith(f"_{short}") for short, long in pairs.items()) else {}


def _text(field: Field) -> Schema:
    limits = {"maxLength": field.longest, "minLength": field.shortest}
    return {
        **{name: limit for name, limit in limits.items() if limit},
        "pattern": field.pattern,
        "type": "string",
    }


def or_null(value: Schema) -> Schema:
    """Return the schema of a value that may also be null."""
    types = value["type"] if isinstance(value["type"], list) else [value["type"]]
    if "null" in types:
        return value
    nullable = {**value, "type": [*types, "null"]}
    if "const" in nullable:
        nullable["enum"] = [nullable.pop("const")]
    if "enum" in nullable:
        nullable["enum"] = [*nullable["enum"], None]
    return nullable


def _or_variable(value: Schema) -> Schema:
    """Return a schema that also takes a variable, or texts with variables where a text is wanted.

    What the values of the variables make of it is judged after resolution.
    """
    if value == {"pattern": NO_NUL, "type": "string"}:
        return value
    is_text = "string" in value["type"]
    return {"anyOf": [value, _WITH_VARIABLES if is_text else _A_VARIABLE]}
