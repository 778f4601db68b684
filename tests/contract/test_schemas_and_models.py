"""The schema and the model of a kind accept the same manifests, told independently.

Thousands of documents, each mostly right with a few things odd, are asked of five statements of
the same contract: the schema of the kind by two libraries, the schema of any manifest by both,
and the models that the service uses.
"""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from docs.kinds.make import any_manifest, written
from reconciler.kinds.fields import KINDS
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.normal import SHORT
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import Stage, schema_for
from reconciler.service.operations.models import Model, model_with
from reconciler.validation.schema import accepts, faults
from tests.effort import cases
from tests.unit.validation.documents import (
    ACTION,
    ACTION_FLOW,
    APPLICATION,
    DOCUMENTS,
)

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "schemas"
SEEDS_PER_KIND = cases(1000)

COMPLETE: dict[Kind, dict[str, Any]] = {
    **{kind: {"spec": {}, **document} for kind, document in DOCUMENTS.items()},
    Kind.ACTION: {
        **ACTION,
        "spec": {"script": "function greet() {}", "timeout": "5s", "allowedToFail": True},
    },
    Kind.ACTION_FLOW: {
        **ACTION_FLOW,
        "spec": {"PRE_USERINFO_CREATION": ["greet"], "PRE_ACCESS_TOKEN_CREATION": []},
    },
    Kind.OIDC_APPLICATION: {
        **APPLICATION,
        "spec": {
            "redirectUris": ["https://shop.example.com/callback"],
            "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
            "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "REFRESH_TOKEN"],
            "appType": "WEB",
            "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
            "version": "OIDC_VERSION_1_0",
            "clockSkew": "1s",
            "devMode": False,
        },
    },
}
ODD: list[Any] = [
    *(
        "",
        "x",
        "x" * 200,
        "x" * 201,
        "\U0001f600" * 200,
        "\U0001f600" * 201,
        "x" * 40_000,
        "x" * 40_001,
    ),
    *("a\0b", "a\n", "a\u2028b", "\u0000", "a b", "null", "true", "\n", " "),
    *(
        "5s",
        "5s\n",
        "\n5s",
        "05s",
        "5.0s",
        "5.1s",
        "20s",
        "20.0s",
        "21s",
        "-1s",
        "5",
        ".5s",
        "\uff15s",
    ),
    *(None, True, False, 0, 1, -1, 1.0, 1.5, 10**30),
    *([], [[]], {}, {"a": 1}, [None], ["x"], ["OIDC_RESPONSE_TYPE_CODE"], ["OIDC_GRANT_TYPE_X"]),
    *("OIDC_APP_TYPE_NATIVE", "oidc_app_type_native", "OIDC_VERSION_1_0", "OIDC_VERSION_1_0\n"),
    *("reconciler/v1", "reconciler/v2", "Action", "Project", "abc-_9", "abc\n", "\u00e4", "\u0660"),
]
NAMES = [
    *("name", "id", "preventDelete", "organization", "project", "script", "scriptFile", "timeout"),
    *("allowedToFail", "unknown", "redirect_uris", "redirectUris", "grantTypes", "appType", "spec"),
    *("postLogoutRedirectUris", "additionalOrigins", "clockSkew", "headerName", "issuer", "kind"),
]


def a_document(kind: Kind, seed: int) -> Any:
    """Return a manifest that is mostly right: up to three things odd, missing or unknown."""
    dice = random.Random(f"{kind}-{seed}")
    document = copy.deepcopy(COMPLETE[kind])
    for _ in range(dice.randint(0, 3)):
        _change(document, dice)
    return dice.choice(ODD) if dice.random() < 0.01 else document


def _change(document: dict[str, Any], dice: random.Random) -> None:
    parts = [document, *(part for part in document.values() if isinstance(part, dict))]
    part = dice.choice(parts)
    how = dice.random()
    if how < 0.2 and part:
        del part[dice.choice(list(part))]
    elif how < 0.5:
        part[dice.choice(NAMES)] = copy.deepcopy(dice.choice(ODD))
    elif part:
        name = dice.choice(list(part))
        value = part[name]
        if isinstance(value, list) and dice.random() < 0.7:
            value.insert(dice.randint(0, len(value)), copy.deepcopy(dice.choice(ODD)))
        else:
            part[name] = copy.deepcopy(dice.choice(ODD))


@cache
def models(kind: Kind) -> tuple[type[Model], ...]:
    """Return the models of a kind's spec: an action has one more, with a file for the script."""
    row = KINDS[kind]
    others = [row.instead.get(field.name, field) for field in row.fields]
    with_file = [model_with("WithFile", others)] if row.instead else []
    return (model_with(kind.value, row.fields), *with_file)


@cache
def metadata_model(kind: Kind) -> type[Model]:
    return model_with("Metadata", (*KINDS[kind].owner, *KINDS[kind].metadata))


def _fits(model: type[Model], fields: Any) -> bool:
    try:
        model.model_validate_json(json.dumps(fields))
    except ValidationError:
        return False
    return True


def by_models(kind: Kind, document: Any) -> bool:
    """Return the verdict of the models: the envelope by hand, metadata and spec by theirs."""
    if not isinstance(document, dict):
        return False
    known = {"apiVersion", "kind", "metadata", "spec"}
    if not known - {"spec"} <= document.keys() <= known:
        return False
    if document["apiVersion"] != API_VERSION or document["kind"] != kind.value:
        return False
    spec = document.get("spec", {})
    if not isinstance(document["metadata"], dict) or not isinstance(spec, dict):
        return False
    spec = {name: _long(kind, name, value) for name, value in spec.items()}
    return _fits(metadata_model(kind), document["metadata"]) and any(
        _fits(model, spec) for model in models(kind)
    )


def _long(kind: Kind, name: str, value: Any) -> Any:
    """Return a value in the long spelling, the only one that the models take."""
    words = SHORT[kind].get(name, {})
    if isinstance(value, list):
        return [_long(kind, name, item) for item in value]
    return words.get(value, value) if isinstance(value, str) else value


def schema_file(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return schema


ANY_SCHEMA = any_manifest(Stage.RESOLVED)
ANY_RS = jsonschema_rs.Draft202012Validator(ANY_SCHEMA)


@pytest.mark.parametrize("kind", Kind)
def test_schema_and_models_give_the_same_verdicts(kind: Kind) -> None:
    """What passes the schema is never refused later for its form, nor the reverse."""
    verdicts = []
    for seed in range(SEEDS_PER_KIND):
        document = a_document(kind, seed)
        verdict = accepts(kind, document)
        verdicts.append(verdict)

        assert by_models(kind, document) == verdict, (seed, document)
        assert (not faults(kind, document)) == verdict, (seed, document)
        if isinstance(document, dict) and document.get("kind") == kind.value:
            assert ANY_RS.is_valid(document) == verdict, (seed, document)

    assert min(verdicts.count(True), verdicts.count(False)) > SEEDS_PER_KIND / 10


@pytest.mark.parametrize("kind", Kind)
def test_an_editor_marks_nothing_that_is_right_after_resolution(kind: Kind) -> None:
    """What is written may be a variable or missing; what is neither is judged the same."""
    public = jsonschema_rs.Draft202012Validator(schema_file(f"{KINDS[kind].schema}.schema.json"))
    any_public = jsonschema_rs.Draft202012Validator(schema_file("manifest.schema.json"))
    for seed in range(SEEDS_PER_KIND // 2):
        document = a_document(kind, seed)
        verdict = public.is_valid(document)

        assert verdict or not accepts(kind, document), (seed, document)
        if isinstance(document, dict) and document.get("kind") == kind.value:
            assert any_public.is_valid(document) == verdict, (seed, document)


@pytest.mark.parametrize("seed", range(300))
def test_the_schema_of_any_manifest_explains_like_that_of_its_kind(seed: int) -> None:
    """An editor uses the one, the command line the other: the same paths, the same keywords."""
    kind = list(Kind)[seed % len(Kind)]
    document = a_document(kind, seed)
    if not isinstance(document, dict) or document.get("kind") != kind.value:
        return
    of_any = Draft202012Validator(ANY_SCHEMA).iter_errors(document)
    of_kind = Draft202012Validator(schema_for(kind, Stage.RESOLVED))

    assert _mistakes(of_any) == _mistakes(of_kind.iter_errors(document))


def _mistakes(errors: Any) -> set[tuple[str, tuple[str | int, ...]]]:
    return {(str(error.validator), tuple(error.absolute_path)) for error in errors}


BY_HAND = {f"schemas/{name}.schema.json" for name in ("configuration", "policy", "waiver")}


def test_schemas_and_documentation_follow_from_the_declarations() -> None:
    """``make schemas`` has been run, and there is no schema of a kind that is gone."""
    files = written()
    schemas = {path.relative_to(ROOT).as_posix() for path in SCHEMAS.iterdir()}

    assert schemas - files.keys() == BY_HAND
    assert {name: (ROOT / name).read_text(encoding="utf-8") for name in files} == files


@pytest.mark.parametrize("name", sorted(path.name for path in SCHEMAS.iterdir()))
def test_a_schema_is_a_schema(name: str) -> None:
    schema = schema_file(name)

    Draft202012Validator.check_schema(schema)
    assert jsonschema_rs.meta.is_valid(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("kind", Kind)
def test_every_field_is_described_and_every_example_fits(kind: Kind) -> None:
    """The schema is the help that an editor shows."""
    schema = schema_file(f"{KINDS[kind].schema}.schema.json")
    properties = schema["properties"]
    parts = [properties, properties["metadata"]["properties"], properties["spec"]["properties"]]
    for name, field in ((name, field) for part in parts for name, field in part.items()):
        assert field["description"].strip(), name
        for example in field.get("examples", []):
            assert Draft202012Validator(field).is_valid(example), name
        if "default" in field:
            assert Draft202012Validator(field).is_valid(field["default"]), name
