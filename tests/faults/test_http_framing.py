"""Requests whose bounds could be read in two ways, or that never end: refused, and nothing written.

The first part talks to a real server in bytes. The second shortens the deadlines of a listener in
this process, on its own event loop.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.scheduling.batching import Batcher
from reconciler.service.transport.connections import bind
from reconciler.service.transport.limits import RECEIVE_BYTES, Limits
from reconciler.service.transport.listener import Serving, one_queue, serve
from reconciler.service.transport.observer import Observer
from tests.examples import NAMES_ALONE
from tests.raw_http import exchange, read_response, request
from tests.running import Server, prepare, running_server

PATH = "/management/v1/actions"
ACTION = json.dumps({"name": "smuggled", "script": "function f() {}"}).encode()
LENGTH = f"content-length: {len(ACTION)}".encode()
CHUNKED = b"transfer-encoding: chunked"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def head(server: Server, *lines: bytes, line: bytes = b"", host: bytes = b"host: x") -> bytes:
    """Return the head of a create; lines are added to it as they are."""
    usual = [
        line or f"POST {PATH} HTTP/1.1".encode(),
        *([host] if host else []),
        f"authorization: {server.bearer()['authorization']}".encode(),
        b"content-type: application/json",
        *lines,
    ]
    return b"\r\n".join([*usual, b"", b""])


@contextmanager
def talking(server: Server) -> Iterator[tuple[socket.socket, BinaryIO]]:
    """Open a connection for more than one request."""
    with (
        socket.create_connection(("127.0.0.1", server.port), 20) as connection,
        connection.makefile("rb") as stream,
    ):
        yield connection, stream


def refused(server: Server, sent: bytes, status: int) -> None:
    """Send bytes: they are refused in the one shape, the connection ends, nothing is written."""
    before = server.event_count()
    answer = exchange(server.port, sent)
    assert answer is not None
    assert answer.status == status, answer
    assert answer.closed
    assert set(answer.json) == {"code", "message", "details"}
    assert answer.headers["x-request-id"]
    assert server.event_count() == before
    good = exchange(server.port, request("GET", "/healthz"))
    assert good is not None
    assert good.status == 200


AMBIGUOUS = {
    "length and chunks": [LENGTH, CHUNKED],
    "chunks and length": [CHUNKED, LENGTH],
    "two different lengths": [LENGTH, b"content-length: 1"],
    "two equal lengths": [LENGTH, LENGTH],
    "a list of lengths": [LENGTH + b", " + str(len(ACTION)).encode()],
    "a signed length": [b"content-length: +%d" % len(ACTION)],
    "a negative length": [b"content-length: -1"],
    "a hexadecimal length": [b"content-length: 0x10"],
    "an empty length": [b"content-length:"],
    "a length with a space": [b"content-length: 1 2"],
    "an unknown coding": [b"transfer-encoding: xchunked"],
    "two codings": [b"transfer-encoding: chunked, identity"],
    "gzip and chunks": [b"transfer-encoding: gzip, chunked"],
    "identity": [b"transfer-encoding: identity", LENGTH],
    "chunks twice": [CHUNKED, CHUNKED],
    "chunks with a tab and more": [b"transfer-encoding:\tchunked\t, x"],
    "a vertical tab": [b"transfer-encoding:\x0bchunked"],
    "a folded header": [LENGTH, b"x-a: 1\r\n b"],
    "a folded length": [b"content-length:\r\n " + str(len(ACTION)).encode()],
    "a space before the colon": [b"content-length : %d" % len(ACTION)],
    "a header without a name": [b": 1", LENGTH],
    "a header without a colon": [b"x-a", LENGTH],
    "a bare LF": [b"x-a: 1\nx-b: 2", LENGTH],
    "a bare CR": [b"x-a: 1\rx-b: 2", LENGTH],
    "NUL": [b"x-a: \0", LENGTH],
    "NUL in a name": [b"x\0a: 1", LENGTH],
    "a byte beyond ASCII": [b"x-a: \xff", LENGTH],
    "a byte beyond ASCII in a name": [b"x\xff: 1", LENGTH],
    "an escape": [b"x-a: \x1b[2J", LENGTH],
    "two hosts": [b"host: y", LENGTH],
    "two equal hosts": [b"host: x", LENGTH],
}


@pytest.mark.parametrize("lines", AMBIGUOUS.values(), ids=list(AMBIGUOUS))
def test_an_ambiguous_head_is_refused(server: Server, lines: list[bytes]) -> None:
    """What one reader takes for a body, another would take for the next request."""
    refused(server, head(server, *lines) + ACTION, 400)


@pytest.mark.parametrize("host", [b"", b"host:", b"host: a b", b"host: x@y", b"host: x/y"])
def test_a_request_names_one_host(server: Server, host: bytes) -> None:
    """A name that is missing or is none has no business here."""
    refused(server, head(server, LENGTH, host=host) + ACTION, 400)


@pytest.mark.parametrize(
    "line",
    [
        b"POST %s" % PATH.encode(),
        b"POST %s HTTP/0.9" % PATH.encode(),
        b"POST %s HTTP/1.2" % PATH.encode(),
        b"POST %s HTTP/2.0" % PATH.encode(),
        b"POST %s http/1.1" % PATH.encode(),
        b"POST  %s HTTP/1.1" % PATH.encode(),
        b"POST %s HTTP/1.1 " % PATH.encode(),
        b" POST %s HTTP/1.1" % PATH.encode(),
        b"post %s HTTP/1.1" % PATH.encode(),
        b"FROB %s HTTP/1.1" % PATH.encode(),
        b"CONNECT %s HTTP/1.1" % PATH.encode(),
        b"CONNECT x:443 HTTP/1.1",
        b"POST http://x%s HTTP/1.1" % PATH.encode(),
        b"POST * HTTP/1.1",
        b"POST %s#x HTTP/1.1" % PATH.encode(),
        b"POST %s\xff HTTP/1.1" % PATH.encode(),
        b"POST %s\\ HTTP/1.1" % PATH.encode(),
        b"\r\nPOST %s HTTP/1.1" % PATH.encode(),
    ],
)
def test_a_request_line_is_one_of_http_1_1(server: Server, line: bytes) -> None:
    """A verb, a path, the version; one space between them."""
    refused(server, head(server, LENGTH, line=line) + ACTION, 400)


def test_the_oldest_form_of_a_request_is_refused(server: Server) -> None:
    """HTTP/0.9 had no headers, and so nobody to say who asks."""
    refused(server, b"GET /healthz\r\n", 400)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(ACTION), ACTION), id="an extension"),
        pytest.param(b"%x;%s\r\n" % (len(ACTION), b"x" * 100_000), id="a long extension"),
        pytest.param(b"%x\n%s\r\n0\r\n\r\n" % (len(ACTION), ACTION), id="a bare LF"),
        pytest.param(b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(ACTION), ACTION), id="a prefix"),
        pytest.param(b" %x\r\n%s\r\n0\r\n\r\n" % (len(ACTION), ACTION), id="a space"),
        pytest.param(b"%x\r\n%sxx0\r\n\r\n" % (len(ACTION), ACTION), id="no end"),
        pytest.param(b"%x\r\n%s\r\n0\r\nx: y\r\n\r\n" % (len(ACTION), ACTION), id="a trailer"),
        pytest.param(b"-1\r\n", id="a negative size"),
        pytest.param(b"\r\n", id="no size"),
        pytest.param(b"g\r\n", id="no number"),
    ],
)
def test_odd_chunks_are_refused(server: Server, body: bytes) -> None:
    """A size, and nothing else; extensions and trailers have no reader here."""
    refused(server, head(server, CHUNKED) + body, 400)


def test_plain_chunks_are_taken(server: Server) -> None:
    """However small, and however they are cut in transit."""
    body = json.dumps({"name": "chunked", "script": "function f() {}"}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with talking(server) as (connection, stream):
        for byte in head(server, CHUNKED) + chunks:
            connection.sendall(bytes((byte,)))
        answer = read_response(stream)

    assert answer is not None
    assert answer.status == 200, answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"content-length: 9999999999\r\n\r\n", 413, id="a length beyond the limit"),
        pytest.param(
            b"content-length: " + b"9" * 100 + b"\r\n\r\n", 400, id="a length of 100 digits"
        ),
        pytest.param(CHUNKED + b"\r\n\r\nffffffff\r\n", 413, id="a chunk beyond the limit"),
        pytest.param(
            CHUNKED + b"\r\n\r\n" + b"10000\r\n" + b"x" * 65536 + b"\r\n", 0, id="one that fits"
        ),
        pytest.param(
            CHUNKED + b"\r\n\r\n" + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 18,
            413,
            id="too many bytes",
        ),
        pytest.param(CHUNKED + b"\r\n\r\n" + b"1\r\nx\r\n" * 20_000, 413, id="too many chunks"),
    ],
)
def test_a_body_beyond_the_limit_is_refused_early(server: Server, sent: bytes, status: int) -> None:
    """Before it is there, and without keeping it."""
    start = head(server)[:-2]
    if status:
        refused(server, start + sent, status)
    else:
        answer = exchange(server.port, start + sent + b"0\r\n\r\n")
        assert answer is not None
        assert answer.status == 400


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        pytest.param([b"x-a: " + b"x" * 15_000], 401, id="15,000 bytes"),
        pytest.param([b"x-a: " + b"x" * 16_384], 431, id="more than 16 KiB"),
        pytest.param([b"x-a: " + b"x" * 100_000], 431, id="100,000 bytes"),
        pytest.param([b"x-%d: 1" % number for number in range(99)], 401, id="100 headers"),
        pytest.param([b"x-%d: 1" % number for number in range(100)], 431, id="101 headers"),
        pytest.param([b"x: 1"] * 2000, 431, id="2,000 headers"),
    ],
)
def test_headers_have_a_limit(server: Server, lines: list[bytes], status: int) -> None:
    """16 KiB and 100 of them."""
    sent = b"\r\n".join([b"GET /nowhere HTTP/1.1", b"host: x", *lines, b"", b""])

    if status == 431:
        refused(server, sent, status)
    else:
        answer = exchange(server.port, sent)
        assert answer is not None
        assert answer.status == status


@pytest.mark.parametrize(("length", "status"), [(8192, 401), (8193, 414), (100_000, 414)], ids=str)
def test_an_address_has_a_limit(server: Server, length: int, status: int) -> None:
    """8 KiB, query included."""
    path = "/" + "x" * (length - 1)
    sent = request("GET", path)

    if status == 414:
        refused(server, sent, status)
    else:
        answer = exchange(server.port, sent)
        assert answer is not None
        assert answer.status == status


def test_a_compressed_body_is_not_unpacked(server: Server) -> None:
    """64 MiB packed into 64 KiB stay packed."""
    bomb = gzip.compress(b"0" * (1 << 26), 9)
    sent = head(server, b"content-encoding: gzip", b"content-length: %d" % len(bomb)) + bomb
    before = server.memory()

    answer = exchange(server.port, sent)

    assert answer is not None
    assert answer.status == 415
    assert server.memory() - before < 16 << 20


def test_an_upgrade_is_not_made(server: Server) -> None:
    """A client that offers HTTP/2 over the same connection gets HTTP/1.1."""
    offer = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk"
    get = b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + offer + b"\r\n\r\n"
    with talking(server) as (connection, stream):
        for _ in range(2):
            connection.sendall(get)
            answer = read_response(stream)
            assert answer is not None
            assert answer.status == 200


def test_requests_in_a_row_are_answered_in_their_order(server: Server) -> None:
    """One after the other over one connection, sent at once; a bad one ends it."""
    one = request("POST", f"{PATH}/_search", server.bearer())
    bad = request("GET", "/healthz", {"content-length": "x"})
    with talking(server) as (connection, stream):
        connection.sendall(one + request("GET", "/healthz"))
        answers = [read_response(stream), read_response(stream)]
        connection.sendall(one)
        time.sleep(0.2)
        connection.sendall(bad)
        answers += [read_response(stream), read_response(stream)]
        rest = stream.read(1)

    assert [answer.status if answer else 0 for answer in answers] == [200, 200, 200, 400]
    assert rest == b""


def test_what_follows_a_bad_request_is_not_read(server: Server) -> None:
    """A smuggled request is never carried out."""
    smuggled = head(server, LENGTH) + ACTION

    refused(server, head(server, LENGTH, CHUNKED) + b"0\r\n\r\n" + smuggled, 400)
    refused(server, head(server, LENGTH, LENGTH) + smuggled, 400)


def test_who_says_all_and_then_hears_gets_the_answer(server: Server) -> None:
    """A client may close its side as soon as it has asked."""
    with talking(server) as (connection, stream):
        connection.sendall(request("POST", f"{PATH}/_search", server.bearer()))
        connection.shutdown(socket.SHUT_WR)
        answer = read_response(stream)

    assert answer is not None
    assert answer.status == 200


# Deadlines, shortened, in this process.

QUICK = Limits(
    head_seconds=0.4,
    body_seconds=0.8,
    progress_seconds=0.3,
    progress_bytes=4,
    idle_seconds=1,
    linger_seconds=0.2,
    connections=8,
    write_seconds=0.4,
    drain_seconds=2,
)
QUICK_ENOUGH = 5.0
LARGE = 100_000

Talk = Callable[[int], Coroutine[Any, Any, None]]
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def talk(tmp_path: Path) -> Callable[[Talk], None]:
    """Return a way to talk to a listener in this process that has no patience."""
    prepare(tmp_path / "identity.db")
    return lambda say: asyncio.run(_served(tmp_path / "identity.db", say))


async def _served(store: Path, talk: Talk, limits: Limits = QUICK) -> None:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stops: list[Callable[[], None]] = []
    with closing(open_sqlite(store)) as service:
        serving = Serving(
            batcher=Batcher(service.dispatcher, one_queue),
            observer=Observer(),
            listening=bind("127.0.0.1", 0),
            limits=limits,
            figures=lambda: None,
            is_open=lambda: True,
            on_ready=lambda address: ready.set_result(int(address.rpartition(":")[2])),
            until=stops.append,
            drawing=NAMES_ALONE,
        )
        task = asyncio.ensure_future(serve(serving))
        try:
            await asyncio.wait_for(talk(await ready), 20)
        finally:
            stops[0]()
            await task


async def drip(pair: Pair, data: bytes, every: float) -> None:
    """Send a byte at a time, until all is sent or nobody listens any more."""
    reader, writer = pair
    for byte in data:
        if reader.at_eof() or writer.transport.is_closing():
            return
        writer.write(bytes((byte,)))
        await asyncio.sleep(every)


async def end_of(pair: Pair) -> bytes:
    """Return what a server said until it hung up, which it must do soon."""
    reader, writer = pair
    try:
        return await asyncio.wait_for(reader.read(), QUICK_ENOUGH)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def connected(port: int) -> Pair:
    return await asyncio.open_connection("127.0.0.1", port)


POST = b"POST /management/v1/actions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n"
GET = request("GET", "/healthz")


@pytest.mark.parametrize(
    ("at_once", "dripping", "every"),
    [
        pytest.param(b"", POST, 0.05, id="a slow head"),
        pytest.param(b"POST", b"", 1, id="a head that stops"),
        pytest.param(GET + b"G", b"", 1, id="a second head that stops"),
        pytest.param(POST + b"content-length: 999\r\n\r\n", b"x" * 999, 0.1, id="a slow body"),
        pytest.param(POST + b"content-length: 999\r\n\r\n", b"x" * 999, 0.01, id="a long body"),
        pytest.param(POST + b"content-length: 999\r\n\r\n", b"", 1, id="a body that stops"),
        pytest.param(
            POST + CHUNKED + b"\r\n\r\n", b"1\r\nx\r\n" * 99, 0.02, id="chunks without end"
        ),
        pytest.param(POST + CHUNKED + b"\r\n\r\n1", b"", 1, id="a chunk that stops"),
    ],
)
def test_whoever_takes_too_long_is_sent_away(
    talk: Callable[[Talk], None], at_once: bytes, dripping: bytes, every: float
) -> None:
    """A head has a deadline, a body has one and must make progress; both are told why."""

    async def slowly(port: int) -> None:
        pair = await connected(port)
        pair[1].write(at_once)
        began = time.monotonic()
        dripped = asyncio.ensure_future(drip(pair, dripping, every))
        said = await end_of(pair)
        await dripped
        assert time.monotonic() - began < QUICK_ENOUGH
        assert b"HTTP/1.1 408 Request Timeout\r\n" in said
        assert said.count(b"HTTP/1.1 ") == 1 + at_once.startswith(GET)

    talk(slowly)


def test_whoever_says_nothing_is_not_kept(talk: Callable[[Talk], None]) -> None:
    """Neither at the beginning nor after an answer."""

    async def silently(port: int) -> None:
        assert await end_of(await connected(port)) == b""
        pair = await connected(port)
        pair[1].write(GET)
        assert b"HTTP/1.1 200 OK" in await end_of(pair)

    talk(silently)


def test_a_body_that_makes_progress_is_waited_for(talk: Callable[[Talk], None]) -> None:
    """Slow lines are served, up to the deadline."""

    async def steadily(port: int) -> None:
        pair = await connected(port)
        pair[1].write(POST + b"connection: close\r\ncontent-length: 40\r\n\r\n")
        await drip(pair, b" " * 40, 0.01)
        assert b"HTTP/1.1 401 " in await end_of(pair)

    talk(steadily)


def test_connections_are_counted(talk: Callable[[Talk], None]) -> None:
    """One too many takes the place of the one that has asked nothing for longest."""

    async def many(port: int) -> None:
        held = [await connected(port) for _ in range(QUICK.connections)]
        for _, writer in held:
            writer.write(b"G")  # in the middle of a head: it has begun
            await asyncio.sleep(0.01)
        late = await connected(port)
        late[1].write(GET)
        assert await late[0].readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        assert await end_of(held[0]) == b""
        held[1][1].write(GET[1:])
        assert await held[1][0].readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        for _, writer in [*held, late]:
            writer.close()

    talk(many)


def test_whoever_does_not_read_is_not_written_to_for_ever(talk: Callable[[Talk], None]) -> None:
    """Answers that nobody takes would fill the memory."""

    async def deaf(port: int) -> None:
        loop = asyncio.get_running_loop()
        asking = request("GET", "/openapi.json") * 50
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.settimeout(0)

            async def ask_on() -> None:
                while True:
                    await loop.sock_sendall(connection, asking)
                    await asyncio.sleep(0.1)

            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                await asyncio.wait_for(ask_on(), QUICK_ENOUGH)

    talk(deaf)


def test_room_for_large_bodies_is_shared(tmp_path: Path) -> None:
    """One caller fills its share; its next body waits and is refused, another caller's is read."""
    tokens = prepare(tmp_path / "identity.db").tokens
    limits = replace(
        QUICK, large_share_bytes=LARGE, large_seconds=0.1, body_seconds=20, progress_seconds=20
    )

    def large(token: str, more: bytes = b"") -> bytes:
        bearer = b"authorization: Bearer " + tokens[token].encode()
        length = b"content-length: %d" % LARGE
        lines = [POST.replace(b"authorization: Bearer x", bearer) + length, *([more] * bool(more))]
        return b"\r\n".join([*lines, b"", b""])

    async def crowd(port: int) -> None:
        first = await connected(port)
        first[1].write(large("editor", b"expect: 100-continue"))
        assert await first[0].readuntil(b"\r\n") == b"HTTP/1.1 100 Continue\r\n"  # it has its place
        second, other = await connected(port), await connected(port)
        second[1].write(large("editor"))
        other[1].write(large("stranger") + b" " * LARGE)
        assert await other[0].readuntil(b"\r\n") == b"HTTP/1.1 415 Unsupported Media Type\r\n"
        said = await end_of(second)
        assert said.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: " in said
        for pair in (first, other):
            pair[1].close()

    asyncio.run(_served(tmp_path / "identity.db", crowd, limits))


def test_the_system_keeps_little_of_what_is_not_read() -> None:
    """Else a caller that waits for room could fill megabytes there."""
    with bind("127.0.0.1", 0) as listening:
        kept = listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    assert kept <= 2 * RECEIVE_BYTES
