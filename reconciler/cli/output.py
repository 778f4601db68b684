"""Printing results: text in the reader's style, or JSON, on stdout."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from reconciler.report.style import Style, style_of


def stdout_style() -> Style:
    """Return the style of stdout."""
    return style_of(sys.stdout, os.environ)


def print_json(fields: Any) -> None:
    """Print one JSON document, with nothing in it that a CI runner would obey."""
    click.echo(json.dumps(fields, indent=2, ensure_ascii=True).replace("##[", "##\\u005b"))
