"""Who owns an object, on every store: the tree that last made, changed or took it over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.request import Request
from reconciler.service.projections.maintenance import rebuild, verify
from tests.examples import SCRIPT
from tests.unit.service.asking import Asking

A, B, NO_TREE = '{"tree":"team-a"}', '{"tree":"team-b"}', '{"revision":"abc"}'
PUBLIC = "OIDC_AUTH_METHOD_TYPE_NONE"


def seen(ask: Asking) -> tuple[str, list[str]]:
    """Return owner and trees of the only object."""
    (found,) = ask.objects()
    return found["owner"], found["trees"]


WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "a new name": ("UpdateApp", {"name": "shop"}),
    "new fields": ("UpdateOIDCAppConfig", {"devMode": True}),
    "a move to another sign-in": ("UpdateOIDCAppConfig", {"authMethodType": PUBLIC}),
    "a context": ("RecordContext", {}),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    ("context", "owner", "trees"),
    [
        (B, "team-b", ["team-a", "team-b"]),
        (NO_TREE, "team-a", ["team-a"]),
        ("", "team-a", ["team-a"]),
        ('{"tree":""}', "team-a", ["team-a"]),
        ('{"tree":7}', "team-a", ["team-a"]),
    ],
)
def test_the_last_tree_that_wrote_an_object_owns_it(
    ask: Asking, write: str, context: str, owner: str, trees: list[str]
) -> None:
    """A change that names no tree is a script's, and takes nothing from anybody."""
    made = ask.an_app(context=A)
    operation, fields = WRITES[write]
    target = {"projectId": ask.project, "appId": made["appId"]}
    if operation == "RecordContext":
        target = {"id": made["appId"]}

    ask(operation, **target, **fields, context=context)

    assert seen(ask) == (owner, trees)
    rebuild(ask.service.store)
    assert (seen(ask), verify(ask.service.store)) == ((owner, trees), [])


def test_secrets_make_nobody_an_owner(ask: Asking) -> None:
    """Who rotates a secret or delivers it must not prune the application with its next run."""
    made = ask.an_app(context=A, custody="run-1")
    ask(
        "RegenerateOIDCClientSecret", projectId=ask.project, appId=made["appId"], context=B,
        custody="run-2",
    )  # fmt: skip
    (owed,) = ask("ListOwedSecrets", organizationId=ask.organization)["owedSecrets"]
    lease = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    secrets = [{"id": owed["id"], "madeAt": owed["madeAt"]}]
    ask("ClaimSecrets", organizationId=ask.organization, secrets=secrets, under=lease, context=B)

    assert owed["tree"] == "team-b"
    assert seen(ask) == ("team-a", ["team-a"])
    rebuild(ask.service.store)
    assert seen(ask) == ("team-a", ["team-a"])


def test_an_update_that_changes_nothing_gives_nothing(ask: Asking) -> None:
    """It writes no event, so nobody could tell whose the object is."""
    made = ask.an_app(context=A)
    ask("UpdateApp", projectId=ask.project, appId=made["appId"], name="web", context=B)

    assert seen(ask) == ("team-a", ["team-a"])


def test_a_context_is_recorded_for_its_owner_alone(ask: Asking) -> None:
    """That is how a tree takes an object over without changing a field."""
    made = ask.an_app(context=A)
    for context in (B, A, B):
        ask("RecordContext", id=made["appId"], context=context)
        assert seen(ask)[0] == context[9:15]
    (found,) = ask.objects()
    assert found["details"]["sequence"] > made["details"]["sequence"]


def test_an_object_made_by_hand_has_no_owner_and_is_not_protected(ask: Asking) -> None:
    """False, not unknown: declaring protection for it is a difference, and is recorded."""
    made = ask.an_action()
    (found,) = ask.objects()
    assert (found["owner"], found["preventDelete"], found["critical"]) == ("", False, False)

    ask("RecordContext", id=made["id"], context='{"tree":"team-a","preventDelete":true}')

    (found,) = ask.objects()
    assert (found["owner"], found["preventDelete"]) == ("team-a", True)


@pytest.mark.parametrize(("name", "most"), [("tree", 200), ("revision", 200), ("reason", 500)])
def test_what_a_context_says_has_a_length(ask: Asking, name: str, most: int) -> None:
    """Rows, events and caches keep it: nine hundred long trees took a gigabyte."""
    said = json.dumps({name: "\U0001f332" * most})
    ask.an_action(context=said)

    refusal = ask.refused(
        "CreateAction",
        organization=ask.organization,
        name="other",
        script=SCRIPT,
        context=json.dumps({name: "x" * (most + 1)}),
    )

    assert refusal.message == f"x-reconciler-context: {name} must be at most {most} characters long"


def test_an_object_is_written_by_thirty_two_trees_and_no_more(ask: Asking) -> None:
    """None is forgotten for the next one: the last that wrote an object owns it."""
    made = ask.an_action(context='{"tree": "t0"}')

    def update(tree: str, timeout: int) -> Request:
        fields = {"id": made["id"], "name": "greet", "script": SCRIPT, "timeout": f"{timeout}s"}
        return ask.request("UpdateAction", {**fields, "context": json.dumps({"tree": tree})})

    calls = [update(f"t{number}", number % 9 + 1) for number in range(1, 32)]
    assert not [one for one in ask.service.call_many(calls) if isinstance(one, Refusal)]
    before = ask.event_count()

    (refused,) = ask.service.call_many([update("one more", 11)])
    (again,) = ask.service.call_many([update("t7", 12)])

    assert isinstance(refused, Refusal)
    assert (refused.code, refused.http_status) == (8, 429)
    assert refused.reason == "object.too_many_trees"
    assert refused.message == (
        "32 trees have written to this object already, and none may be added"
    )
    assert isinstance(again, dict)
    assert ask.event_count() == before + 1
    (held,) = ask.objects()
    assert (len(held["trees"]), held["owner"]) == (32, "t7")
