"""Batches of orders: their commits, their turns, and what becomes of them when something fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreUnreachableError
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.callers import token_hash
from reconciler.service.operations.commit import Commit
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import Request
from reconciler.service.transport.batching import Batcher
from tests.memory_store import open_memory
from tests.running import furnish
from tests.unit.service.transport.batches import ACTION, bearer, by_two, orders


def test_a_batch_lets_other_writers_in_after_each_of_its_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many batches wait, another write waits for one commit of one of them at most."""
    service = open_memory()
    tokens = furnish(service).tokens
    commits: list[int] = []
    waited: list[int] = []
    committed = by_two(monkeypatch, commits)

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        batches = [
            asyncio.ensure_future(
                batcher.answer(Incoming("WriteBatch", orders(20, 20 * number), bearer(tokens[by])))
            )
            for number, by in enumerate(("editor", "stranger", "editor", "stranger"))
        ]
        try:
            await asyncio.to_thread(committed.wait, 10)
            for number in range(5):
                before = len(commits)
                fields = {**ACTION, "name": f"single{number}"}
                call = Incoming("CreateAction", fields, bearer(tokens["editor"]))
                assert not isinstance((await batcher.answer(call)).answer, Refusal)
                waited.append(len(commits) - before)
            return await asyncio.gather(*batches)
        finally:
            await batcher.close()

    answered = asyncio.run(ask())

    assert max(waited) <= 2  # the one under way, and perhaps one that began meanwhile
    assert commits == [2] * 40
    for received in answered:
        assert isinstance(received.answer, dict)
        assert all("answer" in each for each in received.answer["answers"])


def test_batches_of_a_caller_come_in_turn_and_those_of_two_callers_alternate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first is answered while the next is carried out, and no caller waits for another's."""
    service = open_memory()
    tokens = furnish(service).tokens
    done: list[str] = []
    committed = by_two(monkeypatch, [])

    async def ask() -> None:
        batcher = Batcher(service.dispatcher, lambda _: "all")

        async def batch(name: str, by: str, count: int, start: int) -> None:
            call = Incoming("WriteBatch", orders(count, start), bearer(tokens[by]))
            assert isinstance((await batcher.answer(call)).answer, dict)
            done.append(name)

        try:
            first = asyncio.ensure_future(batch("first", "editor", 200, 0))
            await asyncio.to_thread(committed.wait, 10)
            await asyncio.gather(
                first, batch("second", "editor", 4, 200), batch("other", "stranger", 4, 0)
            )
        finally:
            await batcher.close()

    asyncio.run(ask())

    assert done == ["other", "first", "second"]


def test_no_organization_that_an_order_names_makes_a_batch_wait_for_itself() -> None:
    """Turns of callers, of batches and of writes are kept apart, however an id is spelt."""
    service = open_memory()
    token = furnish(service).tokens["admin"]
    account = token_hash(token).hex()
    names = (f"batches by {account}", "batches of x", account, "x")

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, service.dispatcher.organization_of)
        batches = [[{**orders(1)["orders"][0], "organizationId": name}] for name in names]
        calls = [Incoming("WriteBatch", {"orders": batch}, bearer(token)) for batch in batches]
        try:
            return [await asyncio.wait_for(batcher.answer(call), 3) for call in calls]
        finally:
            await batcher.close()

    for received in asyncio.run(ask()):
        assert isinstance(received.answer, dict)
        assert received.answer["answers"][0]["error"]["code"] in {3, 5}


def test_a_batch_takes_no_turn_of_an_organization_that_its_caller_does_not_see() -> None:
    """Else it would keep the writes of others waiting, and be refused only then."""
    service = open_memory()
    known = furnish(service)
    named = {"organizationId": known.other_organization}
    fields = {"orders": [{**orders(1)["orders"][0], **named}]}

    taken = {
        by: service.dispatcher.take_batch(Incoming("WriteBatch", fields, bearer(known.tokens[by])))
        for by in ("editor", "stranger", "admin")
    }

    queues = {by: found.organization for by, found in taken.items() if isinstance(found, Orders)}
    assert queues == {
        "editor": "",
        "stranger": known.other_organization,
        "admin": known.other_organization,
    }


def test_a_batch_ends_when_its_caller_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again, and would be carried out twice side by side."""
    service = open_memory()
    headers = bearer(furnish(service).tokens["editor"])
    commits: list[int] = []
    by_two(monkeypatch, commits)
    call = Incoming("WriteBatch", orders(20), headers, has_left=lambda: len(commits) == 3)

    async def ask() -> Received:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        try:
            return await asyncio.wait_for(batcher.answer(call), 10)
        finally:
            await batcher.close()

    answer = asyncio.run(ask()).answer

    assert isinstance(answer, dict)
    assert commits == [2, 2, 2]
    assert [each.get("error", {}).get("code", 0) for each in answer["answers"]] == [0] * 6 + [
        14
    ] * 14


@pytest.mark.parametrize(
    ("failure", "codes"),
    [
        (ValueError("a damaged row"), {13}),
        (MemoryError(), {14}),
        (StoreUnreachableError("away", "wait"), {14}),
    ],
)
def test_a_batch_under_which_something_fails_is_answered(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, codes: set[int]
) -> None:
    """Each of its orders is, and the next batch is carried out."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['editor']}"]}
    really = Commit.carry_out

    def fragile(commit: Commit, request: Request) -> Any:
        if request.fields["name"] == "n2":
            raise failure
        return really(commit, request)

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        monkeypatch.setattr(Commit, "carry_out", fragile)
        calls = [Incoming("WriteBatch", orders(4, start), bearer) for start in (0, 4)]
        try:
            return [await asyncio.wait_for(batcher.answer(call), 10) for call in calls]
        finally:
            await batcher.close()

    first, second = [received.answer for received in asyncio.run(ask())]

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    told = [each.get("error", {}).get("code", 0) for each in first["answers"]]
    assert told[2] in codes
    assert set(told) <= {0, *codes}
    if codes == {13}:
        assert told == [0, 0, 13, 0]
    assert all("answer" in each for each in second["answers"])
