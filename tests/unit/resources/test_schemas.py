"""Schemas of written and of resolved documents: manifests, patches and Defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.kinds.make import any_manifest, public_schemas
from reconciler.configuration.model import VariableType
from reconciler.diagnostics import Severity
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import WORDS
from reconciler.policy.model import DEFAULT_CHANGES, Over
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.fields import flag
from reconciler.resources.ref import DEFAULT_TREE, Kind
from reconciler.resources.schemas import (
    CONFIGURATION,
    DEFAULTS,
    POLICY,
    POLICY_KINDS,
    Judged,
    Patch,
    Schema,
    Stage,
    field_schema,
    schema_file,
    schema_for,
    spellings,
)
from tests.rows import each_row
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    IDP,
    with_metadata,
    with_spec,
    without,
)

PATCH = Patch(Kind.OIDC_APPLICATION)
SPARE = without(without(APPLICATION, "metadata", "organization"), "metadata", "project")
GIVEN = {
    "apiVersion": "reconciler/v1",
    "kind": "Defaults",
    "metadata": {"organization": "acme"},
    "spec": {"OidcApplication": {"appType": "WEB"}, "Action": {"timeout": "5s"}},
}


def fits(judged: Judged, stage: Stage, document: Any) -> bool:
    return bool(Draft202012Validator(schema_for(judged, stage)).is_valid(document))


@each_row(
    ("judged", "document", "written", "resolved"),
    [
        (Kind.OIDC_APPLICATION, APPLICATION, True, True),
        (Kind.OIDC_APPLICATION, SPARE, True, False),
        (Kind.OIDC_APPLICATION, without(APPLICATION, "metadata", "name"), False, False),
        (Kind.IDP_JWT_CONFIG, without(IDP, "spec"), True, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, redirectUris="${uris}"), True, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, redirectUris="a ${uris}"), False, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, devMode="${dev_mode}"), True, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, appType="${type}"), True, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, appType="USER_AGENT"), True, True),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, version="1_0"), False, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, grantTypes=["${one}"]), True, False),
        (Kind.OIDC_APPLICATION, with_spec(APPLICATION, appType=None), False, False),
        (Kind.OIDC_APPLICATION, with_metadata(APPLICATION, absent=True), False, False),
        (Kind.ACTION, with_spec(ACTION, timeout="${seconds}s"), True, False),
        (Kind.ACTION, with_metadata(ACTION, templated=True), True, False),
        (Kind.ACTION, without(ACTION, "spec"), True, False),
        (Kind.ACTION, with_spec(ACTION, scriptFile="a.js"), False, False),
        (PATCH, APPLICATION, True, True),
        (PATCH, without(APPLICATION, "spec"), True, True),
        (PATCH, SPARE, True, False),
        (PATCH, with_spec(APPLICATION, appType=None, devMode=None, grantTypes=None), True, True),
        (PATCH, with_spec(APPLICATION, version=None, clockSkew="${skew}"), True, False),
        (PATCH, with_metadata(APPLICATION, absent=True, patch=True, critical=None), True, True),
        (PATCH, with_metadata(APPLICATION, name=None), False, False),
        (PATCH, with_spec(APPLICATION, apptype="WEB"), False, False),
        (DEFAULTS, GIVEN, True, True),
        (DEFAULTS, with_spec(GIVEN, Action={"timeout": "${seconds}s"}), True, False),
        (DEFAULTS, with_spec(GIVEN, Applicaton={}), False, False),
        (DEFAULTS, with_metadata(GIVEN, name="shop"), False, False),
        (DEFAULTS, without(without(GIVEN, "spec"), "metadata"), True, True),
    ],
)
def test_a_document_fits_as_it_is_written_and_once_it_is_resolved(
    judged: Judged, document: Any, *, written: bool, resolved: bool
) -> None:
    assert fits(judged, Stage.WRITTEN, document) is written
    assert fits(judged, Stage.RESOLVED, document) is resolved


def test_the_schema_of_any_document_picks_by_kind() -> None:
    picks = Draft202012Validator(any_manifest(Stage.WRITTEN))

    assert picks.is_valid(GIVEN)
    assert picks.is_valid(SPARE)
    assert not picks.is_valid({**GIVEN, "kind": "Action"})
    assert not picks.is_valid({**GIVEN, "kind": "Patch"})


def test_each_kind_has_a_public_schema() -> None:
    others = {"manifest", "patch", "defaults"}
    names = {*(row.schema for row in KINDS.values()), *others}

    assert set(public_schemas()) == {f"{name}.schema.json" for name in names}


def test_the_words_in_the_schema_of_policies_are_those_of_the_program() -> None:
    """It is written by hand: a new kind, change or severity has its place there, too."""
    schema = schema_for(POLICY, Stage.RESOLVED)
    spec, example = (
        schema["properties"]["spec"]["properties"],
        schema["$defs"]["example"]["properties"],
    )

    assert spec["severity"]["enum"] == [*Severity]
    assert spec["over"]["enum"] == [*Over]
    assert spec["changes"]["default"] == [*DEFAULT_CHANGES]
    for kinds in (spec["kinds"]["items"], example["kind"]):
        assert kinds["enum"] == [*Kind]
    for changes in (spec["changes"]["items"], example["change"]):
        assert changes["enum"] == [*WORDS.values()]


def test_the_words_in_the_schema_of_a_configuration_are_those_of_the_program() -> None:
    """It is written by hand: so is a new release of ZITADEL there."""
    fields = schema_file(CONFIGURATION)["properties"]
    environment = fields["environments"]["additionalProperties"]["properties"]
    variable = fields["variables"]["additionalProperties"]["properties"]

    assert variable["type"]["enum"] == [*VariableType]
    assert environment["capabilities"]["enum"] == [*CAPABILITIES]
    assert environment["capabilities"]["default"] == SOURCE
    assert fields["tree"]["default"] == DEFAULT_TREE
    assert fields["tree"]["maxLength"] == environment["tree"]["maxLength"] == MAX_TEXTS["tree"]


@pytest.mark.parametrize("kind", [*POLICY_KINDS, CONFIGURATION])
def test_the_schemas_written_by_hand_bound_every_text(kind: str) -> None:
    """No text is without an end, and none has NUL in it."""
    texts = [each for each in _parts(schema_file(kind)) if is_free_text(each)]

    assert len(texts) > 5
    assert [each for each in texts if not {"maxLength", "pattern"} <= each.keys()] == []


def is_free_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and "enum" not in schema


def _parts(schema: object) -> Iterator[Schema]:
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else ():
        yield from _parts(inner)


@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (["WEB", "NATIVE", "X_WEB", "X_NATIVE"], {"WEB": "X_WEB", "NATIVE": "X_NATIVE"}),
        (["string", "number"], {}),
        (["one"], {}),
    ],
)
def test_the_short_words_of_an_enum_have_long_spellings(
    words: list[str], pairs: dict[str, str]
) -> None:
    assert spellings(words) == pairs


def test_a_field_left_as_held_shows_no_default_and_says_so() -> None:
    plain, left = flag("a", "A."), flag("a", "A.")._replace(left_as_held=True)

    assert field_schema(plain, Stage.RESOLVED)["default"] is False
    assert field_schema(left, Stage.RESOLVED) == {
        "description": "A. Left out, it stays as the service holds it.",
        "type": "boolean",
    }
