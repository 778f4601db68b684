"""Lists: filtered, sorted, cut, and strict about what they are asked."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.operations.lists import MAX_PAGE, MAX_QUERIES, METHODS
from tests.unit.service.asking import Asking

NAMES = ("Alpha", "beta", "alphabet")


def by_name(name: str, method: str) -> dict[str, Any]:
    return {"actionNameQuery": {"name": name, "method": f"TEXT_QUERY_METHOD_{method}"}}


@pytest.fixture
def listed(ask: Asking) -> Asking:
    """Return a service with three actions."""
    for name in NAMES:
        ask.an_action(name)
    return ask


def names(ask: Asking, **fields: Any) -> list[str]:
    found = ask("ListActions", organization=ask.organization, **fields)["result"]
    return [each["name"] for each in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (by_name("Alpha", "EQUALS"), ["Alpha"]),
        (by_name("alpha", "EQUALS_IGNORE_CASE"), ["Alpha"]),
        (by_name("alpha", "STARTS_WITH"), ["alphabet"]),
        (by_name("ALPHA", "STARTS_WITH_IGNORE_CASE"), ["Alpha", "alphabet"]),
        (by_name("bet", "CONTAINS"), ["beta", "alphabet"]),
        (by_name("ta", "ENDS_WITH"), ["beta"]),
        ({"actionStateQuery": {"state": "ACTION_STATE_ACTIVE"}}, [*NAMES]),
        ({"actionStateQuery": {"state": "ACTION_STATE_INACTIVE"}}, []),
    ],
)
def test_a_query_finds_what_it_asks_for(
    listed: Asking, query: dict[str, Any], found: list[str]
) -> None:
    assert names(listed, queries=[query]) == found


def test_all_queries_must_hold(listed: Asking) -> None:
    both = [by_name("a", "CONTAINS"), by_name("b", "STARTS_WITH")]

    assert names(listed, queries=both) == ["beta"]


def test_a_list_is_cut_and_says_how_many_there_are(listed: Asking) -> None:
    answer = listed(
        "ListActions",
        organization=listed.organization,
        query={"offset": "1", "limit": 1, "asc": True},
        sortingColumn="ACTION_FIELD_NAME_NAME",
    )

    assert [each["name"] for each in answer["result"]] == ["alphabet"]
    assert answer["details"]["totalResult"] == "3"
    assert answer["sortingColumn"] == "ACTION_FIELD_NAME_NAME"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": {"limit": MAX_PAGE + 1}}, "query.limit"),
        ({"queries": [{}]}, "queries[0].query"),
        ({"queries": [{"nameQuery": {"name": "a"}}]}, "queries[0].nameQuery"),
        ({"queries": [by_name("a", "SOUNDS_LIKE")]}, "queries[0].actionNameQuery.method"),
        ({"queries": [by_name("a", "EQUALS")] * (MAX_QUERIES + 1)}, "queries"),
        ({"sortingColumn": "ORG_FIELD_NAME_NAME"}, "sortingColumn"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_question_that_is_not_understood_is_refused_by_its_field(
    listed: Asking, fields: dict[str, Any], field: str
) -> None:
    refused = listed.refused("ListActions", organization=listed.organization, **fields)

    assert refused.message.startswith(f"{field}: ")


def test_each_method_comes_with_and_without_case() -> None:
    assert sorted(METHODS.values()) == sorted(
        (match, folded)
        for match in ("equals", "starts", "contains", "ends")
        for folded in (False, True)
    )
