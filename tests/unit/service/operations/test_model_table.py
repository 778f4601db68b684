"""Rows of operations whose requests are models."""

from __future__ import annotations

import pytest

from reconciler.resources.models import Model
from reconciler.service.operations.model_table import ROWS
from reconciler.service.operations.operation import MANAGEMENT, Effect, Operation
from reconciler.service.operations.table import operation_of

VERBS = {
    "Add": Effect.CREATES,
    "Create": Effect.CREATES,
    "Get": Effect.READS,
    "Update": Effect.CHANGES,
    "Regenerate": Effect.CHANGES,
    "Remove": Effect.REMOVES,
    "Delete": Effect.REMOVES,
    "Deactivate": Effect.CHANGES,
    "Reactivate": Effect.CHANGES,
    "Set": Effect.CHANGES,
    "Clear": Effect.CHANGES,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_name_of_an_operation_says_its_effect(row: Operation) -> None:
    (effect,) = {effect for verb, effect in VERBS.items() if row.name.startswith(verb)}

    assert row.effect is effect


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_found_by_its_name_with_a_model_and_a_method(row: Operation) -> None:
    assert operation_of(row.name) is row
    assert row.request is not None
    assert issubclass(row.request, Model)
    assert f"{MANAGEMENT}/{row.name}" in row.grpc
    assert row.permission


def test_no_two_rows_have_one_name_or_one_method() -> None:
    methods = [method for row in ROWS for method in row.grpc]

    assert len({row.name for row in ROWS}) == len(ROWS)
    assert len(set(methods)) == len(methods)
