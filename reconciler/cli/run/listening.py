"""The pages of a run on its own address: probes, figures, its state, and the trigger of a round.

The state is answered to a caller with the token of the page. Without one it is answered on a
loopback address alone, to a request that names a loopback host and that no proxy sent on: a page
of another site whose name resolves to this machine gets nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from reconciler.cli.run.page import StatusPage
from reconciler.cli.run.status import Status, status_as_json, status_as_metrics
from reconciler.report.page import served_policy
from reconciler.resources.call import JsonObject
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import Refusal
from reconciler.service.transport.asgi import Receive, Scope, Send
from reconciler.service.transport.connections import Certificate
from reconciler.service.transport.http_messages import (
    ALWAYS,
    HTML,
    OF_JSON,
    HttpAnswer,
    answer_of,
    send_answer,
)
from reconciler.service.transport.json_http import read_parameters
from reconciler.service.transport.ui import CHALLENGE, GUARDS, password

STUCK_SECONDS = 3600.0  # without the end of a round; then the process is started again by its probe
_TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_OF_STATE = frozenset({"/", "/status.json"})
_SENT_ON = frozenset({b"forwarded", b"via", b"x-real-ip"})


def _json(status: int, fields: JsonObject, *more: tuple[bytes, bytes]) -> HttpAnswer:
    return answer_of(status, json.dumps(fields).encode() + b"\n", *OF_JSON, *more)


@dataclass
class Pages:
    """The application of one run.

    Attributes:
        status: Returns the state as it is now.
        trigger: Asks for a round; many at a time are one.
        token: The token that a trigger must carry; None where there is no trigger.
        is_loopback: Whether the address is reached from this machine alone.
    """

    status: Callable[[], Status]
    trigger: Callable[[], None]
    token: Secret | None
    is_loopback: bool
    page_token: Secret | None = None
    page: StatusPage = field(default_factory=StatusPage)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_answer(send, self._found(scope))

    def _found(self, scope: Scope) -> HttpAnswer:
        path = scope["raw_path"].decode("latin-1")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if path == "/trigger":
            return self._triggered_by(scope["method"], headers)
        pages = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        has_state = path in _OF_STATE and (self.is_loopback or self.page_token is not None)
        if not has_state and path not in pages:
            return _json(404, {"message": "there is nothing at this address"})
        if scope["method"] not in {"GET", "HEAD"}:
            return _json(405, {"message": "only GET"}, (b"allow", b"GET, HEAD"))
        return self._state(scope, path, headers) if has_state else pages[path]()

    def _state(self, scope: Scope, path: str, headers: Mapping[bytes, str]) -> HttpAnswer:
        """Return the state as a page or as JSON, to a caller who may see it."""
        if (refused := self._refused(headers)) is not None:
            return refused
        if path == "/status.json":
            return _json(200, status_as_json(self.status()))
        try:
            query = read_parameters(scope["query_string"])
        except Refusal as refusal:
            return _json(400, {"message": refusal.message})
        content = self.page.draw(self.status(), query).encode()
        policy = (b"content-security-policy", served_policy().encode())
        return answer_of(200, content, HTML, policy, *GUARDS, *ALWAYS)

    def _refused(self, headers: Mapping[bytes, str]) -> HttpAnswer | None:
        """Return why this request does not see the state, or None.

        With a token the password decides. Without one, only a request from this machine counts.
        """
        if self.page_token is None:
            if _is_from_here(headers):
                return None
            return _json(403, {"message": "the state is shown on this machine only"})
        try:
            given = password({"authorization": [headers.get(b"authorization", "")]})
        except Refusal as refusal:
            return _json(401, {"message": refusal.message}, CHALLENGE)
        if not hmac.compare_digest(given.encode(), self.page_token.reveal().encode()):
            return _json(401, {"message": "not the token of the page"}, CHALLENGE)
        return None

    def _healthz(self) -> HttpAnswer:
        status = self.status()
        stuck = status.round_at and time.time() - status.round_at > STUCK_SECONDS
        return _json(503 if stuck else 200, {"status": "stuck" if stuck else "ok"})

    def _readyz(self) -> HttpAnswer:
        is_ready = self.status().is_ready
        return _json(200 if is_ready else 503, {"status": "ready" if is_ready else "not ready"})

    def _metrics(self) -> HttpAnswer:
        return answer_of(200, status_as_metrics(self.status()).encode(), _TEXT, *ALWAYS)

    def _triggered_by(self, method: str, headers: Mapping[bytes, str]) -> HttpAnswer:
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
    forwarded = any(name in _SENT_ON or name.startswith(b"x-forwarded") for name in headers)
    host = headers.get(b"host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return is_loopback_host(name.removeprefix("[").removesuffix("]")) and not forwarded


@contextmanager
def answering(
    pages: Pages, listening: socket.socket, tls: Certificate | None = None
) -> Iterator[None]:
    """Answer requests on a thread of its own, as long as the block runs."""
    from reconciler.service.transport.limits import Limits
    from reconciler.service.transport.listener import pages_served
    from reconciler.service.transport.observer import Observer

    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with pages_served(pages, listening, Observer(), Limits(), tls):
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        if not thread.is_alive():
            loop.close()
