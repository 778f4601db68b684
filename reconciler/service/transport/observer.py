"""Observation of every call, for operators: a record in the log, and figures for Prometheus.

Nothing of a body, and no token, gets here: there is no parameter for it.

``prometheus_client`` would save a dozen lines. It takes 1.2 us to count a call, or 3 with its own
look-up of labels, where this takes 0.4, and 20 ms for a scrape of every operation, where this
takes 3.5. It also adds a series ``_created`` to each, unless the whole process goes without.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from types import MappingProxyType
from typing import NamedTuple

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.batch import ANSWERS, DONE
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import Headers, organization_named, shown
from reconciler.service.transport.asgi import ASGIApp, Receive, Scope, Send
from reconciler.service.transport.http_messages import (
    answer_of,
    json_answer,
    send_answer,
    unknown_address,
    wrong_verb,
)

LOG = logging.getLogger("reconciler.requests")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
QUIET_SECONDS = 1.0  # between two lines about refused connections
# Upper bounds of a histogram, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FORM = b"text/plain; version=0.0.4; charset=utf-8"
_REFUSED = "Connections refused before there was a call."
CANCELLED = 1  # the code of a call without an answer

Answer = Callable[[Incoming], Awaitable[Received]]
_Figure = tuple[str, str, str, float]  # name, kind, help and value of a series without labels


@dataclass(slots=True)
class Seen:
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
    organization: str = ""
    caller: str = ""
    seconds: float = 0.0
    code: int = CANCELLED
    status: int = 0
    orders: int = 0
    failed: int = 0

    def note(self, received: Received) -> None:
        """Note the answer of the call."""
        self.caller = received.caller
        if isinstance(received.answer, Refusal):
            self.code = int(received.answer.code)
            return
        self.code = 0
        answers = received.answer.get(ANSWERS, ())
        self.orders = len(answers)
        self.failed = sum(DONE not in answer for answer in answers)


class Observer:
    """Sees calls come and go."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        # Ids of one server begin alike, and unlike those of others whose logs are read with it.
        self._prefix = token_hex(4)
        self._numbers = itertools.count(1)
        self._turned_away = 0
        self._quiet_until = 0.0

    def request_id(self, given: str = "") -> str:
        """Return the id of a request: the caller's own if it is a plain word, or a new one."""
        if _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._prefix}-{next(self._numbers):x}"

    @contextmanager
    def call(
        self,
        transport: str,
        operation: str,
        headers: Headers = MappingProxyType({}),
        given_id: str = "",
    ) -> Iterator[Seen]:
        """See a call for as long as the block runs; without a note, it counts as cancelled."""
        began = time.perf_counter()
        self.metrics.in_flight += 1
        # Safe to show: its caller may have no token.
        organization = shown(organization_named(headers))
        seen = Seen(self.request_id(given_id), transport, operation, organization)
        try:
            yield seen
        finally:
            seen.seconds = time.perf_counter() - began
            self.metrics.in_flight -= 1
            self.end(seen)

    def end(self, seen: Seen) -> None:
        """Count a call that is over, and log it."""
        self.metrics.count(seen.operation, seen.transport, seen.code, seen.seconds)
        if LOG.isEnabledFor(logging.INFO):
            # ``LOG.info`` would look for the line of source that it was called from, which takes
            # longer than all the rest of a record, for every call.
            message = seen.operation or "-"
            record = logging.LogRecord(LOG.name, logging.INFO, "", 0, message, (), None)
            record.seen = seen
            LOG.handle(record)

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
        refused, is_up = self.connections_refused, int(store is not None)
        figures: list[_Figure] = [
            ("reconciler_requests_in_flight", "gauge", "Calls being answered.", self.in_flight),
            ("reconciler_connections", "gauge", "Open connections.", connections),
            ("reconciler_connections_refused_total", "counter", _REFUSED, refused),
            ("reconciler_store_up", "gauge", "Whether the store can be read.", is_up),
            *(_store_figures(store) if store is not None else ()),
        ]
        lines = [*self._call_lines(), *self._duration_lines()]
        for name, kind, text, value in figures:
            lines += [*_head(name, kind, text), f"{name} {value}"]
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
            sums = itertools.accumulate(durations.counts)
            for bound, count in zip((*BUCKETS, "+Inf"), sums, strict=True):
                yield f"{name}_bucket{_labels({**labels, 'le': str(bound)})} {count}"
            yield f"{name}_sum{_labels(labels)} {durations.total:.6f}"
            yield f"{name}_count{_labels(labels)} {sum(durations.counts)}"


def _store_figures(store: StoreFigures) -> Iterator[_Figure]:
    yield "reconciler_events_total", "counter", "Events in the log.", store.events
    yield "reconciler_organizations", "gauge", "Organizations.", store.organizations
    last = "reconciler_last_commit_timestamp_seconds"
    yield last, "gauge", "Time of the last event.", store.last_commit
    if store.size is not None:
        yield "reconciler_store_bytes", "gauge", "Size of the store.", store.size


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
) -> ASGIApp:
    """Return the application that answers ``/metrics``."""

    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/metrics":
            answer = json_answer(unknown_address())
        elif scope["method"] not in {"GET", "HEAD"}:
            answer = json_answer(wrong_verb({"GET"}))
        else:
            store = await asyncio.to_thread(figures)
            text = metrics.text(store, connections=connections())
            answer = answer_of(200, text.encode(), (b"content-type", FORM))
        await send_answer(send, answer)

    return show
