"""Printing results: text in the reader's style, or JSON, on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from reconciler.cli.output_choice import chosen
from reconciler.cli.streams import lost_output
from reconciler.diagnostics import Diagnostic, Severity
from reconciler.report.style import Style, style_of
from reconciler.report.visible import visible


def stdout_style() -> Style:
    """Return the style of stdout."""
    return style_on(sys.stdout)


def style_on(stream: IO[str]) -> Style:
    """Return the style of a stream, as ``--color`` and the environment say."""
    return style_of(stream, os.environ, chosen().color)


def loud(findings: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Return the findings to tell a person: without notes, where ``--quiet`` was given."""
    if not chosen().quiet:
        return findings
    return [finding for finding in findings if finding.severity is not Severity.NOTE]


def hint(text: str) -> None:
    """Tell on stderr what helps and is no result, unless ``--quiet`` was given."""
    if not chosen().quiet:
        click.echo(text, err=True)


def detail(text: str) -> None:
    """Tell on stderr how the work goes, where ``--verbose`` was given. Never a secret."""
    if chosen().verbose:
        click.echo(style_on(sys.stderr)(visible(text), "dim"), err=True)


@contextmanager
def timed(work: str) -> Iterator[None]:
    """Tell how long some work took, where ``--verbose`` was given."""
    began = time.monotonic()
    try:
        yield
    finally:
        detail(f"{work}: {time.monotonic() - began:.3f} s")


def is_folded(stream: IO[str], *, full: bool) -> bool:
    """Return whether long lists are cut on a stream: on a terminal, unless ``--full`` was given."""
    return stream.isatty() and not full


def print_json(fields: Any) -> None:
    """Print one JSON document, with nothing in it that a CI runner would obey."""
    click.echo(json.dumps(fields, indent=2, ensure_ascii=True).replace("##[", "##\\u005b"))


def print_done(lines: Sequence[str]) -> str:
    """Print what was done. Return why stdout did not take it, or nothing; stderr has it then."""
    for line in lines:
        click.echo(line)
    lost = lost_output()
    if lost:
        for line in lines:
            click.echo(line, err=True)
    return lost
