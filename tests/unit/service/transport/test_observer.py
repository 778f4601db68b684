"""What operators see: records and figures, and nothing of what was said."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import Received
from reconciler.service.transport import observer as observer_module
from reconciler.service.transport.logs import set_up_logs
from reconciler.service.transport.observer import (
    BUCKETS,
    Metrics,
    Observer,
    Seen,
    StoreFigures,
)

SEEN = Seen("r-1", "json", "CreateAction", "42", "ci", 0.0123456, 0, 200)


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    """Leave logging as it was."""
    root, ours = logging.getLogger(), logging.getLogger("reconciler")
    before = (list(root.handlers), root.level, ours.level)
    yield io.StringIO()
    root.handlers[:], level, own = before
    root.setLevel(level)
    ours.setLevel(own)


def test_a_call_is_a_line_of_text(logs: io.StringIO) -> None:
    """Names and values, for people and for grep."""
    set_up_logs("text", logs)
    Observer().end(SEEN)

    line = logs.getvalue()
    assert line.endswith(
        "info request_id=r-1 transport=json operation=CreateAction organization=42 caller=ci "
        "milliseconds=12.346 code=0 status=200\n"
    )


def test_a_record_is_one_line_of_json(logs: io.StringIO) -> None:
    """Whatever is in it: a traceback too, and what somebody else wrote."""
    set_up_logs("json", logs)
    try:
        int("two\nlines")
    except ValueError:
        logging.getLogger("reconciler.service").exception("a call failed: %s", "x\ny")

    record = json.loads(logs.getvalue())
    assert record["message"] == "a call failed: x\ny"
    assert "ValueError" in record["traceback"]
    assert logs.getvalue().count("\n") == 1


def test_nobody_else_begins_a_line_of_text(logs: io.StringIO) -> None:
    """Line feeds in a message are shown, not made."""
    set_up_logs("text", logs)
    logging.getLogger("other").warning("a\nforged line")

    assert logs.getvalue().endswith(" warning other: a\\nforged line\n")


def test_what_a_caller_sent_makes_no_field_of_a_line(logs: io.StringIO) -> None:
    """A header with the name of an organization may hold anything."""
    set_up_logs("text", logs)
    Observer().end(replace(SEEN, organization='7" code=0 caller=root'))

    assert r'organization="7\" code=0 caller=root" caller=ci' in logs.getvalue()


def test_other_libraries_speak_from_warnings_on(logs: io.StringIO) -> None:
    """Their gossip is nobody's business here."""
    set_up_logs("text", logs)
    logging.getLogger("uvicorn.error").info("Started server process")

    assert logs.getvalue() == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [("42", "42"), ("A" * 99, "A" * 64), ("a\x1b[2J", "'a\\x1b[2J'"), ("\u202e", "'\\u202e'")],
)
def test_an_organization_is_shown_safely(value: str, shown: str) -> None:
    """Anybody can send any header."""
    with Observer().call("json", "A", {"x-zitadel-orgid": [value]}) as seen:
        assert seen.organization == shown


def test_calls_are_counted_however_they_end() -> None:
    """Also one that is cancelled: nothing stays in flight."""
    observer = Observer()

    async def hang() -> None:
        with observer.call("grpc", "B"):
            await asyncio.sleep(60)

    async def calls() -> None:
        with observer.call("grpc", "A") as seen:
            seen.note(Received("ci", Refusal(Code.ABORTED, "no", "x")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hang(), 0.01)

    asyncio.run(calls())

    text = observer.metrics.text(None, connections=3)
    assert 'reconciler_requests_total{operation="A",transport="grpc",code="10"} 1' in text
    assert 'reconciler_requests_total{operation="B",transport="grpc",code="1"} 1' in text
    assert "reconciler_requests_in_flight 0" in text
    assert "reconciler_connections 3" in text
    assert "reconciler_store_up 0" in text


def test_figures_are_as_prometheus_reads_them() -> None:
    """Buckets add up, each family says what it is, and says it once."""
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.3, 99):
        metrics.count("A", "json", 0, seconds)

    lines = metrics.text(StoreFigures(7, 2, 1.5, None), connections=0).splitlines()

    labels = 'operation="A",transport="json"'
    buckets = [line.rpartition(" ")[2] for line in lines if "_bucket{" in line]
    assert buckets == ["2"] * 7 + ["2", "3", "3", "3", "3", "3", "4"]
    assert f"reconciler_request_seconds_count{{{labels}}} 4" in lines
    assert "reconciler_events_total 7" in lines
    assert not [line for line in lines if line.startswith("reconciler_store_bytes")]
    types = [line for line in lines if line.startswith("# TYPE ")]
    assert len(types) == len(set(types))


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


def test_connections_that_are_turned_away_are_all_counted_in_few_lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a flood, a line for each would cost more than refusing it."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(observer_module, "time", clock)
    observer = Observer()
    for _ in range(100):
        observer.turned_away("no room")
    clock.now += observer_module.QUIET_SECONDS
    observer.refused(Refusal(Code.UNAVAILABLE, "no room", "service.busy"))

    assert observer.metrics.connections_refused == 101
    assert [re.findall(r": (\d+): no room", each.getMessage()) for each in caplog.records] == [
        ["1"],
        ["100"],
    ]
