"""Showing a plan in any of its forms: ``plan`` shows a new one, ``show`` one from a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.reading import show_warnings
from reconciler.diagnostics import Diagnostic
from reconciler.plan.model import Plan
from reconciler.report.plan_json import plan_as_json
from reconciler.report.plan_text import plan_as_text

PLAN_FORMATS = ("text", "json")


def show_plan(plan: Plan, service: str, findings: Sequence[Diagnostic], form: str) -> None:
    """Print a plan on stdout; findings go beside it, or into it where the form has room."""
    if form == "json":
        print_json(plan_as_json(plan, service, findings))
    else:
        show_warnings((*findings, *plan.warnings, *plan.blocks))
        click.echo(plan_as_text(plan, stdout_style()))
    sys.stdout.flush()
