"""Pages that need no token: who sees which of them, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.intake import Intake
from reconciler.service.transport.json_http import JsonHttp
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.pages import PATHS, Pages, build_app
from reconciler.service.transport.ui import Ui
from tests.examples import NAMES_ALONE
from tests.rows import each_row
from tests.unit.service.transport.asgi import connected


def asked(
    verb: str, path: str, *, is_ready: bool = True, is_open: bool | None = True
) -> tuple[httpx.Response, str]:
    """Return the answer of a page, and the figures after it."""
    observer = Observer()

    async def answer(_: Incoming) -> Received:
        return Received("", {})

    async def ready() -> bool:
        return is_ready

    async def may_call() -> bool | None:
        return is_open

    async def grpc(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> httpx.Response:
        rest = JsonHttp(answer, observer, Intake(answer, Limits()))
        pages = Pages(observer, ready, may_call)
        app = build_app(rest, pages, Ui(answer, observer, NAMES_ALONE), grpc)
        transport = httpx.ASGITransport(connected(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(verb, path)

    return asyncio.run(ask()), observer.metrics.text(None, connections=0)


@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
def test_readiness_is_the_stores(status: int, *, is_ready: bool) -> None:
    """A server that cannot read, or is about to end, gets no calls; it lives all the same."""
    readyz, _ = asked("GET", "/readyz", is_ready=is_ready)
    healthz, _ = asked("GET", "/healthz", is_ready=is_ready)

    assert (readyz.status_code, healthz.status_code) == (status, 200)
    assert ("retry-after" in readyz.headers) == (status == 503)


@each_row("path", sorted(PATHS))
@each_row(("verb", "status", "code"), [("GET", 200, 0), ("HEAD", 200, 0), ("POST", 405, 12)])
def test_each_page_is_read_and_nothing_else_and_is_counted(
    path: str, verb: str, status: int, code: int
) -> None:
    answer, figures = asked(verb, path)

    assert answer.status_code == status
    assert answer.headers["x-request-id"]
    assert answer.headers.get("allow", "GET, HEAD") == "GET, HEAD"
    assert f'{{operation="{path}",transport="page",code="{code}"}} 1' in figures


@pytest.mark.parametrize(("is_open", "status"), [(False, 401), (None, 503)])
@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_there_is_no_description_before_the_first_token(
    path: str, status: int, *, is_open: bool | None
) -> None:
    assert asked("GET", path, is_open=is_open)[0].status_code == status


def test_the_page_of_the_description_runs_nothing() -> None:
    answer, _ = asked("GET", "/docs")

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 's")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("path", "transport"), [("/management/v1/x", "json"), ("/x", "json")])
def test_all_else_is_of_rest(path: str, transport: str) -> None:
    answer, figures = asked("GET", path)

    assert answer.status_code == 200
    assert f'transport="{transport}"' in figures


async def _call(app: Any, scope: Any, send: Any) -> None:
    await app(scope, None, send)


METHOD = "/zitadel.management.v1.ManagementService/ListActions"


@each_row(
    ("path", "version", "content_type", "app"),
    [
        (METHOD, "1.1", b"application/grpc-web", "grpc"),
        (METHOD, "2", b"application/json", "grpc"),
        ("/of.another/Service", "2", b"application/grpc", "grpc"),
        ("/of.another/Service", "2", b"application/json", "rest"),
        ("/of.another/Service", "1.1", b"application/grpc", "rest"),
        ("/management/v1/x", "2", b"application/grpc", "rest"),
        ("/healthz", "2", b"application/grpc", "page"),
    ],
)
def test_grpc_is_answered_at_its_services_and_over_http_2_by_its_type(
    path: str, version: str, content_type: bytes, app: str
) -> None:
    """So that a client of gRPC reads in its own words that there is no such service."""
    answered: list[str] = []

    async def answer(_: Incoming) -> Received:
        answered.append("rest")
        return Received("", {})

    async def grpc(scope: Any, receive: Any, send: Any) -> None:
        answered.append("grpc")

    async def yes() -> bool:
        return True

    async def send(_: Any) -> None: ...

    scope = {
        "type": "http",
        "method": "GET",
        "http_version": version,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", content_type)],
    }
    observer = Observer()
    rest = JsonHttp(answer, observer, Intake(answer, Limits()))
    pages = Pages(observer, yes, yes)
    built = build_app(rest, pages, Ui(answer, observer, NAMES_ALONE), grpc)
    asyncio.run(_call(connected(built), scope, send))

    assert (answered or ["page"]) == [app]
