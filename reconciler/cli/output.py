"""Printing results: text in the reader's style, or JSON, on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import IO, Any

import click

from reconciler.cli.streams import lost_output
from reconciler.report.style import Style, style_of


def stdout_style() -> Style:
    """Return the style of stdout."""
    return style_of(sys.stdout, os.environ)


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
