"""Reading and judging for every command that takes PATHS."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from reconciler.cli.ending import hold
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidManifestsError
from reconciler.manifests.loader import load
from reconciler.report.findings import findings_as_text
from reconciler.report.style import style_of
from reconciler.resources.shard import Shard
from reconciler.state import DesiredState
from reconciler.validation.desired import judge

DEFAULT_PATHS = ("manifests",)


def read_desired(
    paths: Sequence[str], shard: Shard | None = None
) -> tuple[DesiredState, tuple[Diagnostic, ...]]:
    """Return what the manifests declare, or a shard of them, and the warnings about them.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
    """
    judgement = judge(load(paths or DEFAULT_PATHS, shard))
    hold(judgement)
    if any(finding.is_error for finding in judgement.diagnostics):
        raise InvalidManifestsError(judgement.diagnostics)
    return judgement.desired, judgement.diagnostics


def show_warnings(findings: Sequence[Diagnostic]) -> None:
    """Tell findings on stderr, if there are any."""
    if findings:
        click.echo(findings_as_text(findings, style_of(sys.stderr, os.environ)), err=True)
