"""Answers over HTTP, with one shape for every refusal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from docs.api.document import ERROR_STATUSES
from reconciler.service.domain.refusal import HTTP_STATUS, Code, Refusal
from reconciler.service.scheduling.shares import (
    UNCOUNTED,
)
from reconciler.service.transport.http_messages import (
    ALWAYS,
    HttpAnswer,
    HttpRefusal,
    json_answer,
    one,
    raw_refusal,
    send_answer,
)
from tests.rows import each_row


@each_row("code", Code)
def test_a_refusal_has_the_status_of_its_code_and_says_its_reason(code: Code) -> None:
    answer = json_answer(Refusal(code, "no", "some.reason"))

    assert answer.status == HTTP_STATUS[code]
    assert answer.status in {*ERROR_STATUSES, 501}
    body = json.loads(answer.body)
    assert (body["code"], body["message"], body["details"][0]["id"]) == (code, "no", "some.reason")
    assert {*ALWAYS} <= set(answer.headers)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (Code.UNAUTHENTICATED, b"www-authenticate"),
        (Code.RESOURCE_EXHAUSTED, b"retry-after"),
        (Code.UNAVAILABLE, b"retry-after"),
    ],
)
def test_a_caller_is_told_how_to_go_on(code: Code, name: bytes) -> None:
    assert name in dict(json_answer(Refusal(code, "no", "r")).headers)


def test_a_status_of_http_alone_keeps_its_code_and_its_methods() -> None:
    refused = HttpRefusal(405, "no", "method.unknown", "GET, PUT")

    answer = json_answer(refused)

    assert answer.status == 405
    assert dict(answer.headers)[b"allow"] == b"GET, PUT"
    assert json.loads(answer.body)["code"] == Code.UNIMPLEMENTED


@each_row(("values", "value"), [([], ""), (["a"], "a"), ([" a "], "a"), (["a", "a"], "")])
def test_a_header_counts_that_is_given_once(values: list[str], value: str) -> None:
    assert one({"name": values} if values else {}, "name") == value


def test_an_answer_that_is_encoded_already_is_sent_as_it_is() -> None:
    answer = json_answer({"a": 1}, body=b'{"a":1}')

    assert (answer.status, answer.body) == (200, b'{"a":1}')
    assert dict(answer.headers)[b"content-length"] == b"7"


@pytest.mark.parametrize(
    ("length", "more"), [(10, [False]), (UNCOUNTED, [False]), (UNCOUNTED + 1, [True, None])]
)
def test_only_a_long_answer_is_waited_for(length: int, more: list[bool | None]) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(send_answer(send, HttpAnswer(200, [], b"x" * length), "7"))

    assert sent[0]["headers"] == [(b"x-request-id", b"7")]
    assert [each.get("more_body") for each in sent[1:]] == more
    assert b"".join(each["body"] for each in sent[1:]) == b"x" * length


def test_a_refusal_without_a_server_is_a_whole_response() -> None:
    head, _, body = raw_refusal(Refusal(Code.UNAVAILABLE, "no", "r"), "7").partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nconnection: close" in head
    assert b"\r\nx-request-id: 7" in head
    assert f"content-length: {len(body)}".encode() in head
