"""A process of callers who mean harm, all at once: ``python -m tests.faults.attackers``.

Reads what to do from stdin as JSON (``Orders``), and attacks until it is ended. A process of its
own, so that honest callers are not measured while they wait for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from tests import http2
from tests.raw_http import request

ACTIONS = "/management/v1/actions"
CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
LARGE = 1 << 20
UNKNOWN = "rct_" + "A" * 43 + "00000000"
JSON = {"content-type": "application/json"}
HALF = b"x" * (LARGE // 2)
STREAMS = 20
SMALL_CHUNKS = b"1\r\nx\r\n" * 200
PATIENCE = 2.0


@dataclass(frozen=True)
class Orders:
    """What to attack, and how much.

    Attributes:
        token: Of a caller who may read another organization than those who are honest.
        connections: Of each kind of attack, at one time.
        pause: Seconds between two tries on one of them.
    """

    port: int
    token: str
    connections: int
    pause: float

    def as_json(self) -> str:
        """Return the orders as the process takes them."""
        return json.dumps(asdict(self))


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Attack = Callable[[Orders, Streams, int], Awaitable[None]]


async def half_bodies(orders: Orders, streams: Streams, turn: int) -> None:
    """Send half a body without a token, or with one that nobody made."""
    bearer = {"authorization": f"Bearer {UNKNOWN}"} if turn % 2 else {}
    headers = {**JSON, **bearer, "content-length": str(LARGE)}
    await say(streams, request("POST", ACTIONS, headers) + HALF)


async def half_messages(orders: Orders, streams: Streams, turn: int) -> None:
    """Begin messages of gRPC without a token on many streams, and end none."""
    head = http2.headers(CREATE_ACTION)
    message = b"\0" + LARGE.to_bytes(4) + b"x" * 1000
    frames = b"".join(
        http2.frame(http2.HEADERS, http2.END_HEADERS, stream, head)
        + http2.frame(http2.DATA, 0, stream, message)
        for stream in range(1, 2 * STREAMS, 2)
    )
    await say(streams, http2.PREFACE + http2.frame(http2.SETTINGS) + frames)


async def slow_bodies(orders: Orders, streams: Streams, turn: int) -> None:
    """Send little of a large body, as a caller."""
    headers = {**JSON, **bearer_of(orders), "content-length": str(LARGE)}
    await say(streams, request("POST", ACTIONS, headers) + HALF[:20_000])


async def small_chunks(orders: Orders, streams: Streams, turn: int) -> None:
    """Send a body in chunks of a byte, as a caller."""
    headers = {**JSON, **bearer_of(orders), "transfer-encoding": "chunked"}
    await say(streams, request("POST", ACTIONS, headers) + SMALL_CHUNKS)


async def heavy_lists(orders: Orders, streams: Streams, turn: int) -> None:
    """Ask for the most that one list may have, as a caller."""
    queries = [
        {"actionNameQuery": {"name": f"a{number}", "method": "TEXT_QUERY_METHOD_CONTAINS"}}
        for number in range(20)
    ]
    asked = {} if turn % 2 else {"queries": queries}
    body = json.dumps({"query": {"limit": 1000}, **asked}).encode()
    headers = {**JSON, **bearer_of(orders, turn), "connection": "close"}
    await say(streams, request("POST", f"{ACTIONS}/_search", headers, body))


async def idle_connections(orders: Orders, streams: Streams, turn: int) -> None:
    """Ask once without a token, or begin to ask, and stay."""
    await say(streams, request("GET", "/healthz") if turn % 2 else b"G")


async def idle_prefaces(orders: Orders, streams: Streams, turn: int) -> None:
    """Begin to speak HTTP/2, and ask nothing."""
    await say(streams, http2.PREFACE + http2.frame(http2.SETTINGS))


async def silence(orders: Orders, streams: Streams, turn: int) -> None:
    """Connect, and say nothing."""
    await say(streams, b"")


ATTACKS: tuple[Attack, ...] = (
    half_bodies,
    half_messages,
    slow_bodies,
    small_chunks,
    heavy_lists,
    idle_connections,
    idle_prefaces,
    silence,
)


def bearer_of(orders: Orders, turn: int = 0) -> dict[str, str]:
    """Return the header of the caller's token, spelt in one of 64 ways."""
    scheme = "".join(
        letter.upper() if turn >> place & 1 else letter for place, letter in enumerate("bearer")
    )
    return {"authorization": f"{scheme} {orders.token}"}


async def say(streams: Streams, sent: bytes) -> None:
    """Say something, and listen until the server hangs up, or for a while."""
    reader, writer = streams
    writer.write(sent)
    async with asyncio.timeout(PATIENCE):
        await writer.drain()
        while await reader.read(1 << 16):
            pass


async def attack_on(orders: Orders, attack: Attack) -> None:
    """Attack in one way, again and again."""
    turn = 0
    while True:
        turn += 1
        with suppress(OSError, TimeoutError):
            streams = await asyncio.open_connection("127.0.0.1", orders.port)
            try:
                await attack(orders, streams, turn)
            finally:
                streams[1].transport.abort()
        await asyncio.sleep(orders.pause)


async def main(orders: Orders) -> None:
    """Attack in every way at once."""
    await asyncio.gather(
        *(attack_on(orders, attack) for attack in ATTACKS for _ in range(orders.connections))
    )


if __name__ == "__main__":
    os.nice(10)  # callers who mean harm are on machines of their own, not on the server's
    asyncio.run(main(Orders(**json.load(sys.stdin))))
