"""The outcome of a validation in words."""

from __future__ import annotations

import pytest

from reconciler.cli.validate import Outcome, _valid
from reconciler.diagnostics import error, warning


@pytest.mark.parametrize(
    ("files", "environments", "words"),
    [
        (["a.yaml"], (), "Valid: 1 manifest is right."),
        (["a.yaml", "a.yaml"], (), "Valid: 2 manifests are right."),
        ([], ("staging",), "Valid: 0 manifests are right in environment staging."),
        (["a.yaml"], ("a", "b"), "Valid: 1 manifest is right in environments a, b."),
    ],
)
def test_a_valid_tree_is_counted(
    files: list[str], environments: tuple[str, ...], words: str
) -> None:
    assert _valid(Outcome((), files, environments)) == words


def test_only_an_error_makes_it_invalid() -> None:
    assert Outcome((warning("W", "s", "r"),)).is_valid
    assert not Outcome((warning("W", "s", "r"), error("E", "s", "r"))).is_valid
