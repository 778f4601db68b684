"""Idempotency keys, and calls that share a batch, over every store."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import Caller, Role
from tests.examples import SCRIPT
from tests.unit.service.asking import Asking


@pytest.mark.parametrize("make", ["an_action", "an_app", "an_idp"])
def test_the_same_key_gives_the_same_answer_again(ask: Asking, make: str) -> None:
    """Also the one-time secret; nothing is written the second time."""
    first = getattr(ask, make)(idempotency_key="k1")
    before = ask.event_count()

    again = getattr(ask, make)(idempotency_key="k1")

    assert again == first
    assert ask.event_count() == before


def test_the_same_key_in_one_batch_gives_the_same_answer(ask: Asking) -> None:
    """A retry that arrives together with what it repeats is still a retry."""
    request = ask.request(
        "AddOIDCApp", {"projectId": ask.project, "name": "web", "idempotency_key": "k"}
    )
    other = ask.request(
        "AddOIDCApp", {"projectId": ask.project, "name": "app", "idempotency_key": "l"}
    )

    first, second, third = ask.service.call_many([request, other, request])

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first == third
    assert first["clientSecret"] != second["clientSecret"]
    assert ask.service.call_many([other, request]) == [second, first]


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("CreateAction", {"name": "other", "script": SCRIPT}),
        ("CreateAction", {"name": "greet", "script": SCRIPT, "timeout": "19s"}),
        ("AddProject", {"name": "greet"}),
    ],
)
def test_a_key_that_comes_back_with_another_request_is_refused(
    ask: Asking, operation: str, fields: dict[str, Any]
) -> None:
    """The key says it is the same; answering the first one would be a lie."""
    ask.an_action(idempotency_key="k1")
    before = ask.event_count()

    refusal = ask.refused(operation, organization=ask.organization, idempotency_key="k1", **fields)

    assert (refusal.code, refusal.reason) == (9, "idempotency.reused")
    assert ask.event_count() == before


def test_a_key_that_comes_back_with_another_context_to_record_is_refused(ask: Asking) -> None:
    """The context is all that such a call asks for; how it is spelled does not matter."""
    held = ask.an_action()["id"]
    recorded = {"id": held, "idempotency_key": "k1"}
    first = ask("RecordContext", **recorded, context='{"tree":"a","preventDelete":true}')
    before = ask.event_count()

    refusal = ask.refused("RecordContext", **recorded, context='{"tree":"a","preventDelete":false}')
    again = ask("RecordContext", **recorded, context='{"preventDelete": true, "tree": "a"}')

    assert (refusal.code, refusal.reason) == (9, "idempotency.reused")
    assert again == first
    assert ask.event_count() == before


def test_a_key_is_its_callers_own(ask: Asking) -> None:
    """Nobody can guess their way to another caller's answers."""
    ask.an_app(idempotency_key="k1")
    other = Caller("other", Role.ADMIN)

    refusal = ask.refused(
        "AddOIDCApp", projectId=ask.project, name="web", idempotency_key="k1", by=other
    )

    assert refusal.code == 6


def test_a_key_counts_for_a_day(ask: Asking) -> None:
    """Then the name decides, and the create is refused because the object is there."""
    day = 24 * 60 * 60 * 1_000_000
    first = ask.an_app(idempotency_key="k1")
    ask.clock.time += day - 1000
    assert ask.an_app(idempotency_key="k1") == first

    ask.clock.time += 2000

    with pytest.raises(Refusal) as caught:
        ask.an_app(idempotency_key="k1")
    assert caught.value.code == 6
    assert ask.an_app("other", idempotency_key="k1")["appId"] != first["appId"]


def test_a_refused_create_leaves_its_key_free(ask: Asking) -> None:
    """Once the cause is mended the same call may be made again."""
    ask.an_action()
    with pytest.raises(Refusal):
        ask.an_action(idempotency_key="k1")
    ask("DeleteAction", id=ask.objects()[0]["id"])

    assert ask.an_action(idempotency_key="k1")["id"]


@pytest.mark.parametrize("key", ["x" * 201, "a\n", "a\0"])
def test_a_malformed_key_is_refused(ask: Asking, key: str) -> None:
    """A key that cannot be kept would silently not count."""
    with pytest.raises(Refusal) as caught:
        ask.an_action(idempotency_key=key)
    assert caught.value.code == 3


def test_a_refused_call_leaves_no_trace_and_keeps_no_other_back(ask: Asking) -> None:
    """Answers come in the order of the calls, reads among them see the writes before."""
    make = {"organization": ask.organization, "script": "x", "name": "a"}
    calls = [
        ("CreateAction", make),
        ("CreateAction", {**make, "name": "A"}),
        ("ListActions", {"organization": ask.organization}),
        ("CreateAction", {**make, "name": "b"}),
        ("CreateAction", {**make, "nme": "c"}),
        ("GetAction", {"id": "404"}),
    ]
    before = ask.event_count()

    answers = ask.service.call_many([ask.request(*call) for call in calls])

    codes = [answer.code if isinstance(answer, Refusal) else 0 for answer in answers]
    assert codes == [0, 6, 0, 0, 3, 5]
    assert ask.event_count() == before + 2
    listed = answers[2]
    assert isinstance(listed, dict)
    assert [found["name"] for found in listed["result"]] == ["a"]


def test_no_calls_are_no_work(ask: Asking) -> None:
    """An empty batch is not an error."""
    assert ask.service.call_many([]) == []
