"""Explanations: types and limits of fields, and what a shell is offered."""

from __future__ import annotations

from typing import Any

import click
import pytest

from reconciler.cli import explain
from reconciler.report.visible import PLAIN
from reconciler.resources.ref import Kind
from tests.rows import each_row

NOTHING: Any = None


@each_row(
    ("schema", "name"),
    [
        ({"const": "v1"}, "string"),
        ({"type": ["string", "number"]}, "any value"),
        ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
        ({"type": "array", "items": {}}, "list of string"),
        ({"type": "object"}, "mapping"),
        ({"type": "boolean"}, "boolean"),
    ],
)
def test_types_have_names(schema: Any, name: str) -> None:
    assert explain._type(schema) == name


def test_a_field_is_explained_with_its_limits_default_and_examples() -> None:
    field = {
        "type": "array",
        "description": "How long.",
        "items": {"type": "string", "maxLength": 9, "pattern": r"^[^\u0000]*$"},
        "default": ["5s"],
        "examples": ["1s", "2s", "3s"],
    }

    assert list(explain._facts(field)) == [
        "<list of string>  How long.",
        "at most 9 characters",
        'default: ["5s"]',
        'example: "1s"',
        'example: "2s"',
    ]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("oidcapp", ["OidcApplication"]),
        ("action.meta", ["Action.metadata.organization", "Action.metadata.name"]),
        ("YAML-SYN", ["YAML-SYNTAX"]),
        ("plain-h", ["plain-http"]),
        ("nothing", []),
    ],
)
def test_a_shell_is_offered_what_begins_so(typed: str, offered: list[str]) -> None:
    found = explain.explainable(NOTHING, NOTHING, typed)

    assert found[: len(offered)] == offered
    assert bool(found) == bool(offered)


def test_a_shell_is_offered_the_documents_with_a_schema() -> None:
    assert explain.documents(NOTHING, NOTHING, "p") == ["Project", "ProjectRole", "Policy", "Patch"]


@pytest.mark.parametrize(
    ("problem", "find"),
    [
        ("Did you mean Action?", lambda: explain._kind_named("Actio")),
        ("The kinds are Organization,", lambda: explain._kind_named("zzz")),
        ("Did you mean YAML-SYNTAX?", lambda: explain._code("yaml-syntx", PLAIN)),
        ("Did you mean timeout?", lambda: explain._find(explain._schema(Kind.ACTION), ["timeot"])),
    ],
)
def test_a_wrong_name_gets_a_hint(problem: str, find: Any) -> None:
    with pytest.raises(click.BadParameter, match=problem.replace("?", r"\?")):
        find()
