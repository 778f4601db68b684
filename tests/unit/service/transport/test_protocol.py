"""HTTP/1.1 on one connection: what is beyond doubt is answered, all else is refused at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from reconciler.service.transport.connections import Place, Room
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.protocol import StrictProtocol

GET = b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n"
LIMITS = Limits(head_seconds=0.05, body_seconds=0.05, linger_seconds=0.01, pipelined=1)
PATIENT = replace(LIMITS, head_seconds=20.0, body_seconds=20.0)


class Wire(asyncio.Transport):
    """A connection whose answers are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer once the body of a request is whole."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def answered(
    *pieces: bytes, limits: Limits = LIMITS, place: Place | None = None
) -> tuple[bytes, bool]:
    """Return what a connection answers to pieces, and whether it is closed after them."""

    async def talk() -> None:
        config = uvicorn.Config(hello, lifespan="off", log_config=None)
        config.load()
        its_place = place or a_room(limits).enter("2", print)
        protocol = StrictProtocol(config, ServerState(), its_place, Observer())
        protocol.connection_made(wire)
        for piece in pieces:
            protocol.data_received(piece)
            await asyncio.sleep(0.01)
        for _ in range(20):  # for longer than any limit
            if wire.is_closed:
                break
            await asyncio.sleep(0.005)
        was_closed.append(wire.is_closed)
        protocol.connection_lost(None)

    wire, was_closed = Wire(), list[bool]()
    asyncio.run(talk())
    return wire.sent, was_closed[0]


@pytest.mark.parametrize("cut", [1, 20, len(POST) - 1, len(POST)])
def test_a_request_is_answered_however_it_is_cut(cut: int) -> None:
    sent, is_closed = answered(POST[:cut], POST[cut:] + b"{}", limits=PATIENT)

    assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"/x" in sent
    assert not is_closed


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET /x HTTP/1.1\n", b"400", id="lines that end otherwise"),
        pytest.param(b"GET x HTTP/1.1\r\n", b"400", id="no path"),
        pytest.param(GET * 3, b"429", id="requests that are sent ahead"),
        pytest.param(GET[:-2], b"408", id="a head without an end"),
        pytest.param(POST, b"408", id="a body that does not come"),
    ],
)
def test_what_is_in_doubt_or_late_is_refused_and_the_connection_ends(
    sent: bytes, status: bytes
) -> None:
    got, is_closed = answered(sent)

    assert is_closed
    assert b"HTTP/1.1 %s " % status in got


def test_nothing_asked_is_nothing_answered() -> None:
    sent, is_closed = answered()

    assert (sent, is_closed) == (b"", True)


class NotingRoom(Room):
    """A room that notes how many places are taken once a connection lingers."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, lambda: 0.0)
        self.left: list[int] = []
        self.lingering = Lingering(self)


class Lingering(dict[Place, None]):
    """The connections of a room that linger."""

    def __init__(self, room: NotingRoom) -> None:
        super().__init__()
        self._room = room

    def __setitem__(self, place: Place, nothing: None) -> None:
        super().__setitem__(place, nothing)
        self._room.left.append(self._room.count)


def a_room(limits: Limits = LIMITS, others: int = 0) -> NotingRoom:
    """Return a room where others have a call each."""
    room = NotingRoom(limits)
    for _ in range(others):
        room.enter("1", print).set_busy()
    return room


def test_one_connection_too_many_is_told_so() -> None:
    room = a_room(others=LIMITS.connections)
    sent, is_closed = answered(place=room.enter("2", print))

    assert sent.startswith(b"HTTP/1.1 503 ")
    assert is_closed
    assert room.count == LIMITS.connections


@pytest.mark.parametrize(
    ("sent", "is_idle"),
    [
        pytest.param(b"", True, id="nothing"),
        pytest.param(POST, True, id="half a request"),
        pytest.param(GET, False, id="a request"),
    ],
)
def test_a_connection_is_idle_while_it_carries_out_no_call(sent: bytes, *, is_idle: bool) -> None:
    """The room may give its place to another."""

    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async def talk() -> None:
        config = uvicorn.Config(never, lifespan="off", log_config=None)
        config.load()
        place, wire = a_room(PATIENT).enter("2", print), Wire()
        protocol = StrictProtocol(config, ServerState(), place, Observer())
        protocol.connection_made(wire)
        protocol.data_received(sent)
        await asyncio.sleep(0)
        assert (place in place.room.idle) == is_idle
        place.end()
        assert wire.is_closed
        protocol.connection_lost(None)
        assert place.room.count == 0

    asyncio.run(talk())


def test_a_connection_that_was_answered_for_the_last_time_holds_no_place() -> None:
    """It lingers, so that its caller can read the answer."""
    room = a_room(others=2)
    answered(b"GET x HTTP/1.1\r\n", place=room.enter("2", print))

    assert room.left == [2]
