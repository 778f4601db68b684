"""Output of commands: results on stdout, findings, errors and notes on stderr.

Text has the colours and the width of its stream; findings show the lines that they are about.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import IO

import click

from reconciler.cli.process import chosen, lost_output
from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.errors import ReconcilerError
from reconciler.manifests.discovery import MAX_FILE
from reconciler.manifests.files import OpeningError, read_path
from reconciler.report.findings import findings_as_text
from reconciler.report.layout import Document, Drawing, Layout, fitted, json_as_text, wrapped
from reconciler.report.visible import LIMIT, Style, style_of, visible

_BOM = "\ufeff"


def stdout_style() -> Style:
    """Return the style of stdout."""
    return style_on(sys.stdout)


def style_on(stream: IO[str]) -> Style:
    """Return the style of a stream, as ``--color`` and the environment say."""
    return style_of(stream, os.environ, chosen().color)


def not_quiet(findings: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Return the findings that are shown: without notes, where ``--quiet`` was given."""
    if not chosen().quiet:
        return findings
    return [finding for finding in findings if finding.severity is not Severity.NOTE]


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text for people; on a terminal, lines are broken at spaces."""
    click.echo(fitted(text, width_of(sys.stderr if err else sys.stdout)), err=err, nl=nl)


def hint(text: str) -> None:
    """Print a hint on stderr, unless ``--quiet`` was given."""
    if not chosen().quiet:
        say(text, err=True)


def detail(text: str) -> None:
    """Print a detail of the work on stderr, where ``--verbose`` was given. Never a secret."""
    if chosen().verbose:
        click.echo(style_on(sys.stderr)(visible(text), "dim"), err=True)


@contextmanager
def timed(work: str) -> Iterator[None]:
    """Print how long some work took, where ``--verbose`` was given."""
    began = time.monotonic()
    try:
        yield
    finally:
        detail(f"{work}: {time.monotonic() - began:.3f} s")


def is_folded(stream: IO[str]) -> bool:
    """Return whether long lists are cut on a stream: on a terminal, unless ``--full`` was given."""
    return stream.isatty() and chosen().folds


def draw(
    drawing: Drawing[Document],
    document: Document,
    limit: int = LIMIT,
    *,
    stream: IO[str] | None = None,
) -> None:
    """Print a document, on stdout unless another stream is given; a comment has a limit."""
    to = stream or sys.stdout
    layout = Layout(style_on(to), width_of(to), line_reader(), is_folded(to), limit)
    text = drawing(document, layout)
    click.echo(text, file=to, nl=bool(text) and not text.endswith("\n"))


def print_json(fields: object) -> None:
    """Print one JSON document."""
    click.echo(json_as_text(fields))


def print_done(lines: Sequence[str]) -> str:
    """Print what was done. Return why stdout did not take it, or nothing; stderr has it then."""
    for line in lines:
        say(line)
    lost = lost_output()
    if lost:
        for line in lines:
            say(line, err=True)
    return lost


def show_warnings(findings: Sequence[Diagnostic], *, is_saved: bool = False) -> None:
    """Print findings and their number on stderr, if there are any; under each, its line.

    Those of a saved plan have no lines: its files may have changed.
    """
    if shown := not_quiet(findings):
        draw(_without_lines if is_saved else findings_as_text, shown, stream=sys.stderr)


def _without_lines(findings: Sequence[Diagnostic], layout: Layout) -> str:
    return findings_as_text(findings, replace(layout, line_at=None))


def show_error(failure: ReconcilerError) -> None:
    """Print on stderr what went wrong, and what to do."""
    style, width = style_on(sys.stderr), width_of(sys.stderr)
    problem = wrapped(f"Error: {visible(failure.problem)}", width).removeprefix("Error:")
    click.echo(f"{style('Error:', 'red', 'bold')}{problem}", err=True)
    click.echo(wrapped(f"  {visible(failure.remedy)}", width, "  "), err=True)


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal, or 0 for a file or a pipe, which has no width."""
    return shutil.get_terminal_size().columns if stream.isatty() else 0


def line_reader() -> Callable[[SourceLocation], str | None]:
    """Return what gives the line at a location, or None where the file cannot be read any more.

    A file is read once while findings about it follow each other.
    """
    lines_of = lru_cache(maxsize=1)(_lines_of)

    def line_at(location: SourceLocation) -> str | None:
        lines = lines_of(location.file)
        if not 0 < location.line <= len(lines):
            return None
        return lines[location.line - 1].removesuffix("\r")

    return line_at


def _lines_of(path: str) -> list[str]:
    try:
        data = read_path(path, MAX_FILE)
    except OpeningError:
        return []
    return data.decode("utf-8", errors="replace").removeprefix(_BOM).split("\n")


def age_in_words(seconds: int) -> str:
    """Return about how long that is, in its largest whole unit."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = seconds // unit
        if count:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "less than a minute"


def time_in_words(seconds: int) -> str:
    """Return a time since the epoch as RFC 3339 in UTC, to the second."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "an invalid time"
