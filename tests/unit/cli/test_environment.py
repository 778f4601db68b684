"""Variables of the program: read, empty, misspelt."""

from __future__ import annotations

import pytest

from reconciler.cli.environment import INTERNAL, KNOWN, TOKEN, is_ci, misspelt, variable
from reconciler.errors import UsageError


@pytest.mark.parametrize(("environ", "value"), [({}, ""), ({TOKEN: "x"}, "x"), ({TOKEN: " "}, " ")])
def test_a_variable_is_its_value(environ: dict[str, str], value: str) -> None:
    assert variable(TOKEN, environ) == value


def test_a_variable_that_is_set_and_empty_is_an_error() -> None:
    """A secret of CI that was never set looks like this."""
    with pytest.raises(UsageError, match=f"{TOKEN} is set and empty"):
        variable(TOKEN, {TOKEN: ""})


@pytest.mark.parametrize(
    ("ci", "expected"),
    [("true", True), ("1", True), ("yes", True), ("", False), ("0", False), (" False ", False)],
)
def test_a_job_of_ci_says_so(ci: str, *, expected: bool) -> None:
    assert is_ci({"CI": ci}) is expected
    assert not is_ci({})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RECONCILER_SERVCE", ["RECONCILER_SERVICE"]),
        ("RECONCILER_TOKNE", ["RECONCILER_TOKEN"]),
        ("RECONCILER_SERVICE", []),
        ("RECONCILER_NOTHING_LIKE_IT", []),
        ("RECONCILE_TOKEN", []),
        *((f"{prefix}", []) for prefix in INTERNAL),
    ],
)
def test_a_misspelt_variable_is_within_two_letters_of_a_known_one(
    name: str, meant: list[str]
) -> None:
    assert [known for _, known in misspelt({name: "x"})] == meant


def test_every_known_variable_has_the_prefix() -> None:
    assert all(name.startswith("RECONCILER_") and name.isupper() for name in KNOWN)
