"""Lists and their queries, over every store."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.sql import Snapshot
from tests.unit.service.asking import Asking


def test_lists_answer_what_reads_answer(ask: Asking) -> None:
    """Whichever way an object is read, it looks the same."""
    app = ask.an_app()["appId"]
    action, idp = ask.an_action()["id"], ask.an_idp()["idpId"]
    own = {"organization": ask.organization}

    assert ask("ListApps", projectId=ask.project)["result"] == [
        ask("GetAppByID", projectId=ask.project, appId=app)["app"]
    ]
    assert ask("ListActions", **own)["result"] == [ask("GetAction", id=action)["action"]]
    assert ask("ListOrgIDPs", **own)["result"] == [ask("GetOrgIDPByID", id=idp)["idp"]]
    assert ask("ListProjects", **own)["result"] == [
        ask("GetProjectByID", id=ask.project)["project"]
    ]
    assert ask("ListOrgs")["result"] == [ask("GetMyOrg", **own)["org"]]


def test_a_list_is_counted_only_where_something_was_written(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To count a hundred thousand objects takes longer than all the rest of a page."""
    statements: list[str] = []
    value = Snapshot._value

    def counting(self: Snapshot, statement: str, *values: object) -> Any:
        statements.append(statement)
        return value(self, statement, *values)

    monkeypatch.setattr(Snapshot, "_value", counting)
    own = {"organization": ask.organization}
    for number in range(3):
        made = ask.an_action(f"a{number}")["id"]
        for offset in range(3):
            page = ask("ListActions", **own, query={"limit": 1, "offset": offset})
            assert page["details"]["totalResult"] == str(number + 1)
    ask("DeleteAction", id=made)
    assert ask("ListActions", **own)["details"]["totalResult"] == "2"
    assert ask("ListProjects", **own)["details"]["totalResult"] == "1"
    for method in ("CONTAINS", "EQUALS"):  # a whole name is looked up
        query = {"actionNameQuery": {"name": "a0", "method": f"TEXT_QUERY_METHOD_{method}"}}
        assert ask("ListActions", **own, queries=[query])["details"]["totalResult"] == "1"

    counts = [statement for statement in statements if "count(*)" in statement]
    assert len(counts) in {0, 6}, "a store in memory runs none"


def by_name(name: str, method: str) -> dict[str, Any]:
    return {"actionNameQuery": {"name": name, "method": f"TEXT_QUERY_METHOD_{method}"}}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actionNameQuery": {"name": "beta"}}, ["beta"]),
        (by_name("alpha", "EQUALS"), []),
        (by_name("alpha", "EQUALS_IGNORE_CASE"), ["Alpha"]),
        (by_name("alpha", "STARTS_WITH"), ["alphabet"]),
        (by_name("ALPHA", "STARTS_WITH_IGNORE_CASE"), ["Alpha", "alphabet"]),
        (by_name("bet", "CONTAINS"), ["beta", "alphabet"]),
        (by_name("BET", "CONTAINS_IGNORE_CASE"), ["beta", "alphabet"]),
        (by_name("", "CONTAINS"), ["Alpha", "beta", "alphabet"]),
        (by_name("ta", "ENDS_WITH"), ["beta"]),
        (by_name("TA", "ENDS_WITH_IGNORE_CASE"), ["beta"]),
        ({"actionIdQuery": {"id": "404"}}, []),
        ({"actionStateQuery": {"state": "ACTION_STATE_ACTIVE"}}, ["Alpha", "beta", "alphabet"]),
        ({"actionStateQuery": {"state": "ACTION_STATE_INACTIVE"}}, []),
    ],
)
def test_a_query_narrows_a_list(ask: Asking, query: dict[str, Any], found: list[str]) -> None:
    """Text methods as the API has them; what is in no other state is found in no other."""
    for name in ("Alpha", "beta", "alphabet"):
        ask.an_action(name)

    answer = ask("ListActions", organization=ask.organization, queries=[query])

    assert [action["name"] for action in answer["result"]] == found
    assert answer["details"]["totalResult"] == str(len(found))


def test_queries_narrow_a_list_together(ask: Asking) -> None:
    """All of them must hold."""
    first, second = ask.an_action("one")["id"], ask.an_action("two")["id"]
    by_id = [{"actionIdQuery": {"id": found}} for found in (first, second)]
    own = {"organization": ask.organization}

    assert len(ask("ListActions", **own, queries=by_id[:1])["result"]) == 1
    assert ask("ListActions", **own, queries=by_id)["result"] == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, "cba"),
        ({"query": {"offset": "1", "limit": 1}}, "b"),
        ({"query": {"offset": 5}}, ""),
        ({"query": {"asc": True}, "sortingColumn": "ACTION_FIELD_NAME_NAME"}, "abc"),
        ({"sortingColumn": "ACTION_FIELD_NAME_NAME"}, "cba"),
        ({"query": {"asc": True}, "sortingColumn": "ACTION_FIELD_NAME_ID"}, "cba"),
        ({"sortingColumn": "ACTION_FIELD_NAME_ID"}, "abc"),
    ],
)
def test_a_list_is_sorted_and_cut_as_asked(ask: Asking, fields: dict[str, Any], found: str) -> None:
    """Without a column objects come in the order they were made."""
    for name in "cba":
        ask.an_action(name)

    answer = ask("ListActions", organization=ask.organization, **fields)

    assert "".join(action["name"] for action in answer["result"]) == found
    assert answer["details"]["totalResult"] == "3"
    assert set(answer["details"]) == {"totalResult", "processedSequence", "viewTimestamp"}


def test_a_list_has_a_thousand_at_most_and_tells_how_many_there_are(ask: Asking) -> None:
    """One answer is bounded; a client goes on by offset."""
    own = {"organization": ask.organization}
    made = [ask.request("AddProject", {**own, "name": f"p{number}"}) for number in range(1000)]
    assert not [one for one in ask.service.call_many(made) if isinstance(one, Refusal)]

    for query in ({}, {"limit": 0}, {"limit": 1000}):
        answer = ask("ListProjects", **own, query=query)
        assert (len(answer["result"]), answer["details"]["totalResult"]) == (1000, "1001")
    (last,) = ask("ListProjects", **own, query={"offset": 1000})["result"]

    assert last["name"] not in {found["name"] for found in answer["result"]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": {"limit": 1001}}, "query.limit: must be at most 1000"),
        ({"queries": [{"actionIdQuery": {"id": "1"}}] * 21}, "queries: must be at most 20"),
    ],
)
def test_what_a_list_may_cost_is_bounded(ask: Asking, fields: dict[str, Any], message: str) -> None:
    """A list of nine hundred filters kept everybody waiting for ten seconds."""
    refusal = ask.refused("ListActions", organization=ask.organization, **fields)

    assert (refusal.code, refusal.message) == (3, message)
    most = [{"actionIdQuery": {"id": "1"}}] * 20
    assert ask("ListActions", organization=ask.organization, queries=most)["result"] == []


def test_organizations_and_projects_are_found_by_name_and_id(ask: Asking) -> None:
    """So the reconciler finds the organization that a manifest names."""
    ignoring = {"name": "ACME", "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    by_owner = {"projectResourceOwnerQuery": {"resourceOwner": ask.organization}}
    by_other = {"projectResourceOwnerQuery": {"resourceOwner": "1"}}
    own = {"organization": ask.organization}

    assert len(ask("ListOrgs", queries=[{"nameQuery": ignoring}])["result"]) == 1
    assert len(ask("ListOrgs", queries=[{"idQuery": {"id": ask.organization}}])["result"]) == 1
    assert ask("ListOrgs", queries=[{"stateQuery": {"state": "ORG_STATE_REMOVED"}}])["result"] == []
    assert len(ask("ListProjects", **own, queries=[by_owner])["result"]) == 1
    assert ask("ListProjects", **own, queries=[by_other, by_owner])["result"] == []
    owner_type = {"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_SYSTEM"}}
    ask.an_idp()
    assert ask("ListOrgIDPs", **own, queries=[owner_type])["result"] == []
