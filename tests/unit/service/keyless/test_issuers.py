"""Keys of issuers: which addresses may be connected to, and how often keys are fetched."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from ipaddress import IPv4Address

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.keyless.issuers import (
    AGAIN_SECONDS,
    DISCOVERY,
    KEPT_SECONDS,
    MOST_WAITING,
    Fetcher,
    Issuers,
    is_public,
)
from reconciler.service.keyless.signatures import SignedTokenError
from reconciler.service_client.machine_keys import make_key
from tests.rows import each_row

ISSUER = "https://issuer.example.com"
KEY = make_key("ES256")
NEXT = make_key("ES256")


@each_row("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_a_public_address_may_be_connected_to(address: str) -> None:
    assert is_public(address)


@each_row(
    "address",
    [
        "127.0.0.1", "127.8.8.8", str(IPv4Address(0)),
        "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1",
        "169.254.169.254", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::",
        "2001::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "ff02::1", "ff0e::1",
        "2001:db8::1", "3fff::1", "fec0::1", "4000::1", "5f00::1", "::ffff:0:7f00:1",
    ],
)  # fmt: skip
def test_every_other_address_is_not(address: str) -> None:
    """Some of them count as global to the standard library."""
    assert not is_public(address)


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Fetch:
    """Answers for issuers, and counts what is fetched."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.keys = KEY.public
        self.fails = False
        self.gate: asyncio.Event | None = None

    async def __call__(self, address: str, authority: str) -> bytes:
        self.seen[address] += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise OSError("no route")
        if address.endswith(DISCOVERY):
            issuer = address.removesuffix(DISCOVERY)
            document = {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
            return json.dumps(document).encode()
        return self.keys.encode()


def test_keys_are_kept_for_a_while_and_then_fetched_again() -> None:
    fetch, clock = Fetch(), Clock()
    issuers = Issuers(fetch, clock)

    async def ask() -> None:
        for clock.now in (0.0, 1.0, KEPT_SECONDS - 1):
            assert KEY.id in await issuers.keys(ISSUER, "", KEY.id)
        assert fetch.seen[f"{ISSUER}/keys"] == 1
        clock.now = KEPT_SECONDS + 1
        await issuers.keys(ISSUER, "", KEY.id)
        assert fetch.seen[f"{ISSUER}/keys"] == 2

    asyncio.run(ask())


def test_an_unknown_key_fetches_them_again_once_a_minute() -> None:
    """An issuer that rotates is followed; a caller who makes keys up fetches nothing more."""
    fetch, clock = Fetch(), Clock()
    issuers = Issuers(fetch, clock)

    async def ask() -> None:
        await issuers.keys(ISSUER, "", KEY.id)
        fetch.keys = NEXT.public
        for clock.now in (1.0, AGAIN_SECONDS - 1):
            with pytest.raises(SignedTokenError):
                await issuers.keys(ISSUER, "", NEXT.id)
        clock.now = AGAIN_SECONDS
        assert NEXT.id in await issuers.keys(ISSUER, "", NEXT.id)
        assert fetch.seen[f"{ISSUER}/keys"] == 2

    asyncio.run(ask())


def test_an_issuer_that_fails_is_asked_once_a_minute() -> None:
    fetch, clock = Fetch(), Clock()
    issuers = Issuers(fetch, clock)
    fetch.fails = True

    async def ask() -> None:
        for _ in range(3):
            with pytest.raises(SignedTokenError, match="no route"):
                await issuers.keys(ISSUER, "", KEY.id)
        fetch.fails = False
        clock.now = AGAIN_SECONDS
        assert KEY.id in await issuers.keys(ISSUER, "", KEY.id)

    asyncio.run(ask())
    assert fetch.seen[ISSUER + DISCOVERY] == 2


def test_callers_of_a_slow_issuer_share_one_fetch_and_delay_no_other() -> None:
    """Only so many of them wait; the rest is asked to come again, with tokens that may be right."""
    fetch = Fetch()
    issuers = Issuers(fetch, Clock())

    async def ask() -> None:
        await issuers.keys("https://quick.example.com", "", KEY.id)
        fetch.gate = asyncio.Event()
        waiting = [
            asyncio.create_task(issuers.keys(ISSUER, "", KEY.id)) for _ in range(MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="ask again"):
            await issuers.keys(ISSUER, "", KEY.id)
        assert KEY.id in await issuers.keys("https://quick.example.com", "", KEY.id)
        fetch.gate.set()
        assert all(KEY.id in keys for keys in await asyncio.gather(*waiting))

    asyncio.run(ask())
    assert fetch.seen[f"{ISSUER}/keys"] == 1


def test_a_slow_lookup_delays_that_of_no_other_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookup goes on after its fetch was given up."""
    go_on = threading.Event()

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        if host.startswith("slow"):
            go_on.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]

    async def ask() -> None:
        fetch = Fetcher()
        slow = [
            asyncio.create_task(fetch(f"https://slow{number}.example.com/", ""))
            for number in range(60)
        ]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(10):
                with pytest.raises(SignedTokenError, match="not public"):
                    await fetch("https://quick.example.com/", "")
        finally:
            go_on.set()
            await asyncio.gather(*slow, return_exceptions=True)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    asyncio.run(ask())


@each_row("host", ["localhost", "127.0.0.1", "[::1]"])
def test_nothing_is_fetched_from_this_machine_unless_it_is_allowed(host: str) -> None:
    with pytest.raises(SignedTokenError, match="not public"):
        asyncio.run(Fetcher()(f"https://{host}:1/x", ""))
    with pytest.raises(Exception, match=r"connect|refused|attempts"):
        asyncio.run(Fetcher([host])(f"https://{host}:1/x", ""))
