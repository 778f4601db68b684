"""What a run answers on its own address: probes, figures, its state, and the trigger of a round.

The state is answered on a loopback address alone, to a request that names a loopback host and that
no proxy sent on: a page of another site that resolves to this machine gets nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from reconciler.cli.run.status import Status, status_as_json, status_as_metrics
from reconciler.resources.call import JsonObject
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.secret import Secret

STUCK_SECONDS = 3600.0  # without the end of a round; then the process is started again by its probe
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
AsgiScope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]


class _Answer(NamedTuple):
    status: int
    content: bytes
    kind: str = "application/json"
    more: tuple[tuple[bytes, bytes], ...] = ()


def _json(status: int, fields: JsonObject, *more: tuple[bytes, bytes]) -> _Answer:
    return _Answer(status, json.dumps(fields).encode() + b"\n", more=more)


@dataclass
class Pages:
    """The application of one run.

    Attributes:
        status: Returns the state as it is now.
        trigger: Asks for a round; many at a time are one.
        token: What a trigger must bear; None where there is no trigger.
        is_loopback: Whether the address is reached from this machine alone.
    """

    status: Callable[[], Status]
    trigger: Callable[[], None]
    token: Secret | None
    is_loopback: bool

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = self._found(scope)
        headers = [
            *_HEADERS,
            (b"content-type", found.kind.encode()),
            (b"content-length", str(len(found.content)).encode()),
            *found.more,
        ]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.content})

    def _found(self, scope: AsgiScope) -> _Answer:
        path = scope["raw_path"].decode("latin-1")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if path == "/trigger":
            return self._triggered_by(scope["method"], headers)
        pages = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        if self.is_loopback:
            pages["/status.json"] = self._status
        if path not in pages:
            return _json(404, {"message": "there is nothing at this address"})
        if scope["method"] not in {"GET", "HEAD"}:
            return _json(405, {"message": "only GET"}, (b"allow", b"GET, HEAD"))
        if path == "/status.json" and not _is_from_here(headers):
            return _json(403, {"message": "the state is shown on this machine only"})
        return pages[path]()

    def _healthz(self) -> _Answer:
        status = self.status()
        stuck = status.round_at and time.time() - status.round_at > STUCK_SECONDS
        return _json(503 if stuck else 200, {"status": "stuck" if stuck else "ok"})

    def _readyz(self) -> _Answer:
        is_ready = self.status().is_ready
        return _json(200 if is_ready else 503, {"status": "ready" if is_ready else "not ready"})

    def _metrics(self) -> _Answer:
        return _Answer(200, status_as_metrics(self.status()).encode(), _TEXT)

    def _status(self) -> _Answer:
        return _json(200, status_as_json(self.status()))

    def _triggered_by(self, method: str, headers: Mapping[bytes, str]) -> _Answer:
        if self.token is None:
            return _json(404, {"message": "there is no trigger: start run --trigger-token-file"})
        if method != "POST":
            return _json(405, {"message": "only POST"}, (b"allow", b"POST"))
        given = headers.get(b"authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self.token.reveal()}".encode()):
            challenge = (b"www-authenticate", b'Bearer realm="reconciler run"')
            return _json(401, {"message": "not the token of the trigger"}, challenge)
        self.trigger()
        return _json(202, {"message": "a round begins within seconds"})


def _is_from_here(headers: Mapping[bytes, str]) -> bool:
    """Return whether a request names a loopback host, and no proxy sent it on."""
    forwarded = any(name == b"forwarded" or name.startswith(b"x-forwarded") for name in headers)
    host = headers.get(b"host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return is_loopback_host(name.removeprefix("[").removesuffix("]")) and not forwarded


@contextmanager
def answering(pages: Pages, listening: socket.socket) -> Iterator[None]:
    """Answer requests on a thread of its own, as long as the block runs."""
    from reconciler.service.transport.limits import Limits
    from reconciler.service.transport.listener import serve_pages
    from reconciler.service.transport.observer import Observer

    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    serving = serve_pages(pages, listening, Observer(), Limits(), ended)
    thread = threading.Thread(target=loop.run_until_complete, args=(serving,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        if not thread.is_alive():
            loop.close()
