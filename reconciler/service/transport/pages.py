"""Pages that need no token: whether the server lives, whether it is ready, and its API.

The description of the API is written into files of ``docs/`` beforehand (``docs/api``). An
installed package carries them in ``reconciler/api``.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.asgi import ASGIApp, Receive, Scope, Send
from reconciler.service.transport.http_messages import (
    HTML,
    HttpAnswer,
    answer_of,
    is_grpc,
    json_answer,
    send_answer,
    wrong_verb,
)
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.protobuf import SERVICES
from reconciler.service.transport.ui import is_of_ui

LIVE = frozenset({"/healthz", "/debug/healthz"})
READY = frozenset({"/readyz", "/debug/ready"})
OPENAPI = "/openapi.json"
DOCS = "/docs"
OF_REST = ("/management/v1/", "/admin/v1/", "/reconciler/v1/")
PATHS = LIVE | READY | {OPENAPI, DOCS}
TOKENS = "/oauth/v2/token"
DISCOVERY = "/.well-known/openid-configuration"
TOKEN_PATHS = frozenset({TOKENS, DISCOVERY})

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "api", _PACKAGE.parent / "docs")
_OF_A_FILE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-cache"))

NOT_READY = Refusal(Code.UNAVAILABLE, "the service is not ready", "service.not_ready")
NO_TOKEN_YET = Refusal(
    Code.UNAUTHENTICATED, "this service has no token yet: make the first one", "token.none"
)


class Pages:
    """The application that answers ``PATHS``."""

    def __init__(
        self,
        observer: Observer,
        is_ready: Callable[[], Awaitable[bool]],
        is_open: Callable[[], Awaitable[bool | None]],
    ) -> None:
        """``is_ready`` says whether the store can be used and the server is not about to end.

        ``is_open`` says whether any caller may call at all; until the first token there is nothing
        to read. It is None where the store gives no answer.
        """
        self._observer = observer
        self._is_ready = is_ready
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        with self._observer.call("page", path) as seen:
            seen.code = int(Code.INTERNAL)  # until there is an answer
            found = await self._found(scope["method"], path)
            answer = found if isinstance(found, HttpAnswer) else json_answer(found)
            seen.code = int(found.code) if isinstance(found, Refusal) else 0
            seen.status = answer.status
            await send_answer(send, answer, seen.request_id)

    async def _found(self, method: str, path: str) -> HttpAnswer | JsonObject | Refusal:
        if method not in {"GET", "HEAD"}:
            return wrong_verb({"GET"})
        if path in LIVE:
            return {"status": "ok"}
        if path in READY:
            return {"status": "ready"} if await self._is_ready() else NOT_READY
        is_open = await self._is_open()
        if not is_open:
            return NOT_READY if is_open is None else NO_TOKEN_YET
        if path == OPENAPI:
            kind = (b"content-type", b"application/json")
            return answer_of(200, _file("openapi.json"), kind, *_OF_A_FILE)
        page = _file("openapi.html")
        policy = (b"content-security-policy", _policy(page))
        return answer_of(200, page, HTML, policy, *_OF_A_FILE)


@cache
def _file(name: str) -> bytes:
    """Return a file of the description, of the installed package or of the checkout."""
    return next(folder / name for folder in _FOLDERS if (folder / name).is_file()).read_bytes()


@cache
def _policy(page: bytes) -> bytes:
    """Return the content policy of a page: its own style, and nothing from anywhere."""
    styles = re.findall(rb"<style>(.*?)</style>", page, re.DOTALL)
    hashes = " ".join(f"'sha256-{b64encode(sha256(each).digest()).decode()}'" for each in styles)
    return (
        f"default-src 'none'; style-src {hashes}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ).encode()


def build_app(
    rest: ASGIApp, pages: ASGIApp, ui: ASGIApp, grpc: ASGIApp, tokens: ASGIApp | None = None
) -> ASGIApp:
    """Return the application that hands each request to one of these, by its address.

    Over HTTP/2, ``grpc`` also answers what says that it is gRPC, so that it is refused in its
    words. ``tokens``, if any, answers at ``TOKEN_PATHS``.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        if path.startswith(OF_REST):
            await rest(scope, receive, send)
        elif path in PATHS:
            await pages(scope, receive, send)
        elif tokens is not None and path in TOKEN_PATHS:
            await tokens(scope, receive, send)
        elif is_of_ui(path):
            await ui(scope, receive, send)
        elif path.split("/", 2)[1] in SERVICES or is_grpc(scope):
            await grpc(scope, receive, send)
        else:
            await rest(scope, receive, send)

    return app
