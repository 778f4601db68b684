"""``reconciler show``."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from reconciler.cli.output import age_in_words, show_saved, time_in_words
from reconciler.cli.plan_files import open_plan_file
from reconciler.cli.plan_output import Made, PlanForm, show_plan, takes_plan_form
from reconciler.diagnostics import Diagnostic, warning
from reconciler.plan.planfile import PlanFile


@click.command("show")
@click.argument("file", metavar="PLANFILE")
@takes_plan_form
def show_command(file: str, form: PlanForm) -> None:
    """Show a saved plan as it was made. Neither manifests nor service are read."""
    saved = open_plan_file(file)
    found = _age(saved, int(time.time()))
    plan = replace(saved.plan, warnings=(*found, *saved.plan.warnings))
    made = Made(saved.made_at, saved.revision)
    show_plan(plan, saved.service, saved.warnings, form, made, show_saved)


def _age(saved: PlanFile, now: int) -> list[Diagnostic]:
    """Return that a plan can no longer be applied, if that is so."""
    if saved.expires_at > now:
        return []
    return [
        warning(
            "PLAN-EXPIRED",
            f"the plan expired {age_in_words(now - saved.expires_at)} ago",
            f"It was made at {time_in_words(saved.made_at)} and is not applied any more. "
            "Run `reconciler plan` again.",
        )
    ]
