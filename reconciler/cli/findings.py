"""Findings on a stream: in its colours, at its width, with the lines that they are about."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import IO

import click

from reconciler.cli.output import loud, style_on
from reconciler.cli.source_lines import SourceLines
from reconciler.diagnostics import Diagnostic
from reconciler.errors import ReconcilerError
from reconciler.report.findings import Layout, findings_as_text, wrapped
from reconciler.report.visible import visible


def show_findings(findings: Sequence[Diagnostic], stream: IO[str]) -> None:
    """Print findings and their number on a stream, if there are any."""
    if told := loud(findings):
        click.echo(findings_as_text(told, layout_of(stream)), file=stream)


def show_warnings(findings: Sequence[Diagnostic]) -> None:
    """Tell findings on stderr, if there are any."""
    show_findings(findings, sys.stderr)


def show_saved(findings: Sequence[Diagnostic]) -> None:
    """Tell findings of a saved plan on stderr: its files may be others by now, or elsewhere."""
    if told := loud(findings):
        layout = Layout(style_on(sys.stderr), width_of(sys.stderr))
        click.echo(findings_as_text(told, layout), err=True)


def show_error(failure: ReconcilerError) -> None:
    """Tell on stderr what went wrong, and what to do."""
    style, width = style_on(sys.stderr), width_of(sys.stderr)
    problem = wrapped(f"Error: {visible(failure.problem)}", width).removeprefix("Error:")
    click.echo(f"{style('Error:', 'red', 'bold')}{problem}", err=True)
    click.echo(wrapped(f"  {visible(failure.remedy)}", width, "  "), err=True)


def layout_of(stream: IO[str]) -> Layout:
    """Return how findings are laid out on a stream."""
    return Layout(style_on(stream), width_of(stream), SourceLines().line_at)


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal, or 0 for a file or a pipe, which has no width."""
    return shutil.get_terminal_size().columns if stream.isatty() else 0
