"""``reconciler validate``."""

from __future__ import annotations

import sys

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import format_option, paths_argument
from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.reading import DEFAULT_PATHS
from reconciler.diagnostics import by_place
from reconciler.manifests.loader import load
from reconciler.report.findings import finding_as_json, findings_as_text
from reconciler.report.plan_json import FORMAT_VERSION
from reconciler.validation.desired import judge
from reconciler.validation.references import undeclared_owners


@click.command("validate")
@paths_argument
@format_option("text", "json")
def validate_command(paths: tuple[str, ...], form: str) -> int:
    """Check manifests without any service, and tell every finding.

    PATHS are files and folders; the default is the folder manifests.
    """
    loaded = load(paths or DEFAULT_PATHS)
    judgement = judge(loaded)
    undeclared = undeclared_owners(judgement.desired) if judgement.is_valid else ()
    findings = by_place([*judgement.diagnostics, *undeclared])
    valid = not any(finding.is_error for finding in findings)
    if form == "json":
        print_json(
            {
                "format_version": FORMAT_VERSION,
                "valid": valid,
                "manifests": len(loaded.manifests),
                "diagnostics": [finding_as_json(finding) for finding in findings],
            }
        )
    else:
        style = stdout_style()
        if findings:
            click.echo(findings_as_text(findings, style))
        if valid:
            count = len(loaded.manifests)
            noun = "manifest is" if count == 1 else "manifests are"
            click.echo(f"{style('Valid:', 'green', 'bold')} {count} {noun} right.")
    sys.stdout.flush()
    return ExitCode.DONE if valid else ExitCode.ERROR
