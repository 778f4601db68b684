"""A batch of orders over every store: each is carried out as if it had come alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.service.operations.batch import Orders
from reconciler.service.operations.callers import Caller, Role, revoke_token
from reconciler.service.operations.dispatch import Incoming
from tests.contract.test_tokens import token_of
from tests.examples import JWT, SCRIPT
from tests.unit.service.asking import Asking

GREET = {"name": "greet", "script": SCRIPT}


def order(operation: str, /, take: Any = None, **given: Any) -> dict[str, Any]:
    """Return an order; what goes beside its fields is told from them by its name."""
    beside = {name: given.pop(name) for name in BESIDE & given.keys()}
    return {
        "operation": operation,
        "fields": given,
        **beside,
        **({"from": dict(take)} if take else {}),
    }


BESIDE = frozenset({"organizationId", "ifMatch", "idempotencyKey", "lease", "context", "custody"})


def outcomes(ask: Asking, orders: Sequence[Any], **beside: Any) -> list[Any]:
    """Return what came of orders: answers, codes of refusals, and which order one needed."""
    return [_told(answer) for answer in ask("WriteBatch", orders=orders, **beside)["answers"]]


def _told(answer: Mapping[str, Any]) -> Any:
    ((key, value),) = answer.items()
    return {"answer": value, "error": value["code"] if key == "error" else 0, "notTried": (value,)}[
        key
    ]


def test_a_tree_of_objects_is_made_in_one_batch(ask: Asking) -> None:
    """An order names its owner by the order that makes it."""
    org, project, app, idp, again = outcomes(
        ask,
        [
            order("AddOrg", name="globex"),
            order("AddProject", {"organizationId": 0}, name="shop"),
            order("AddOIDCApp", {"projectId": 1}, name="web"),
            order("AddOrgJWTIDP", {"organizationId": 0}, name="partner", **JWT),
            order("RegenerateOIDCClientSecret", {"projectId": 1, "appId": 2, "ifMatch": 2}),
        ],
    )

    held = ask("ListObjects", organizationId=org["id"])["objects"]
    assert {found["id"]: found["name"] for found in held} == {
        org["id"]: "globex", project["id"]: "shop", app["appId"]: "web", idp["idpId"]: "partner",
    }  # fmt: skip
    assert len({app["clientSecret"], again["clientSecret"]}) == 2


def test_an_order_that_fails_fails_those_that_need_it_and_no_others(ask: Asking) -> None:
    found = outcomes(
        ask,
        [
            order("AddProject", name="SHOP", organizationId=ask.organization),
            order("AddOIDCApp", {"projectId": 0}, name="web"),
            order("RegenerateOIDCClientSecret", {"projectId": 0, "appId": 1}),
            order("CreateAction", **GREET, organizationId=ask.organization),
            order("AddOIDCApp", name="web", projectId="404"),
            order("DeleteAction", {"id": 3, "ifMatch": 3}),
        ],
    )

    assert found[:3] == [6, (0,), (0,)]
    assert found[3]["id"]
    assert found[4:] == [5, {}]
    assert ask.objects() == []


def test_a_batch_asked_for_again_whole_gives_the_same_answers_and_writes_nothing(
    ask: Asking,
) -> None:
    """Updates and deletes have keys, too: else a lost answer would leave them in doubt."""
    action, app = ask.an_action("old"), ask.an_app("old")["appId"]
    orders = [
        order("AddOIDCApp", projectId=ask.project, name="web", idempotencyKey="a", custody="run"),
        order("UpdateOIDCAppConfig", {"appId": 0, "ifMatch": 0}, projectId=ask.project,
              devMode=True, idempotencyKey="b"),
        order("RegenerateOIDCClientSecret", projectId=ask.project, appId=app, idempotencyKey="c"),
        order("UpdateAction", id=action["id"], name="new", script="x", idempotencyKey="d",
              ifMatch=action["details"]["sequence"]),
        order("DeleteAction", {"ifMatch": 3}, id=action["id"], idempotencyKey="e"),
        order("AddProject", name="SHOP", organizationId=ask.organization, idempotencyKey="f"),
    ]  # fmt: skip
    first = outcomes(ask, orders)
    events = ask.event_count()

    again = outcomes(ask, orders)

    assert ask.event_count() == events
    assert again == first
    assert [isinstance(answer, dict) for answer in first] == [True] * 5 + [False]


def test_a_key_that_comes_twice_in_a_batch_counts_as_if_its_orders_came_alone(ask: Asking) -> None:
    made = order("CreateAction", **GREET, organizationId=ask.organization, idempotencyKey="k")
    other = {**made, "fields": {**GREET, "name": "other"}}

    first, again, refused = outcomes(ask, [made, made, other])

    assert first == again
    assert refused == 9
    assert len(ask.objects()) == 1


def test_what_stands_beside_an_order_counts_for_it_alone(ask: Asking) -> None:
    lease = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    own = {"organizationId": ask.organization}

    made, lost, malformed, plain = outcomes(
        ask,
        [
            order("CreateAction", **own, **GREET, lease=lease, context={"tree": "web"}),
            order("CreateAction", **own, script=SCRIPT, name="b", lease="1.x"),
            order("CreateAction", **own, script=SCRIPT, name="c", context={"deep": {}}),
            order("CreateAction", **own, script=SCRIPT, name="d"),
        ],
    )

    assert (lost, malformed) == (10, 3)
    trees = {found["id"]: found["trees"] for found in ask.objects()}
    assert trees == {made["id"]: ["web"], plain["id"]: []}


def test_a_flow_names_actions_by_the_orders_that_make_them(ask: Asking) -> None:
    """In its order, beside one that was there; each trigger expects what the one before left."""
    here = {"organizationId": ask.organization}
    login = {"flowType": "3", **here}
    known = ask.an_action("known")["id"]

    new, first, emptied, second, failed, left_out = outcomes(
        ask,
        [
            order("CreateAction", **here, **GREET),
            order(
                "SetTriggerActions", {"actionIds[1]": 0}, **login,
                triggerType="1", actionIds=[known, ""], ifMatch="0",
            ),
            order("SetTriggerActions", {"ifMatch": 1}, **login, triggerType="1"),
            order(
                "SetTriggerActions", {"actionIds[0]": 0, "ifMatch": 2}, **login,
                triggerType="2", actionIds=["", known],
            ),
            order("CreateAction", **here, **GREET),
            order(
                "SetTriggerActions", {"actionIds[0]": 4}, **login, triggerType="3", actionIds=[""]
            ),
        ],
    )  # fmt: skip

    assert (failed, left_out) == (6, (4,))
    flow = ask("GetFlow", organization=ask.organization, type="3")["flow"]
    assert {each["triggerType"]["id"]: [a["id"] for a in each["actions"]]
            for each in flow["triggerActions"]} == {"2": [new["id"], known]}  # fmt: skip
    sequences = [int(each["details"]["sequence"]) for each in (first, emptied, second)]
    assert sequences == sorted(sequences)


def test_rights_are_judged_for_each_order(ask: Asking) -> None:
    """Another organization's objects look missing; what only an admin may, an editor may not."""
    editor = Caller("editor", Role.EDITOR, frozenset({ask.organization}))
    foreign = ask("AddOrg", name="globex")["id"]

    found = outcomes(
        ask,
        [
            order("AddOrg", name="mine"),
            order("AddProject", name="theirs", organizationId=foreign),
            order("AddProject", name="mine"),
        ],
        by=editor,
    )

    assert found[:2] == [7, 5]
    assert found[2]["details"]["resourceOwner"] == ask.organization
    viewer = Caller("viewer", Role.VIEWER, frozenset({ask.organization}))
    assert ask.refused("WriteBatch", orders=[order("AddProject", name="x")], by=viewer).code == 7


@pytest.mark.parametrize("field", ["organization", "lease", "context", "idempotency_key"])
def test_a_batch_itself_takes_no_header_of_a_write(ask: Asking, field: str) -> None:
    beside = {"lease": "under"}.get(field, field)
    orders = [order("AddOrg", name="x")]

    refused = ask.refused("WriteBatch", orders=orders, **{beside: '{"tree":"x"}'})

    assert refused.code == 3


def begun(ask: Asking, orders: Sequence[Any]) -> Orders:
    """Return a batch that came from outside, of which the first order alone is committed."""
    headers = {"authorization": [f"Bearer {token_of(ask, 'ci', ask.organization)}"]}
    taken = ask.service.dispatcher.take_batch(Incoming("WriteBatch", {"orders": orders}, headers))
    assert isinstance(taken, Orders)
    taken._at_once = 1
    ask.service.dispatcher._engine.write_orders(taken)
    return taken


def ended(ask: Asking, orders: Orders) -> list[Any]:
    """Return the outcomes of a batch, once the rest of it is carried out."""
    while not orders.are_done:
        ask.service.dispatcher.carry_out(orders)
    return [_told(answer) for answer in orders.answer()["answers"]]


def named(*names: str, **beside: Any) -> list[dict[str, Any]]:
    return [order("CreateAction", name=name, script=SCRIPT, **beside) for name in names]


def test_a_token_that_is_revoked_ends_the_batch_at_its_next_commit(ask: Asking) -> None:
    """What was committed stays."""
    batch = begun(ask, named("a", "b", "c"))
    revoke_token(ask.service.store, "ci", ask.clock())

    found = ended(ask, batch)

    assert found[1:] == [16, 16]
    assert [held["id"] for held in ask.objects()] == [found[0]["id"]]


def test_a_lease_that_is_lost_ends_the_batch_at_its_next_commit(ask: Asking) -> None:
    lease = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    batch = begun(ask, [*named("a", "b", lease=lease), *named("c")])
    ask("ReleaseLease", named="acme", lease=lease)

    found = ended(ask, batch)

    assert found[1] == 10
    assert {held["id"] for held in ask.objects()} == {found[0]["id"], found[2]["id"]}


def test_other_writers_write_between_the_commits_of_a_batch(ask: Asking) -> None:
    """And who has a name first has it."""
    batch = begun(ask, named("a", "b", "c"))
    ask.an_action("B")

    found = ended(ask, batch)

    assert found[1] == 6
    assert found[2]["id"]


def test_a_batch_that_was_lost_half_way_is_asked_for_again_whole(ask: Asking) -> None:
    orders = [{**each, "idempotencyKey": each["fields"]["name"]} for each in named("a", "b", "c")]
    lost = begun(ask, orders)
    made = lost.answer()["answers"][0]["answer"]

    again = Orders(lost._orders, lost.caller)

    assert ended(ask, again)[0] == made
    assert len(ask.objects()) == 3


def test_an_order_is_the_same_request_as_a_call_that_comes_alone(ask: Asking) -> None:
    """With its key it gets the same answer, whichever came first."""
    made = ask.an_action(idempotency_key="k")
    change = {"id": made["id"], "name": "new", "script": SCRIPT}

    again, changed = outcomes(
        ask,
        [
            order("CreateAction", **GREET, organizationId=ask.organization, idempotencyKey="k"),
            order("UpdateAction", **change, organizationId=ask.organization, idempotencyKey="u"),
        ],
    )

    assert again == made
    alone = {"organization": ask.organization, "idempotency_key": "u"}
    assert ask("UpdateAction", **change, **alone) == changed
    assert ask.refused("UpdateAction", **{**change, "name": "x"}, **alone).code == 9


def test_a_delete_that_is_repeated_with_its_key_succeeds_again(ask: Asking) -> None:
    """Also an update of what is gone: both were done, and their callers did not hear of it."""
    action = ask.an_action()["id"]
    change = {"id": action, "name": "new", "script": SCRIPT, "idempotency_key": "u"}
    changed = ask("UpdateAction", **change)
    removed = ask("DeleteAction", id=action, idempotency_key="d")

    assert ask("DeleteAction", id=action, idempotency_key="d") == removed
    assert ask("UpdateAction", **change) == changed
    assert ask.refused("DeleteAction", id=action, idempotency_key="other").code == 5
