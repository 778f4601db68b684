"""Bodies: one reading or a refusal, room for those that take much memory, and answers."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.api.document import ERROR_STATUSES
from reconciler.resources.strict_json import MAX_DEPTH
from reconciler.service.domain.refusal import HTTP_STATUS, Code, Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.http_messages import (
    ALWAYS,
    Bodies,
    HttpAnswer,
    HttpRefusal,
    json_answer,
    raw_refusal,
    read_body,
    send_answer,
)
from reconciler.service.transport.limits import JSON_FACTOR, SMALL_BODY, UNCOUNTED, Limits
from tests.effort import cases

HEADERS = {"authorization": ["Bearer t"]}


def filled(part: str) -> bytes:
    """Return a small body that is full of one kind of value."""
    count = (SMALL_BODY - 10) // (len(part) + 1)
    return f'{{"a":[{",".join([part] * count)}]}}'.encode()


def objects_size(body: bytes) -> int:
    """Return how many bytes a body takes once it is read."""
    tracemalloc.start()
    held = read_body(body)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held
    return size


def room_of(body: bytes) -> int:
    """Return the room that is held while a call with a body is carried out."""

    async def answer(call: Incoming) -> Received:
        assert isinstance(call.fields, Refusal)
        return Received("", call.fields)

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def held(_: bytes | None) -> int:
        return budget.held

    budget = Budget.of(Limits())
    return asyncio.run(Bodies(answer, budget).take(HEADERS, receive, 1 << 20, held))


@pytest.mark.parametrize("part", ["[]", "{}", '{"a":1}', '"ab"', "1000", "[[[[]]]]"])
def test_a_small_body_takes_what_the_sum_says_or_has_room_for_more(part: str) -> None:
    """Lists and objects take most: up to thirty times their text."""
    body = filled(part)

    assert objects_size(body) <= (SMALL_BODY + room_of(body)) * JSON_FACTOR


def test_a_usual_small_body_needs_no_room() -> None:
    """A batch of short orders, as many as are small together."""
    order = {"operation": "DeleteAction", "fields": {"id": "1" * 15}, "idempotencyKey": "k" * 32}

    assert room_of(filled(json.dumps(order))) == 0


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.booleans() | st.integers(-(10**18), 10**18) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(TEXT, VALUES, max_size=5), st.booleans())
@settings(max_examples=cases(100), deadline=None)
def test_what_is_written_is_read(value: dict[str, Any], ascii_only: Any) -> None:
    """Whatever JSON holds comes back as it was."""
    assert read_body(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
@settings(max_examples=cases(50), deadline=None)
def test_whatever_comes_in_is_read_or_refused(body: bytes) -> None:
    """No other error ever leaves."""
    try:
        read: Any = read_body(body)
    except Refusal as refusal:
        read = refusal.code

    assert read == 3 or isinstance(read, dict)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"a":1,"b":2,"a":3}', "a: must be given once"),
        (b'{"\\u202e":1,"\\u202e":2}', "'\\u202e': must be given once"),
        (b'{"a":{"b":["x","\\u0000"]}}', "a.b[1]: must not contain NUL"),
        (b'{"a":"\\uD83D"}', "a: must be Unicode text, without lone surrogates"),
        (b'{"a":NaN}', "request: must not contain NaN or Infinity"),
        (b"\xff", "request: must be UTF-8"),
        (b"[]", "request: must be an object"),
        (b"{", "request: must be one JSON object and nothing else"),
    ],
)
def test_a_refusal_names_the_place(body: bytes, message: str) -> None:
    """So that its author finds it; odd names are shown as escapes."""
    with pytest.raises(Refusal) as caught:
        read_body(body)

    assert caught.value.message == message


@pytest.mark.parametrize(("depth", "is_taken"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
@pytest.mark.parametrize("shape", ["lists", "objects"])
def test_depth_is_counted(depth: int, shape: str, *, is_taken: bool) -> None:
    """The outermost object is the first."""
    opening, closing = ("[", "]") if shape == "lists" else ('{"a":', "}")
    inner = depth - 1 if shape == "lists" else depth - 2
    end = "" if shape == "lists" else "{}"
    body = f'{{"x":{opening * inner}{end}{closing * inner}}}'.encode()

    if is_taken:
        assert read_body(body)
    else:
        with pytest.raises(Refusal, match="deeper"):
            read_body(body)


def test_many_openings_are_not_depth() -> None:
    """Breadth is limited by size alone."""
    broad: dict[str, object] = {"x": [[]] * 1000}

    assert read_body(json.dumps(broad).encode()) == broad


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.0", 2),
        ("1e3", 1000),
        ("-0", 0),
        ("-0.0", 0),
        ("9007199254740992.0", 2**53),
        ("0.5", 0.5),
    ],
)
def test_whole_numbers_are_whole_however_they_are_written(text: str, value: float) -> None:
    """As in the JSON form of protobuf, as far as a float is exact."""
    read = read_body(f'{{"x":{text}}}'.encode())["x"]

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("code", Code)
def test_a_refusal_has_the_status_of_its_code_and_says_its_reason(code: Code) -> None:
    answer = json_answer(Refusal(code, "no", "some.reason"), b"7")

    assert answer.status == HTTP_STATUS[code]
    assert answer.status in {*ERROR_STATUSES, 501}
    body = json.loads(answer.body)
    assert (body["code"], body["message"], body["details"][0]["id"]) == (code, "no", "some.reason")
    assert {*ALWAYS, (b"x-request-id", b"7")} <= set(answer.headers)


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
    refused = HttpRefusal(405, Code.UNIMPLEMENTED, "no", "method.unknown", "GET, PUT")

    answer = json_answer(refused)

    assert answer.status == 405
    assert dict(answer.headers)[b"allow"] == b"GET, PUT"
    assert json.loads(answer.body)["code"] == Code.UNIMPLEMENTED


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

    asyncio.run(send_answer(send, HttpAnswer(200, [], b"x" * length)))

    assert [each.get("more_body") for each in sent[1:]] == more
    assert b"".join(each["body"] for each in sent[1:]) == b"x" * length


def test_a_refusal_without_a_server_is_a_whole_response() -> None:
    head, _, body = raw_refusal(Refusal(Code.UNAVAILABLE, "no", "r"), b"7").partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nconnection: close" in head
    assert f"content-length: {len(body)}".encode() in head
