"""Tests of one field before and after, at values that a rule alone would not show."""

from __future__ import annotations

import pytest

from reconciler.plan.field_tests import (
    Test,
    Value,
    differs,
    gains,
    gains_any,
    gains_authority,
    gains_plain_http,
    is_stronger,
    is_weaker,
    loses_any,
    turned_off,
    turned_on,
)

BASIC, NONE = "OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_NONE"


@pytest.mark.parametrize(
    ("test", "before", "after", "answer"),
    [
        (is_weaker, BASIC, NONE, True),
        (is_stronger, NONE, BASIC, True),
        (is_weaker, BASIC, BASIC, False),
        (differs, None, False, True),
        (turned_on, None, True, True),
        (turned_on, True, True, False),
        (turned_off, True, None, True),
        (turned_off, "", None, False),
        (gains("a"), ["b"], ["a"], True),
        (gains("a"), ["a"], ["a"], False),
        (loses_any, ["a", "b"], ["b", "a"], False),
        (loses_any, ["a"], None, True),
        (gains_any, None, ["a"], True),
        (gains_authority, ["https://a.example/x"], ["https://a.example/y"], False),
        (gains_authority, [], ["https://a.example/y"], True),
        (gains_plain_http, "https://a.example", "http://a.example", True),
    ],
)
def test_a_test_compares_two_values(
    test: Test, before: Value, after: Value, *, answer: bool
) -> None:
    assert test(before, after) is answer
