"""Who owns an object, on every store: the tree that last made, changed or took it over."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.projections.rebuild import rebuild
from reconciler.service.projections.verify import verify
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
