"""``reconciler show``, and the output of a plan in any of its forms, which ``plan`` shares."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import click

from reconciler.cli.manifests import Made
from reconciler.cli.options import format_option, full_option, option, takes
from reconciler.cli.output import (
    age_in_words,
    is_folded,
    print_json,
    show_saved,
    show_warnings,
    stdout_style,
    time_in_words,
)
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import UsageError
from reconciler.plan.model import Plan
from reconciler.report.plan_parts import DOCS, About
from reconciler.report.plan_text import plan_as_text
from reconciler.report.visible import LEAST, LIMIT


class PlanForm(NamedTuple):
    """The form of a plan that is shown.

    Attributes:
        max_chars: Length of Markdown at most.
        full: Whether text on a terminal holds every create.
        docs: Address of the documents that Markdown and HTML link to; empty for no links.
    """

    form: str
    max_chars: int
    full: bool
    docs: str

    def about(self, made: Made) -> About:
        """Return what Markdown and HTML say of the plan at their top."""
        return About(time_in_words(made.at), made.revision, self.docs)


def _docs(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the address of the documents.

    Raises:
        UsageError: it is not an address that can stand in a link.
    """
    if value and not DOCS.fullmatch(value):
        raise UsageError(
            f"--docs {value} is not an address for links",
            remedy="Write https://HOST/PATH of letters, digits and . _ ~ : / - alone.",
        )
    return value


takes_plan_form = takes(
    lambda **given: {"form": PlanForm(**given)},
    {
        "docs": option(
            "--docs",
            default="",
            callback=_docs,
            metavar="ADDRESS",
            help="Where the documents of this program can be read; the risks in markdown and "
            "html link to guards.md there.",
        ),
        "full": full_option,
        "max_chars": option(
            "--max-chars",
            type=click.IntRange(min=LEAST),
            default=LIMIT,
            show_default=True,
            metavar="N",
            help="Length of the markdown at most; what is left out is counted.",
        ),
        "form": format_option("text", "json", "markdown", "html"),
    },
)
"""Give a command the options for the form of a plan, as the argument ``form``."""


@click.command("show")
@click.argument("file", metavar="PLANFILE")
@takes_plan_form
def show_command(file: str, form: PlanForm) -> None:
    """Show a saved plan as it was made. Neither manifests nor service are read."""
    from reconciler.cli.plan_files import open_plan_file

    saved = open_plan_file(file)
    plan = saved.plan
    if saved.expires_at <= (now := int(time.time())):
        plan = replace(
            plan, warnings=(_expired(now, saved.expires_at, saved.made_at), *plan.warnings)
        )
    made = Made(saved.made_at, saved.revision)
    show_plan(plan, saved.service, saved.warnings, form, made, show_saved)


def _expired(now: int, expired: int, made: int) -> Diagnostic:
    return warning(
        "PLAN-EXPIRED",
        f"the plan expired {age_in_words(now - expired)} ago",
        f"It was made at {time_in_words(made)} and is not applied any more. "
        "Run `reconciler plan` again.",
    )


def show_plan(
    plan: Plan,
    service: str,
    findings: Sequence[Diagnostic],
    form: PlanForm,
    made: Made,
    show: Callable[[Sequence[Diagnostic]], None] = show_warnings,
) -> None:
    """Print a plan on stdout; ``show`` prints the findings of the text form."""
    if form.form == "json":
        from reconciler.report.plan_json import plan_as_json

        print_json(plan_as_json(plan, service, findings))
    elif form.form == "markdown":
        from reconciler.report.markdown import plan_as_markdown

        text = plan_as_markdown(plan, service, findings, form.max_chars, form.about(made))
        click.echo(text, nl=False)
    elif form.form == "html":
        from reconciler.report.html import plan_as_html

        click.echo(plan_as_html(plan, service, findings, about=form.about(made)), nl=False)
    else:
        show((*findings, *plan.warnings, *plan.blocks))
        folded = is_folded(sys.stdout, full=form.full)
        click.echo(plan_as_text(plan, service, stdout_style(), folded=folded))
    sys.stdout.flush()
