"""``reconciler explain`` and ``schema``: fields of a kind, values of an environment, codes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from reconciler.cli.configured import NOT_CONFIGURED, Configured, Need, configured
from reconciler.cli.options import command
from reconciler.cli.output import say, stdout_style
from reconciler.configuration.model import Configuration, Environment, Variable
from reconciler.errors import InvalidConfigurationError
from reconciler.kinds.fields import KINDS
from reconciler.manifests.placeholders import VariableValue
from reconciler.report.visible import Style, visible
from reconciler.resources.fields import NO_NUL
from reconciler.resources.installation import schema_path
from reconciler.resources.kinds import OVERLAID
from reconciler.resources.nearest import nearest
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import (
    CONFIGURATION,
    DEFAULTS,
    POLICY_KINDS,
    Schema,
    Stage,
    field_schema,
    schema_for,
    spellings,
)

# Documents that declare no resource.
_DOCUMENTS = (CONFIGURATION, DEFAULTS, *POLICY_KINDS)
# Documents that are not manifests of one kind, by the names of their schemas.
_OTHERS = (*_DOCUMENTS, "Manifest", "Patch")
_KINDS = {kind.value.lower(): kind for kind in Kind}

SECTIONS = ("metadata", "spec")
LIMITS = {
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
}

LONGEST = 500
"""Characters of a value that are shown."""


def explainable(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return kinds, codes and classes of risk; once a kind and a point are written, its fields."""
    name, point, _ = incomplete.partition(".")
    kind = _KINDS.get(name.lower())
    if point and kind is not None:
        parts = _schema(kind)["properties"]
        metadata = (f"metadata.{field}" for field in parts["metadata"]["properties"])
        fields = [*parts["spec"].get("properties", {}), *metadata]
        return _beginning([f"{kind.value}.{field}" for field in fields], incomplete)
    from reconciler.plan.risk import MEANINGS
    from reconciler.report.codes import CODES

    return _beginning([*Kind, *_DOCUMENTS, *CODES, *MEANINGS], incomplete)


def documents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the documents with a schema that begin with these letters."""
    return _beginning([*Kind, *_OTHERS], incomplete)


def _beginning(texts: Iterable[str], letters: str) -> list[str]:
    """Return the texts that begin with these letters, in upper or lower case."""
    return [str(text) for text in texts if text.lower().startswith(letters.lower())]


@command("explain", example="Project.hasProjectCheck", need=Need.ALL)
@click.argument("path", required=False, metavar="[KIND[.FIELD]|CODE]", shell_complete=explainable)
def explain_command(path: str | None) -> None:
    """Explain a kind, one of its fields, or the code of a finding.

    FIELD is one of spec or of metadata: OidcApplication.appType, Action.metadata.id. CODE is that
    of a finding, a risk or a problem that the service reports: YAML-SYNTAX, plain-http. KIND can be
    Configuration: reconciler.yaml, with fields such as Configuration.environments.service; or
    Defaults, Policy or Waiver.

    Without any of them, the kinds are listed; with --env, or where there is a reconciler.yaml, the
    variables of the environment: their values, and where each value comes from.
    """
    style = stdout_style()
    if path is None:
        values = _environments(configured(), style) if configured() is not NOT_CONFIGURED else ""
        kinds = "" if configured().environment else "\n".join(_kinds(style))
        say("\n\n".join(filter(None, (kinds, values))))
        return
    kind, *steps = path.split(".")
    others = {name.lower(): name for name in _DOCUMENTS}
    lines: Iterable[str] = _code(path, style)
    if document := others.get(kind.lower()):  # a code has the name of a document, Policy
        shown = _resource if document in POLICY_KINDS else _document
        schema = schema_for(document, Stage.RESOLVED)
        lines = (*lines, *([""] if lines else []), *shown(path, schema, steps, style))
    elif not lines:
        lines = _resource(path, _schema(_kind_named(kind)), steps, style)
    say("\n".join(lines))


def _kinds(style: Style) -> Iterator[str]:
    """Yield each kind of manifest with the first sentence of its meaning, and what to ask next."""
    yield style("Kinds of manifests:", "bold")
    for kind in Kind:
        yield from _meaning(kind.value, _schema(kind), style)
    yield style("Other documents:", "bold")
    for name in _DOCUMENTS:
        yield from _meaning(name, schema_for(name, Stage.RESOLVED), style)
    yield "`reconciler explain KIND` lists the fields of a kind, `explain KIND.FIELD` explains one."
    yield "`reconciler explain CODE` explains the code of a finding, such as YAML-SYNTAX."


def _meaning(name: str, schema: Schema, style: Style) -> Iterator[str]:
    yield f"  {style(name, 'cyan')}"
    yield f"      {schema['description'].partition('. ')[0].removesuffix('.')}."


@command("schema", example="Project")
@click.argument("kind", default="Manifest", shell_complete=documents)
def schema_command(kind: str) -> None:
    """Print the JSON Schema of KIND or another document, or of any manifest.

    Other documents are Defaults, a Patch, a Policy, a Waiver and Configuration.

    The schemas are for editors: a value may be a variable, and what Defaults may give may be
    missing. `reconciler validate` judges manifests after resolution.
    """
    others = {name.lower(): name.lower() for name in _OTHERS}
    name = others.get(kind.lower()) or KINDS[_kind_named(kind)].schema
    click.echo(schema_path(name).read_text(encoding="utf-8"), nl=False)


def _kind_named(text: str) -> Kind:
    """Return the kind of this name, in upper or lower case."""
    found = _KINDS.get(text.lower())
    if found is None:
        listed = f"The kinds are {', '.join(Kind)}."
        raise _unknown(f"{text!r} is not a kind", text, Kind, listed)
    return found


def _unknown(
    problem: str, written: str, known: Iterable[str], otherwise: str
) -> click.BadParameter:
    """Return the error for a name; it ends with the nearest known one, or else ``otherwise``."""
    meant = nearest(written, known)
    hint = f"Did you mean {meant}?" if meant else otherwise
    return click.BadParameter(f"{problem}. {hint}")


def _code(written: str, style: Style) -> Sequence[str]:
    """Return what a code means, in lines; nothing where a text looks like a kind."""
    from reconciler.plan.risk import MEANINGS, PROBLEMS
    from reconciler.report.codes import CODES, as_sentence

    names = {name.lower(): name for name in (*CODES, *MEANINGS, *PROBLEMS)}
    name = names.get(written.lower(), "")
    title = style(name, "bold")
    if name in CODES:
        code = CODES[name]
        to_do = f"{style('To do:', 'bold')} {code.remedy}"
        return [title, as_sentence(code.title), code.meaning, to_do]
    if name:
        return [title, as_sentence(MEANINGS.get(name) or PROBLEMS[name])]
    if "-" in written:
        listed = "docs/codes.md lists all."
        raise _unknown(f"there is no code {written!r}", written, names.values(), listed)
    return []


def _document(path: str, schema: Schema, steps: Sequence[str], style: Style) -> Iterator[str]:
    """Yield what a document that declares no resource means, or one of its fields."""
    for step in steps:
        fields = _fields_within(schema)
        if step not in fields:
            listed = f"The fields are {', '.join(fields)}." if fields else "It has no fields."
            raise _unknown(f"there is no field {step!r}", step, fields, listed)
        schema = fields[step]
    yield style(path, "bold")
    yield from _facts(schema) if steps else [schema["description"]]
    for name, field in _fields_within(schema).items():
        yield from _in_short(name, field, style)


def _fields_within(schema: Schema) -> Schema:
    """Return the fields of a mapping, or of each value of one whose keys are free."""
    if "properties" in schema:
        return dict(schema["properties"])
    each = schema.get("additionalProperties")
    return dict(each.get("properties", {})) if isinstance(each, dict) else {}


def _schema(kind: Kind) -> Schema:
    """Return the schema of a kind after resolution, with the metadata that reading takes out."""
    schema = schema_for(kind, Stage.RESOLVED)
    for field in (*KINDS[kind].reading, *OVERLAID):
        shown = field_schema(field, Stage.RESOLVED)
        schema["properties"]["metadata"]["properties"][field.name] = shown
    return schema


def _resource(path: str, schema: Schema, steps: Sequence[str], style: Style) -> Iterator[str]:
    """Yield what a kind means, or one of its fields."""
    sections = [(part, schema["properties"][part]) for part in SECTIONS]
    if steps:
        name, field = _find(schema, steps)
        yield style(path, "bold")
        yield from _facts(field)
        if any(name in section.get("required", ()) for _, section in sections):
            yield style("required", "yellow")
        yield from (f"  {style(sub, 'cyan')}" for sub in field.get("properties", ()))
        return
    yield style(schema["title"], "bold")
    yield schema["description"]
    for part, section in sections:
        yield ""
        yield style(part, "bold") + ("" if section["properties"] else ": no fields")
        for name, field in section["properties"].items():
            need = style("  (required)", "yellow") if name in section.get("required", ()) else ""
            yield from _in_short(name, field, style, need)


def _find(schema: Schema, steps: Sequence[str]) -> tuple[str, Schema]:
    """Return a field by its path; ``spec`` may be left out."""
    tops = schema["properties"]
    if steps[0] in tops and (len(steps) > 1 or "properties" not in tops["spec"]):
        tops, steps = tops[steps[0]].get("properties", {}), steps[1:]
    elif steps[0] not in tops:
        tops = tops["spec"]["properties"]
    name = steps[0]
    if len(steps) > 1 or name not in tops:
        listed = f"The fields are {', '.join(tops)}."
        raise _unknown(f"there is no field {'.'.join(steps)!r}", steps[-1], tops, listed)
    return name, tops[name]


def _in_short(name: str, field: Schema, style: Style, need: str = "") -> Iterator[str]:
    yield f"  {style(name, 'cyan')} <{_type(field)}>{need}"
    yield f"      {field['description']}"


def _facts(field: Schema) -> Iterator[str]:
    """Yield type and meaning of a field, what may be written there, its default and examples."""
    limits: Schema = field.get("items", field)  # of a list, those of each item
    short = spellings(limits.get("enum", ()))
    yield f"<{_type(field)}>  {field['description']}"
    if "const" in field:
        yield f"always: {field['const']}"
    if "enum" in limits:
        yield from _words(limits["enum"], short)
    for limit, words in LIMITS.items():
        if limit in limits and limits[limit] != NO_NUL:
            yield words.format(limits[limit])
    if "default" in field:
        yield f"default: {json.dumps(_shortened(field['default'], short))}"
    for example in field.get("examples", ())[:2]:
        yield f"example: {json.dumps(example, ensure_ascii=False)}"


def _shortened(default: Any, short: Mapping[str, str]) -> Any:
    """Return a default with its words in short, where they can be written so."""
    long = {long: word for word, long in short.items()}
    if isinstance(default, list):
        return [long.get(word, word) for word in default]
    return long.get(default, default) if isinstance(default, str) else default


def _words(words: Sequence[str], short: Mapping[str, str]) -> Iterator[str]:
    note = ""
    if short:
        word, long = next(iter(short.items()))
        note = f", each also with {long.removesuffix(word)} before it"
    yield f"allowed{note}:"
    yield from (f"  {word}" for word in short or words)


def _type(field: Schema) -> str:
    if "const" in field:
        return "string"
    if isinstance(field["type"], list):
        return "any value"
    if field["type"] == "array":
        return f"list of {field['items'].get('type', 'string')}"
    return {"object": "mapping"}.get(field["type"], str(field["type"]))


def _environments(chosen: Configured, style: Style) -> str:
    """Return the environment that was chosen, or each one, with its variables.

    Raises:
        InvalidConfigurationError: the configuration, or a value that was given, cannot be used.
    """
    if any(finding.is_error for finding in chosen.findings) or chosen.configuration is None:
        raise InvalidConfigurationError(chosen.findings)
    configuration = chosen.configuration
    return "\n\n".join("\n".join(_lines(configuration, each, style)) for each in chosen.each())


def _lines(configuration: Configuration, chosen: Configured, style: Style) -> Iterator[str]:
    if chosen.environment is not None:
        yield _head(configuration, chosen.environment, style)
    variables = configuration.variables
    if not variables:
        yield "No variables are declared."
    for name, variable in variables.items():
        value = chosen.layers.variables.get(name)
        yield f"  {style(name, 'cyan')} <{variable.type}>  {_shown(variable, value, style)}"
        if variable.description:
            yield f"      {visible(variable.description)}"


def _head(configuration: Configuration, environment: Environment, style: Style) -> str:
    facts = [f"service {configuration.service_of(environment)}"]
    facts += [f"tree {environment.tree}"] if environment.tree else []
    facts += [f"overlay {configuration.path(environment.overlay)}"] if environment.overlay else []
    facts += ["protected"] if environment.protected else []
    facts += [] if environment.allow_partial else ["the whole tree only"]
    facts += [f"capabilities {environment.capabilities}"] if environment.capabilities else []
    return f"{style(f'Environment {environment.name}', 'bold')}: {visible(', '.join(facts))}"


def _shown(variable: Variable, value: VariableValue | None, style: Style) -> str:
    """Return a value, and where it comes from: the file, the environment or the command line."""
    if value is None:
        return style("no value", "yellow")
    text = json.dumps(value.value, ensure_ascii=False)
    cut = f"{text[:LONGEST]} [{len(text) - LONGEST} more characters]"
    origin = "default, " if value is variable.default else ""
    shown = visible(text if len(text) <= LONGEST else cut)
    return f"{shown}  {style(f'({origin}{visible(str(value.origin))})', 'dim')}"
