"""Records of a server: one line each, in which no caller begins a field or a line."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.service.transport import logs
from reconciler.service.transport.logs import GatheringHandler, JsonLines, TextLines, set_up_logs
from reconciler.service.transport.observer import Seen

SEEN = Seen("r-1", "json", "GetAction", "7", "ci", 0.0015, 0, 200)


def a_record(
    message: str = "begun", seen: Seen | None = None, level: int = logging.INFO
) -> logging.LogRecord:
    record = logging.LogRecord("reconciler.service", level, "", 0, message, None, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    if seen is not None:
        record.seen = seen
    return record


def test_a_call_is_one_json_object() -> None:
    fields = json.loads(JsonLines().format(a_record(seen=SEEN)))

    assert fields["time"] == "2023-11-14T22:13:20.250+00:00"
    assert (fields["operation"], fields["milliseconds"], fields["status"]) == (
        "GetAction", 1.5, "200",
    )  # fmt: skip
    assert "orders" not in fields


def test_a_batch_says_how_many_writes_it_had() -> None:
    line = TextLines().format(a_record(seen=replace(SEEN, orders=3, failed=1)))

    assert line.endswith("orders=3 failed=1")


@pytest.mark.parametrize(
    ("organization", "word"),
    [("7", "7"), ("", "-"), ("a b", '"a b"'), ("a\nlevel=error", '"a\\nlevel=error"')],
)
def test_what_a_caller_wrote_stays_one_word(organization: str, word: str) -> None:
    line = TextLines().format(a_record(seen=replace(SEEN, organization=organization)))

    assert f" organization={word} caller=ci " in line
    assert "\n" not in line


def test_other_records_are_one_line_and_a_failure_shows_its_place() -> None:
    plain = a_record("two\nlines")
    failed = a_record()
    try:
        Path("/nowhere/disk").read_bytes()
    except OSError:
        failed.exc_info = sys.exc_info()

    assert TextLines().format(plain).endswith("reconciler.service: two\\nlines")
    assert "FileNotFoundError" in TextLines().format(failed)
    assert "FileNotFoundError" in json.loads(JsonLines().format(failed))["traceback"]
    assert json.loads(JsonLines().format(plain))["message"] == "two\nlines"


def test_records_of_a_busy_loop_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "GATHERED_SECONDS", 0.01)
    stream = io.StringIO()
    handler = GatheringHandler(stream)

    async def main() -> str:
        handler.emit(a_record("one"))
        handler.emit(a_record("two"))
        before = stream.getvalue()
        await asyncio.sleep(0.1)
        return before

    assert asyncio.run(main()) == ""
    assert stream.getvalue() == "one\ntwo\n"


def test_a_warning_is_written_at_once_after_what_came_before() -> None:
    stream = io.StringIO()
    handler = GatheringHandler(stream)

    async def main() -> str:
        handler.emit(a_record("one"))
        handler.emit(a_record("two", level=logging.WARNING))
        return stream.getvalue()

    assert asyncio.run(main()) == "one\ntwo\n"


def test_a_reader_that_is_gone_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()

    GatheringHandler(stream).emit(a_record())


@pytest.fixture
def _restored() -> Iterator[None]:
    """Leave logging as it was."""
    root, ours = logging.getLogger(), logging.getLogger("reconciler")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(("form", "start"), [("json", '{"time"'), ("text", "20")])
def test_logs_are_set_up_in_a_form_and_others_only_warn(form: str, start: str) -> None:
    stream = io.StringIO()
    set_up_logs(form, stream)

    logging.getLogger("reconciler.service").info("ours")
    logging.getLogger("uvicorn").info("theirs")

    assert stream.getvalue().startswith(start)
    assert "ours" in stream.getvalue()
    assert "theirs" not in stream.getvalue()
