"""Figures of a running server, in the text form that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class StoreFigures(NamedTuple):
    """Figures of the store.

    Attributes:
        last_commit: Time of the last event, in seconds since the epoch; 0 where there is none.
        size: In bytes; None where the store does not know it.
    """

    events: int
    organizations: int
    last_commit: float
    size: int | None


@dataclass(slots=True)
class _Durations:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0


class Metrics:
    """Counts calls."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.connections_refused = 0
        self._calls: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[tuple[str, str], _Durations] = defaultdict(_Durations)

    def count(self, operation: str, transport: str, code: int, seconds: float) -> None:
        """Count one call."""
        self._calls[operation, transport, code] += 1
        durations = self._durations[operation, transport]
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def text(self, store: StoreFigures | None, *, connections: int) -> str:
        """Return every figure; without those of a store that cannot be read."""
        lines = [*self._call_lines(), *self._duration_lines()]
        lines += _gauge("reconciler_requests_in_flight", "Calls being answered.", self.in_flight)
        lines += _gauge("reconciler_connections", "Open connections.", connections)
        name = "reconciler_connections_refused_total"
        lines += _head(name, "counter", "Connections refused before there was a call.")
        lines.append(f"{name} {self.connections_refused}")
        lines += _gauge(
            "reconciler_store_up", "Whether the store can be read.", int(store is not None)
        )
        if store is not None:
            lines += _store_lines(store)
        return "\n".join(lines) + "\n"

    def _call_lines(self) -> Iterator[str]:
        name = "reconciler_requests_total"
        yield from _head(name, "counter", "Calls by operation, transport and code (0 is success).")
        for (operation, transport, code), count in sorted(self._calls.items()):
            labels = {"operation": operation, "transport": transport, "code": str(code)}
            yield f"{name}{_labels(labels)} {count}"

    def _duration_lines(self) -> Iterator[str]:
        name = "reconciler_request_seconds"
        yield from _head(name, "histogram", "How long calls took.")
        for (operation, transport), durations in sorted(self._durations.items()):
            labels = {"operation": operation, "transport": transport}
            sum_so_far = 0
            for bound, count in zip((*BUCKETS, "+Inf"), durations.counts, strict=True):
                sum_so_far += count
                yield f"{name}_bucket{_labels({**labels, 'le': str(bound)})} {sum_so_far}"
            yield f"{name}_sum{_labels(labels)} {durations.total:.6f}"
            yield f"{name}_count{_labels(labels)} {sum_so_far}"


def _store_lines(store: StoreFigures) -> Iterator[str]:
    yield from _head("reconciler_events_total", "counter", "Events in the log.")
    yield f"reconciler_events_total {store.events}"
    yield from _gauge("reconciler_organizations", "Organizations.", store.organizations)
    yield from _gauge(
        "reconciler_last_commit_timestamp_seconds", "Time of the last event.", store.last_commit
    )
    if store.size is not None:
        yield from _gauge("reconciler_store_bytes", "Size of the store.", store.size)


def _gauge(name: str, text: str, value: float) -> Iterator[str]:
    yield from _head(name, "gauge", text)
    yield f"{name} {value}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels. Their values are words of ours, which need no escaping."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


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
