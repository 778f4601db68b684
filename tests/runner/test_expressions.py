"""The expressions that the workflows use have the values that GitHub gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.expressions import evaluated, filled_in, holds, names_a_status

CONTEXTS = {
    "github": {"repository": "acme/identity", "event": {"number": 7}},
    "needs": {"plan": {"outputs": {"changes": "true", "owed": ""}}},
    "status": {"success": False, "failure": True, "always": True, "cancelled": False},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("needs.plan.outputs.changes == 'true'", True),
        ("needs.plan.outputs.owed == 'true'", False),
        ("needs.plan.outputs.changes == 'TRUE'", True),
        ("needs.other.outputs.changes == 'true'", False),
        ("needs.plan.outputs.owed == 'true' || needs.plan.outputs.changes == 'true'", True),
        ("!cancelled() && needs.plan.outputs.owed == 'true'", False),
        ("always() && !(success() || cancelled())", True),
        ("false || true && false", False),
        ("github.event.number", 7),
        ("github.event.missing", None),
        ("'it''s'", "it's"),
        ("github.repository != 'acme/other'", True),
        ("toJSON(github.event)", '{"number": 7}'),
    ],
)
def test_an_expression_has_a_value(expression: str, value: Any) -> None:
    """As the documentation of GitHub says."""
    assert evaluated(expression, CONTEXTS) == value


@pytest.mark.parametrize("expression", ["a b", "github.x ~ 1", "github.x ==", "(true", "nope.x"])
def test_what_is_not_understood_is_an_error(expression: str) -> None:
    """A template that uses more must not pass for want of it."""
    with pytest.raises((ValueError, KeyError, IndexError)):
        evaluated(expression, CONTEXTS)


def test_a_text_and_a_condition_hold_expressions() -> None:
    """With and without the marks."""
    assert filled_in("pr-${{ github.event.number }}-${{ github.x }}", CONTEXTS) == "pr-7-"
    assert holds("${{ failure() }}", CONTEXTS)
    assert not holds("success()", CONTEXTS)
    assert names_a_status("${{ !cancelled() }}")
    assert not names_a_status("needs.plan.outputs.success == 'true'")
