"""Batches of orders: what is malformed as a whole, and how many orders share a commit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.batch import MAX_ORDERS, work_share, write_batch
from reconciler.service.operations.request import Request
from reconciler.service.operations.table import operation_of, operations
from tests.effort import cases
from tests.examples import SCRIPT, Clock
from tests.memory_store import open_memory
from tests.rows import each_row
from tests.unit.service.asking import ADMIN, Asking

MAKE = {"operation": "CreateAction", "fields": {"name": "greet", "script": SCRIPT}}
REMOVE = {"operation": "DeleteAction", "fields": {"id": "1"}}


def a_service() -> Asking:
    clock = Clock()
    ask = Asking(open_memory(now=clock), clock)
    ask.prepare()
    return ask


def taking(**taken: Any) -> dict[str, Any]:
    return {"operation": "UpdateAction", "fields": {"name": "x", "script": "x"}, "from": taken}


def setting(action: str, taken: str) -> dict[str, Any]:
    login = {"flowType": "3", "triggerType": "1"}
    fields = {**login, "actionIds": [action]}
    return {"operation": "SetTriggerActions", "fields": fields, "from": {taken: 0}}


@each_row(
    ("orders", "where"),
    [
        (None, "orders: must be 1 to 500 orders"),
        ([], "orders: must be 1 to 500 orders"),
        ({"0": MAKE}, "orders: must be a list"),
        ([MAKE] * (MAX_ORDERS + 1), "orders: must be 1 to 500 orders"),
        ([MAKE, None], "orders[1]: must be an object"),
        ([MAKE, [MAKE]], "orders[1]: must be an object"),
        ([{**MAKE, "force": True}], "orders[0].force: is not a field of an order"),
        ([{**MAKE, "fields": []}], "orders[0].fields: must be an object"),
        ([{**MAKE, "context": '{"tree":"x"}'}], "orders[0].context: must be an object"),
        ([{**MAKE, "context": {"n": 2**65}}], "orders[0].context: must be JSON"),
        ([{**MAKE, "lease": 7}], "orders[0].lease: must be a string"),
        ([{**MAKE, "custody": ""}], "orders[0].custody: must not be empty"),
        ([{**MAKE, "ifMatch": '"1"'}], "orders[0].ifMatch: must be a sequence"),
        ([{**MAKE, "ifMatch": ""}], "orders[0].ifMatch: must be a sequence"),
        ([{"fields": {}}], "orders[0].operation: must be a write"),
        ([{"operation": "ListOrgs"}], "orders[0].operation: must be a write"),
        ([{"operation": "Nothing"}], "orders[0].operation: must be a write"),
        ([MAKE, taking(id=1)], "orders[1].from.id: must be the index of an earlier order"),
        ([taking(id=1), MAKE], "orders[0].from.id: must be the index of an earlier order"),
        ([taking(id=1), taking(id=0)], "orders[0].from.id: must be the index of an earlier"),
        ([MAKE, taking(id=-1)], "orders[1].from.id: must be the index of an earlier order"),
        ([MAKE, taking(id=False)], "orders[1].from.id: must be the index of an earlier order"),
        ([MAKE, taking(id="0")], "orders[1].from.id: must be the index of an earlier order"),
        ([MAKE, taking(name=0)], "orders[1].from.name: is given twice"),
        ([MAKE, {**taking(ifMatch=0), "ifMatch": "1"}], "orders[1].from.ifMatch: is given twice"),
        (
            [MAKE, {**taking(organizationId=0), "organizationId": "1"}],
            "orders[1].from.organizationId: is given twice",
        ),
        ([MAKE, setting("1", "actionIds[0]")], "orders[1].from.actionIds[0]: needs an empty text"),
        ([MAKE, setting("", "actionIds[1]")], "orders[1].from.actionIds[1]: needs an empty text"),
        ([MAKE, setting("", "type[0]")], "orders[1].from.type[0]: needs an empty text"),
        ([MAKE, setting("", "actionIds")], "orders[1].from.actionIds: is given twice"),
        ([REMOVE, taking(id=0)], "orders[1].from.id: must be the index of an order that makes"),
        ([REMOVE, taking(ifMatch=0)], "orders[1].from.ifMatch: must be the index of an order"),
    ],
)
def test_a_batch_that_is_malformed_is_refused_as_a_whole(orders: Any, where: str) -> None:
    """With the place, and nothing of it carried out."""
    ask = a_service()

    refused = ask.refused("WriteBatch", orders=orders)

    assert refused.code == Code.INVALID_ARGUMENT
    assert refused.message.startswith(where)
    assert ask.objects() == []


@each_row(
    ("order", "where"),
    [
        ({**MAKE, "organizationId": "a b"}, "orders[1].organizationId: must be the id"),
        (MAKE, "orders[1].organizationId: must name an organization"),
        ({**MAKE, "ifMatch": "1"}, "orders[1].ifMatch: is for updates and deletes only"),
        ({**MAKE, "idempotencyKey": "\n"}, "orders[1].idempotencyKey: must be at most 200"),
        ({**MAKE, "context": {"tree": {}}}, "orders[1].context: must be a flat JSON object"),
        ({**MAKE, "custody": "a b"}, "orders[1].custody: must be 1 to 64 letters"),
        ({"operation": "CreateAction", "fields": {"name": "", "script": "x"}}, "name: "),
    ],
)
def test_a_refusal_of_an_order_names_a_key_of_the_order(order: Any, where: str) -> None:
    """And no header, which its caller did not send."""
    ask = a_service()
    own = {"organizationId": ask.organization} if "organization" not in where else {}
    first = {**MAKE, "fields": {"name": "first", "script": SCRIPT}}

    answers = ask("WriteBatch", orders=[first, {**own, **order}])["answers"]

    (detail,) = answers[1]["error"]["details"]
    assert answers[1]["error"]["message"].startswith(where)
    assert detail["message"] == answers[1]["error"]["message"]
    assert detail["field"] == where.partition(":")[0]


def test_what_has_no_place_in_a_batch_is_refused() -> None:
    """It would wait for itself, or for what the batch depends on; nothing else is left out."""
    left_out = {"AcquireLease", "RenewLease", "ReleaseLease", "WriteBatch"}
    left_out |= {"PauseTree", "ResumeTree", "RecordCommit"}
    left_out |= {"ClaimSecrets", "AcknowledgeSecrets", "GrantTrust", "RevokeTrust"}
    assert {
        row.name for row in operations().values() if row.writes and not row.is_of_an_object
    } == (left_out)
    for name in left_out:
        assert a_service().refused("WriteBatch", orders=[{"operation": name}]).code == 3


def test_null_is_the_same_as_left_out() -> None:
    ask = a_service()
    null = dict.fromkeys(("ifMatch", "lease", "context", "custody", "from", "idempotencyKey"))
    fields = {"name": "greet", "script": SCRIPT, "timeout": None}
    order = {**MAKE, **null, "fields": fields, "organizationId": ask.organization}

    (answer,) = ask("WriteBatch", orders=[order])["answers"]

    assert answer["answer"]["id"]


def counted(orders: int, seconds_each: float, most: float) -> list[int]:
    """Return how many orders each commit of a batch had, where each order takes so long."""
    taken = write_batch(
        Request("WriteBatch", {"orders": [MAKE] * orders}, caller=ADMIN), operation_of
    )
    commits = []
    while not taken.are_done:
        passed = [0.0]
        done = taken.tried(_passing(passed, seconds_each), partial(_have_passed, passed, most))
        taken.add(done)
        commits.append(len(done))
    return commits


def _have_passed(passed: list[float], most: float) -> bool:
    return passed[0] >= most


def _passing(passed: list[float], seconds: float) -> Callable[[Request], dict[str, Any]]:
    def write(_: Request) -> dict[str, Any]:
        passed[0] += seconds
        return {}

    return write


@pytest.mark.parametrize(
    ("seconds_each", "commits"),
    [(0.0001, [256, 244]), (0.01, [10] * 50), (1, [1] * 500)],
)
def test_a_commit_has_as_many_orders_as_its_time_allows(
    seconds_each: float, commits: list[int]
) -> None:
    assert counted(MAX_ORDERS, seconds_each, 0.0999) == commits


def test_an_order_that_fails_its_commit_fails_alone() -> None:
    """Half as many are tried each time, until it is known which one it is."""
    orders = [{**MAKE, "fields": {"name": f"n{number}"}} for number in range(40)]
    taken = write_batch(Request("WriteBatch", {"orders": orders}, caller=ADMIN), operation_of)
    tries = 0

    def write(request: Request) -> dict[str, Any]:
        if request.fields["name"] == "n17":
            raise ZeroDivisionError
        return {"id": request.fields["name"]}

    while not taken.are_done:
        tries += 1
        try:
            taken.add(taken.tried(write, lambda: False))
        except ZeroDivisionError:
            taken.fail(Refusal(Code.INTERNAL, "the service failed", "service.failed"))

    answers = taken.answer()["answers"]
    assert [index for index, answer in enumerate(answers) if "error" in answer] == [17]
    assert tries < 25


@pytest.mark.parametrize(
    ("worked", "held", "share"),
    [(0.03, 0.06, 0.5), (0.06, 0.06, 1.0), (0.001, 0.1, 0.4), (0.0, 0.0, 1.0)],
)
def test_the_orders_of_a_commit_leave_time_for_the_commit_itself(
    worked: float, held: float, share: float
) -> None:
    """A database is sent their rows then; but of slow commits there had better be few."""
    assert work_share(worked, held) == share


NAMES = ("a", "b", "A")
KEYS = st.sampled_from(("", "k1", "k2"))


@st.composite
def some_orders(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw orders of which many clash, fail, or take from one another."""
    orders: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 8))):
        makers = [at for at, made in enumerate(orders) if made["operation"] == "CreateAction"]
        name = draw(st.sampled_from(NAMES))
        order = {"operation": "CreateAction", "fields": {"name": name, "script": SCRIPT}}
        if bool(makers) and draw(st.booleans()):
            maker, is_new = draw(st.sampled_from(makers)), draw(st.booleans())
            remove = {"operation": "DeleteAction", "fields": {}, "from": {"id": maker}}
            order = draw(st.sampled_from((taking(id=maker), remove)))
            if is_new:
                order["from"] = {"id": maker, "ifMatch": maker}
        order["idempotencyKey"] = draw(KEYS)
        order["context"] = {"tree": draw(st.sampled_from(("one", "two"))), "n": index}
        orders.append(order)
    return orders


def alone(ask: Asking, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of orders that are sent one after the other, as a batch gives them."""
    answers: list[dict[str, Any]] = []
    for order in orders:
        fields, beside = dict(order["fields"]), {"organization": ask.organization}
        needed = sorted(order.get("from", {}).values())
        failed = [index for index in needed if "answer" not in answers[index]]
        if failed:
            answers.append({"notTried": failed[0]})
            continue
        for name, index in order.get("from", {}).items():
            earlier = answers[index]["answer"]
            if name == "ifMatch":
                fields["expected_sequence"] = int(earlier["details"]["sequence"])
            else:
                fields[name] = earlier["id"]
        beside["idempotency_key"] = order["idempotencyKey"]
        beside["context"] = json.dumps(order["context"])
        try:
            answers.append({"answer": ask(order["operation"], **fields, **beside)})
        except Refusal as refusal:
            answers.append({"error": {"code": refusal.code, "message": refusal.message}})
    return answers


def shown(ask: Asking, answers: list[dict[str, Any]]) -> Any:
    """Return answers and the state after them, without what no two services have in common."""
    ids: dict[str, int] = {}
    told = []
    for answer in answers:
        ((kind, what),) = answer.items()
        if kind == "error":
            what = (what["code"], re.sub("[0-9]{16}", "N", what["message"]))
        if kind == "answer":
            made = what.get("id", "")
            what = (ids.setdefault(made, len(ids)), sorted(what), sorted(what.get("details", ())))
        told.append((kind, what))
    held = [
        (found["name"], found["spec"], found["trees"], found["owner"], found["context"],
         ids.get(found["id"], -1))
        for found in ask.objects()
    ]  # fmt: skip
    return told, sorted(held, key=repr), ask.event_count()


@settings(max_examples=cases(25))
@given(orders=some_orders(), repeats=st.integers(1, 2), at_once=st.sampled_from((1, 256)))
def test_a_batch_is_its_orders_sent_one_after_the_other(
    orders: list[dict[str, Any]], repeats: int, at_once: int
) -> None:
    """The same answers and the same state, in one commit or many, also when asked for again."""
    batched, single = a_service(), a_service()
    for _ in range(repeats):
        named = [{**order, "organizationId": batched.organization} for order in orders]
        taken = write_batch(Request("WriteBatch", {"orders": named}, caller=ADMIN), operation_of)
        while not taken.are_done:
            taken._at_once = at_once
            batched.service.dispatcher._engine.write_orders(taken)
        answers = taken.answer()["answers"]

        assert shown(batched, answers) == shown(single, alone(single, orders))
