"""Records for operators on stderr: text for people, or one JSON object a line for machines."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TextIO

from reconciler.service.operations.answers import to_the_second
from reconciler.service.transport.observer import Seen

GATHERED_SECONDS = 0.05
_PLAIN = re.compile(r"[\w.:/-]+", re.ASCII)


def set_up_logs(form: str, stream: TextIO | None = None) -> None:
    """Write records in a form, ``text`` or ``json``; of other libraries from warnings on."""
    handler = GatheringHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("reconciler").setLevel(logging.INFO)


class GatheringHandler(logging.StreamHandler[TextIO]):
    """Writes the records of a busy event loop together, a moment later.

    Each write lets other threads in before the event loop, which then has to wait for its turn.
    Warnings, and what comes from elsewhere, are written at once.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._is_due = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        self._lines.append(self.format(record) + self.terminator)
        if record.levelno >= logging.WARNING:
            self.flush()
        elif not self._is_due:
            self._flush_soon()

    def flush(self) -> None:
        """Write what was taken."""
        with self.lock or nullcontext():
            lines, self._lines, self._is_due = self._lines, [], False
            try:
                self.stream.write("".join(lines))
                super().flush()
            except (OSError, ValueError):
                return  # the reader of stderr is gone; calls are answered all the same

    def _flush_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            self._is_due = True
            loop.call_later(GATHERED_SECONDS, self.flush)


class JsonLines(logging.Formatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON, in one line."""
        fields: dict[str, object] = {"time": _time_of(record), "level": record.levelname.lower()}
        seen = getattr(record, "seen", None)
        if isinstance(seen, Seen):
            fields.update(_fields_of(seen))
        else:
            fields.update(logger=record.name, message=record.getMessage())
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=True)


class TextLines(logging.Formatter):
    """A line for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text. What others wrote cannot begin a line of its own."""
        start = f"{_time_of(record)} {record.levelname.lower()}"
        seen = getattr(record, "seen", None)
        if isinstance(seen, Seen):
            return f"{start} {_words(_fields_of(seen))}"
        text = f"{start} {record.name}: {record.getMessage().encode('unicode_escape').decode()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _fields_of(seen: Seen) -> dict[str, object]:
    batch = {"orders": seen.orders, "failed": seen.failed} if seen.orders else {}
    return {
        "request_id": seen.request_id,
        "transport": seen.transport,
        "operation": seen.operation,
        "organization": seen.organization,
        "caller": seen.caller,
        "milliseconds": round(seen.seconds * 1000, 3),
        "code": str(seen.code),
        "status": str(seen.status) if seen.status else "",
        **batch,
    }


def _words(fields: Mapping[str, object]) -> str:
    """Return names and values as words of a line: others wrote some, which begin no field."""
    return " ".join(f"{name}={_word(str(value) or '-')}" for name, value in fields.items())


def _word(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


def _time_of(record: logging.LogRecord) -> str:
    return f"{to_the_second(int(record.created))}.{int(record.msecs):03d}+00:00"
