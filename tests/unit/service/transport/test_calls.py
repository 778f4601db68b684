"""One call over gRPC or gRPC-web: a message in, an answer or a refusal out."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from reconciler.service.domain.refusal import Code, Refusal, not_found
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.calls import (
    NO_ROOM,
    TOO_LARGE,
    answer_bytes,
    no_message,
    status_bytes,
    too_large,
    too_slow,
)
from reconciler.service.transport.protobuf import METHODS, message_class

METHOD = METHODS["/zitadel.management.v1.ManagementService/AddProject"]
STATUS: Any = message_class("google.rpc.Status")
INFO: Any = message_class("google.rpc.ErrorInfo")


def answered(asked: bytes | Refusal, result: Any) -> tuple[bytes | Refusal, Incoming]:
    """Return what a call gives where the operation gives a result, and what was asked of it."""
    seen: list[Incoming] = []

    async def answer(call: Incoming) -> Received:
        seen.append(call)
        return Received("ci", result)

    with ExitStack() as delivery:
        found = asyncio.run(answer_bytes(answer, METHOD, asked, {}, delivery))
    return found, seen[0]


def test_a_message_is_read_and_an_answer_written() -> None:
    asked: Any = METHOD.request(name="shop")

    found, call = answered(asked.SerializeToString(), {"id": "9"})

    assert call.operation == "AddProject"
    assert isinstance(call.fields, dict)
    assert call.fields["name"] == "shop"
    assert isinstance(found, bytes)
    answer: Any = METHOD.answer.FromString(found)
    assert answer.id == "9"


@pytest.mark.parametrize("asked", [b"\xff\xff", too_large()])
def test_what_cannot_be_read_is_handed_on_as_a_refusal(asked: bytes | Refusal) -> None:
    """Whether its caller may know is decided behind."""
    _, call = answered(asked, not_found("x"))

    assert isinstance(call.fields, Refusal)


def test_a_refusal_is_an_answer() -> None:
    refused = not_found("action")

    assert answered(b"", refused)[0] is refused


def test_an_answer_that_fits_no_message_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found, _ = answered(b"", {"surprise": "geheim"})

    assert isinstance(found, Refusal)
    assert (found.code, found.message) == (Code.INTERNAL, "the service failed")
    assert "does not fit its message" in caplog.text


def test_a_status_has_the_detail_of_json_and_the_facts_beside_it() -> None:
    plain = STATUS.FromString(status_bytes(not_found("action")))
    facts = STATUS.FromString(status_bytes(Refusal(Code.ABORTED, "m", "r", holder="ana")))

    assert (plain.code, plain.message, len(plain.details)) == (5, "there is no such action", 1)
    assert [each.type_url.rpartition(".")[2] for each in facts.details] == [
        "ErrorDetail",
        "ErrorInfo",
    ]
    assert INFO.FromString(facts.details[1].value).metadata == {"holder": "ana"}


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (too_large(), Code.RESOURCE_EXHAUSTED),
        (no_message(), Code.INVALID_ARGUMENT),
        (too_slow(), Code.ABORTED),
    ],
)
def test_refusals_of_a_wire_have_their_codes(refusal: Refusal, code: Code) -> None:
    assert refusal.code == code


def test_the_messages_that_stand_for_refusals_are_no_message_of_a_caller() -> None:
    assert len({NO_ROOM, TOO_LARGE}) == 2
    assert min(len(NO_ROOM), len(TOO_LARGE)) == 16
