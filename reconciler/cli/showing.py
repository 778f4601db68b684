"""Showing a plan in any of its forms: ``plan`` shows a new one, ``show`` one from a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click

from reconciler.cli.options import format_option, full_option, option
from reconciler.cli.output import is_folded, print_json, stdout_style
from reconciler.cli.reading import show_warnings
from reconciler.diagnostics import Diagnostic
from reconciler.plan.model import Plan
from reconciler.report.limits import LEAST, LIMIT
from reconciler.report.plan_text import plan_as_text


class PlanForm(NamedTuple):
    """The form of a plan that is shown.

    Attributes:
        max_chars: Length of Markdown at most.
        full: Whether text on a terminal holds every create.
    """

    name: str
    max_chars: int
    full: bool


def takes_plan_form(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the form of a plan, as the argument ``form``."""

    @wraps(command)
    def with_form(*, form: str, max_chars: int, full: bool, **rest: Any) -> Any:
        return command(form=PlanForm(form, max_chars, full), **rest)

    for add in (
        format_option("text", "json", "markdown", "html"),
        option(
            "--max-chars",
            type=click.IntRange(min=LEAST),
            default=LIMIT,
            show_default=True,
            metavar="N",
            help="Length of the markdown at most; what is left out is counted.",
        ),
        full_option,
    ):
        with_form = add(with_form)
    return with_form


def show_plan(plan: Plan, service: str, findings: Sequence[Diagnostic], form: PlanForm) -> None:
    """Print a plan on stdout; findings go beside it, or into it where the form has room."""
    if form.name == "json":
        from reconciler.report.plan_json import plan_as_json

        print_json(plan_as_json(plan, service, findings))
    elif form.name == "markdown":
        from reconciler.report.markdown import plan_as_markdown

        click.echo(plan_as_markdown(plan, service, findings, form.max_chars), nl=False)
    elif form.name == "html":
        from reconciler.report.html import plan_as_html

        click.echo(plan_as_html(plan, service, findings), nl=False)
    else:
        show_warnings((*findings, *plan.warnings, *plan.blocks))
        folded = is_folded(sys.stdout, full=form.full)
        click.echo(plan_as_text(plan, service, stdout_style(), folded=folded))
    sys.stdout.flush()
