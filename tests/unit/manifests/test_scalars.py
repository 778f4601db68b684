"""Types of plain scalars: YAML 1.2 core, and text wherever versions of YAML disagree."""

from __future__ import annotations

import pytest

from reconciler.manifests.scalars import MAX_NUMBER, MAY_BE_TYPED, typed

TYPED = {
    "": None, "~": None, "null": None, "NULL": None,
    "true": True, "True": True, "FALSE": False,
    "0": 0, "-12": -12, "+7": 7, "0o17": 15, "0xFf": 255,
    "1.5": 1.5, ".5": 0.5, "-1e3": -1000.0, "1.": 1.0,
}  # fmt: skip
TEXT = [
    "no", "on", "yes", "Off", "y", "12:30:00", "010", "1_000", "2001-12-14", "0b11", "nUll", "tRUE",
    "1.2.3", "0x", "0o8", "1e", "+", "-", ".", "5s", "\N{ARABIC-INDIC DIGIT ONE}",
]  # fmt: skip


@pytest.mark.parametrize(("written", "value"), TYPED.items())
def test_a_scalar_of_the_core_schema_has_its_type(written: str, value: object) -> None:
    assert typed(written) == value
    assert type(typed(written)) is type(value)


@pytest.mark.parametrize("written", TEXT)
def test_anything_else_is_the_text_that_it_is(written: str) -> None:
    assert typed(written) == written


@pytest.mark.parametrize(
    "written", [".inf", "-.Inf", ".nan", "1e999", "1" * (MAX_NUMBER + 1), "0x" + "1" * MAX_NUMBER]
)
def test_a_number_that_no_value_can_hold_is_an_error(written: str) -> None:
    with pytest.raises(ValueError, match="number"):
        typed(written)


@pytest.mark.parametrize("written", [*TYPED, ".inf", ".NAN"])
def test_the_first_character_tells_what_may_be_typed(written: str) -> None:
    """Most scalars are text, and are not looked at further."""
    assert written[:1] in MAY_BE_TYPED
