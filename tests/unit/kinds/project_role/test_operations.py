"""Roles of projects: keys of any form and case, the filters of their list, and what is repeated."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.projections.maintenance import rebuild, verify
from tests.rows import each_row
from tests.unit.service.asking import Asking


def made(ask: Asking, key: str, **fields: Any) -> dict[str, Any]:
    said = {"displayName": "Manager", **fields}
    return ask("AddProjectRole", projectId=ask.project, roleKey=key, **said)


def keys(ask: Asking, *queries: dict[str, Any], **cut: Any) -> list[str]:
    found = ask(
        "ListProjectRoles", projectId=ask.project, queries=list(queries), query={"asc": True, **cut}
    )
    return sorted(each["key"] for each in found["result"])


def test_keys_differ_by_case(ask: Asking) -> None:
    for key in ("admin", "Admin", "Straße", "STRASSE"):
        made(ask, key)

    assert keys(ask) == ["Admin", "STRASSE", "Straße", "admin"]
    assert ask.refused("AddProjectRole", projectId=ask.project, roleKey="admin", displayName="x",
                       ).code == 6  # fmt: skip
    ask("UpdateProjectRole", projectId=ask.project, roleKey="Admin", displayName="Other")
    shown = ask("ListProjectRoles", projectId=ask.project)["result"]
    assert {each["key"]: each["displayName"] for each in shown}["admin"] == "Manager"


def test_a_role_is_answered_without_an_id(ask: Asking) -> None:
    answer = made(ask, "a/b", group="Shop")
    (shown,) = ask("ListProjectRoles", projectId=ask.project)["result"]

    assert answer.keys() == {"details"}
    assert shown == {
        "key": "a/b", "details": answer["details"], "displayName": "Manager", "group": "Shop",
    }  # fmt: skip


def test_a_role_is_one_of_its_project(ask: Asking) -> None:
    made(ask, "admin")
    other = ask("AddProject", organization=ask.organization, name="other")["id"]

    refused = ask.refused(
        "UpdateProjectRole", projectId=other, roleKey="admin", displayName="Other"
    )
    assert refused.code == 5
    assert ask.refused("RemoveProjectRole", projectId=other, roleKey="admin").code == 5


def test_an_update_that_changes_nothing_writes_nothing(ask: Asking) -> None:
    first = made(ask, "admin")
    before = ask.event_count()

    again = ask("UpdateProjectRole", projectId=ask.project, roleKey="admin", displayName="Manager")

    assert ask.event_count() == before
    assert again["details"]["sequence"] == first["details"]["sequence"]


def test_a_role_that_is_made_again_goes_on(ask: Asking) -> None:
    """Its id is the same, so that its history tells both; the log gives the same rows again."""
    first = int(made(ask, "Admin")["details"]["sequence"])
    ask("RemoveProjectRole", projectId=ask.project, roleKey="Admin", expected_sequence=first)
    second = int(made(ask, "Admin", group="new")["details"]["sequence"])

    (held,) = [each for each in ask.objects() if each["kind"] == "ProjectRole"]
    events = ask("GetObjectHistory", id=held["id"])["events"]
    assert [event["type"] for event in events] == ["role.added", "role.removed", "role.added"]
    assert second > first
    assert verify(ask.service.store) == []
    rebuild(ask.service.store)
    assert verify(ask.service.store) == []


def test_an_expected_sequence_is_held_to(ask: Asking) -> None:
    sequence = int(made(ask, "admin")["details"]["sequence"])
    role = {"projectId": ask.project, "roleKey": "admin"}

    moved = ask.refused(
        "UpdateProjectRole", **role, displayName="x", expected_sequence=sequence - 1
    )
    ask("UpdateProjectRole", **role, displayName="x", expected_sequence=sequence)

    assert moved.code == 9
    assert ask.refused("RemoveProjectRole", **role, expected_sequence=sequence).code == 9


def test_a_repeated_create_is_done_once(ask: Asking) -> None:
    """The same key gives the same answer, as long as the role is there."""
    first = made(ask, "admin", idempotency_key="k")

    assert made(ask, "admin", idempotency_key="k") == first
    ask("RemoveProjectRole", projectId=ask.project, roleKey="admin")
    again = ask.request(
        "AddProjectRole",
        {"projectId": ask.project, "roleKey": "admin", "displayName": "Manager",
         "idempotency_key": "k"},
    )  # fmt: skip
    (gone,) = ask.service.call_many([again])
    assert getattr(gone, "code", 0) == 9


def test_a_repeated_create_is_not_answered_by_a_later_role(ask: Asking) -> None:
    """The role of the same key that was made since is another one, granted to nobody."""
    made(ask, "admin", idempotency_key="k")
    ask("RemoveProjectRole", projectId=ask.project, roleKey="admin")
    made(ask, "admin", displayName="Other")

    again = ask.request(
        "AddProjectRole",
        {"projectId": ask.project, "roleKey": "admin", "displayName": "Manager",
         "idempotency_key": "k"},
    )  # fmt: skip
    (gone,) = ask.service.call_many([again])

    assert getattr(gone, "reason", "") == "idempotency.object_gone"


def test_a_repeated_create_is_answered_after_an_update(ask: Asking) -> None:
    first = made(ask, "admin", idempotency_key="k")
    ask("UpdateProjectRole", projectId=ask.project, roleKey="admin", displayName="Other")

    assert made(ask, "admin", idempotency_key="k") == first


def test_a_key_that_is_taken_is_refused_without_a_word_of_case(ask: Asking) -> None:
    made(ask, "admin")

    refused = ask.refused(
        "AddProjectRole", projectId=ask.project, roleKey="admin", displayName="Other"
    )

    assert (refused.code, refused.message) == (6, "there is a role of this key")


@each_row(
    ("query", "method", "text", "expected"),
    [
        ("key", "EQUALS", "Admin", ["Admin"]),
        ("key", "EQUALS_IGNORE_CASE", "ADMIN", ["Admin", "admin"]),
        ("key", "STARTS_WITH", "ad", ["admin"]),
        ("key", "STARTS_WITH_IGNORE_CASE", "AD", ["Admin", "admin"]),
        ("key", "CONTAINS", "/", ["a/b"]),
        ("key", "ENDS_WITH", "min", ["Admin", "admin"]),
        ("displayName", "EQUALS", "Käufer", ["a/b"]),
        ("displayName", "EQUALS", "käufer", []),
        ("displayName", "CONTAINS_IGNORE_CASE", "KÄUF", ["a/b"]),
    ],
)
def test_the_list_is_filtered(
    ask: Asking, query: str, method: str, text: str, expected: list[str]
) -> None:
    for key in ("admin", "Admin", "a/b"):
        if key not in keys(ask):
            made(ask, key, displayName="Käufer" if key == "a/b" else "Manager")

    found = {f"{query}Query": {query: text, "method": f"TEXT_QUERY_METHOD_{method}"}}

    assert keys(ask, found) == expected
    assert len(keys(ask, found, limit=1)) == min(1, len(expected))
    assert keys(ask, found, offset=len(expected)) == []


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", "\ud800"])
def test_a_key_that_cannot_be_one_is_refused(ask: Asking, key: str) -> None:
    refused = ask.refused(
        "AddProjectRole", projectId=ask.project, roleKey=key, displayName="Manager"
    )
    assert refused.code == 3
