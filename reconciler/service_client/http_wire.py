"""The wire over HTTP: each call is one request. The only module that imports httpx.

At most eight requests are under way at once, each on a connection of its own that is kept for
the next one. An event loop carries them, although threads would do twice as many a second
(2000 against 1200, with a service that answers at once): only so one deadline holds for a whole
try, name lookup and answers that drip in included. A service takes longer than the client does.

httpx's transport is used, and not its client: no redirects, cookies, proxies or credentials
that anybody but the caller of this module chooses.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

import httpx

from reconciler import __version__
from reconciler.errors import LocalFileError, ServiceError, UsageError, ungrouped_interruption
from reconciler.resources.call import WRITE_BATCH, Call, Code
from reconciler.service_client.credentials import Credentials, Response
from reconciler.service_client.endpoint import Endpoint, Hook, Posted
from reconciler.service_client.http_messages import (
    CHECK_ADDRESS,
    Target,
    asked_pause,
    connection_failure,
    failure_in_words,
    headers_of,
    is_untrusted,
    may_repeat,
    reply_of,
    reply_of_stranger,
    target_of,
)
from reconciler.service_client.wire import (
    Answer,
    Reply,
    WireRefusal,
    is_read,
    lost,
    pause,
    service_error,
    unsent,
)

# httpcore imports sniffio several times a request, and does without where that fails. A module that
# is missing is looked for in every folder each time, unless it is known to be missing.
if find_spec("sniffio") is None:
    vars(sys)["modules"]["sniffio"] = None

AT_ONCE = 8  # requests, each on a connection of its own
RETRIED = frozenset({429, 502, 503, 504})  # HTTP statuses of a service that may do better soon
# Of a call, while no request has reached the service, or none has been given an answer that can be
# read: a wrong address is reported soon.
FIRST_TRIES = 3
IDLE_SECONDS = 3.0  # less than servers and proxies keep an idle connection open
FIXED = {
    "accept": "application/json",
    # A compressed answer could be small on the wire and fill the memory here.
    "accept-encoding": "identity",
    "user-agent": f"reconciler/{__version__}",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time and size. Times are seconds.

    A batch has neither ``silence`` nor ``one_try``: the service carries out the batches of a token
    one after the other, so each try may take as long as all tries together.

    Attributes:
        first_connect: To reach a service that has not answered yet. TCP can send one lost packet
            again in that time, so there is no other try: an address that swallows packets is
            reported within 2 s.
        connect: To reach a service that has answered before.
        silence: Between two pieces of an answer.
        one_try: For a try from its beginning to the end of its answer.
        total: For the calls that are sent together, besides what the rate makes them wait;
            after that no try is begun.
        size: Bytes of an answer.
        per_second: Requests a second, or 0 for as many as go.
    """

    first_connect: float = 1.5
    connect: float = 5.0
    silence: float = 10.0
    one_try: float = 20.0
    total: float = 60.0
    size: int = 32 * 1024 * 1024
    per_second: float = 0.0


Observe: TypeAlias = Callable[[str], None]
"""Told of each request once it is over: verb, address, status, size and time. No header, no body:
no token and no secret."""

Tell: TypeAlias = Callable[[str], None]
"""Told of each try that failed and is followed by another one: why, and when."""


class Reached(NamedTuple):
    """The first sight of a service, before any token is sent.

    Attributes:
        failure: Why it was not reached, or why its certificate is refused.
        is_untrusted: It answers, and its certificate is refused.
        date: Its own time, as the header ``Date`` has it; empty where it tells none.
        certificate_ends: The end of its certificate, as OpenSSL writes it; empty without TLS.
    """

    failure: ServiceError | None = None
    is_untrusted: bool = False
    date: str = ""
    certificate_ends: str = ""


class _Tried(NamedTuple):
    """The result of one try.

    Attributes:
        again: Whether another try may do better.
        asked: The pause that the service asks for, in seconds.
        garbled: Whether it is an answer that cannot be read.
    """

    reply: Reply
    again: bool
    asked: float = 0.0
    garbled: bool = False


class HttpWire:
    """Calls operations of a service over HTTP. Used by one thread; to be closed."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials,
        limits: Limits | None = None,
        *,
        proxy: str | None = None,
        observe: Observe | None = None,
        tell_retry: Tell | None = None,
    ) -> None:
        """Use a service; a proxy only where one is named here."""
        self._observe = observe
        self._tell_retry = tell_retry
        self._endpoint = endpoint
        self._credentials = credentials
        self._limits = limits or Limits()
        self._runner = asyncio.Runner()
        trust = _trust_for(endpoint)
        kept = httpx.Limits(max_connections=1, keepalive_expiry=IDLE_SECONDS)
        self._connections = [_connection(trust, proxy, kept) for _ in range(AT_ONCE)]
        self._chance = random.SystemRandom().random
        self._proxied = proxy is not None
        self._was_reached = False
        self._was_understood = False
        self._was_heard = True
        self._next_start = 0.0

    def close(self) -> None:
        """Let go of every connection."""
        with self._runner:
            for connection in self._connections:
                self._runner.run(connection.aclose())

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Carry out independent calls, at most eight at a time; return what each gave.

        Raises:
            AccessDeniedError: there is no token, or none can be had.
            ServiceError: an id that the service gave cannot be part of an address.
        """
        targets = [target_of(call) for call in calls]
        replies = self._sent(calls, targets)
        # A token may end during a run. Calls refused for it were not carried out, so exactly
        # these are sent once more with a new one.
        refused = [
            index
            for index, reply in enumerate(replies)
            if isinstance(reply, WireRefusal) and reply.code == Code.UNAUTHENTICATED
        ]
        if refused and self._credentials.renew():
            again = self._sent([calls[i] for i in refused], [targets[i] for i in refused])
            for index, reply in zip(refused, again, strict=True):
                replies[index] = reply
        return replies

    def fetch(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Ask an address of the service's own origin.

        Raises:
            ServiceError: no answer came, or one that is not of an identity service.
        """
        request, tries = Target(verb, url, body), 0
        while True:
            tries += 1
            try:
                asked = self._exchange(self._connections[0], request, headers, self._limits)
                fetched = self._runner.run(asked)
            except (httpx.TransportError, OSError, ValueError) as failure:
                refusal, again = self._failed(failure)
            else:
                if stranger := reply_of_stranger(fetched, url, self._endpoint):
                    raise service_error(stranger)
                if fetched.status not in RETRIED or tries == FIRST_TRIES:
                    return fetched
                refusal, again = lost(f"the service failed: HTTP status {fetched.status}"), True
            if not again or tries == FIRST_TRIES:
                raise service_error(refusal)
            wait = pause(tries, self._chance(), 0.0)
            self._tell(refusal, wait)
            time.sleep(wait)

    def reach(self) -> Reached:
        """Ask a service for its health, once and without a token; any answer will do."""
        verb, path, body = target_of(Call("Healthz"))
        asked = Target(verb, self._endpoint.address + path, body)
        look = self._exchange(self._connections[0], asked, {}, self._limits)
        try:
            with ungrouped_interruption():
                fetched = self._runner.run(look)
        except (httpx.TransportError, OSError, ValueError) as failure:
            refusal, _ = self._failed(failure)
            return Reached(service_error(refusal), is_untrusted(failure))
        return Reached(None, date=fetched.date, certificate_ends=fetched.certificate_ends)

    def _sent(self, calls: Sequence[Call], targets: Sequence[Target]) -> list[Reply]:
        with ungrouped_interruption():
            bearer = self._credentials.bearer(self.fetch).reveal()
            return self._runner.run(self._all(list(zip(calls, targets, strict=True)), bearer))

    async def _all(self, asked: Sequence[tuple[Call, Target]], bearer: str) -> list[Reply]:
        rate = self._limits.per_second
        waits = len(asked) / rate if rate > 0 else 0.0
        # After calls without any answer, use the short timeout.
        allowed = waits + (self._limits.total if self._was_heard else self._limits.silence)
        # One deadline for all of them: a slow call takes from the time of those behind it.
        deadline = time.monotonic() + allowed
        self._was_heard = not asked
        replies: list[Reply] = [unsent("not sent")] * len(asked)
        waiting = iter(enumerate(asked))  # shared: each connection takes the next call when free

        async def work(connection: httpx.AsyncHTTPTransport) -> None:
            for index, (call, target) in waiting:
                headers = headers_of(call, target, bearer)
                limits = self._limits
                # A try of a batch never ends early: a copy would be sent while the first is under
                # way, and wait for it.
                if call.operation == WRITE_BATCH:
                    limits = replace(limits, silence=allowed, one_try=allowed)
                replies[index] = await self._ask(
                    connection, call, (target, headers), limits, deadline
                )

        await asyncio.gather(*(work(connection) for connection in self._connections[: len(asked)]))
        return replies

    async def _ask(
        self,
        connection: httpx.AsyncHTTPTransport,
        call: Call,
        request: tuple[Target, Mapping[str, str]],
        limits: Limits,
        deadline: float,
    ) -> Reply:
        """Try a call until it is answered, must not be repeated, or time is up."""
        reply = unsent("the service took too long with what was sent before")
        tries = garbled = 0
        while time.monotonic() < deadline:
            tries += 1
            tried = await self._try(connection, *request, limits)
            if isinstance(tried.reply, Answer):
                return tried.reply
            garbled += tried.garbled
            # Once a write may have been carried out, no later refusal proves that it was not.
            is_unsure = tried.reply.unsure or (reply.unsure and not is_read(call))
            reply = replace(tried.reply, unsure=is_unsure)
            wait = pause(tries, self._chance(), tried.asked)
            if (
                not tried.again
                or (reply.unsure and not may_repeat(call))
                or (tries >= FIRST_TRIES and not self._was_reached)
                or (garbled >= FIRST_TRIES and not self._was_understood)
                or time.monotonic() + wait >= deadline
            ):
                break
            self._tell(tried.reply, wait)
            await asyncio.sleep(wait)
        return reply

    def _tell(self, refusal: WireRefusal, wait: float) -> None:
        if self._tell_retry:
            problem = service_error(refusal).problem
            self._tell_retry(f"Trying again in {max(wait, 0.1):.1f} s: {problem}.")

    async def _try(
        self,
        connection: httpx.AsyncHTTPTransport,
        target: Target,
        headers: Mapping[str, str],
        limits: Limits,
    ) -> _Tried:
        request = target._replace(path=self._endpoint.address + target.path)
        try:
            fetched = await self._exchange(connection, request, headers, limits)
        except (httpx.TransportError, OSError, ValueError) as failure:
            return _Tried(*self._failed(failure))
        self._was_reached = self._was_heard = True
        stranger = reply_of_stranger(fetched, request.path, self._endpoint)
        if stranger and not (self._was_understood and stranger.unsure):
            return _Tried(stranger, again=False)
        reply = stranger or reply_of(fetched.status, fetched.content_type, fetched.content)
        # An answer that cannot be read came from the service, or from a proxy that cut it short.
        garbled = fetched.status == 200 and isinstance(reply, WireRefusal)
        if isinstance(reply, Answer) or reply.is_code_told:
            self._was_understood = True
        elif garbled and not self._was_understood:
            reply = replace(reply, remedy=CHECK_ADDRESS)
        asked = asked_pause(fetched.retry_after, datetime.now(UTC))
        return _Tried(reply, garbled or fetched.status in RETRIED, asked, garbled)

    def _failed(self, failure: Exception) -> tuple[WireRefusal, bool]:
        """Return the reply where no answer came that can be read; and if another try may help."""
        if isinstance(failure, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            why = connection_failure(failure, self._endpoint, through_proxy=self._proxied)
            is_swallowed = isinstance(failure, httpx.ConnectTimeout) and not self._was_reached
            return why, not (is_swallowed or is_untrusted(failure))
        if isinstance(failure, ValueError):  # too large or compressed, and would be so again
            problem = f"the service's answer cannot be read: {failure}"
            return lost(problem, CHECK_ADDRESS), False
        # A server that speaks TLS closes the connection of a request without it.
        is_strange = isinstance(failure, httpx.RemoteProtocolError) and not self._was_reached
        problem = f"the service did not answer ({failure_in_words(failure)})"
        return lost(problem, CHECK_ADDRESS if is_strange else ""), True

    async def _exchange(
        self,
        connection: httpx.AsyncHTTPTransport,
        target: Target,
        headers: Mapping[str, str],
        limits: Limits,
    ) -> Response:
        """Send one request, to an address in full, and read its response, within all limits.

        Raises:
            httpx.TransportError, OSError: it failed on the way.
            ValueError: the response is larger than is read, or compressed.
        """
        if not self._was_reached:
            limits = replace(limits, connect=limits.first_connect)
        verb, url, body = target
        request = _request(verb, url, headers, body, limits)
        await self._turn()
        began, result = time.monotonic(), "no answer"
        try:
            async with asyncio.timeout(limits.one_try):
                response = await connection.handle_async_request(request)
                try:
                    fetched = await _read(response, limits.size)
                finally:
                    await response.aclose()
            result = f"{fetched.status}, {len(fetched.content)} bytes"
            return fetched
        finally:
            if self._observe:
                took = 1000 * (time.monotonic() - began)
                self._observe(f"{verb} {url}: {result}, {took:.0f} ms")

    async def _turn(self) -> None:
        """Wait until the rate lets one more request start."""
        if self._limits.per_second <= 0:
            return
        # Starts are evenly spaced; time that passed unused gives no burst afterwards.
        start = max(self._next_start, time.monotonic())
        self._next_start = start + 1 / self._limits.per_second
        await asyncio.sleep(start - time.monotonic())


_OF_NOTICES = Limits(one_try=15.0)


class Poster:
    """Posts to one receiver of notices, one try at a time. Used by one thread; to be closed.

    Nothing of an answer but its status counts, so its content is not read. Redirects are not
    followed.
    """

    def __init__(self, hook: Hook, proxy: str | None = None) -> None:
        """Use a receiver; a proxy only where one is named here.

        Raises:
            UsageError: no request can be made of the address.
        """
        try:
            self._url = httpx.URL(hook.url.reveal())
        except httpx.InvalidURL:
            raise UsageError(
                "an address of --notify is not used: it cannot be read",
                remedy="Write --notify https://HOST[:PORT]/PATH, or set RECONCILER_NOTIFY.",
            ) from None
        self._runner = asyncio.Runner()
        none_kept = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        self._connection = _connection(_trust_for(hook.endpoint), proxy, none_kept)

    def close(self) -> None:
        with self._runner:
            self._runner.run(self._connection.aclose())

    def post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        """Post a body once."""
        try:
            return Posted(self._runner.run(self._post(headers, body)))
        except (httpx.TransportError, OSError, ValueError) as failure:
            return Posted(0, failure_in_words(failure))

    async def _post(self, headers: Mapping[str, str], body: bytes) -> int:
        request = _request("POST", self._url, headers, body, _OF_NOTICES)
        async with asyncio.timeout(_OF_NOTICES.one_try):
            response = await self._connection.handle_async_request(request)
            await response.aclose()
        return response.status_code


def _connection(
    trust: ssl.SSLContext, proxy: str | None, limits: httpx.Limits
) -> httpx.AsyncHTTPTransport:
    return httpx.AsyncHTTPTransport(verify=trust, trust_env=False, limits=limits, proxy=proxy)


def _request(
    verb: str,
    url: httpx.URL | str,
    headers: Mapping[str, str],
    body: bytes | None,
    limits: Limits,
) -> httpx.Request:
    timeouts = {"connect": limits.connect, "pool": limits.connect}
    timeouts |= {"read": limits.silence, "write": limits.silence}
    extensions = {"timeout": timeouts}
    return httpx.Request(
        verb, url, headers={**FIXED, **headers}, content=body, extensions=extensions
    )


def _trust_for(endpoint: Endpoint) -> ssl.SSLContext:
    """Return what certificates are checked against: those of the machine, or none at all.

    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name others, as for every program that uses OpenSSL.
    An address without TLS needs none, and reading those of a machine takes 0.1 s of processor.

    Raises:
        LocalFileError: SSLKEYLOGFILE names a file that cannot be written.
    """
    if not endpoint.origin.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # whatever had TLS all the same is refused
    try:
        return ssl.create_default_context()
    except OSError as failure:
        if failure.filename is None:  # OpenSSL reads the certificates, and names no file
            raise
        raise LocalFileError(
            f"the file in SSLKEYLOGFILE cannot be written: {failure.strerror}",
            remedy="Unset SSLKEYLOGFILE, or name a file that may be written.",
        ) from failure


async def _read(response: httpx.Response, size: int) -> Response:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("it is compressed, and that was not asked for")
    # The announced length is refused before a byte is read; the count holds where it is a lie.
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > size:
        raise ValueError(f"it is larger than {size} bytes")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > size:
            raise ValueError(f"it is larger than {size} bytes")
    tls = response.extensions["network_stream"].get_extra_info("ssl_object")
    return Response(
        response.status_code,
        bytes(content),
        response.headers.get("content-type", ""),
        response.headers.get("retry-after", ""),
        response.headers.get("location", ""),
        response.headers.get("date", ""),
        tls.getpeercert().get("notAfter", "") if tls else "",
    )
