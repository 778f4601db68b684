"""Observation of every call, for operators: a record in the log, and figures for Prometheus.

Nothing of a body, and no token, gets here: there is no parameter for it.
"""

from __future__ import annotations

import itertools
import logging
import re
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.batch import ANSWERS, DONE
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import ORGANIZATION, Headers

LOG = logging.getLogger("reconciler.requests")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LONGEST_SHOWN = 64
QUIET_SECONDS = 1.0  # between two lines about refused connections
# Upper bounds of a histogram, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FORM = "text/plain; version=0.0.4"

Answer = Callable[[Incoming], Awaitable[Received]]


class Seen(NamedTuple):
    """One call, as it stands in the log.

    Attributes:
        operation: Empty where the address meant none.
        organization: As the caller named it, in a form that is safe to show.
        caller: Name of the token; empty where it is not known.
        code: 0, or the code of the refusal.
        status: Of HTTP; 0 where there is none.
        orders: How many writes a batch had; 0 for other calls.
        failed: How many of them were refused or not tried.
    """

    request_id: str
    transport: str
    operation: str
    organization: str
    caller: str
    seconds: float
    code: int
    status: int
    orders: int = 0
    failed: int = 0


class Observer:
    """Sees calls come and go."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        # Ids of one server begin alike, and unlike those of others whose logs are read with it.
        self._prefix = token_hex(4)
        self._numbers = itertools.count(1)
        self._turned_away = 0
        self._quiet_until = 0.0

    def request_id(self, given: bytes | None = None) -> str:
        """Return the id of a request: the caller's own if it is a plain word, or a new one."""
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given.decode("ascii")
        return f"{self._prefix}-{next(self._numbers):x}"

    def begin(self) -> float:
        """See a call come; return when that was."""
        self.metrics.in_flight += 1
        return time.perf_counter()

    def end(self, seen: Seen) -> None:
        """See a call go."""
        self.metrics.in_flight -= 1
        self.metrics.count(seen.operation, seen.transport, seen.code, seen.seconds)
        if LOG.isEnabledFor(logging.INFO):
            LOG.handle(_record_of(seen))

    def refused(self, refusal: Refusal) -> None:
        """See a connection refused before there was a call."""
        if refusal.code is Code.UNAVAILABLE:
            self.turned_away(refusal.message)
            return
        self.metrics.connections_refused += 1
        LOG.debug("a connection was refused: %s", refusal.message)

    def turned_away(self, why: str) -> None:
        """See a connection refused because there is no room; log that once a second at most."""
        self.metrics.connections_refused += 1
        self._turned_away += 1
        now = time.monotonic()
        # In a flood, a line for each connection would cost more than refusing it.
        if now >= self._quiet_until:
            count, self._turned_away = self._turned_away, 0
            self._quiet_until = now + QUIET_SECONDS
            LOG.warning("connections refused since the last such line: %d: %s", count, why)

    def watch(self, answer: Answer, transport: str) -> Answer:
        """Return a way to have calls of a transport answered that sees each of them."""

        async def watched(call: Incoming) -> Received:
            began = self.begin()
            received = Received("", {})
            code = 1  # cancelled, unless an answer comes
            try:
                received = await answer(call)
                code = code_of(received)
            finally:
                self.end(
                    Seen(
                        self.request_id(),
                        transport,
                        call.operation,
                        organization_of(call.headers),
                        received.caller,
                        time.perf_counter() - began,
                        code,
                        0,
                    )
                )
            return received

        return watched


def _record_of(seen: Seen) -> logging.LogRecord:
    """Return the record of a call.

    ``LOG.info`` would look for the line of source that it was called from, which takes longer than
    all the rest of a record, for every call.
    """
    record = logging.LogRecord(LOG.name, logging.INFO, "", 0, seen.operation or "-", (), None)
    record.seen = seen
    return record


def code_of(received: Received) -> int:
    """Return the code of an answer: 0, or that of its refusal."""
    return int(received.answer.code) if isinstance(received.answer, Refusal) else 0


def orders_of(received: Received) -> tuple[int, int]:
    """Return how many orders a batch had, and how many failed; zeros for other calls."""
    if isinstance(received.answer, Refusal):
        return 0, 0
    answers = received.answer.get(ANSWERS, ())
    return len(answers), sum(DONE not in answer for answer in answers)


def organization_of(headers: Headers) -> str:
    """Return the organization that a call names, safe to show: its caller may have no token."""
    for name in ORGANIZATION:
        values = headers.get(name)
        if values:
            text = values[0][:_LONGEST_SHOWN]
            return text if text.isascii() and text.isprintable() else ascii(text)
    return ""


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
