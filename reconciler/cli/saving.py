"""Saving a plan, and telling how to apply exactly what was saved."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass

import click

from reconciler import __version__
from reconciler.cli.life import age_in_words, life_in_seconds, time_in_words
from reconciler.cli.reading import DEFAULT_PATHS
from reconciler.cli.saved_files import open_snapshot, save
from reconciler.diagnostics import Diagnostic, warning
from reconciler.plan.digest import declared_digest
from reconciler.plan.model import Plan
from reconciler.plan.planfile import PlanFile, Snapshot, plan_file_content
from reconciler.plan.sealed import seal_of
from reconciler.plan.snapshot import SnapshotFile, snapshot_content
from reconciler.report.visible import visible
from reconciler.state import DesiredState

OF_PLAN_ALONE = {"paths", "out", "expires", "against", "form", "detailed_exitcode"}


@dataclass(frozen=True, slots=True)
class Saving:
    """Where a plan is saved, and what goes with it.

    Attributes:
        expires: How long it is good for, as it was typed.
        snapshot: What it was made against, where that was not the service.
    """

    out: str
    expires: str
    snapshot: SnapshotFile | None

    def save(
        self,
        plan: Plan,
        made_of: tuple[DesiredState, tuple[str, ...], tuple[Diagnostic, ...]],
        service: str,
    ) -> None:
        """Write the plan file, and tell on stderr how to go on."""
        desired, paths, findings = made_of
        now = int(time.time())
        file = PlanFile(
            plan=plan,
            tool_version=__version__,
            service=service,
            paths=paths or DEFAULT_PATHS,
            declared=declared_digest(desired),
            made_at=now,
            expires_at=now + life_in_seconds(self.expires),
            against=_of(self.snapshot),
            warnings=findings,
        )
        save(self.out, plan_file_content(file))
        click.echo(f"\nSaved the plan to: {visible(self.out)}", err=True)
        if file.against is None:
            words = ["reconciler", "apply", self.out, *paths, *_options()]
            until = time_in_words(file.expires_at)
            click.echo(
                f"To apply exactly this, until {until}:\n  {visible(shlex.join(words))}", err=True
            )


def take_saving(out: str, expires: str, against: str) -> Saving:
    """Return how a plan is saved, if it is, and what it is made against.

    Raises:
        UsageError: the length of time is none.
        LocalFileError: the snapshot cannot be used.
    """
    life_in_seconds(expires)
    return Saving(out, expires, open_snapshot(against) if against else None)


def snapshot_warning(snapshot: SnapshotFile) -> Diagnostic:
    """Return the finding that says how old a snapshot is."""
    age = age_in_words(max(0, int(time.time()) - snapshot.taken_at))
    return warning(
        "PLAN-SNAPSHOT",
        f"this plan was made against a snapshot that is {age} old",
        f"It was taken at {time_in_words(snapshot.taken_at)}. What the service holds now may "
        "differ; apply plans again.",
    )


def _of(snapshot: SnapshotFile | None) -> Snapshot | None:
    if snapshot is None:
        return None
    return Snapshot(snapshot.taken_at, seal_of(snapshot_content(snapshot)))


def _options() -> Iterator[str]:
    """Yield the options of this command that apply needs as well."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not given or name in OF_PLAN_ALONE or name not in context.params:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else [value]:
            yield parameter.opts[0]
            if each is not True:
                yield str(each)
