"""``reconciler validate``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from reconciler.cli.configured import DEFAULT_PATHS
from reconciler.cli.options import format_option, paths_argument, shard_option
from reconciler.cli.output import print_json, show_findings, stdout_style
from reconciler.cli.process_exit import ExitCode, keep_until_exit
from reconciler.diagnostics import Diagnostic, by_place
from reconciler.errors import LocalFileError
from reconciler.manifests.loader import load
from reconciler.report.findings import counts, finding_as_json
from reconciler.report.plan_json import FORMAT_VERSION
from reconciler.report.style import PLAIN, Style
from reconciler.resources.shard import Shard
from reconciler.validation.desired import judge
from reconciler.validation.references import undeclared_owners

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command("validate")
@paths_argument
@shard_option
@format_option("text", "json", "github", "sarif", "junit")
def validate_command(paths: tuple[str, ...], shard: Shard | None, form: str) -> int:
    """Check manifests without any service, and tell every finding.

    PATHS are files and folders; the default is the folder manifests. The format github writes
    annotations and, in a workflow, the summary of the step.
    """
    loaded = load(paths or DEFAULT_PATHS, shard)
    judgement = judge(loaded)
    keep_until_exit((loaded, judgement))
    undeclared = undeclared_owners(judgement.desired) if judgement.is_valid else ()
    findings = by_place([*judgement.diagnostics, *undeclared])
    files = [manifest.file.name for manifest in loaded.manifests]
    _FORMS[form](findings, files)
    sys.stdout.flush()
    return ExitCode.DONE if _is_valid(findings) else ExitCode.ERROR


def _is_valid(findings: Sequence[Diagnostic]) -> bool:
    return not any(finding.is_error for finding in findings)


def _text(findings: Sequence[Diagnostic], files: Sequence[str]) -> None:
    show_findings(findings, sys.stdout)
    if _is_valid(findings):
        click.echo(_valid(len(files), stdout_style()))


def _valid(count: int, style: Style = PLAIN) -> str:
    noun = "manifest is" if count == 1 else "manifests are"
    return f"{style('Valid:', 'green', 'bold')} {count} {noun} right."


def _json(findings: Sequence[Diagnostic], files: Sequence[str]) -> None:
    print_json(
        {
            "format_version": FORMAT_VERSION,
            "valid": _is_valid(findings),
            "manifests": len(files),
            "diagnostics": [finding_as_json(finding) for finding in findings],
        }
    )


def _github(findings: Sequence[Diagnostic], files: Sequence[str]) -> None:
    from reconciler.report.github import findings_as_annotations, findings_as_summary

    if findings:
        click.echo(findings_as_annotations(findings))
    click.echo(_valid(len(files)) if _is_valid(findings) else counts(findings))
    path = os.environ.get(STEP_SUMMARY)
    if path:
        _append(path, findings_as_summary(findings, len(files)))


def _append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(text)
    except OSError as failure:
        raise LocalFileError(
            f"cannot write the step summary {path}: {failure.strerror}",
            remedy=f"Make it writable, or unset {STEP_SUMMARY}.",
        ) from failure


def _sarif(findings: Sequence[Diagnostic], files: Sequence[str]) -> None:
    from reconciler.report.sarif import findings_as_sarif

    print_json(findings_as_sarif(findings))


def _junit(findings: Sequence[Diagnostic], files: Sequence[str]) -> None:
    from reconciler.report.junit import findings_as_junit

    click.echo(findings_as_junit(findings, files))


_FORMS: Mapping[str, Callable[[Sequence[Diagnostic], Sequence[str]], None]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
    "junit": _junit,
}
