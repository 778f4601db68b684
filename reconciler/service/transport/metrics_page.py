"""Metrics on a port of their own, for Prometheus. A reader needs no token."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.service.transport.metrics import Metrics, StoreFigures

FORM = "text/plain; version=0.0.4"


def metrics_app(
    metrics: Metrics,
    figures: Callable[[], StoreFigures | None],
    connections: Callable[[], int],
) -> Starlette:
    """Return the application that answers ``/metrics``."""

    async def show(_: Request) -> Response:
        store = await run_in_threadpool(figures)
        return Response(metrics.text(store, connections=connections()), media_type=FORM)

    return Starlette(routes=[Route("/metrics", show)])
