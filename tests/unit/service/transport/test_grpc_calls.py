"""Unary calls over gRPC and gRPC-web: who may send a message, and how calls are answered."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import grpc
import pytest

from reconciler.service.transport.grpc_calls import EXPOSED_HEADERS, GRPC_TYPES, WEB_TYPES
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.protobuf import METHODS, message_class
from tests.grpc_here import CHECK, LIST_ACTIONS, Door, Metadata, bearer, never, none, on_a_channel
from tests.grpc_here import refused as refused_by_server
from tests.rows import each_row
from tests.unit.service.transport.asgi import connected
from tests.wires import frame

PATIENT = Limits(http2_known=2, http2_known_of_one=1, http2_open=1, body_seconds=2.0)
HASTY = replace(PATIENT, head_seconds=1.0, body_seconds=0.1)
KNOWN = bearer("good")


@pytest.mark.parametrize("metadata", [(), bearer("bad"), (*KNOWN, *KNOWN)])
def test_the_token_is_judged_before_a_message_comes(metadata: Metadata) -> None:
    """A caller who may not call has nothing to say."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        silent = channel.stream_unary(LIST_ACTIONS)(never(), metadata=metadata)
        assert await refused_by_server(silent) == (16, "token.invalid")

    on_a_channel(main, PATIENT)


def test_a_token_that_was_valid_a_moment_ago_is_not_looked_up_for_each_message() -> None:
    """The call itself looks it up, so once more is only needed the first time."""

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        for _ in range(5):
            await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN)
        assert door.asked == 6

    on_a_channel(main, PATIENT)


def test_a_message_that_does_not_come_is_waited_for_so_long() -> None:
    """The caller is told, and the call is over."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        silent = channel.stream_unary(LIST_ACTIONS)(never(), metadata=KNOWN)
        assert await refused_by_server(silent) == (10, "message.too_slow")
        check = channel.stream_unary(CHECK)(never())
        assert await refused_by_server(check) == (10, "message.too_slow")
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN) == b""

    on_a_channel(main, HASTY)


def test_a_call_without_a_message_is_answered() -> None:
    """With the words of the service."""

    async def main(_: Door, channel: grpc.aio.Channel) -> None:
        empty = channel.stream_unary(LIST_ACTIONS)(none(), metadata=KNOWN)
        assert await refused_by_server(empty) == (3, "field.invalid")
        assert await refused_by_server(channel.stream_unary(CHECK)(none())) == (3, "field.invalid")
        assert await refused_by_server(channel.unary_unary(CHECK)(b"\xff")) == (3, "field.invalid")

    on_a_channel(main, PATIENT)


@pytest.mark.slow
def test_only_so_many_messages_are_waited_for_of_one_token_and_of_all() -> None:
    """One caller that sends nothing does not keep another from calling."""
    others = [bearer(f"good{number}") for number in range(2)]

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        list_actions = channel.stream_unary(LIST_ACTIONS)
        silent = [list_actions(never(), metadata=KNOWN)]
        await door.has(calls=1)
        busy = (8, "service.busy")
        assert await refused_by_server(list_actions(never(), metadata=KNOWN)) == busy
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=others[0]) == b""
        silent.append(list_actions(never(), metadata=others[0]))
        await door.has(calls=2)
        assert await refused_by_server(list_actions(never(), metadata=others[1])) == busy
        for call in silent:
            assert await refused_by_server(call) == (10, "message.too_slow")
        assert await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN) == b""

    on_a_channel(main, PATIENT)


def test_a_call_has_its_place_until_it_is_answered() -> None:
    """Else one caller whose calls take long could have every place."""
    slow, other = bearer("good-held"), bearer("good-other")

    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        list_actions = channel.unary_unary(LIST_ACTIONS)
        first = list_actions(b"", metadata=slow)
        await door.taken.wait()
        assert await refused_by_server(list_actions(b"", metadata=slow)) == (8, "service.busy")
        assert await list_actions(b"", metadata=other) == b""
        door.held.set()
        assert await first == b""
        assert await list_actions(b"", metadata=slow) == b""

    on_a_channel(main, PATIENT)


def test_a_call_that_its_caller_gives_up_has_no_place_any_more() -> None:
    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        list_actions = channel.unary_unary(LIST_ACTIONS)
        first = list_actions(b"", metadata=bearer("good-held"))
        await door.taken.wait()
        first.cancel()
        await door.has(calls=0)
        door.held.set()
        assert await list_actions(b"", metadata=bearer("good-held")) == b""

    on_a_channel(main, PATIENT)


# Both wires, as an application.


class Answer:
    """What an application answers to one request.

    Attributes:
        trailers: Those of HTTP, or those in the headers or the body where nothing else is there.
    """

    def __init__(self, sent: list[Any], *, is_web: bool) -> None:
        start = sent[0]
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        body = b"".join(each.get("body", b"") for each in sent[1:])
        ends = [each["headers"] for each in sent if each["type"] == "http.response.trailers"]
        self.trailers = dict(self.headers)
        for name, value in ends[0] if ends else ():
            self.trailers[name.decode()] = value.decode()
        self.message = body
        if is_web and self.status == 200:
            at = 5 + int.from_bytes(body[1:5]) if not body[0] & 0x80 else 0
            self.message, lines = body[:at], body[at + 5 :].decode()
            self.trailers = dict(line.split(":", 1) for line in lines.split("\r\n") if line)


def asked(
    headers: Mapping[str, str],
    body: bytes = frame(b""),
    path: str = LIST_ACTIONS,
    *,
    method: str = "POST",
    version: str = "2",
    held_for: float = 0.0,
) -> Answer:
    """Return the answer to a request of a caller."""
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(held_for)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        scope = {
            "type": "http",
            "method": method,
            "http_version": version,
            "path": path,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await connected(Door(Limits()).app)(scope, receive, send)

    asyncio.run(main())
    return Answer(sent, is_web=headers.get("content-type", "").startswith("application/grpc-web"))


WIRES = {"grpc": "application/grpc", "grpc-web": "application/grpc-web+proto"}
TOKEN = {"authorization": "Bearer good"}
EMPTY = message_class("zitadel.management.v1.ListActionsRequest")().SerializeToString()
DEPRECATED = [path for path, method in sorted(METHODS.items()) if method.metadata]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("headers", "body", "path", "code"),
    [
        pytest.param({}, frame(EMPTY), LIST_ACTIONS, 0, id="a message"),
        pytest.param({}, b"", LIST_ACTIONS, 3, id="none"),
        pytest.param({}, frame(b"\xff"), LIST_ACTIONS, 3, id="one that is none"),
        pytest.param({"authorization": ""}, frame(EMPTY), LIST_ACTIONS, 16, id="no token"),
        pytest.param({"authorization": "Bearer b"}, b"", LIST_ACTIONS, 16, id="an unknown token"),
        pytest.param({}, frame(EMPTY), "/zitadel.Nothing/Nothing", 12, id="no such method"),
        pytest.param({"grpc-timeout": "soon"}, frame(EMPTY), LIST_ACTIONS, 3, id="no time"),
        pytest.param({"grpc-timeout": "0m"}, frame(EMPTY), LIST_ACTIONS, 4, id="a time of none"),
        pytest.param({"grpc-timeout": "9S"}, frame(EMPTY), LIST_ACTIONS, 0, id="enough time"),
        pytest.param(
            {"grpc-encoding": "gzip"}, frame(gzip.compress(EMPTY), 1), LIST_ACTIONS, 0, id="gzip"
        ),
        pytest.param(
            {"grpc-encoding": "deflate"},
            frame(zlib.compress(EMPTY), 1),
            LIST_ACTIONS,
            0,
            id="deflate",
        ),
        pytest.param({"grpc-encoding": "br"}, frame(EMPTY, 1), LIST_ACTIONS, 12, id="another"),
    ],
)
def test_both_wires_have_one_table_of_errors(
    wire: str, headers: dict[str, str], body: bytes, path: str, code: int
) -> None:
    """Code, message and details of a refusal are the same, and an answer is a message."""
    answer = asked({"content-type": WIRES[wire], **TOKEN, **headers}, body, path)

    assert answer.status == 200
    assert answer.trailers["grpc-status"] == str(code)
    assert answer.headers["content-type"] == WIRES[wire]
    assert answer.headers.get("grpc-accept-encoding", "gzip, deflate") == "gzip, deflate"
    if code:
        assert answer.message == b""
        assert answer.trailers["grpc-message"]
    else:
        assert answer.message == frame(b"")
    if code not in {0, 4}:
        data = answer.trailers["grpc-status-details-bin"]
        status: Any = message_class("google.rpc.Status").FromString(
            b64decode(data + "=" * (-len(data) % 4))
        )
        assert status.code == code


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_fits_no_message_shows_nothing(
    wire: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Door, "given", {"surprise": "geheim"})

    answer = asked({"content-type": WIRES[wire], **TOKEN})

    assert answer.trailers["grpc-status"] == "13"
    assert answer.trailers["grpc-message"] == "the service failed"
    assert answer.message == b""
    assert "does not fit its message" in caplog.text


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_whose_time_runs_out_says_so(wire: str) -> None:
    answer = asked(
        {"content-type": WIRES[wire], **TOKEN, "grpc-timeout": "10m"}, frame(EMPTY), held_for=5
    )

    assert answer.trailers["grpc-status"] == "4"


@pytest.mark.parametrize("wire", WIRES)
def test_a_method_that_has_a_successor_tells_it_with_every_answer(wire: str) -> None:
    for body in (frame(b""), b""):
        answer = asked({"content-type": WIRES[wire], **TOKEN}, body, DEPRECATED[0])
        assert {name for name, _ in METHODS[DEPRECATED[0]].metadata} <= answer.trailers.keys()


@each_row("kind", sorted([*GRPC_TYPES, *WEB_TYPES, "application/grpc-web; x=y"]))
def test_each_name_of_a_wire_is_answered_by_itself(kind: str) -> None:
    answer = asked({"content-type": kind, **TOKEN})

    assert answer.headers["content-type"] == kind.partition(";")[0]
    assert answer.trailers["grpc-status"] == "0"


@each_row(
    ("method", "version", "headers", "status"),
    [
        ("OPTIONS", "1.1", {}, 204),
        ("OPTIONS", "2", {}, 204),
        ("GET", "1.1", {}, 405),
        ("PUT", "2", {"content-type": WIRES["grpc-web"]}, 405),
        ("POST", "1.1", {}, 415),
        ("POST", "1.1", {"content-type": "application/grpc"}, 415),
        ("POST", "2", {"content-type": "application/json"}, 415),
        ("POST", "2", {"content-type": "application/grpc-web-text"}, 415),
        ("POST", "2", {"content-type": WIRES["grpc-web"], "content-encoding": "gzip"}, 415),
    ],
)
def test_what_is_no_call_is_answered_by_http(
    method: str, version: str, headers: dict[str, str], status: int
) -> None:
    """A page of any origin may see why."""
    answer = asked({**TOKEN, **headers}, method=method, version=version)

    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == "*"
    assert ("content-length" in answer.headers) == (status != 204)


def test_a_page_may_read_what_refusals_say() -> None:
    answer = asked({"content-type": WIRES["grpc-web"]})

    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-expose-headers"].split(", ") == [*EXPOSED_HEADERS]
    assert {"grpc-status", "grpc-message", "grpc-status-details-bin"} <= answer.trailers.keys()


def test_a_call_is_counted_by_its_wire() -> None:
    async def main(door: Door, channel: grpc.aio.Channel) -> None:
        await channel.unary_unary(LIST_ACTIONS)(b"", metadata=KNOWN)
        figures = door.observer.metrics.text(None, connections=0)
        assert '{operation="ListActions",transport="grpc",code="0"} 1' in figures

    on_a_channel(main, PATIENT)
