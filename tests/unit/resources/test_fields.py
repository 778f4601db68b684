"""Rows that declare fields: what each form of a row takes for granted."""

from __future__ import annotations

import pytest

from reconciler.resources.duration import DurationRange
from reconciler.resources.fields import (
    NO_NUL,
    Field,
    Form,
    choice,
    duration,
    flag,
    some_of,
    text,
    texts,
)
from reconciler.resources.kinds import KINDS

RANGE = next(each.limits for declared in KINDS.values() for each in declared.fields if each.limits)


@pytest.mark.parametrize(
    ("field", "form", "default", "python_type"),
    [
        (text("a", "A.", longest=9), Form.TEXT, None, str),
        (texts("a", "A.", "x"), Form.TEXTS, [], list),
        (flag("a", "A."), Form.FLAG, False, bool),
        (choice("a", "A.", "x", "y"), Form.CHOICE, "x", str),
        (some_of("a", "A.", "x", "y"), Form.SET, ["x"], list),
        (duration("a", "A.", default="5s", limits=RANGE), Form.DURATION, "5s", str),
    ],
)
def test_a_form_has_its_default_and_its_type(
    field: Field, form: Form, default: object, python_type: type
) -> None:
    assert (field.form, field.default, field.python_type) == (form, default, python_type)
    assert (field.since, field.left_as_held) == ("", False)


def test_a_duration_matches_the_pattern_of_its_range() -> None:
    limits: DurationRange = RANGE

    assert duration("a", "A.", default="5s", limits=limits).pattern == limits.pattern
    assert text("a", "A.", longest=9).pattern == NO_NUL


def test_a_field_left_as_held_has_a_default_for_new_objects() -> None:
    left = [each for declared in KINDS.values() for each in declared.fields if each.left_as_held]

    assert all(each.default is not None for each in left)
    assert {each.form for each in left} <= {Form.TEXT, Form.FLAG, Form.CHOICE, Form.VARIANT}


def test_the_examples_of_a_list_are_one_list() -> None:
    assert texts("a", "A.", "x", "y").examples == (["x", "y"],)
