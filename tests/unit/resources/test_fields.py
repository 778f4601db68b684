"""Rows that declare fields: what each form of a row takes for granted, durations first of all."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.kinds.action.fields import TIMEOUT
from reconciler.kinds.fields import KINDS
from reconciler.kinds.oidc_application.fields import CLOCK_SKEW
from reconciler.resources.fields import (
    NANOSECONDS,
    NO_NUL,
    Field,
    Form,
    choice,
    duration,
    flag,
    format_duration,
    normal_duration,
    parse_duration,
    some_of,
    text,
    texts,
    variant,
)
from tests.effort import cases
from tests.rows import each_row

RANGE = next(each.limits for declared in KINDS.values() for each in declared.fields if each.limits)


def test_each_row_says_what_it_is_given() -> None:
    """Rows of kinds are made when they are loaded; here they are made once more."""
    words, inner = ("x", "y"), (text("b", "B.", longest=5),)

    assert text("a", "A.", "x", shortest=1, longest=9) == Field(
        "a", Form.TEXT, "A.", None, shortest=1, longest=9, pattern=NO_NUL, examples=("x",)
    )
    assert text("a", "A.", longest=9).shortest == 0
    assert texts("a", "A.", *words) == Field("a", Form.TEXTS, "A.", [], examples=(["x", "y"],))
    assert flag("a", "A.") == Field("a", Form.FLAG, "A.", default=False)
    assert choice("a", "A.", *words) == Field("a", Form.CHOICE, "A.", "x", words=words)
    assert some_of("a", "A.", *words) == Field("a", Form.SET, "A.", ["x"], words=words)
    assert variant("a", "A.", {"v": {}}, v=inner) == Field(
        "a",
        Form.VARIANT,
        "A.",
        {},
        examples=({"v": {}},),
        left_as_held=True,
        variants={"v": inner},
    )
    assert duration("a", "A.", "1s", default="5s", limits=RANGE) == Field(
        "a",
        Form.DURATION,
        "A.",
        "5s",
        pattern=RANGE.pattern,
        limits=RANGE,
        examples=("1s",),
    )


@each_row(
    ("form", "python_type"),
    [(Form.TEXT, str), (Form.TEXTS, list), (Form.FLAG, bool), (Form.CHOICE, str),
     (Form.SET, list), (Form.VARIANT, dict), (Form.DURATION, str)],
)  # fmt: skip
def test_a_form_has_its_type(form: Form, python_type: type) -> None:
    assert Field("a", form, "A.").python_type is python_type


def test_a_field_left_as_held_has_a_default_for_new_objects() -> None:
    left = [each for declared in KINDS.values() for each in declared.fields if each.left_as_held]

    assert all(each.default is not None for each in left)
    assert {each.form for each in left} <= {Form.TEXT, Form.FLAG, Form.CHOICE, Form.VARIANT}


NEAR_DURATIONS = st.from_regex(r"[-+]?[0-9]{0,3}\.?[0-9]{0,10}[sm]?\n?", fullmatch=True)


@each_row(
    ("text", "nanoseconds"),
    [
        pytest.param("0s", 0, id="nothing"),
        pytest.param("5s", 5 * NANOSECONDS, id="seconds"),
        pytest.param("1.5s", 1_500_000_000, id="half a second"),
        pytest.param("0.000000001s", 1, id="a nanosecond"),
        pytest.param("5.000s", 5 * NANOSECONDS, id="zeros at the end"),
        pytest.param("315576000000s", 315_576_000_000 * NANOSECONDS, id="ten thousand years"),
    ],
)
def test_decimal_seconds_are_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@each_row(
    "text",
    [
        *("", "s", "5", "5S", "5 s", " 5s", "5s ", "5s\n", "-5s", "+5s", "05s", "5.s", ".5s"),
        *("1.0000000001s", "1e3s", "1m", "5ms", "1h", "1_0s", "\uff15s", "0x5s", "5.5.5s", "NaNs"),
    ],
)
def test_nothing_else_is_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="decimal seconds"):
        parse_duration(text)


@settings(max_examples=cases(30))
@given(nanoseconds=st.integers(0, 10**12 * NANOSECONDS - 1))
def test_a_duration_survives_being_written(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@settings(max_examples=cases(30))
@given(text=st.from_regex(r"(0|[1-9][0-9]{0,2})(\.[0-9]{1,9})?s", fullmatch=True))
def test_equal_durations_have_one_normal_text(text: str) -> None:
    normal = normal_duration(text)

    assert parse_duration(normal) == parse_duration(text)
    assert normal_duration(normal) == normal
    assert len(normal) <= len(text)


@pytest.mark.parametrize(
    ("most", "pattern"),
    [
        pytest.param(*CLOCK_SKEW, id="clock skew"),
        pytest.param(*TIMEOUT, id="timeout of an action"),
    ],
)
@settings(max_examples=cases(30))
@given(text=NEAR_DURATIONS | st.integers(0, 22_000_000_000).map(format_duration))
@example(text="5s")
@example(text="5.000000000s")
@example(text="5.000000001s")
@example(text="20s")
@example(text="20.0s")
@example(text="20.000000001s")
@example(text="00s")
@example(text="010s")
def test_the_patterns_of_the_schemas_say_what_the_parser_says(
    pattern: str, most: int, text: str
) -> None:
    by_pattern = re.fullmatch(pattern.removesuffix("$"), text, re.ASCII) is not None
    try:
        by_parser = parse_duration(text) <= most
    except ValueError:
        by_parser = False

    assert by_pattern == by_parser
