"""Bodies are taken in from callers only, and only while there is room for them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress

import pytest

from reconciler.service.transport.protobuf import METHODS
from tests.raw_http import Raw, read_response, request
from tests.running import Server, running_server
from tests.wires import Refused, frame, read_web

ACTIONS = "/management/v1/actions"
GRPC_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
GRPC_WEB = {"content-type": "application/grpc-web+proto"}
JSON = {"content-type": "application/json"}
LARGE = 1 << 20
HALF = b"x" * (LARGE // 2)
SMALL = b'{"name": "a"}'
UNKNOWN = {"authorization": "Bearer rct_" + "A" * 43 + "00000000"}
SOON = 5.0  # a body that is waited for would take 10 seconds


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def half(verb: str, path: str, headers: dict[str, str]) -> bytes:
    """Return a request of which half the body is missing."""
    return request(verb, path, {**headers, "content-length": str(LARGE)}) + HALF


def answer_to(server: Server, sent: bytes) -> Raw:
    """Send what has no end, and return the answer, which comes soon and ends the connection."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), SOON) as connection:
        connection.sendall(sent)
        with connection.makefile("rb") as stream:
            answer = read_response(stream)
    assert time.monotonic() - began < SOON
    assert answer is not None
    assert answer.closed
    return answer


@pytest.mark.parametrize(
    ("verb", "path", "headers", "status"),
    [
        pytest.param("POST", ACTIONS, JSON, 401, id="no token"),
        pytest.param("POST", ACTIONS, {**JSON, "authorization": "x"}, 401, id="malformed"),
        pytest.param("POST", ACTIONS, {**JSON, **UNKNOWN}, 401, id="unknown"),
        pytest.param("POST", "/nowhere", UNKNOWN, 401, id="unknown, and no such address"),
    ],
)
def test_half_a_body_without_a_token_is_not_waited_for(
    server: Server, verb: str, path: str, headers: dict[str, str], status: int
) -> None:
    """Who asks is judged by the headers."""
    assert answer_to(server, half(verb, path, headers)).status == status


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("POST", "/nowhere", 404),
        ("POST", "/management/v1/actions/1", 405),
        ("PUT", "/healthz", 405),
    ],
)
def test_half_a_body_for_no_operation_is_not_waited_for(
    server: Server, verb: str, path: str, status: int
) -> None:
    """Nor is one whose address or verb means nothing."""
    headers = {**JSON, **server.bearer()}

    assert answer_to(server, half(verb, path, headers)).status == status


def test_a_body_that_is_said_to_be_too_large_is_not_waited_for(server: Server) -> None:
    """A caller is told so, anybody else that it is no caller."""
    sent = request("POST", ACTIONS, {**JSON, **server.bearer(), "content-length": str(LARGE + 1)})

    assert answer_to(server, sent + HALF).status == 413


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        pytest.param(GRPC_ACTION, {}, 16, id="no token"),
        pytest.param(GRPC_ACTION, UNKNOWN, 16, id="unknown"),
        pytest.param(GRPC_ACTION + "x", {}, 12, id="no such method"),
    ],
)
def test_half_a_message_over_grpc_web_is_not_waited_for(
    server: Server, path: str, headers: dict[str, str], code: int
) -> None:
    """It comes over HTTP/1.1, too."""
    answer = answer_to(server, half("POST", path, {**GRPC_WEB, **headers}))
    outcome = read_web(answer.body, METHODS[GRPC_ACTION].answer)

    assert isinstance(outcome, Refused)
    assert outcome.code == code


def test_a_whole_body_leaves_the_connection_open(server: Server) -> None:
    """A refusal of what was read to its end is one answer of many."""
    asked = [
        request("POST", ACTIONS, JSON, SMALL),
        request("POST", GRPC_ACTION, GRPC_WEB, frame(b"")),
        request("POST", "/nowhere", JSON, SMALL),
        request("POST", ACTIONS, {**JSON, **server.bearer()}, SMALL),
        request("POST", ACTIONS, {**JSON, **server.bearer()}, SMALL + b" " * (LARGE // 2)),
    ]
    answers = []
    with (
        socket.create_connection(("127.0.0.1", server.port), SOON) as connection,
        connection.makefile("rb") as stream,
    ):
        for sent in asked:
            connection.sendall(sent)
            answers.append(read_response(stream))

    assert [answer and answer.status for answer in answers] == [401, 200, 401, 400, 400]


@pytest.mark.parametrize(
    ("length", "token", "lines"),
    [
        pytest.param(len(SMALL), "", ["HTTP/1.1 401 Unauthorized"], id="no token"),
        pytest.param(LARGE, "unknown", ["HTTP/1.1 401 Unauthorized"], id="large, unknown"),
        pytest.param(len(SMALL), "editor", ["HTTP/1.1 100 Continue"], id="a caller"),
        pytest.param(LARGE, "editor", ["HTTP/1.1 100 Continue"], id="a large one of a caller"),
    ],
)
def test_a_caller_that_asks_first_is_told_whether_to_send(
    server: Server, length: int, token: str, lines: Sequence[str]
) -> None:
    """``Expect: 100-continue``: a refusal comes in place of the word to go on."""
    bearer = {"": {}, "unknown": UNKNOWN}.get(token) or (server.bearer() if token else {})
    headers = {**JSON, **bearer, "expect": "100-continue", "content-length": str(length)}
    with socket.create_connection(("127.0.0.1", server.port), SOON) as connection:
        connection.sendall(request("POST", ACTIONS, headers))
        with connection.makefile("rb") as stream:
            assert stream.readline().decode().strip() == lines[0]
            if "100" in lines[0]:
                assert stream.readline() == b"\r\n"
                connection.sendall(SMALL + b" " * (length - len(SMALL)))
                answer = read_response(stream)
                assert answer is not None
                assert answer.status == 400


def test_half_bodies_without_a_token_take_no_memory(server: Server) -> None:
    """Two hundred of them, a hundred megabytes in all; each gets its answer."""
    before = server.memory()
    with ExitStack() as open_ones:
        connections = []
        for number in range(200):
            connection = socket.create_connection(("127.0.0.1", server.port), SOON)
            open_ones.enter_context(closing(connection))
            connection.settimeout(SOON)
            headers = JSON if number % 2 else {**JSON, **UNKNOWN}
            # It may be closed after its answer before all is sent.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(half("POST", ACTIONS, headers))
            connections.append(connection)
        grown = server.memory() - before
        said = [connection.recv(12) for connection in connections[-20:]]

    assert grown < 24 << 20
    assert said == [b"HTTP/1.1 401"] * 20


def test_requests_that_run_far_ahead_of_their_answers_are_refused(server: Server) -> None:
    """Each waits in memory. The first one is answered, then the connection ends."""
    with (
        socket.create_connection(("127.0.0.1", server.port), SOON) as connection,
        connection.makefile("rb") as stream,
    ):
        connection.sendall(request("GET", "/healthz") * 100)
        answers = [read_response(stream), read_response(stream)]

    assert [answer and answer.status for answer in answers] == [200, 429]
    assert answers[1] is not None
    assert answers[1].closed
