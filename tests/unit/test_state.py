"""Desired and observed: when they are in step, and whose an object is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.state import completed, is_in_step, is_owned_by, other_owner
from tests.builders import GREET, SHOP, WEB, a_ref, an_action, declared, held, observed


@pytest.mark.parametrize(
    ("marks", "in_step"),
    [
        ({}, True),
        ({"prevent_delete": None, "critical": None}, True),
        ({"prevent_delete": True}, False),
        ({"critical": True}, False),
    ],
)
def test_a_mark_that_cannot_be_remembered_is_no_difference(
    marks: dict[str, Any], *, in_step: bool
) -> None:
    assert is_in_step(declared(), replace(held(), **marks)) is in_step


def test_another_spec_or_another_case_of_the_name_is_a_difference() -> None:
    assert not is_in_step(declared(GREET), held(GREET, an_action(timeout="1s")))
    assert not is_in_step(declared(), replace(held(), ref=a_ref(name="Storefront")))


def test_a_kept_field_that_is_left_out_is_as_the_service_holds_it() -> None:
    found = held(GREET, an_action(timeout="1s", allowedToFail=True))
    said = replace(declared(GREET), spec={"script": found.spec["script"], "timeout": "1s"})
    other = replace(said, spec={**said.spec, "timeout": "2s"})

    assert is_in_step(said, found)
    assert not is_in_step(other, found)
    assert completed(other, found).spec == {**found.spec, "timeout": "2s"}
    assert completed(declared(GREET), found) == declared(GREET)


@pytest.mark.parametrize(
    ("owner", "trees", "is_ours", "other"),
    [
        (None, {"ours", "theirs"}, True, ""),
        (None, {"theirs"}, False, ""),
        ("ours", {"theirs"}, True, ""),
        ("theirs", {"ours"}, False, "theirs"),
        ("", {"ours"}, False, ""),
    ],
)
def test_the_owner_counts_and_without_one_every_tree_that_applied_it(
    owner: str | None, trees: set[str], other: str, *, is_ours: bool
) -> None:
    found = held(trees=trees, owner=owner)

    assert is_owned_by(found, "ours") is is_ours
    assert other_owner(found, "ours") == other


def test_everything_held_has_the_objects_that_share_a_name() -> None:
    web, shop, double = held(WEB), held(SHOP), held(WEB, object_id="8")

    state = replace(observed(web, shop), name_clashes=(double,))

    assert list(state.everything) == [web, shop, double]
