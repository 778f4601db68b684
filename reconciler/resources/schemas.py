"""JSON Schemas of the documents that people write, made from the declarations of the kinds.

Each document has two schemas. The one of the stage ``WRITTEN`` is public, for editors: a value may
be a variable, and what Defaults may give may be missing. The one of the stage ``RESOLVED`` judges
documents whose variables are replaced; of a manifest it requires every required field.

A patch names a manifest of the base and only the fields that it changes; a field that it sets to
null counts as not written in the base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal, NamedTuple, TypeAlias

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import NO_NUL, Field, Form
from reconciler.resources.kinds import API_VERSION, IGNORE, OVERLAID
from reconciler.resources.ref import Kind

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEFAULTS: Literal["Defaults"] = "Defaults"
"""The kind of a document with values for the manifests of its folder and below."""

POLICY: Literal["Policy"] = "Policy"
"""The kind of a document with a rule of a team's own over plans."""

WAIVER: Literal["Waiver"] = "Waiver"
"""The kind of a document that lets a policy pass for some objects until a day."""

POLICY_KINDS = (POLICY, WAIVER)
"""The kinds of documents that stand in a folder of policies and declare no resource."""

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


Judged: TypeAlias = Kind | Patch | Literal["Defaults", "Policy", "Waiver"]
"""What a schema is of: manifests of a kind, patches of them, Defaults, policies or waivers."""


def schema_for(judged: Judged, stage: Stage) -> Schema:
    """Return the JSON Schema of a document, complete in itself."""
    if isinstance(judged, Patch):
        return _patch_schema(judged.kind, stage)
    if judged in _OF_POLICIES:
        return _OF_POLICIES[judged]()
    return _defaults_schema(stage) if judged == DEFAULTS else _manifest_schema(Kind(judged), stage)


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


POLICY_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
MAX_RULE = 4000  # characters
MAX_SENTENCE = 1000  # characters of a message, a remedy or a reason
MAX_LISTED = 200  # items of a list in a policy or a waiver
MAX_EXAMPLES = 50  # that pass, and as many that fail
CHANGES = ("create", "update", "adopt", "delete")
DEFAULT_CHANGES = CHANGES[:3]
"""The changes that a policy judges if it names none."""

RECOMMENDED = "recommended"
"""The word that stands for the policies in the package, in place of a folder."""


def _policy_schema() -> Schema:
    examples = {
        "pass": _listed("Changes that the rule lets pass.", _example(), most=MAX_EXAMPLES),
        "fail": _listed("Changes that the rule refuses.", _example(), most=MAX_EXAMPLES),
    }
    spec = {
        "severity": {
            "description": "error blocks the plan; warning and note are shown.",
            "enum": ["error", "warning", "note"],
            "type": "string",
            "default": "error",
        },
        "kinds": _some("Kinds that it judges; otherwise all.", _word(*Kind)),
        "changes": {
            **_some("Changes that it judges.", _word(*CHANGES)),
            "default": [*DEFAULT_CHANGES],
        },
        "environments": _some(
            "Environments that it judges; otherwise all, and where there is none.",
            _sentence("Name of an environment.", 40),
        ),
        "over": {
            "description": "What the rule is asked about: each change, or the whole plan once.",
            "enum": ["change", "plan"],
            "type": "string",
            "default": "change",
        },
        "rule": {
            **_sentence("Expression in CEL, true for what may pass.", MAX_RULE),
            "examples": ["size(risks) == 0"],
        },
        "message": _sentence("What is wrong with what does not pass.", MAX_SENTENCE),
        "remedy": _sentence("What to write or do instead.", MAX_SENTENCE),
        "examples": {
            "description": "Changes that `reconciler policy test` judges.",
            **closed(examples),
        },
    }
    about = "A rule of a team's own over the changes of a plan. It is judged, never applied."
    return _of_policies(POLICY, about, closed(spec, ["rule", "message"]))


def _example(*, is_inner: bool = False) -> Schema:
    """Return the schema of an example; an inner one is a change of a plan."""
    value = "Fields of the object {} the change; what is left out has its default."
    fields = {
        "kind": {
            "description": "Kind of the object, where the policy is of several.",
            **_word(*Kind),
        },
        "change": {
            "description": "The change; otherwise what before and after say.",
            **_word(*CHANGES),
        },
        "ref": _sentence("Names of the object: organization[/project]/name.", MAX_SENTENCE),
        "before": {"description": value.format("before"), "type": "object"},
        "after": {"description": value.format("after"), "type": "object"},
        "fields": _listed("Fields that change; otherwise those that differ.", _sentence("", 200)),
        "risks": _listed("Risks of the change.", _sentence("", 200)),
    }
    if is_inner:
        return closed(fields)
    setting = {
        "environment": _sentence("Name of the environment.", 40),
        "protected": {"description": "Whether it is protected.", "type": "boolean"},
        "changes": _listed("Of a policy over plans: its changes.", _example(is_inner=True)),
    }
    return closed({**fields, **setting})


def _waiver_schema() -> Schema:
    spec = {
        "policy": _sentence("Name of the policy that is waived.", 63),
        "refs": {
            **_some(
                "Objects, as Kind/organization[/project]/name, where * stands for any part of one "
                "name; * alone for all of them and for the plan as a whole.",
                _sentence("", MAX_SENTENCE),
            ),
            "examples": [["Project/acme/shop-*"]],
        },
        "reason": _sentence("Why the objects may pass.", MAX_SENTENCE),
        "owner": _sentence("Who answers for it: a person or a team.", 200),
        "until": {
            **_sentence("The last day on which it counts, in UTC.", 10),
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            "examples": ["2026-12-31"],
        },
    }
    about = "Lets a policy pass for some objects until a day. It is judged, never applied."
    return _of_policies(WAIVER, about, closed(spec, [*spec]))


_OF_POLICIES: Mapping[object, Callable[[], Schema]] = {
    POLICY: _policy_schema,
    WAIVER: _waiver_schema,
}


def _of_policies(kind: str, about: str, spec: Schema) -> Schema:
    name = {**_sentence("Name that findings have.", 63), "pattern": POLICY_NAME}
    return _document(
        kind,
        kind,
        about,
        {"description": f"What identifies the {kind.lower()}.", **closed({"name": name}, ["name"])},
        {"description": f"The content of the {kind.lower()}.", **spec},
        needed=["metadata", "spec"],
    )


def _word(*words: str) -> Schema:
    return {"enum": [str(word) for word in words], "type": "string"}


def _sentence(about: str, longest: int) -> Schema:
    shown = {"description": about} if about else {}
    return {**shown, "type": "string", "minLength": 1, "maxLength": longest, "pattern": NO_NUL}


def _listed(about: str, item: Schema, *, most: int = MAX_LISTED) -> Schema:
    return {"description": about, "type": "array", "items": item, "maxItems": most}


def _some(about: str, item: Schema) -> Schema:
    """Return the schema of a list that is left out rather than empty."""
    return {**_listed(about, item), "minItems": 1, "uniqueItems": True}


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
