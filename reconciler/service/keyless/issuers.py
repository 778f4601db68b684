"""Keys of issuers: the one place where the service fetches an address that is stored in it.

Only addresses of rules are fetched, which an admin made: over https, from public addresses, without
redirects and proxies, and no more than a small answer within a few seconds. The addresses of a host
are checked after they were resolved, and the connection is made to the very address that was
checked. An operator may allow a host whose addresses are not public.

Each issuer has one fetch at a time, and one a minute at most. Callers of a slow one wait together,
and only so many of them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, TypeAlias

import httpx

from reconciler.resources.origin import in_url
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.domain.trust import MAX_KEYS_BYTES, check_address, public_keys
from reconciler.service.keyless.signatures import SignedTokenError

DISCOVERY = "/.well-known/openid-configuration"
FETCH_SECONDS = 5.0  # for discovery and keys together
KEPT_SECONDS = 3600.0
AGAIN_SECONDS = 60.0
MOST_WAITING = 8  # callers of one issuer
LOOKUPS = 200  # at once: one for each rule that there can be
_GIVEN_OUT = IPv6Network("2000::/3")  # all that is public of IPv6; the rest is local or unused
_DOCUMENTATION = IPv6Network("3fff::/20")  # which older versions of the standard library lack
_WITH_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))  # in their last four bytes

Keys: TypeAlias = Mapping[str, Mapping[str, Any]]
Fetch = Callable[[str, str], Awaitable[bytes]]
"""Fetch an address, with the certificates of a private authority or none."""


class Issuers:
    """Keys of issuers, fetched as they are needed. One event loop; no locks."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._known: dict[tuple[str, str], _Known] = {}

    async def keys(self, issuer: str, authority: str, key_id: str) -> Keys:
        """Return the keys of an issuer, fetched again if that one is not among them.

        Raises:
            SignedTokenError: they cannot be had now.
            Refusal: too many callers wait for them. Such a token was not judged.
        """
        known = self._known.setdefault((issuer, authority), _Known())
        now = self._clock()
        if key_id in known.keys and now < known.fetched + KEPT_SECONDS:
            return known.keys
        if known.fetch is None:
            if now < known.tried + AGAIN_SECONDS:
                raise SignedTokenError(known.problem or "its key is not one of the issuer's")
            known.tried = now
            known.fetch = asyncio.create_task(self._refresh(issuer, authority, known))
        if known.waiting >= MOST_WAITING:
            raise Refusal(
                Code.RESOURCE_EXHAUSTED,
                "the service is busy with other tokens; ask again",
                "service.busy",
            )
        known.waiting += 1
        try:
            await asyncio.shield(known.fetch)
        finally:
            known.waiting -= 1
        if known.problem:
            raise SignedTokenError(known.problem)
        return known.keys

    async def _refresh(self, issuer: str, authority: str, known: _Known) -> None:
        """Fetch keys. Nothing is raised: callers who wait may have left."""
        known.problem = "the fetch of its keys failed"
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                known.keys = await self._fetched(issuer, authority)
        except TimeoutError:
            known.problem = f"the issuer did not give its keys within {FETCH_SECONDS:g} s"
        except Refusal as refusal:
            known.problem = f"what the issuer answered is not usable: {refusal.message}"
        except (SignedTokenError, OSError, httpx.HTTPError, httpx.InvalidURL) as failure:
            known.problem = f"the keys of the issuer cannot be had: {failure}"
        else:
            known.problem, known.fetched = "", self._clock()
        finally:
            known.fetch = None

    async def _fetched(self, issuer: str, authority: str) -> Keys:
        found = await self._fetch(issuer.removesuffix("/") + DISCOVERY, authority)
        try:
            document = read_object(found, fractions=True)
        except JsonError as failure:
            raise SignedTokenError(f"its discovery document {failure}") from None
        if document.get("issuer") != issuer:
            raise SignedTokenError("its discovery document is of another issuer")
        return public_keys(await self._fetch(str(document.get("jwks_uri")), authority))


@dataclass(slots=True)
class _Known:
    """The state of one issuer.

    Attributes:
        fetched: When its keys were fetched, and ``tried`` when that was begun last.
        problem: Why that failed; empty if it did not.
        waiting: Callers that wait for it.
    """

    keys: Keys = field(default_factory=dict)
    fetched: float = float("-inf")
    tried: float = float("-inf")
    problem: str = ""
    fetch: asyncio.Task[None] | None = None
    waiting: int = 0


class Fetcher:
    """Fetches addresses of issuers."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        """Fetch from public addresses only, but for hosts that are ``allowed``."""
        self._allowed = frozenset(allowed)
        # A lookup cannot be ended: each has a thread, so that no other waits for it.
        self._threads = ThreadPoolExecutor(LOOKUPS, "lookups")

    async def __call__(self, address: str, authority: str) -> bytes:
        """Return the content of an address.

        Raises:
            SignedTokenError: it is not fetched, or its answer is not accepted.
            Refusal: it is not an https address.
            OSError, httpx.HTTPError: no answer came.
        """
        host = check_address("address", address)
        url = httpx.URL(address)
        places = await self._places(host, url.port or 443)
        # Where there is a private authority, no other one counts.
        context = ssl.create_default_context(cadata=authority or None)
        async with (
            httpx.AsyncClient(
                verify=context, trust_env=False, follow_redirects=False, timeout=FETCH_SECONDS
            ) as client,
            client.stream(
                "GET",
                url.copy_with(host=places[0]),
                headers={
                    "host": url.netloc.decode(),
                    "accept": "application/json",
                    "accept-encoding": "identity",
                },
                # The certificate must be that of the host, not of the address.
                extensions={"sni_hostname": host.strip("[]")},
            ) as response,
        ):
            return await _content(response)

    async def _places(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, each of which may be connected to."""
        loop = asyncio.get_running_loop()
        look_up = partial(socket.getaddrinfo, host.strip("[]"), port, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(self._threads, look_up)
        places = [str(place[0]) for *_, place in found]
        if host not in self._allowed and not all(map(is_public, places)):
            raise SignedTokenError(f"{host} has an address that is not public")
        return [in_url(place) for place in places]


async def _content(response: httpx.Response) -> bytes:
    """Return the body of an answer, as it came: what is compressed could become very long."""
    if response.status_code != 200:
        raise SignedTokenError(f"the answer has the status {response.status_code}, not 200")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise SignedTokenError("the answer is compressed, which was not asked for")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > MAX_KEYS_BYTES:
            raise SignedTokenError(f"the answer is longer than {MAX_KEYS_BYTES} bytes")
    return bytes(content)


def is_public(text: str) -> bool:
    """Return whether an address is one of the public Internet, also where it holds another one."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if any(address in network for network in _WITH_IPV4):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if address.teredo or address in _DOCUMENTATION or address not in _GIVEN_OUT:
            return False
    return address.is_global and not address.is_multicast
