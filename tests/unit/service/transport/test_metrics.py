"""Figures of a server as Prometheus reads them."""

from __future__ import annotations

import re

import pytest

from reconciler.service.transport.metrics import BUCKETS, Metrics, StoreFigures

STORE = StoreFigures(events=7, organizations=2, last_commit=1.5, size=4096)


def figure(text: str, name: str) -> str | None:
    """Return the value of a series, which is named with its labels."""
    found = re.search(rf"(?m)^{re.escape(name)} (.*)$", text)
    return found[1] if found else None


def test_calls_are_counted_by_operation_transport_and_code() -> None:
    metrics = Metrics()
    for code in (0, 0, 5):
        metrics.count("GetAction", "json", code, 0.004)
    text = metrics.text(None, connections=3)

    def total(code: int) -> str | None:
        labels = f'operation="GetAction",transport="json",code="{code}"'
        return figure(text, f"reconciler_requests_total{{{labels}}}")

    assert (total(0), total(5)) == ("2", "1")
    assert figure(text, "reconciler_connections") == "3"


@pytest.mark.parametrize(
    ("seconds", "first"), [(0.0005, "0.001"), (0.001, "0.001"), (0.3, "0.5"), (99, "+Inf")]
)
def test_a_duration_is_in_its_bucket_and_every_larger_one(seconds: float, first: str) -> None:
    metrics = Metrics()
    metrics.count("GetAction", "json", 0, seconds)
    text = metrics.text(None, connections=0)
    bounds = [*map(str, BUCKETS), "+Inf"]

    counts = [
        figure(
            text,
            "reconciler_request_seconds_bucket"
            f'{{operation="GetAction",transport="json",le="{bound}"}}',
        )
        for bound in bounds
    ]

    at = bounds.index(first)
    assert counts == ["0"] * at + ["1"] * (len(bounds) - at)


@pytest.mark.parametrize(("store", "up"), [(STORE, "1"), (None, "0")])
def test_a_store_that_cannot_be_read_has_no_figures(store: StoreFigures | None, up: str) -> None:
    text = Metrics().text(store, connections=0)

    assert figure(text, "reconciler_store_up") == up
    assert figure(text, "reconciler_events_total") == ("7" if store else None)
    assert figure(text, "reconciler_store_bytes") == ("4096" if store else None)


def test_a_store_that_knows_no_size_says_none() -> None:
    text = Metrics().text(STORE._replace(size=None), connections=0)

    assert figure(text, "reconciler_store_bytes") is None
    assert text.endswith("\n")


def test_every_series_has_its_help_and_its_type_before_it() -> None:
    metrics = Metrics()
    metrics.count("GetAction", "json", 0, 0.1)
    described: set[str] = set()
    for line in metrics.text(STORE, connections=0).splitlines():
        if line.startswith("# TYPE"):
            described.add(line.split()[2])
        elif not line.startswith("#"):
            name = re.sub(r"_(?:bucket|sum|count)$", "", re.split(r"[ {]", line)[0])
            assert name in described
