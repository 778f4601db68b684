"""The application behind the port: pages, gRPC-web, and REST for all else."""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.json_http import JsonHttp
from reconciler.service.transport.observer import Answer, Observer, Seen
from reconciler.service.transport.pages import PATHS, State, pages

OF_REST = ("/management/v1/", "/admin/v1/", "/reconciler/v1/")
_CODES = {401: 16, 405: 12, 503: 14}
_INTERNAL = 13


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
