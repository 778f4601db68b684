"""Writes in batches: what is packed, what of an answer belongs to whom, what is asked again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from reconciler.resources.call import WRITE_BATCH, Call
from reconciler.service_client.batches import AT_ONCE, MAX_BYTES, RETRY_SECONDS, BatchingWire
from reconciler.service_client.wire import NO_ANSWER, Answer, WireRefusal
from tests.rows import each_row

Reply = Answer | WireRefusal


class Service:
    """Answers batches from a function of one order; keeps what it was sent, and naps."""

    def __init__(self, told: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.told = told
        self.refusals: list[WireRefusal] = []
        self.sent: list[list[Call]] = []
        self.naps: list[float] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        self.sent.append(list(calls))
        return [self._reply(call) for call in calls]

    def _reply(self, call: Call) -> Reply:
        if call.operation != WRITE_BATCH:
            return Answer({"alone": call.fields["name"]})
        if self.refusals:
            return self.refusals.pop(0)
        return Answer({"answers": [self.told(order) for order in call.fields["orders"]]})

    def wire(self, most: int = 500) -> BatchingWire:
        return BatchingWire(self, most, clock=lambda: sum(self.naps), sleep=self.naps.append)

    @property
    def batches(self) -> list[Sequence[Mapping[str, Any]]]:
        calls = [call for calls in self.sent for call in calls if call.operation == WRITE_BATCH]
        return [call.fields["orders"] for call in calls]


def made(order: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"answer": {"name": order["fields"]["name"]}}


def creates(count: int) -> list[Call]:
    return [
        Call("CreateAction", {"name": f"a{number}"}, idempotency_key=f"k{number}")
        for number in range(count)
    ]


def names(replies: Sequence[Reply]) -> list[str]:
    return [str(reply.fields["name"]) for reply in replies if isinstance(reply, Answer)]


def test_an_order_says_all_that_a_call_says_and_nothing_empty() -> None:
    service = Service(lambda _: {"answer": {}})
    full = Call(
        "UpdateAction", {"id": "3"}, organization="1", expected_sequence=0, idempotency_key="k",
        lease="l", context='{"tree":"t"}', custody="run",
    )  # fmt: skip

    service.wire().send([full, Call("DeleteAction", {"id": "4"}, idempotency_key="m")])

    assert service.batches == [
        [
            {"operation": "UpdateAction", "fields": {"id": "3"}, "organizationId": "1",
             "ifMatch": "0", "idempotencyKey": "k", "lease": "l", "context": {"tree": "t"},
             "custody": "run"},
            {"operation": "DeleteAction", "fields": {"id": "4"}, "idempotencyKey": "m"},
        ]
    ]  # fmt: skip


def test_orders_go_in_batches_of_at_most_so_many_and_answers_keep_their_order() -> None:
    service = Service(made)

    replies = service.wire(most=3).send(creates(8))

    assert names(replies) == [f"a{number}" for number in range(8)]
    assert [len(batch) for batch in service.batches] == [3, 3, 2]
    assert max(len(calls) for calls in service.sent) == AT_ONCE


def test_a_batch_has_room_in_one_request() -> None:
    """A service refuses a larger body whole."""
    service = Service(made)
    calls = [Call("CreateAction", {"name": f"a{n}", "script": "\u00e9" * 2000}) for n in range(200)]

    assert len(service.wire().send(calls)) == 200

    sizes = [len(json.dumps({"orders": batch})) for batch in service.batches]
    assert len(sizes) > 1
    assert max(sizes) < 1024 * 1024
    assert sizes[0] > MAX_BYTES * 0.9


def test_one_call_goes_by_itself() -> None:
    service = Service(made)

    (reply,) = service.wire().send(creates(1))

    assert reply == Answer({"alone": "a0"})


def test_a_refused_order_is_refused_as_it_would_be_alone() -> None:
    details = [{"@type": "t", "reason": "name.taken"}]
    error = {"code": 6, "message": "taken", "details": details}
    service = Service(lambda o: {"error": error} if o["fields"]["name"] == "a1" else made(o))

    replies = service.wire().send(creates(3))

    assert replies[1] == WireRefusal(6, "taken", {"@type": "t", "reason": "name.taken"})
    assert names(replies) == ["a0", "a2"]


def test_what_is_refused_for_now_is_sent_again_with_its_key_and_nothing_else_is() -> None:
    codes = {"a1": [14, 8], "a2": [14, 8]}

    def told(order: Mapping[str, Any]) -> Mapping[str, Any]:
        left = codes.get(order["fields"]["name"])
        return {"error": {"code": left.pop(), "message": "not now"}} if left else made(order)

    service = Service(told)

    replies = service.wire().send(creates(3))

    assert names(replies) == ["a0", "a1", "a2"]
    first, *again = [[order["idempotencyKey"] for order in batch] for batch in service.batches]
    assert again == [first[1:], first[1:]]
    assert len(service.naps) == 2


def test_what_is_refused_for_now_for_too_long_stays_refused() -> None:
    service = Service(lambda _: {"error": {"code": 14, "message": "stopping"}})

    replies = service.wire().send(creates(2))

    assert replies == [WireRefusal(14, "stopping", unsure=True)] * 2
    assert sum(service.naps) <= RETRY_SECONDS
    assert len(service.batches) > 3


def test_a_last_answer_that_is_lost_leaves_open_what_was_open() -> None:
    """The service was stopping, and may have carried out the order before."""
    service = Service(lambda _: {"error": {"code": 14, "message": "stopping"}})
    wire = service.wire()
    service.refusals = []

    def then_away(seconds: float) -> None:
        service.naps.append(seconds)
        service.refusals = [WireRefusal(NO_ANSWER, "cannot be reached")]

    wire = BatchingWire(service, 500, clock=lambda: 0.0, sleep=then_away)

    replies = wire.send(creates(2))

    assert replies == [WireRefusal(NO_ANSWER, "cannot be reached", unsure=True)] * 2


@pytest.mark.parametrize("code", [7, 8, 14, 16, NO_ANSWER])
def test_a_batch_that_fails_whole_fails_each_order_alike(code: int) -> None:
    """The wire beneath has tried it again; nothing more is sent."""
    service = Service(made)
    refusal = WireRefusal(code, "no", unsure=code == NO_ANSWER)
    service.refusals = [refusal]

    assert service.wire().send(creates(3)) == [refusal] * 3
    assert len(service.sent) == 1


@pytest.mark.parametrize("code", [3, 5, 12])
def test_a_service_that_does_not_understand_batches_is_sent_calls(code: int) -> None:
    """A gateway with a smaller limit, or a service of another make; nothing was carried out."""
    service = Service(made)
    service.refusals = [WireRefusal(code, "what?")]
    wire = service.wire()

    replies = wire.send(creates(2))
    wire.send(creates(2))

    assert replies == [Answer({"alone": "a0"}), Answer({"alone": "a1"})]
    assert [len(calls) for calls in service.sent] == [1, 2, 2]
    keys = [order["idempotencyKey"] for order in service.batches[0]]
    assert [call.idempotency_key for call in service.sent[1]] == keys


@each_row(
    "told",
    [{}, {"answer": []}, {"answer": None}, {"error": "no"}, {"notTried": "0"}, [], 7, None],
)
def test_what_cannot_be_read_may_have_been_carried_out(told: Any) -> None:
    replies = Service(lambda _: told).wire().send(creates(2))

    assert all(isinstance(reply, WireRefusal) and reply.unsure for reply in replies)


def test_too_few_answers_belong_to_nobody() -> None:
    """Which order was left out cannot be told."""

    class Short(Service):
        def _reply(self, call: Call) -> Reply:
            return Answer({"answers": [made(order) for order in call.fields["orders"][1:]]})

    replies = Short(made).wire().send(creates(3))

    assert all(isinstance(reply, WireRefusal) and reply.unsure for reply in replies)


def test_an_order_that_was_not_tried_was_not_carried_out() -> None:
    (_, reply) = Service(lambda _: {"notTried": 0}).wire().send(creates(2))

    assert isinstance(reply, WireRefusal)
    assert not reply.unsure
