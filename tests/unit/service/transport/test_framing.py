"""Framing cuts a connection into requests, however the bytes come in."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from reconciler.service.transport.framing import Framing, FramingError, Part
from reconciler.service.transport.limits import Limits
from tests.rows import each_row

LIMITS = Limits()
GET = b"GET /a?b=c HTTP/1.1\r\nHost: x.example:80\r\nAccept: */*\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (
    b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3\r\nhel\r\n002\r\nlo\r\n0\r\n\r\n"
)
OLD = b"GET / HTTP/1.0\r\nHost: x\r\n\r\n"
STREAM = GET + POST + CHUNKS + OLD + GET


@each_row("seed", range(50))
def test_it_does_not_matter_how_the_bytes_come_in(seed: int) -> None:
    """Everything is passed on, nothing twice, in its order, and it ends between two requests."""
    chance = random.Random(seed)
    framing, passed, rest = Framing(LIMITS), b"", STREAM
    while rest:
        cut = chance.randint(1, chance.choice((1, 3, 20, len(rest))))
        passed += framing.feed(rest[:cut])
        rest = rest[cut:]

    assert passed == STREAM
    assert framing.part is Part.NOTHING
    assert framing.requests == 5


def test_what_is_not_whole_is_held_back() -> None:
    """A parser never sees half a head, or a chunk whose size is not whole."""
    framing = Framing(LIMITS)

    assert framing.feed(GET[:-1]) == b""
    assert framing.part is Part.HEAD
    assert framing.feed(GET[-1:]) == GET
    assert framing.feed(CHUNKS[:-20]) == CHUNKS[: CHUNKS.index(b"\r\n\r\n") + 4]
    assert framing.in_body


def test_a_body_is_counted_as_it_comes() -> None:
    """Progress is what a deadline looks at."""
    framing = Framing(LIMITS)
    framing.feed(POST[:-3])

    assert (framing.in_body, framing.received) == (True, 2)
    framing.feed(POST[-3:])
    assert (framing.in_body, framing.received) == (False, 5)


@pytest.mark.parametrize(
    ("size", "count", "is_taken"),
    [(1, 250, True), (1, 400, False), (30, 9_000, True)],
)
def test_many_chunks_are_not_all_small(size: int, count: int, *, is_taken: bool) -> None:
    """Each chunk costs time, however short it is."""
    start = CHUNKS[: CHUNKS.index(b"\r\n\r\n") + 4]
    chunk = b"%x\r\n%s\r\n" % (size, b"x" * size)
    framing = Framing(LIMITS)

    if is_taken:
        assert framing.feed(start + chunk * count) == start + chunk * count
    else:
        with pytest.raises(FramingError) as refused:
            framing.feed(start + chunk * count)
        assert refused.value.http_status == 413


def test_many_small_chunks_cost_no_more_than_their_bytes() -> None:
    """Thousands of chunks of one byte, at once: four times as many take four times as long."""

    def seconds(count: int) -> float:
        data = CHUNKS[: CHUNKS.index(b"\r\n\r\n") + 4] + b"1\r\nx\r\n" * count
        began = time.process_time()
        assert Framing(any_length).feed(data) == data
        return time.process_time() - began

    any_length = replace(LIMITS, chunk_bytes=1)
    few, many = (min(seconds(count) for _ in range(3)) for count in (1_000, 4_000))

    assert many < few * 10


def test_an_offer_to_upgrade_is_not_passed_on() -> None:
    """The parser would stop at it."""
    offer = GET.replace(b"Accept: */*", b"Upgrade: h2c\r\nConnection: upgrade\r\nUPGRADE: x")

    assert Framing(LIMITS).feed(offer) == GET.replace(b"Accept: */*", b"Connection: upgrade")


@each_row("seed", range(20))
def test_whatever_comes_in_is_passed_on_or_refused(seed: int) -> None:
    """No other error ever leaves, and what is passed on is a beginning of what came in."""
    chance = random.Random(seed)
    for _ in range(10):
        data = mutated(chance)
        framing, passed, status = Framing(LIMITS), b"", 400
        try:
            for byte in data:
                passed += framing.feed(bytes((byte,)))
        except FramingError as error:
            status = error.http_status

        assert status in {400, 413, 414, 431}
        assert data.startswith(passed)


def mutated(chance: random.Random) -> bytes:
    """Return requests that were spoilt in a few places."""
    data = bytearray(STREAM)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(data))
        data[place : place + chance.randint(0, 3)] = chance.choice(
            (
                b"\r",
                b"\n",
                b"\r\n",
                b"\0",
                b" ",
                b"\xff",
                b":",
                b"0",
                b";",
                b"\r\n\r\n",
                b"Host: y\r\n",
            )
        )
    return bytes(data)


@each_row(
    ("limits", "data", "status"),
    [
        pytest.param(replace(LIMITS, head_bytes=40), GET, 431, id="a long head"),
        pytest.param(replace(LIMITS, head_bytes=40), GET[:-2], 431, id="a long head, unfinished"),
        pytest.param(replace(LIMITS, headers=1), GET, 431, id="many headers"),
        pytest.param(replace(LIMITS, target_bytes=5), GET, 414, id="a long address"),
        pytest.param(replace(LIMITS, target_bytes=5), b"GET /" + b"x" * 80, 414, id="unfinished"),
        pytest.param(replace(LIMITS, body_bytes=4), POST, 413, id="a long body"),
        pytest.param(replace(LIMITS, body_bytes=9), CHUNKS, 413, id="long chunks"),
        pytest.param(replace(LIMITS, chunks=2), CHUNKS, 413, id="many chunks"),
    ],
)
def test_limits_are_kept(limits: Limits, data: bytes, status: int) -> None:
    """Each with the status that says which."""
    with pytest.raises(FramingError) as caught:
        Framing(limits).feed(data)

    assert caught.value.http_status == status
