"""Messages of gRPC are taken in from callers with a token, for so long, and so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import unauthenticated
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import bearer_token
from reconciler.service.transport import grpc_intake
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.grpc_front_end import grpc_front_ends
from reconciler.service.transport.http_messages import Bodies
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Observer
from tests.wires import refused_by

LIST_ACTIONS = "/zitadel.management.v1.ManagementService/ListActions"
CHECK = "/grpc.health.v1.Health/Check"
REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
KNOWN = (("authorization", "Bearer good"),)
UNKNOWN = (("authorization", "Bearer bad"),)
PATIENT = Limits(grpc_known=2, grpc_known_of_one=1, grpc_open=1)
HASTY = replace(PATIENT, head_seconds=0.1, body_seconds=0.1)
PATIENT = replace(HASTY, body_seconds=2.0)


class Door:
    """Answers calls of one token, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.held = asyncio.Event()  # until then calls whose token says so are not answered
        self.taken = asyncio.Event()

    async def answer(self, call: Incoming) -> Received:
        self.asked += 1
        try:
            token = bearer_token(call.headers)
            if not token.startswith("good"):
                raise unauthenticated("the token is not known to this service")
        except Refusal as refusal:
            return Received("", refusal)
        if token.endswith("held") and not isinstance(call.fields, Refusal):
            self.taken.set()
            await self.held.wait()
        return Received("good", call.fields if isinstance(call.fields, Refusal) else {})


@asynccontextmanager
async def a_channel(door: Door, limits: Limits) -> AsyncIterator[grpc.aio.Channel]:
    """Serve gRPC, and connect to it."""
    bodies = Bodies(door.answer, Budget.of(limits))
    async with (
        grpc_front_ends(door.answer, Observer(), bodies, limits) as front_ends,
        grpc.aio.insecure_channel(f"unix:{front_ends.inside.address}") as channel,
    ):
        yield channel


def run(main: Callable[[Door, grpc.aio.Channel], Awaitable[None]], limits: Limits = HASTY) -> None:
    async def running() -> None:
        door = Door()
        async with asyncio.timeout(20), a_channel(door, limits) as channel:
            await main(door, channel)

    asyncio.run(running())


async def refused(call: Any) -> tuple[int, str]:
    """Return code and reason of a refusal."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        outcome = refused_by(error)
        return outcome.code, outcome.reason
    raise AssertionError("it was not refused")


async def outcome(call: Any) -> Any:
    """Return the answer, or the refusal."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        return refused_by(error)


async def never() -> AsyncIterator[bytes]:
    """Yield no message, and do not end."""
    await asyncio.Event().wait()
    yield b""


async def none() -> AsyncIterator[bytes]:
    """End without a message."""
    nothing: tuple[bytes, ...] = ()
    for message in nothing:
        yield message


@pytest.mark.parametrize("metadata", [(), UNKNOWN, (*KNOWN, *KNOWN)])
def test_the_token_is_judged_before_a_message_comes(metadata: tuple[tuple[str, str], ...]) -> None:
    """A caller who may not call has nothing to say."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        silent = channel.stream_unary(LIST_ACTIONS)(never(), metadata=metadata)
        assert await refused(silent) == (16, "token.invalid")

    run(main)


def test_a_token_that_was_valid_a_moment_ago_is_not_looked_up_for_each_message() -> None:
    """The call itself looks it up, so once more is only needed the first time."""

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        for _ in range(5):
            await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN)
        assert door.asked == 6

    run(main)


def test_a_message_that_does_not_come_is_waited_for_so_long() -> None:
    """The caller is told, and the call is over."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        silent = channel.stream_unary(LIST_ACTIONS)(never(), metadata=KNOWN)
        assert await refused(silent) == (10, "message.too_slow")
        assert await refused(channel.stream_unary(CHECK)(never())) == (10, "message.too_slow")
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN) == b""

    run(main, HASTY)


def test_a_call_without_a_message_is_answered() -> None:
    """With the words of the service."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        empty = channel.stream_unary(LIST_ACTIONS)(none(), metadata=KNOWN)
        assert await refused(empty) == (3, "field.invalid")
        assert await refused(channel.stream_unary(CHECK)(none())) == (3, "field.invalid")
        assert await refused(channel.unary_unary(CHECK)(b"\xff")) == (3, "field.invalid")

    run(main)


@pytest.mark.slow
def test_only_so_many_messages_are_waited_for_of_one_token_and_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One caller that sends nothing does not keep another from calling."""
    awaited: asyncio.Queue[None] = asyncio.Queue()
    read = grpc_intake._read

    async def noted(context: Any, seconds: float) -> bytes | Refusal:
        awaited.put_nowait(None)
        return await read(context, seconds)

    monkeypatch.setattr(grpc_intake, "_read", noted)
    others = [(("authorization", f"Bearer good{number}"),) for number in range(2)]

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        list_actions = channel.stream_unary(LIST_ACTIONS)
        silent = [list_actions(never(), metadata=KNOWN)]
        await awaited.get()
        assert await refused(list_actions(never(), metadata=KNOWN)) == (8, "service.busy")
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=others[0]) == b""
        await awaited.get()
        silent.append(list_actions(never(), metadata=others[0]))
        await awaited.get()
        assert await refused(list_actions(never(), metadata=others[1])) == (8, "service.busy")
        for call in silent:
            assert await refused(call) == (10, "message.too_slow")
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN) == b""

    run(main, PATIENT)


def test_only_so_many_streams_need_no_token() -> None:
    """Reflection and the watch over health stay open for as long as a caller likes."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        first = channel.stream_stream(REFLECT)(never())
        await asyncio.sleep(0.05)
        second = channel.stream_stream(REFLECT)(never())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await second.read()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()

    run(main)


def test_a_call_has_its_place_until_it_is_answered() -> None:
    """Else one caller whose calls take long could have every place of the library."""
    slow, other = [(("authorization", f"Bearer good-{name}"),) for name in ("held", "other")]

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        list_actions = channel.unary_unary(LIST_ACTIONS)
        first = list_actions(b"", metadata=slow)
        await door.taken.wait()
        assert await refused(list_actions(b"", metadata=slow)) == (8, "service.busy")
        assert await list_actions(b"", metadata=other) == b""
        door.held.set()
        assert await first == b""
        assert await list_actions(b"", metadata=slow) == b""

    run(main)
