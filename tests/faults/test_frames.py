"""Hostile frames of gRPC-web and HTTP/2: refused, nothing written, and the server goes on."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import grpc
import pytest

from reconciler.service.transport.http2 import STREAMS
from reconciler.service.transport.limits import MAX_MESSAGE, MIB, Limits
from reconciler.service.transport.protobuf import METHODS
from tests import http2
from tests.running import Server, running_server
from tests.wires import Grpc, GrpcWeb, Headers, Refused, frame, read_web, refused_by

CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
LIST_ACTIONS = "/zitadel.management.v1.ManagementService/ListActions"
CREATE = METHODS[CREATE_ACTION]
MAX_METADATA = Limits().head_bytes
INSIDE = ("Traceback", "File ", "sqlite", ".py", "google.", "grpc.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def web(server: Server) -> Iterator[GrpcWeb]:
    """Call over gRPC-web."""
    with closing(GrpcWeb(server)) as wire:
        yield wire


@pytest.fixture(autouse=True)
def nothing_is_written(server: Server) -> Iterator[None]:
    """No test here asks for anything that could be done; afterwards the server still answers."""
    before = server.event_count()
    yield
    assert server.event_count() == before
    with closing(Grpc(server)) as wire:
        assert wire.call("ListActions", {}, bearer(server)).code == 0


def bearer(server: Server) -> list[tuple[str, str]]:
    return list(server.bearer().items())


def an_action(size: int) -> bytes:
    """Return a message of just this size, which is sound but for the length of its script."""
    message: Any = CREATE.request(name="a", script="x" * size)
    message.script = "x" * (size - (message.ByteSize() - size))
    data: bytes = message.SerializeToString()
    assert len(data) == size
    return data


SMALL = CREATE.request(name="", script="x").SerializeToString()
PACKED = gzip.compress(SMALL)
BOMB = gzip.compress(b"\0" * 2**23)  # eight times what a message may be


@pytest.mark.parametrize(
    ("body", "encoding", "code"),
    [
        pytest.param(b"", "", 3, id="no body"),
        pytest.param(frame(SMALL, length=len(SMALL) + 1), "", 3, id="cut short"),
        pytest.param(frame(SMALL) + frame(SMALL), "", 3, id="two messages"),
        pytest.param(frame(PACKED, 1), "br", 12, id="compressed in an unknown way"),
        pytest.param(frame(PACKED, 1), "gzip", 3, id="compressed and sound, but for its name"),
        pytest.param(frame(BOMB, 1), "gzip", 8, id="a bomb"),
        pytest.param(frame(an_action(MAX_MESSAGE)), "", 3, id="1 MiB, but for its script"),
        pytest.param(frame(an_action(MAX_MESSAGE + 1)), "", 8, id="1 MiB and a byte"),
        pytest.param(frame(b"\xff" * 100), "", 3, id="no message"),
    ],
)
def test_a_hostile_frame_is_refused(
    server: Server, web: GrpcWeb, body: bytes, encoding: str, code: int
) -> None:
    """With a code that a client understands, and nothing of the inside.

    Every way in which a frame can be wrong is tried in the unit tests of messages.
    """
    headers = [*bearer(server), *([("grpc-encoding", encoding)] if encoding else [])]
    answer = web.post(CREATE_ACTION, body, headers)
    outcome = read_web(answer.content, CREATE.answer)

    assert answer.status_code == 200
    assert answer.headers["grpc-accept-encoding"] == "gzip, deflate"
    assert isinstance(outcome, Refused)
    assert outcome.code == code
    assert not any(word in outcome.message for word in INSIDE)


def test_a_body_beyond_any_message_is_not_even_taken_in(server: Server, web: GrpcWeb) -> None:
    """The envelope of a message is small."""
    body = frame(b"\0" * (MAX_MESSAGE + 100_000))

    assert web.post(CREATE_ACTION, body, bearer(server)).status_code == 413


def code_of(server: Server, path: str, message: bytes, headers: Headers, **more: Any) -> int:
    """Return the code that gRPC answers."""
    with closing(Grpc(server)) as wire:
        try:
            wire.bytes(path, message, headers, **more)
        except grpc.RpcError as error:
            return refused_by(error).code
        return 0


@pytest.mark.parametrize(("size", "code"), [(MAX_MESSAGE, 3), (MAX_MESSAGE + 1, 8)])
def test_a_message_of_grpc_has_at_most_1_mib(server: Server, size: int, code: int) -> None:
    """One of just that size gets as far as the operation, which has its own limits."""
    assert code_of(server, CREATE_ACTION, an_action(size), bearer(server)) == code


@pytest.mark.parametrize("size", [MAX_MESSAGE + 1, 5 * MAX_MESSAGE])
def test_a_message_of_grpc_that_is_too_large_is_refused_in_words_of_the_service(
    server: Server, size: int
) -> None:
    """With the details that every refusal has, and before it is taken in."""
    with closing(Grpc(server)) as wire, pytest.raises(grpc.RpcError) as caught:
        wire.bytes(CREATE_ACTION, bytes(size), bearer(server))
    refused = refused_by(caught.value)

    assert (refused.code, refused.reason) == (8, "message.too_large")


MANY = range(1, 25, 2)  # streams that each say that they bring 1 MiB
A_MESSAGE = b"\0" + MAX_MESSAGE.to_bytes(4)


def begun(connection: http2.Connection, headers: Headers) -> None:
    """Open streams, and begin a message of 1 MiB on each."""
    block = http2.headers(CREATE_ACTION, headers)
    for number in MANY:
        connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, number, block))
        connection.send(http2.frame(http2.DATA, 0, number, A_MESSAGE))


def test_messages_that_do_not_end_are_bounded_for_each_connection(server: Server) -> None:
    """With a token, a connection holds its share and not all that its streams could."""
    before = server.memory()
    held = []
    with ExitStack() as opened:
        for _ in range(3):
            connection = opened.enter_context(http2.connected(server.port))
            begun(connection, bearer(server))
            held.append(connection.pour(MANY, MAX_MESSAGE - 100))
        grown = server.memory() - before

    assert min(held) > 0
    assert max(held) < 4 * MIB  # of 12; some of it is still in sockets
    assert grown < 32 * MIB


@pytest.mark.parametrize(("count", "size"), [(4, 900_000), (90, 30_000)])
def test_large_messages_of_one_connection_wait_for_each_other(
    server: Server, count: int, size: int
) -> None:
    """Together they are longer than the share of a token; each is carried out all the same."""
    message = an_action(size)
    with closing(Grpc(server)) as wire, ThreadPoolExecutor(count) as callers:

        def code(_: int) -> int:
            with pytest.raises(grpc.RpcError) as caught:
                wire.bytes(CREATE_ACTION, message, bearer(server), timeout=20)
            return refused_by(caught.value).code

        assert set(callers.map(code, range(count))) == {3}  # the script is too long


def test_callers_without_a_token_are_answered_before_their_message(server: Server) -> None:
    """Nothing of what they send is kept."""
    with http2.connected(server.port, patience=2) as connection:
        begun(connection, [])
        answered: set[int] = set()
        for found in connection.frames():
            if found.kind == http2.HEADERS and found.flags & http2.END_STREAM:
                answered.add(found.stream)
            if answered == set(MANY):
                break

    assert answered == set(MANY)


def test_a_bomb_of_grpc_is_refused(server: Server) -> None:
    """The limit holds for what comes out of the wrapping."""
    message = CREATE.request(name="a", script="x" * 8 * MAX_MESSAGE).SerializeToString()

    assert (
        code_of(server, CREATE_ACTION, message, bearer(server), compression=grpc.Compression.Gzip)
        == 8
    )


@pytest.mark.parametrize(
    ("size", "code"), [(MAX_METADATA - 1024, 0), (MAX_METADATA, 8), (2 * MAX_METADATA, 14)]
)
def test_metadata_has_at_most_16_kib(server: Server, size: int, code: int) -> None:
    """What every call carries along takes some of it; twice as much ends the connection, unread."""
    headers = [*bearer(server), ("x-padding", "x" * size)]

    assert code_of(server, LIST_ACTIONS, b"", headers) == code


def test_the_limits_of_http_2_are_told(server: Server) -> None:
    """A decent client keeps to them by itself."""
    with http2.connected(server.port) as connection:
        settings = connection.settings()

    assert settings[http2.MAX_CONCURRENT_STREAMS] == STREAMS
    assert settings[http2.MAX_HEADER_LIST_SIZE] == MAX_METADATA


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff" * 1000, id="noise"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP/1.1 after all"),
        pytest.param(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", id="a frame of 16 MiB"),
    ],
)
def test_noise_after_the_preface_is_answered_with_nothing(server: Server, data: bytes) -> None:
    """At most it is said why, and only this connection ends."""
    with http2.connected(server.port, patience=1) as connection:
        connection.send(data)
        kinds = {found.kind for found in connection.frames()}

    assert http2.DATA not in kinds


BEGINNINGS: Sequence[bytes] = (
    b"",
    b"PRI",
    http2.PREFACE,
    http2.PREFACE + http2.frame(http2.SETTINGS),
    b"POST / HTTP/1.1\r\n",
)


def test_connections_that_are_dropped_leave_nothing_behind(server: Server) -> None:
    """Whatever they had begun with."""
    assert code_of(server, LIST_ACTIONS, b"", bearer(server)) == 0
    before, last = server.open_files(), 0
    while before != last:  # connections of other tests end
        time.sleep(1)
        before, last = server.open_files(), before
    opened = []
    for number in range(200):
        made = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        made.sendall(BEGINNINGS[number % len(BEGINNINGS)])
        opened.append(made)
    deadline = time.monotonic() + 60
    while server.open_files() < before + 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    most = server.open_files()
    for number, made in enumerate(opened):
        if number % 2:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        made.close()
    deadline = time.monotonic() + 60
    while server.open_files() > before and time.monotonic() < deadline:
        time.sleep(0.05)

    assert most >= before + 200
    assert server.open_files() <= before


def test_connections_that_say_nothing_do_not_keep_a_server_from_ending(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """What is in flight is finished, and nothing is."""
    opened = []
    with running_server(tmp_path_factory.mktemp("ending")) as running:
        channel = grpc.insecure_channel(f"127.0.0.1:{running.port}")
        channel.unary_unary(LIST_ACTIONS)(b"", metadata=tuple(running.bearer().items()))
        for beginning in BEGINNINGS:
            made = socket.create_connection(("127.0.0.1", running.port), timeout=10)
            made.sendall(beginning)
            opened.append(made)
        time.sleep(0.2)
        began = time.monotonic()
    waited = time.monotonic() - began
    channel.close()
    for made in opened:
        made.close()

    assert waited < 8


def test_a_server_that_ends_answers_what_it_has_carried_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Told to stop in the midst of calls, it finishes those; the others never happen."""
    answered: list[str] = []
    codes: set[grpc.StatusCode] = set()

    def create(channel: grpc.Channel, caller: int, server: Server) -> None:
        method = channel.unary_unary(CREATE_ACTION)
        for number in range(1000):
            name = f"a{caller}-{number}"
            message = CREATE.request(name=name, script="x").SerializeToString()
            try:
                method(message, metadata=bearer(server), timeout=30)
            except grpc.RpcError as error:
                codes.add(error.code())
                return
            answered.append(name)

    with (
        running_server(tmp_path_factory.mktemp("ending")) as running,
        grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel,
        ThreadPoolExecutor(16) as callers,
    ):
        done = [callers.submit(create, channel, caller, running) for caller in range(16)]
        while len(answered) <= 100 and not any(future.done() for future in done):
            time.sleep(0.01)
        running.process.send_signal(signal.SIGTERM)
        for future in done:
            future.result()
    written = [
        json.loads(event.payload)["name"]
        for event in running.events()
        if event.type == "action.added"
    ]

    assert len(answered) > 100
    assert sorted(answered) == sorted(written)
    assert codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
