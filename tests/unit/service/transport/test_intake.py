"""Intake: the token before a body, a place before a large one, and no wait without an end."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import unauthenticated
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import Headers, bearer_token
from reconciler.service.transport.grpc_messages import (
    COMPRESSED,
    DENSE,
    LONGEST,
    PLAIN,
    MessageBody,
    frame,
)
from reconciler.service.transport.intake import Body, CallerLeftError, Intake
from reconciler.service.transport.json_bodies import read_body
from reconciler.service.transport.limits import (
    JSON_FACTOR,
    KIB,
    MIB,
    SMALL_BODY,
    SMALL_MESSAGE,
    Limits,
)
from tests.rows import each_row

LIMITS = Limits(http2_known=2, http2_known_of_one=1, http2_open=2, http2_open_of_one=1)


def of(token: str) -> Headers:
    """Return the headers of a caller."""
    return {"authorization": [f"Bearer {token}"]}


async def answer(call: Incoming) -> Received:
    """Answer callers whose token is good."""
    assert isinstance(call.fields, Refusal)
    if not bearer_token(call.headers).startswith("good"):
        return Received("", unauthenticated("the token is not known to this service"))
    return Received("good", call.fields)


class Line:
    """A connection, and the pieces of a body that come over it.

    Attributes:
        heard: What it heard of its caller, and what was read.
    """

    def __init__(
        self, *pieces: bytes, is_shared: bool = True, has_end: bool = True, address: str = "1"
    ) -> None:
        self.is_shared = is_shared
        self.address = address
        self.heard: list[object] = []
        self._pieces = [*pieces]
        self._has_end = has_end

    def has_left(self) -> bool:
        return False

    def drop(self) -> None:
        pass

    def judged(self, *, is_known: bool) -> None:
        self.heard.append(is_known)

    async def receive(self) -> Any:
        self.heard.append("read")
        if not self._pieces:
            await asyncio.Event().wait()
        piece = self._pieces.pop(0)
        more = bool(self._pieces) or not self._has_end
        return {"type": "http.request", "body": piece, "more_body": more}


async def taken(
    line: Line,
    intake: Intake | None = None,
    headers: Headers | None = None,
    go_on: Callable[[bytes | None], Awaitable[Any]] | None = None,
    **more: Any,
) -> Any:
    """Return what is taken in of a body, or the reason why nothing is."""

    async def same(body: bytes | None) -> bytes | None:
        return body

    body = Body(of("good") if headers is None else headers, MIB)
    try:
        made = intake or Intake(answer, LIMITS)
        return await made.take(body, line.receive, line, go_on or same, **more)
    except Refusal as refusal:
        return refusal.reason


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


def room_of(body: bytes, *, is_shared: bool = False) -> int:
    """Return the room that is held while a call with a body is carried out."""

    async def held(_: bytes | None) -> int:
        return intake._budget.held

    intake = Intake(answer, Limits())
    size: int = asyncio.run(taken(Line(body, is_shared=is_shared), intake, go_on=held))
    return size


@each_row("part", ["[]", "{}", '{"a":1}', '"ab"', "1000", "[[[[]]]]"])
def test_a_small_body_takes_what_the_sum_says_or_has_room_for_more(part: str) -> None:
    """Lists and objects take most: up to thirty times their text."""
    body = filled(part)

    assert objects_size(body) <= (SMALL_BODY + room_of(body)) * JSON_FACTOR


def test_a_usual_small_body_needs_no_room() -> None:
    """A batch of short orders, as many as are small together."""
    order = {"operation": "DeleteAction", "fields": {"id": "1" * 15}, "idempotencyKey": "k" * 32}

    assert room_of(filled(json.dumps(order))) == 0


@pytest.mark.parametrize(
    ("size", "is_shared", "needs_room"),
    [
        (SMALL_BODY, False, False),
        (SMALL_BODY + 1, False, True),
        (SMALL_MESSAGE, True, False),
        (SMALL_MESSAGE + 1, True, True),
    ],
)
def test_a_body_that_is_not_small_needs_room(
    size: int, *, is_shared: bool, needs_room: bool
) -> None:
    """Over HTTP/2 even a short one: a connection may have a hundred of them."""
    assert bool(room_of(b"x" * size, is_shared=is_shared)) == needs_room


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("pieces", [[b""], [b"abc"], [b"ab", b"c", b""], [b"x" * 20_000] * 3])
def test_a_body_is_taken_in_however_it_is_cut(pieces: list[bytes], *, is_shared: bool) -> None:
    assert asyncio.run(taken(Line(*pieces, is_shared=is_shared))) == b"".join(pieces)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_body_that_is_too_long_is_not_read_to_its_end(*, is_shared: bool) -> None:
    """One that says so is not read at all."""
    line = Line(*[b"x" * MIB] * 3, is_shared=is_shared)
    assert asyncio.run(taken(line)) is None
    assert line.heard.count("read") == 2

    said = Line(b"", is_shared=is_shared)
    headers = {**of("good"), "content-length": [str(MIB + 1)]}
    assert asyncio.run(taken(said, headers=headers)) is None
    assert "read" not in said.heard


@pytest.mark.parametrize(
    ("headers", "needs_token", "heard"),
    [
        pytest.param(of("bad"), True, [], id="an unknown token"),
        pytest.param({}, True, [], id="none"),
        pytest.param(of("good"), True, [True, "read"], id="a valid one"),
        pytest.param({}, False, [False, "read"], id="none, where none is needed"),
    ],
)
def test_over_http_2_the_token_is_judged_before_a_body_is_read(
    headers: Headers, *, needs_token: bool, heard: list[object]
) -> None:
    """And the connection hears of it, so that its other calls may come."""
    line = Line(b"abc")
    outcome = asyncio.run(taken(line, headers=headers, needs_token=needs_token))

    assert line.heard == heard
    assert outcome == (b"abc" if heard else "token.invalid")


def test_over_http_1_1_the_token_is_judged_before_a_large_body_is_read() -> None:
    """A small one is read at once: connections are counted, and the call judges the token."""
    bad = of("bad")
    small, large = (Line(b"x" * size, b"", is_shared=False) for size in (9, SMALL_BODY + 1))

    assert asyncio.run(taken(small, headers=bad)) == b"x" * 9
    assert asyncio.run(taken(large, headers=bad)) == "token.invalid"
    assert large.heard == ["read"]


@pytest.mark.parametrize("needs_token", [True, False])
def test_a_body_that_does_not_come_is_waited_for_so_long(*, needs_token: bool) -> None:
    """Each part of it: over HTTP/1.1 the protocol does so."""
    hasty = replace(LIMITS, body_seconds=0.01, head_seconds=0.01)
    line = Line(b"half", has_end=False)

    assert asyncio.run(taken(line, Intake(answer, hasty), needs_token=needs_token)) == (
        "message.too_slow"
    )


def test_a_caller_that_leaves_in_the_midst_of_a_body_is_told_nothing() -> None:
    class Left(Line):
        async def receive(self) -> Any:
            return {"type": "http.disconnect"}

    with pytest.raises(CallerLeftError):
        asyncio.run(taken(Left()))


def test_only_so_many_calls_over_http_2_are_taken_in_of_one_token_and_of_all() -> None:
    """From before the body until the answer; those of one caller leave places for others."""

    async def main() -> None:
        intake = Intake(answer, LIMITS)
        ask = [
            asyncio.ensure_future(taken(Line(b"x", has_end=False), intake, headers=of(token)))
            for token in ("good-1", "good-2")
        ]
        await asyncio.sleep(0.01)
        assert await taken(Line(b"x"), intake, headers=of("good-1")) == "service.busy"
        assert await taken(Line(b"x"), intake, headers=of("good-3")) == "service.busy"
        ask[0].cancel()
        await asyncio.sleep(0.01)
        assert await taken(Line(b"x"), intake, headers=of("good-3")) == b"x"
        assert await taken(Line(b"x"), intake, headers=of("good-2")) == "service.busy"
        ask[1].cancel()

    asyncio.run(main())


def test_only_so_many_calls_without_a_token_are_taken_in_of_one_address_and_of_all() -> None:
    """They take no place of those with one."""

    async def main() -> None:
        intake = Intake(answer, LIMITS)

        async def asked(address: str) -> Any:
            line = Line(b"x", address=address)
            return await taken(line, intake, headers={}, needs_token=False)

        waiting = []
        for address in ("1", "2"):
            slow = Line(b"x", has_end=False, address=address)
            call = taken(slow, intake, headers={}, needs_token=False)
            waiting.append(asyncio.ensure_future(call))
            await asyncio.sleep(0.01)
            assert await asked(address) == "service.busy"
            assert await asked("3") == (b"x" if address == "1" else "service.busy")
        assert await taken(Line(b"x"), intake) == b"x"
        for each in waiting:
            each.cancel()

    asyncio.run(main())


@each_row("is_shared", [True, False])
def test_only_so_many_forms_are_taken_in_of_one_address_and_of_all(*, is_shared: bool) -> None:
    """Over HTTP/1.1 too, for as long as they are being answered; and none that is too long."""

    async def main() -> None:
        intake, held = Intake(answer, LIMITS), asyncio.Event()

        async def go_on(content: bytes | None) -> bytes | None:
            if content == b"wait":
                await held.wait()
            return content

        async def asked(content: bytes, address: str) -> object:
            line = Line(content, address=address, is_shared=is_shared)
            body = Body({}, 4)
            try:
                return await intake.take_form(body, line.receive, line, go_on)
            except Refusal as refusal:
                return refusal.reason

        assert await asked(b"12345", "1") is None
        first = asyncio.ensure_future(asked(b"wait", "1"))
        await asyncio.sleep(0)
        assert await asked(b"x", "1") == "service.busy"
        assert await asked(b"x", "2") == b"x"
        second = asyncio.ensure_future(asked(b"wait", "2"))
        await asyncio.sleep(0)
        assert await asked(b"x", "3") == "service.busy"
        held.set()
        assert list(await asyncio.gather(first, second)) == [b"wait", b"wait"]
        assert await asked(b"x", "1") == b"x"

    asyncio.run(main())


PIECE = 16 * KIB


class Shared:
    """A connection over HTTP/2."""

    is_shared = True
    address = "a"

    def has_left(self) -> bool:
        return False

    def drop(self) -> None:
        pass

    def judged(self, *, is_known: bool) -> None:
        pass


async def admit(call: Incoming) -> Received:
    assert isinstance(call.fields, Refusal)
    return Received("", call.fields)


def test_no_more_is_read_of_a_message_than_it_says() -> None:
    """Its place is for what it says; a message that goes on is handed over to be refused."""
    pieces = [PLAIN.to_bytes() + (2 * KIB).to_bytes(4)] + [bytes(PIECE)] * 60
    left = iter(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": next(left), "more_body": True}

    async def go_on(body: bytes | None) -> int:
        return len(body or b"")

    async def taken() -> int:
        intake = Intake(admit, replace(Limits(), body_seconds=5))
        return await intake.take(MessageBody(of("good")), receive, Shared(), go_on)

    assert asyncio.run(taken()) <= 2 * PIECE
    assert len([*left]) >= 58


@each_row(("size", "weight"), [(10, 0), (SMALL_MESSAGE, 0), (SMALL_MESSAGE + 1, DENSE * LONGEST)])
def test_a_compressed_message_has_the_place_of_what_it_may_become(size: int, weight: int) -> None:
    """A few of its bytes may stand for a thousand times as many."""
    sent = frame(COMPRESSED, gzip.compress(bytes(size)))
    body = MessageBody({"grpc-encoding": ["gzip"]}, read=bytearray(sent))

    assert (body.weight, body.large_weight) == (weight, DENSE * LONGEST)
