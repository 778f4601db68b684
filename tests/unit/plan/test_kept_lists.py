"""Lists that a server keeps: found by generation, and told from what an update does write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.digest import plan_digest
from reconciler.plan.kept_lists import empties_a_list, is_not_sent, kept_lists, spec_after
from reconciler.plan.model import Adopt, Update
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import risks_of
from tests.builders import HOUSE, OWNERS, WEB, an_application, declared, desired, held, observed

EMPTY = an_application(redirectUris=[])
URI = ["https://shop.example.com/callback"]


@pytest.mark.parametrize("generation", [None, 0, 3])
def test_an_older_or_unknown_server_is_sent_an_empty_list(generation: int | None) -> None:
    """Nothing is claimed of a server that did not tell its generation."""
    assert kept_lists(declared(WEB, EMPTY), held(), generation) == frozenset()


@pytest.mark.parametrize(
    ("said", "holds", "kept"),
    [
        (EMPTY, {}, {"redirectUris"}),
        ({**EMPTY, "additionalOrigins": []}, {"additionalOrigins": ["https://a.example.com"]},
         {"redirectUris", "additionalOrigins"}),
        (EMPTY, {"redirectUris": []}, set()),
        (an_application(redirectUris=["https://new.example.com"]), {}, set()),
        (an_application(grantTypes=[]), {"grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]}, set()),
    ],
    ids=["one", "two", "empty already", "other entries", "a set with a default"],
)  # fmt: skip
def test_the_lists_that_stay(said: Any, holds: Any, kept: set[str]) -> None:
    """Those that hold something and are declared empty."""
    assert kept_lists(declared(WEB, said), held(said=an_application(**holds)), 4) == kept


def test_a_change_is_sent_unless_kept_lists_are_all_of_it() -> None:
    """A new owner, another field or a new secret is sent."""
    alone = Update(declared(WEB, EMPTY), held(), kept=frozenset({"redirectUris"}))
    more = replace(alone, resource=declared(WEB, {**EMPTY, "devMode": True}))

    assert is_not_sent(alone)
    assert spec_after(alone)["redirectUris"] == URI
    assert not is_not_sent(more)
    assert not is_not_sent(replace(alone, new_owner="other"))
    assert not is_not_sent(replace(alone, new_secret=True))
    assert not is_not_sent(Adopt(declared(WEB), held(said=EMPTY)))


def test_a_kept_list_is_no_risk_and_no_part_of_the_digest() -> None:
    """What an approved plan does does not depend on which server told its generation."""
    state = observed(*HOUSE, held())
    wanted = desired(*OWNERS, declared(WEB, EMPTY))
    unknown, known = (
        build_plan(wanted, replace(state, generation=generation)) for generation in (None, 4)
    )

    assert empties_a_list(unknown.changes)
    assert plan_digest(unknown) == plan_digest(known)
    assert [[risk.name for risk in risks_of(each.changes[0])] for each in (unknown, known)] == [
        ["redirect-removed"], [],
    ]  # fmt: skip
    assert [warning.code for warning in known.warnings] == ["PLAN-LIST-KEPT"]
