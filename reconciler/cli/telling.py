"""How an apply tells what it does: in words, as one JSON document, or as a stream of records."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from reconciler.apply.outcome import ApplyReport, Progress
from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.reading import show_warnings
from reconciler.cli.watching import TerminalWatch
from reconciler.diagnostics import Diagnostic
from reconciler.errors import ReconcilerError
from reconciler.plan.model import Change, Plan
from reconciler.report import stream
from reconciler.report.apply_report import report_as_json, report_as_text
from reconciler.report.place import Place, place_of
from reconciler.report.plan_text import plan_as_text, plan_in_short
from reconciler.report.style import style_of


class Words:
    """Tells a person: the plan, then what came of it."""

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell a whole run, and why it ended where it ends early."""
        yield

    def plan(self, plan: Plan, service: str, findings: Sequence[Diagnostic], *, asks: bool) -> None:
        """Show what is about to be done; somebody may be asked about it next."""
        show_warnings((*findings, *plan.warnings, *plan.blocks))
        click.echo(plan_as_text(plan, service, stdout_style()))

    def watch(self) -> TerminalWatch:
        """Return who watches the run."""
        return TerminalWatch()

    def nothing_to_do(self, place: Place) -> None:
        """Say nothing more: the plan has said it."""

    def report(self, report: ApplyReport, place: Place) -> None:
        """Tell what came of it."""
        click.echo("\n" + report_as_text(report, place, stdout_style()))
        sys.stdout.flush()


class Document(Words):
    """Tells a script: one document on stdout at the end. What a person reads goes to stderr."""

    def plan(self, plan: Plan, service: str, findings: Sequence[Diagnostic], *, asks: bool) -> None:
        """Show what is about to be done, in full to who is asked about it or must mend it."""
        show_warnings((*findings, *plan.warnings, *plan.blocks))
        told = plan_as_text if asks or plan.blocks else plan_in_short
        click.echo(told(plan, service, style_of(sys.stderr, os.environ)), err=True)

    def nothing_to_do(self, place: Place) -> None:
        """Tell that nothing remains."""
        self.report(ApplyReport((), remaining=0), place)

    def report(self, report: ApplyReport, place: Place) -> None:
        """Print the document."""
        print_json(report_as_json(report, place))
        sys.stdout.flush()


class Records(Document):
    """Tells a program while it happens: each record is on stdout before the next thing is done."""

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Begin with the version; a run that ends early ends with the reason."""
        _write([stream.version_record()])
        try:
            yield
        except ReconcilerError as failure:
            _write([stream.error_record(failure)])
            raise

    def plan(self, plan: Plan, service: str, findings: Sequence[Diagnostic], *, asks: bool) -> None:
        """Write what is planned, and show it beside the stream."""
        super().plan(plan, service, findings, asks=asks)
        _write([stream.place_record(place_of(plan, service))])
        _write(stream.plan_records(plan, findings))

    def watch(self) -> TerminalWatch:
        """Return who writes a record of each change that begins and ends."""
        return _RecordingWatch()

    def report(self, report: ApplyReport, place: Place) -> None:
        """Write what the run came to."""
        _write(stream.report_records(report, place))


class _RecordingWatch(TerminalWatch):
    def begins(self, changes: Sequence[Change]) -> None:
        """Write that changes are about to be sent."""
        _write(map(stream.start_record, changes))

    def progress(self, progress: Progress) -> None:
        """Write what became of a change."""
        _write([stream.end_record(progress.latest)])
        super().progress(progress)


def _write(records: Iterable[stream.Record]) -> None:
    for record in records:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        sys.stdout.write(json.dumps({**record, "@timestamp": now}) + "\n")
        sys.stdout.flush()


FORMS: Mapping[str, type[Words]] = {"text": Words, "json": Document, "jsonl": Records}
