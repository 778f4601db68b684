"""Health and reflection of gRPC: answered to anybody, and bounded by number, time and length."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from reconciler.service.transport import grpc_streams
from reconciler.service.transport.grpc_streams import (
    LISTED,
    LONGEST_ASKED,
    NOT_SERVING,
    REFLECTION,
    SERVING,
    answer_reflection,
)
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.protobuf import SERVICES, message_class
from tests.grpc_here import CHECK, REFLECT, WATCH, Door, never, on_a_channel, refused
from tests.rows import each_row
from tests.wires import refused_by

LIMITS = Limits(http2_open=1)
HEALTH_REQUEST: Any = message_class("grpc.health.v1.HealthCheckRequest")
HEALTH_ANSWER: Any = message_class("grpc.health.v1.HealthCheckResponse")
QUESTION: Any = message_class("grpc.reflection.v1.ServerReflectionRequest")
ANSWER: Any = message_class("grpc.reflection.v1.ServerReflectionResponse")


def health(service: str) -> bytes:
    data: bytes = HEALTH_REQUEST(service=service).SerializeToString()
    return data


async def ended(call: Any) -> tuple[list[bytes], tuple[int, str]]:
    """Return the messages of a stream, and how it was refused, or (0, "") if it was not."""
    messages: list[bytes] = []
    waiting = aiter(call)
    try:
        while True:
            messages.append(await anext(waiting))
    except StopAsyncIteration:
        return messages, (0, "")
    except grpc.aio.AioRpcError as error:
        outcome = refused_by(error)
        return messages, (outcome.code, outcome.reason)


def test_health_is_told_of_each_service_and_of_all() -> None:
    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        check = channel.unary_unary(CHECK)
        for service in ("", *SERVICES):
            answer = HEALTH_ANSWER.FromString(await check(health(service)))
            assert answer.status == SERVING
        assert await refused(check(health("of.another.Service"))) == (5, "service.unknown")
        long = "x" * LONGEST_ASKED
        assert await refused(check(health(long))) == (8, "message.too_large")
        door.streams.end()
        assert HEALTH_ANSWER.FromString(await check(health(""))).status == NOT_SERVING

    on_a_channel(main, LIMITS)


def test_a_watch_tells_that_the_server_ends() -> None:
    """And is over then, with a code that has its client ask again elsewhere."""

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        call = aiter(channel.unary_stream(WATCH)(health("")))
        assert HEALTH_ANSWER.FromString(await anext(call)).status == SERVING
        door.streams.end()
        messages, why = await ended(call)
        assert [HEALTH_ANSWER.FromString(each).status for each in messages] == [NOT_SERVING]
        assert why == (14, "service.ending")

    on_a_channel(main, LIMITS)


def test_a_watch_of_an_unknown_service_waits_for_it() -> None:
    """As the protocol of health has it."""

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        call = aiter(channel.unary_stream(WATCH)(health("of.another.Service")))
        answer = HEALTH_ANSWER.FromString(await anext(call))
        assert answer.status == grpc_streams.SERVICE_UNKNOWN
        door.streams.end()
        assert await ended(call) == ([], (14, "service.ending"))

    on_a_channel(main, LIMITS)


def test_only_so_many_streams_are_open() -> None:
    """They stay open for as long as a caller likes, up to a time; each place is given back."""

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        first = channel.unary_stream(WATCH)(health(""))
        await door.has(streams=1)
        second = channel.stream_stream(REFLECT)(never())
        assert await ended(second) == ([], (8, "service.busy"))
        first.cancel()
        await door.has(streams=0)
        third = channel.unary_stream(WATCH)(health(""))
        assert await third.read()
        third.cancel()

    on_a_channel(main, LIMITS)


@pytest.mark.parametrize("path", [WATCH, REFLECT])
def test_a_stream_has_an_end(path: str) -> None:
    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        if path == WATCH:
            call: Any = channel.unary_stream(path)(health(""))
        else:
            call = channel.stream_stream(path)(never())
        assert (await ended(call))[1] == (10, "message.too_slow")

    on_a_channel(main, Limits(stream_seconds=0.05))


def test_the_deadline_of_a_stream_is_kept() -> None:
    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        call = channel.unary_stream(WATCH)(health(""), timeout=0.2)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            [message async for message in call]
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    on_a_channel(main, LIMITS)


async def questions(*asked: bytes) -> AsyncIterator[bytes]:
    """Yield questions, all at once."""
    for each in asked:
        yield each


LIST: bytes = QUESTION(list_services="").SerializeToString()


def test_each_question_of_reflection_is_answered_in_order() -> None:
    """Many may come at once."""
    files = [QUESTION(file_containing_symbol=name).SerializeToString() for name in SERVICES]

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        asked = [LIST, *files, LIST]
        messages, why = await ended(channel.stream_stream(REFLECT)(questions(*asked)))
        assert why == (0, "")
        answers = [ANSWER.FromString(each) for each in messages]
        assert [each.original_request.SerializeToString() for each in answers] == asked
        assert [each.WhichOneof("message_response") for each in answers] == [
            "list_services_response",
            *["file_descriptor_response"] * len(files),
            "list_services_response",
        ]

    on_a_channel(main, LIMITS)


@pytest.mark.parametrize(
    ("asked", "most", "why"),
    [
        pytest.param([LIST] * 4, 3, (8, "service.busy"), id="too many"),
        pytest.param([b"\xff"], 3, (3, "field.invalid"), id="no question"),
        pytest.param([bytes(LONGEST_ASKED + 1)], 3, (8, "message.too_large"), id="too long"),
    ],
)
def test_questions_of_one_call_are_bounded(
    asked: list[bytes], most: int, why: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number and by length."""
    monkeypatch.setattr(grpc_streams, "MOST_ASKED", most)

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        messages, refusal = await ended(channel.stream_stream(REFLECT)(questions(*asked)))
        assert (len(messages), refusal) == (min(most, len(asked) - 1), why)

    on_a_channel(main, LIMITS)


@each_row(
    ("length", "ends"),
    [(LONGEST_ASKED // 2, (0, "")), (2 * LONGEST_ASKED, (8, "message.too_large"))],
)
def test_a_question_may_be_compressed(length: int, ends: tuple[int, str]) -> None:
    """Clients compress all calls of a channel, or none. The length is that of the plain one."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        call = channel.stream_stream(REFLECT)(
            questions(QUESTION(file_by_filename="x" * length).SerializeToString()),
            compression=grpc.Compression.Gzip,
        )
        messages, refusal = await ended(call)
        assert (len(messages), refusal) == (int(ends == (0, "")), ends)

    on_a_channel(main, LIMITS)


def test_health_may_be_asked_for_compressed() -> None:
    """Without a token, as ever."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        asked = health("of.another.Service" + "x" * 500)
        check = channel.unary_unary(CHECK)(asked, compression=grpc.Compression.Gzip)
        assert await refused(check) == (5, "service.unknown")

    on_a_channel(main, LIMITS)


@each_row(
    ("asked", "code"),
    [
        ({"list_services": ""}, 0),
        ({"file_containing_symbol": "zitadel.management.v1.ManagementService"}, 0),
        ({"file_containing_symbol": "google.rpc.Status"}, 0),
        ({"file_containing_symbol": "no.such.Symbol"}, 5),
        ({"file_by_filename": "google/rpc/status.proto"}, 0),
        ({"file_by_filename": "no/such.proto"}, 5),
        ({"all_extension_numbers_of_type": "google.rpc.Status"}, 0),
        ({"all_extension_numbers_of_type": "no.such.Type"}, 5),
        ({"file_containing_extension": {"containing_type": "google.rpc.Status"}}, 5),
        ({}, 3),
    ],
)
def test_reflection_answers_in_both_of_its_packages(asked: dict[str, Any], code: int) -> None:
    """The newer one has the name that some clients know only, or do not know."""
    for package in REFLECTION:
        question: Any = message_class(f"{package}.ServerReflectionRequest")(host="h", **asked)
        answer: Any = answer_reflection(package, question)

        assert answer.valid_host == "h"
        assert answer.original_request == question
        assert answer.error_response.error_code == code


def test_reflection_lists_what_is_there() -> None:
    answer: Any = answer_reflection(REFLECTION[0], QUESTION(list_services=""))
    names = [service.name for service in answer.list_services_response.service]

    assert names == [*LISTED]
    assert set(SERVICES) < set(names)


def test_a_file_comes_with_all_that_it_imports() -> None:
    """Each once: a client asks no further."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    answer: Any = answer_reflection(
        REFLECTION[0], QUESTION(file_containing_symbol="zitadel.management.v1.ManagementService")
    )
    files = [
        FileDescriptorProto.FromString(each)
        for each in answer.file_descriptor_response.file_descriptor_proto
    ]
    names = [file.name for file in files]

    assert len(names) == len(set(names)) > 1
    assert {needed for file in files for needed in file.dependency} <= set(names)
