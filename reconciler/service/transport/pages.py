"""Pages that need no token: whether the server lives, whether it is ready, and its API.

The description of the API is written into files of ``docs/`` beforehand (``docs/api``). An
installed package carries them in ``reconciler/api``.
"""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.http_answers import HttpRefusal, json_answer
from reconciler.service.transport.json_http import JsonHttp
from reconciler.service.transport.observer import Answer, Observer, Seen

LIVE = frozenset({"/healthz", "/debug/healthz"})
READY = frozenset({"/readyz", "/debug/ready"})
OPENAPI = "/openapi.json"
DOCS = "/docs"
OF_REST = ("/management/v1/", "/admin/v1/", "/reconciler/v1/")
_CODES = {401: 16, 405: 12, 503: 14}
_INTERNAL = 13
PATHS = LIVE | READY | {OPENAPI, DOCS}

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "api", _PACKAGE.parent / "docs")

NOT_READY = Refusal(Code.UNAVAILABLE, "the service is not ready", "service.not_ready")
NO_TOKEN_YET = Refusal(
    Code.UNAUTHENTICATED, "this service has no token yet: make the first one", "token.none"
)


@dataclass(frozen=True, slots=True)
class State:
    """State of the server that the pages show.

    Attributes:
        is_ready: Whether the store can be read and the server is not about to end.
        is_open: Whether anybody may call at all; until the first token there is nothing to read.
            None where the store gives no answer.
    """

    is_ready: Callable[[], Awaitable[bool]]
    is_open: Callable[[], Awaitable[bool | None]]


def pages(state: State) -> Starlette:
    """Return the application that answers ``PATHS``."""

    async def live(_: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_: Request) -> Response:
        return _json({"status": "ready"} if await state.is_ready() else NOT_READY)

    async def openapi(_: Request) -> Response:
        if refusal := await _closed(state):
            return _json(refusal)
        return Response(_file("openapi.json"), media_type="application/json", headers=_SAFE)

    async def docs(_: Request) -> Response:
        if refusal := await _closed(state):
            return _json(refusal)
        page = _file("openapi.html")
        policy = {"content-security-policy": _policy(page)}
        return Response(page, media_type="text/html", headers={**_SAFE, **policy})

    return Starlette(
        routes=[
            *(Route(path, live) for path in sorted(LIVE)),
            *(Route(path, ready) for path in sorted(READY)),
            Route(OPENAPI, openapi),
            Route(DOCS, docs),
        ],
        exception_handlers={405: _wrong_verb},
    )


async def _wrong_verb(_: Request, failure: Exception) -> Response:
    headers = failure.headers if isinstance(failure, HTTPException) else None
    allow = (headers or {}).get("Allow", "")
    return _json(
        HttpRefusal(
            405, Code.UNIMPLEMENTED, "this address has no such verb", "verb.unknown", allow=allow
        )
    )


async def _closed(state: State) -> Refusal | None:
    """Return the refusal of the API description before the first token, or None."""
    is_open = await state.is_open()
    if is_open is None:
        return NOT_READY
    return None if is_open else NO_TOKEN_YET


def _json(answer: JsonObject | Refusal) -> Response:
    made = json_answer(answer)
    headers = {name.decode(): value.decode() for name, value in made.headers}
    return Response(made.body, made.status, headers)


@cache
def _file(name: str) -> bytes:
    """Return a file of the description, of the installed package or of the checkout."""
    return next(folder / name for folder in _FOLDERS if (folder / name).is_file()).read_bytes()


@cache
def _policy(page: bytes) -> str:
    """Return the content policy of a page: its own style, and nothing from anywhere."""
    styles = re.findall(rb"<style>(.*?)</style>", page, re.DOTALL)
    hashes = " ".join(f"'sha256-{b64encode(sha256(each).digest()).decode()}'" for each in styles)
    return (
        f"default-src 'none'; style-src {hashes}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


_SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}


def build_app(
    answer: Answer,
    observer: Observer,
    state: State,
    bodies: Bodies,
    web_routes: Mapping[str, ASGIApp],
) -> ASGIApp:
    """Return the application; ``web_routes`` are others, by the first part of their addresses."""
    rest = JsonHttp(answer, observer, bodies)
    shown = _seen(pages(state), observer)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        if path.startswith(OF_REST):
            await rest(scope, receive, send)
        elif path in PATHS:
            await shown(scope, receive, send)
        else:
            other = web_routes.get(path.split("/", 2)[1], rest)
            await other(scope, receive, send)

    return app


def _seen(app: ASGIApp, observer: Observer) -> ASGIApp:
    """Return an application whose calls are seen."""

    async def seen(scope: Scope, receive: Receive, send: Send) -> None:
        began = observer.begin()
        request_id = observer.request_id()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            await app(scope, receive, send_on)
        finally:
            name = scope["raw_path"].decode("latin-1")
            seconds = time.perf_counter() - began
            code = 0 if status == 200 else _CODES.get(status, _INTERNAL)
            observer.end(Seen(request_id, "page", name, "", "", seconds, code, status))

    return seen
