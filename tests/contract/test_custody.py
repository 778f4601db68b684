"""Custody of client secrets, on every store: kept until delivery is acknowledged, then gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.service.domain.refusal import Code
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.projections.maintenance import rebuild, verify
from tests.unit.service.asking import Asking

DAY = 24 * 60 * 60 * 1_000_000
CONTEXT = '{"tree":"team-a","revision":"abc"}'
NONE = "OIDC_AUTH_METHOD_TYPE_NONE"


def owed(ask: Asking, **fields: Any) -> list[dict[str, Any]]:
    answer = ask("ListOwedSecrets", organizationId=ask.organization, **fields)
    found: list[dict[str, Any]] = answer["owedSecrets"]
    return found


def an_owed_app(ask: Asking, name: str = "web", **beside: Any) -> dict[str, Any]:
    return ask.an_app(name, **{"custody": "run-1", "context": CONTEXT, **beside})


def named(*made: dict[str, Any], **more: str) -> list[dict[str, Any]]:
    """Return secrets as claims name them, of the answers that made them."""
    return [
        {"id": each.get("appId") or more["app"], "madeAt": each["details"]["sequence"]}
        for each in made
    ]


def lease(ask: Asking) -> str:
    token: str = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    return token


def claim(ask: Asking, secrets: Sequence[dict[str, Any]], **beside: Any) -> list[dict[str, Any]]:
    beside = {"under": lease(ask), **beside} if "under" not in beside else beside
    answer = ask("ClaimSecrets", organizationId=ask.organization, secrets=secrets, **beside)
    if "under" in beside:
        ask("ReleaseLease", named="acme", lease=beside["under"])
    found: list[dict[str, Any]] = answer["secrets"]
    return found


def acknowledge(ask: Asking, secrets: Sequence[dict[str, Any]]) -> None:
    answer = ask("AcknowledgeSecrets", organizationId=ask.organization, secrets=secrets)
    assert answer == {}


def seals(ask: Asking) -> int:
    """Return how many seals hold secrets that are owed."""
    with ask.service.store.snapshot() as view:
        rows = view.owed_page(ask.organization)
        return len({row.seal for row in rows if row.seal and view.seal(row.seal)})


def test_a_secret_is_owed_only_to_who_asks_for_custody(ask: Asking) -> None:
    """Foreign clients are answered as before."""
    ask.an_app("foreign", idempotency_key="k")
    ask.an_app("public", authMethodType=NONE, custody="run-1")
    made = an_owed_app(ask)

    (found,) = owed(ask)
    assert found.pop("expires") > found["since"]
    assert found == {
        "id": made["appId"],
        "organizationId": ask.organization,
        "projectId": ask.project,
        "name": "web",
        "clientId": made["clientId"],
        "madeAt": made["details"]["sequence"],
        "since": made["details"]["creationDate"],
        "madeBy": "admin",
        "tree": "team-a",
        "run": "run-1",
        "state": "owed",
    }
    assert made["clientSecret"] not in str(owed(ask))


def test_an_owed_secret_is_claimed_until_it_is_acknowledged(ask: Asking) -> None:
    """The same secret each time; afterwards it is gone, and so is its seal."""
    first, second = an_owed_app(ask, "a", idempotency_key="a"), an_owed_app(ask, "b")

    for _ in range(2):
        assert claim(ask, named(first, second)) == [
            {
                "id": made["appId"],
                "clientId": made["clientId"],
                "madeAt": made["details"]["sequence"],
                "clientSecret": made["clientSecret"],
            }
            for made in (first, second)
        ]
    acknowledge(ask, named(first))

    gone, had = claim(ask, named(first, second))
    assert (gone["id"], gone["error"]["code"]) == (first["appId"], Code.NOT_FOUND)
    assert had["clientSecret"] == second["clientSecret"]
    acknowledge(ask, named(first, second))
    assert (owed(ask), seals(ask)) == ([], 0)


def test_one_seal_is_sealed_again_without_what_was_acknowledged(ask: Asking) -> None:
    """The secrets of one commit share a seal, and leave it one by one, each in its place."""
    requests = [
        ask.request(
            "AddOIDCApp",
            {"projectId": ask.project, "name": name, "custody": "r", "idempotency_key": name},
        )
        for name in "abc"
    ]
    made = [each for each in ask.service.call_many(requests) if isinstance(each, dict)]
    with ask.service.store.snapshot() as view:
        (seal_id,) = {row.seal for row in view.owed_page(ask.organization)}
        before = view.seal(seal_id or "")

    acknowledge(ask, named(made[1]))

    with ask.service.store.snapshot() as view:
        after = view.seal(seal_id or "")
    assert before
    assert after
    assert before.sealed != after.sealed
    assert [each.get("clientSecret") for each in claim(ask, named(*made))] == [
        made[0]["clientSecret"], None, made[2]["clientSecret"],
    ]  # fmt: skip
    assert ask.service.call(requests[0]) == made[0]
    refused = ask.service.call_many([requests[1]])[0]
    assert getattr(refused, "reason", "") == "idempotency.secret_gone"
    acknowledge(ask, named(*made))
    with ask.service.store.snapshot() as view:
        assert view.seal(seal_id or "") is None


def test_a_newer_secret_takes_the_place_of_an_owed_one(ask: Asking) -> None:
    """With custody it is owed instead; without, nothing is owed any more."""
    made = an_owed_app(ask, idempotency_key="k")
    target = {"projectId": ask.project, "appId": made["appId"]}
    newer = ask("RegenerateOIDCClientSecret", **target, custody="run-2", context=CONTEXT)

    (found,) = owed(ask)
    assert (found["run"], found["madeAt"]) == ("run-2", newer["details"]["sequence"])
    (stale,) = claim(ask, named(made))
    assert stale["error"]["code"] == Code.PRECONDITION_FAILED
    acknowledge(ask, named(made))
    (again,) = claim(ask, named(newer, app=made["appId"]))
    assert again["clientSecret"] == newer["clientSecret"]
    refused = ask.refused("AddOIDCApp", projectId=ask.project, name="web", custody="run-1",
                          context=CONTEXT, idempotency_key="k")  # fmt: skip
    assert refused.reason == "idempotency.secret_gone"
    ask("RegenerateOIDCClientSecret", **target)
    assert (owed(ask), seals(ask)) == ([], 0)


@pytest.mark.parametrize("method", [NONE, "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT"])
def test_a_move_to_another_sign_in_ends_the_secret_and_its_custody(
    ask: Asking, method: str
) -> None:
    """An application that signs in without a secret has none."""
    made = an_owed_app(ask)
    target = {"projectId": ask.project, "appId": made["appId"]}

    ask("UpdateOIDCAppConfig", **target, authMethodType=method)

    assert (owed(ask), ask.objects()[0]["hasSecret"]) == ([], False)
    assert (seals(ask), verify(ask.service.store)) == (0, [])


def test_a_removed_application_owes_nothing(ask: Asking) -> None:
    """The row goes with it; another application of its name owes its own secret only."""
    made = an_owed_app(ask)
    ask("RemoveApp", projectId=ask.project, appId=made["appId"])

    assert (owed(ask), seals(ask)) == ([], 0)
    an_owed_app(ask)
    assert len(owed(ask)) == 1


def test_an_update_that_keeps_the_sign_in_leaves_the_secret_owed(ask: Asking) -> None:
    """Neither another name nor another field has to do with it."""
    made = an_owed_app(ask)
    target = {"projectId": ask.project, "appId": made["appId"]}
    ask("UpdateApp", **target, name="shop")
    ask("UpdateOIDCAppConfig", **target, devMode=True)

    (found,) = owed(ask)
    assert found["name"] == "shop"
    (had,) = claim(ask, named(made))
    assert had["clientSecret"] == made["clientSecret"]


def test_a_refused_call_owes_nothing(ask: Asking) -> None:
    """What was not made is nobody's."""
    an_owed_app(ask)
    ask.refused("AddOIDCApp", projectId=ask.project, name="WEB", custody="run-1")

    assert len(owed(ask)) == 1


def test_after_its_time_a_secret_is_lost_and_stays_listed(ask: Asking) -> None:
    """Until a newer one ends it. The sealed secret is dropped by the next write."""
    made = an_owed_app(ask)
    kept = an_owed_app(ask, "kept", authMethodType=NONE)
    ask.clock.time += 30 * DAY

    assert [found["state"] for found in owed(ask)] == ["lost"]
    (listed,) = ask("ListTrees")["organizations"]
    assert (listed["owed"], listed["custody"]) == ([], True)
    (refused,) = claim(ask, named(made))
    assert refused["error"]["code"] == Code.PRECONDITION_FAILED
    assert "lost" in refused["error"]["message"]
    ask.clock.time += DAY  # PostgreSQL does not look at every commit
    ask("UpdateApp", projectId=ask.project, appId=kept["appId"], name="other")
    with ask.service.store.snapshot() as view:
        (row,) = view.owed_page(ask.organization)
    assert row.seal is None
    ask("RegenerateOIDCClientSecret", projectId=ask.project, appId=made["appId"], custody="r")
    assert [found["state"] for found in owed(ask)] == ["owed"]


def test_a_claim_is_recorded_and_changes_nothing(ask: Asking) -> None:
    """An approved plan, or an If-Match, is not made stale by a delivery."""
    made = an_owed_app(ask)
    (before,) = ask.objects()
    caller = Caller("ci", Role.EDITOR, frozenset({ask.organization}))

    claim(ask, named(made), context='{"tree":"team-b"}')
    claim(ask, named(made), by=caller)

    assert ask.objects() == [before]
    history = ask("GetObjectHistory", id=made["appId"])
    assert [event["type"] for event in history["events"]] == [
        "application.added", "application.secret.claimed", "application.secret.claimed",
    ]  # fmt: skip
    assert history["next"] == ""
    last = history["events"][-1]
    assert (last["writer"], last["context"]) == ("ci", {})
    assert last["payload"] == {"application": made["appId"], "made_at": named(made)[0]["madeAt"]}
    assert made["clientSecret"] not in str(history)
    ask("UpdateApp", projectId=ask.project, appId=made["appId"], name="new")
    types = [event["type"] for event in ask("GetObjectHistory", id=made["appId"])["events"]]
    assert types[-1] == "application.renamed"
    assert rebuild(ask.service.store) == 3
    assert verify(ask.service.store) == []
    assert [found["state"] for found in owed(ask)] == ["owed"], "a rebuild leaves what is owed"


def test_a_history_with_claims_comes_in_pages(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two streams, one order, and nothing twice or left out."""
    monkeypatch.setattr("reconciler.service.operations.history.PAGE", 2)
    made = an_owed_app(ask)
    for name in ("a", "b", "c"):
        ask("UpdateApp", projectId=ask.project, appId=made["appId"], name=name)
        claim(ask, named(made))
    found, after = [], ""
    for _ in range(4):
        page = ask("GetObjectHistory", id=made["appId"], after=after)
        found += page["events"]
        after = page["next"]

    assert after == ""
    assert [event["type"].rpartition(".")[2] for event in found] == [
        "added", *["renamed", "claimed"] * 3,
    ]  # fmt: skip
    assert ask.refused("GetObjectHistory", id=made["appId"], after="x").code == 3
    assert ask.refused("GetObjectHistory", id=made["appId"] + ".beside").code == 5


def test_a_claim_needs_the_lease_of_the_organization(ask: Asking) -> None:
    """None, somebody else's or one that was given back: the run is not the one writer."""
    made = an_owed_app(ask)
    fields = {"organizationId": ask.organization, "secrets": named(made)}
    ours = lease(ask)

    for under in ("", "1.other"):
        assert ask.refused("ClaimSecrets", **fields, under=under).reason == "lease.lost"
    ask("ReleaseLease", named="acme", lease=ours)
    assert ask.refused("ClaimSecrets", **fields, under=ours).reason == "lease.lost"


def test_who_may_list_and_who_may_claim(ask: Asking) -> None:
    """A viewer lists. Another organization's secrets look like missing ones."""
    made = an_owed_app(ask)
    other = ask("AddOrg", name="other")["id"]
    viewer = Caller("viewer", Role.VIEWER, frozenset({ask.organization}))
    stranger = Caller("stranger", Role.ADMIN, frozenset({other}))
    fields = {"organizationId": ask.organization}

    assert len(owed(ask, by=viewer)) == 1
    for operation in ("ClaimSecrets", "AcknowledgeSecrets"):
        asked = {**fields, "secrets": named(made)}
        assert ask.refused(operation, **asked, by=viewer).code == Code.PERMISSION_DENIED
        assert ask.refused(operation, **asked, by=stranger).code == Code.NOT_FOUND
    assert ask.refused("ListOwedSecrets", **fields, by=stranger).code == Code.NOT_FOUND
    theirs = ask("AcquireLease", named="other", holder="me", seconds=60)["lease"]
    answer = ask("ClaimSecrets", organizationId=other, secrets=named(made), under=theirs)
    assert answer["secrets"][0]["error"]["code"] == Code.NOT_FOUND
    assert ask("AcknowledgeSecrets", organizationId=other, secrets=named(made)) == {}
    assert len(owed(ask)) == 1


@pytest.mark.parametrize(
    ("secrets", "field"),
    [
        ([], "secrets"),
        (None, "secrets"),
        ({}, "secrets"),
        ([{"id": "1", "madeAt": "1"}] * 501, "secrets"),
        ([{"madeAt": "1"}], "secrets[0].id"),
        ([{"id": "1"}], "secrets[0].madeAt"),
        ([{"id": "1", "madeAt": 1, "x": 1}], "secrets[0].x"),
        (["1"], "secrets[0]"),
    ],
)
def test_a_claim_names_1_to_500_secrets(ask: Asking, secrets: object, field: str) -> None:
    """Anything else is refused, with the field named."""
    for operation in ("ClaimSecrets", "AcknowledgeSecrets"):
        refused = ask.refused(
            operation, organizationId=ask.organization, secrets=secrets, under="1.x"
        )
        assert refused.code == Code.INVALID_ARGUMENT
        assert refused.details["field"] == field


def test_a_claim_takes_no_idempotency_key(ask: Asking) -> None:
    """Its answer would have to be kept, secret and all."""
    made = an_owed_app(ask)
    refused = ask.refused("ClaimSecrets", organizationId=ask.organization, secrets=named(made),
                          under=lease(ask), idempotency_key="k")  # fmt: skip

    assert refused.message.startswith("idempotency-key")


def test_owed_secrets_come_in_pages(ask: Asking) -> None:
    """By id, and of this organization only."""
    for name in "abc":
        an_owed_app(ask, name)
    whole = owed(ask)
    first = ask("ListOwedSecrets", organizationId=ask.organization, limit=2)
    rest = ask("ListOwedSecrets", organizationId=ask.organization, cursor=first["next"])

    assert first["owedSecrets"] + rest["owedSecrets"] == whole
    assert (len(first["owedSecrets"]), rest["next"]) == (2, "")
    assert [found["name"] for found in whole] == ["a", "b", "c"]


@pytest.mark.parametrize("run", ["a b", "x" * 65, "ä", "a.b"])
def test_a_run_is_named_by_letters_and_digits(ask: Asking, run: str) -> None:
    """It is told to others, and compared."""
    refused = ask.refused("AddOIDCApp", projectId=ask.project, name="web", custody=run)

    assert (refused.code, refused.message.partition(":")[0]) == (3, "x-reconciler-custody")


def test_a_create_is_not_repeated_once_its_object_is_gone(ask: Asking) -> None:
    """Neither as if it had been made, nor with the secret of an object that is dead."""
    made = ask.an_app("web", idempotency_key="k")
    action = ask.an_action(idempotency_key="a")
    ask("UpdateAction", id=action["id"], name="hello", script="function hello() {}")
    ask("RemoveApp", projectId=ask.project, appId=made["appId"])

    for refused in (
        ask.refused("AddOIDCApp", projectId=ask.project, name="web", idempotency_key="k"),
        ask.refused(
            "CreateAction", organization=ask.organization, name="greet",
            script="function greet(ctx, api) {}", idempotency_key="a",
        ),
    ):  # fmt: skip
        assert refused.code == Code.PRECONDITION_FAILED
        assert refused.reason == "idempotency.object_gone"


def test_a_dead_secret_is_not_answered_again(ask: Asking) -> None:
    """A repeated create whose secret was replaced since would deliver one that is refused."""
    made = ask.an_app("web", idempotency_key="k")
    target = {"projectId": ask.project, "appId": made["appId"]}
    newer = ask("RegenerateOIDCClientSecret", **target, idempotency_key="r")

    assert ask("RegenerateOIDCClientSecret", **target, idempotency_key="r") == newer
    refused = ask.refused("AddOIDCApp", projectId=ask.project, name="web", idempotency_key="k")
    assert refused.reason == "idempotency.secret_gone"


def test_the_service_says_that_it_has_custody(ask: Asking) -> None:
    """The client believes that, and guesses nothing."""
    assert ask("GetServiceInfo")["custody"] is True
