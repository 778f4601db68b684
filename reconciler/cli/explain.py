"""``reconciler explain`` and ``schema``: fields of a kind, values of an environment, codes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click

from reconciler.cli.configuration_options import in_all_environments
from reconciler.cli.configured import NOT_CONFIGURED, Configured, configured
from reconciler.cli.output import stdout_style
from reconciler.configuration.model import (
    Configuration,
    Environment,
    Variable,
    configuration_schema,
)
from reconciler.errors import InvalidConfigurationError
from reconciler.manifests.extent import CONFIGURATION
from reconciler.manifests.placeholders import VariableValue
from reconciler.report.visible import Style, visible
from reconciler.resources.installation import schema_path
from reconciler.resources.kinds import KINDS, OVERLAID
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import (
    DEFAULTS,
    Schema,
    Stage,
    field_schema,
    schema_for,
    spellings,
)

# Documents that declare no resource.
_DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    CONFIGURATION: configuration_schema,
    DEFAULTS: partial(schema_for, DEFAULTS, Stage.RESOLVED),
}

SECTIONS = ("metadata", "spec")
LIMITS = {
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
}


def kinds(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds that begin with these letters, in upper or lower case."""
    return [kind.value for kind in Kind if kind.value.lower().startswith(incomplete.lower())]


def explainable(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return kinds, codes and classes of risk; once a kind and a point are written, its fields."""
    name, point, _ = incomplete.partition(".")
    found = {kind.value.lower(): kind for kind in Kind}.get(name.lower())
    if point and found is not None:
        texts = _fields(found)
    else:
        from reconciler.report.codes import CODES, RISKS

        texts = [*(kind.value for kind in Kind), *_DOCUMENTS, *CODES, *RISKS]
    return [text for text in texts if text.lower().startswith(incomplete.lower())]


def _fields(kind: Kind) -> list[str]:
    parts = _schema(kind)["properties"]
    metadata = (f"metadata.{field}" for field in parts["metadata"]["properties"])
    fields = [*parts["spec"].get("properties", {}), *metadata]
    return [f"{kind.value}.{field}" for field in fields]


@click.command("explain")
@click.argument("path", required=False, metavar="[KIND[.FIELD]|CODE]", shell_complete=explainable)
@in_all_environments
@click.pass_context
def explain_command(context: click.Context, path: str | None) -> None:
    """Tell what a kind or one of its fields means, and what may be written; or what a code means.

    FIELD is one of spec or of metadata: OidcApplication.appType, Action.metadata.id. CODE is that
    of a finding, a risk or a problem that the service reports: YAML-SYNTAX, plain-http. KIND can be
    Configuration: reconciler.yaml, with fields such as Configuration.environments.service; or
    Defaults.

    Without any of them, the variables of the environment are listed: their values, and where each
    value comes from.
    """
    if path is None:
        if configured() is NOT_CONFIGURED:
            hint = "'KIND[.FIELD]|CODE'"
            raise click.MissingParameter(ctx=context, param_hint=hint, param_type="argument")
        explain_environments(configured(), stdout_style())
        return
    if explained := _code(path, stdout_style()):
        click.echo(explained)
        return
    kind, *steps = path.split(".")
    style = stdout_style()
    documents = {name.lower(): schema for name, schema in _DOCUMENTS.items()}
    if schema_of := documents.get(kind.lower()):
        click.echo("\n".join(_document(path, schema_of(), steps, style)))
        return
    schema = _schema(kind_named(kind))
    if steps:
        name, field = _find(schema, steps)
        lines = [style(f"{path}", "bold"), *_field(name, field, schema, style)]
    else:
        lines = [style(schema["title"], "bold"), schema["description"], *_kind(schema, style)]
    click.echo("\n".join(lines))


def _document(path: str, schema: Schema, steps: Sequence[str], style: Style) -> Iterator[str]:
    """Yield what a document that declares no resource means, or one of its fields."""
    for step in steps:
        fields = _fields_within(schema)
        if step not in fields:
            close = difflib.get_close_matches(step, fields, n=1)
            names = f"The fields are {', '.join(fields)}." if fields else "It has no fields."
            hint = f"Did you mean {close[0]}?" if close else names
            raise click.BadParameter(f"there is no field {step!r}. {hint}")
        schema = fields[step]
    yield style(path, "bold")
    kind = f"<{_type(schema)}>  " if steps else ""
    yield f"{kind}{schema['description']}"
    yield from _allowed(schema)
    if "default" in schema:
        yield f"default: {json.dumps(_in_short(schema))}"
    yield from (f"example: {json.dumps(example)}" for example in schema.get("examples", ()))
    for name, field in _fields_within(schema).items():
        yield f"  {style(name, 'cyan')} <{_type(field)}>"
        yield f"      {field['description']}"


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


def _code(written: str, style: Style) -> str:
    """Return what a code means, or nothing where a text looks like a kind."""
    from reconciler.report.codes import CODES, PROBLEMS, RISKS, as_sentence

    names = {name.lower(): name for name in (*CODES, *RISKS, *PROBLEMS)}
    name = names.get(written.lower(), "")
    if name in CODES:
        code = CODES[name]
        lines = [as_sentence(code.title), code.meaning, f"{style('To do:', 'bold')} {code.remedy}"]
    elif name:
        lines = [as_sentence(RISKS.get(name) or PROBLEMS[name])]
    elif "-" in written:
        close = difflib.get_close_matches(written.lower(), names, n=1)
        hint = f"Did you mean {names[close[0]]}?" if close else "docs/codes.md lists all."
        raise click.BadParameter(f"there is no code {written!r}. {hint}")
    else:
        return ""
    return "\n".join([style(name, "bold"), *lines])


def _find(schema: Schema, steps: list[str]) -> tuple[str, Schema]:
    """Return a field by its path; ``spec`` may be left out."""
    tops = schema["properties"]
    if steps[0] in tops and (len(steps) > 1 or "properties" not in tops["spec"]):
        tops, steps = tops[steps[0]].get("properties", {}), steps[1:]
    elif steps[0] not in tops:
        tops = tops["spec"]["properties"]
    name = steps[0]
    if len(steps) > 1 or name not in tops:
        close = difflib.get_close_matches(steps[-1], tops, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The fields are {', '.join(tops)}."
        raise click.BadParameter(f"there is no field {'.'.join(steps)!r}. {hint}")
    return name, tops[name]


def _kind(schema: Schema, style: Style) -> Iterator[str]:
    for part in SECTIONS:
        section = schema["properties"][part]
        yield ""
        yield style(part, "bold") + ("" if section["properties"] else ": no fields")
        required = section.get("required", ())
        for name, field in section["properties"].items():
            need = style("  (required)", "yellow") if name in required else ""
            yield f"  {style(name, 'cyan')} <{_type(field)}>{need}"
            yield f"      {field['description']}"


def _field(name: str, field: Schema, schema: Schema, style: Style) -> Iterator[str]:
    yield f"<{_type(field)}>  {field['description']}"
    yield from _allowed(field)
    if "default" in field:
        yield f"default: {json.dumps(_in_short(field))}"
    for example in field.get("examples", ())[:2]:
        yield f"example: {json.dumps(example, ensure_ascii=False)}"
    if any(name in schema["properties"][part].get("required", ()) for part in SECTIONS):
        yield style("required", "yellow")
    yield from (f"  {style(sub, 'cyan')}" for sub in field.get("properties", ()))


def _allowed(field: Schema) -> Iterator[str]:
    limits = _limits(field)
    if "const" in field:
        yield f"always: {field['const']}"
    if "enum" in limits:
        yield from _words(limits["enum"])
    for limit, words in LIMITS.items():
        if limit in limits and limits[limit] != _ANY_TEXT:
            yield words.format(limits[limit])


def _in_short(field: Schema) -> Any:
    """Return the default of a field, in short where that can be written."""
    default = field["default"]
    short = {long: word for word, long in spellings(_limits(field).get("enum", ())).items()}
    if isinstance(default, list):
        return [short.get(word, word) for word in default]
    return short.get(default, default) if isinstance(default, str) else default


def _limits(field: Schema) -> Schema:
    """Return the part of a field's schema that judges one value: of a list, each item."""
    limits: Schema = field.get("items", field)
    return limits


def _words(words: list[str]) -> Iterator[str]:
    short = spellings(words)
    note = ""
    if short:
        word, long = next(iter(short.items()))
        note = f", each also with {long.removesuffix(word)} before it"
    yield f"allowed{note}:"
    yield from (f"  {word}" for word in short or words)


_ANY_TEXT = r"^[^\u0000]*$"


def _type(field: Schema) -> str:
    if "const" in field:
        return "string"
    if isinstance(field["type"], list):
        return "any value"
    if field["type"] == "array":
        return f"list of {field['items'].get('type', 'string')}"
    return {"object": "mapping"}.get(field["type"], str(field["type"]))


# Documents that are not manifests of one kind, by the names of their schemas.
_OTHERS = (CONFIGURATION, "Defaults", "Manifest", "Patch")


def documents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the documents with a schema that begin with these letters, in upper or lower case."""
    names = [*(kind.value for kind in Kind), *_OTHERS]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


@click.command("schema")
@click.argument("kind", default="Manifest", shell_complete=documents)
def schema_command(kind: str) -> None:
    """Print the JSON Schema of KIND, of Defaults or a Patch, of any manifest, or of Configuration.

    The schemas are for editors: a value may be a variable, and what Defaults may give may be
    missing. `reconciler validate` judges manifests after resolution.
    """
    others = {name.lower(): name.lower() for name in _OTHERS}
    name = others.get(kind.lower()) or KINDS[kind_named(kind)].schema
    click.echo(schema_path(name).read_text(encoding="utf-8"), nl=False)


def kind_named(text: str) -> Kind:
    """Return the kind of this name, in upper or lower case.

    Raises:
        click.BadParameter: no such name; the message names the nearest, or all.
    """
    kinds = {kind.value.lower(): kind for kind in Kind}
    found = kinds.get(text.lower())
    if found is None:
        close = difflib.get_close_matches(text.lower(), kinds, n=1)
        hint = f"Did you mean {kinds[close[0]].value}?" if close else ""
        names = ", ".join(kind.value for kind in Kind)
        raise click.BadParameter(f"{text!r} is not a kind. {hint or f'The kinds are {names}.'}")
    return found


LONGEST = 500
"""Characters of a value that are shown."""


def explain_environments(chosen: Configured, style: Style) -> None:
    """Print the environment that was chosen, or each one, with its variables.

    Raises:
        InvalidConfigurationError: the configuration, or a value that was given, cannot be used.
    """
    if any(finding.is_error for finding in chosen.findings) or chosen.configuration is None:
        raise InvalidConfigurationError(chosen.findings)
    parts = ["\n".join(_lines(chosen.configuration, each, style)) for each in chosen.each()]
    click.echo("\n\n".join(parts))


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
