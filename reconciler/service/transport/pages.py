"""What a server shows to anybody: that it lives, that it is ready, and how it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.http_answers import HttpRefusal, json_answer

LIVE = frozenset({"/healthz", "/debug/healthz"})
READY = frozenset({"/readyz", "/debug/ready"})
OPENAPI = "/openapi.json"
DOCS = "/docs"
PATHS = LIVE | READY | {OPENAPI, DOCS}

NOT_READY = Refusal(Code.UNAVAILABLE, "the service is not ready", "service.not_ready")
NO_TOKEN_YET = Refusal(
    Code.UNAUTHENTICATED, "this service has no token yet: make the first one", "token.none"
)


@dataclass(frozen=True, slots=True)
class State:
    """What the pages need to know of the server.

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
        from reconciler.service.transport.openapi import openapi_text

        if refusal := await _closed(state):
            return _json(refusal)
        return Response(openapi_text(), media_type="application/json", headers=_SAFE)

    async def docs(_: Request) -> Response:
        from reconciler.service.transport.docs_page import CONTENT_POLICY, docs_page

        if refusal := await _closed(state):
            return _json(refusal)
        policy = {"content-security-policy": CONTENT_POLICY}
        return Response(docs_page(), media_type="text/html", headers={**_SAFE, **policy})

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
    """Return why nobody may read how the service is called, or None."""
    is_open = await state.is_open()
    if is_open is None:
        return NOT_READY
    return None if is_open else NO_TOKEN_YET


def _json(answer: Mapping[str, Any] | Refusal) -> Response:
    made = json_answer(answer)
    headers = {name.decode(): value.decode() for name, value in made.headers}
    return Response(made.body, made.status, headers)


_SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}
