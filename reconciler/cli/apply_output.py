"""Output of an apply: text, one JSON document or a stream of records; and its progress."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from types import FrameType
from typing import IO, Self

import click

from reconciler.apply.changes import ApplyReport, Progress
from reconciler.cli.output import draw, show_warnings
from reconciler.cli.process import chosen
from reconciler.cli.signals import handle_with
from reconciler.errors import InterruptedRunError, ReconcilerError
from reconciler.plan.model import Change
from reconciler.report.apply_report import (
    ResultDocument,
    end_record,
    error_record,
    place_record,
    plan_records,
    progress_bar,
    report_as_json,
    report_as_text,
    report_records,
    start_record,
    version_record,
)
from reconciler.report.layout import in_json
from reconciler.report.plan_document import PlanDocument
from reconciler.report.plan_text import plan_as_text, plan_in_short
from reconciler.resources.call import JsonObject

TERMINAL_SECONDS = 0.1
LOG_SECONDS = 5.0
_REST_OF_LINE = "\x1b[K"  # clears it


class Extent(Enum):
    """The part of its plan that an apply shows: a summary of one that was approved before."""

    ASKED = "the changes, in every form of output: the next line asks about them"
    CHANGES = "the changes, where text is the form of output"
    SUMMARY = "the counts; the changes where it is blocked"


class TerminalWatch:
    """Display of progress; takes the first signal as a request to stop.

    A second signal ends the run at once; what is in flight is then in the journal.
    """

    def __init__(self) -> None:
        self._signal = 0
        self._shown = 0.0
        # Among the lines of --verbose a bar would be torn.
        self._is_terminal = sys.stderr.isatty() and not chosen().verbose
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._before = handle_with(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._is_terminal and self._shown:
            click.echo(f"\r{_REST_OF_LINE}", err=True, nl=False)

    def begins(self, changes: Sequence[Change]) -> None:
        """Do nothing: only what is done is shown."""

    def progress(self, progress: Progress) -> None:
        """Show how far the run is, now and then: as a bar on a terminal, else as lines."""
        if chosen().quiet:
            return
        now = time.monotonic()
        pause = TERMINAL_SECONDS if self._is_terminal else LOG_SECONDS
        if now - max(self._shown, self._began) < pause:
            return
        self._shown = now
        if not self._is_terminal:
            click.echo(f"applying: {progress.done} of {progress.total}", err=True)
            return
        columns = shutil.get_terminal_size().columns
        bar = progress_bar(progress.done, progress.total, now - self._began, columns)
        click.echo(f"\r{bar}{_REST_OF_LINE}", err=True, nl=False)

    def stop_signal(self) -> int:
        return self._signal

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            raise InterruptedRunError(number)
        self._signal = number
        click.echo("\nStopping: what was begun is finished, nothing new is started.", err=True)


class TextOutput:
    """Output for a person: the plan, then the report."""

    @contextmanager
    def of_a_run(self) -> Iterator[None]:
        """Do nothing around a run: the error that ends it early is printed anyway."""
        yield

    def show_plan(self, document: PlanDocument, extent: Extent) -> None:
        """Show what is about to be done."""
        self._show(document, extent, sys.stdout)

    def _show(self, document: PlanDocument, extent: Extent, stream: IO[str]) -> None:
        show_warnings((*document.warnings, *document.plan.blocks))
        is_short = extent is Extent.SUMMARY and not document.blocked
        draw(plan_in_short if is_short else plan_as_text, document, stream=stream)

    def watch(self) -> TerminalWatch:
        """Return the display of progress."""
        return TerminalWatch()

    def show_report(self, document: ResultDocument) -> None:
        """Print the report; the plan has said it where there was nothing to do."""
        if document.report != ApplyReport((), remaining=0):
            click.echo()
            draw(report_as_text, document)


class JsonOutput(TextOutput):
    """Output for a script: one document on stdout at the end. Text for a person is on stderr."""

    def show_plan(self, document: PlanDocument, extent: Extent) -> None:
        """Print the plan; its changes only if the run asks for approval or is blocked."""
        extent = extent if extent is Extent.ASKED else Extent.SUMMARY
        self._show(document, extent, sys.stderr)

    def show_report(self, document: ResultDocument) -> None:
        draw(in_json(report_as_json), document)


class StreamOutput(JsonOutput):
    """Output for a program: a record on stdout for each thing, before the next one is done."""

    @contextmanager
    def of_a_run(self) -> Iterator[None]:
        """Begin with the version; end with the error if the run ends early."""
        _write([version_record()])
        try:
            yield
        except ReconcilerError as failure:
            _write([error_record(failure)])
            raise

    def show_plan(self, document: PlanDocument, extent: Extent) -> None:
        """Write what is planned, and show it on stderr."""
        super().show_plan(document, extent)
        _write([place_record(document.place)])
        _write(plan_records(document))

    def watch(self) -> TerminalWatch:
        """Return a display that also writes a record of each change that begins and ends."""
        return _RecordingWatch()

    def show_report(self, document: ResultDocument) -> None:
        _write(report_records(document))


class _RecordingWatch(TerminalWatch):
    def begins(self, changes: Sequence[Change]) -> None:
        _write(map(start_record, changes))

    def progress(self, progress: Progress) -> None:
        _write([end_record(progress.latest)])
        super().progress(progress)


def _write(records: Iterable[JsonObject]) -> None:
    for record in records:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        sys.stdout.write(json.dumps({**record, "@timestamp": now}) + "\n")
        sys.stdout.flush()


OUTPUTS: Mapping[str, type[TextOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "jsonl": StreamOutput,
}
"""Outputs by the value of ``--format``."""
