"""Findings as GitHub takes them: annotations on lines of files, and a summary of the step.

A runner takes commands from the log. What stands in one is escaped as GitHub asks for, after it
was made visible, so that no finding can end its own command or begin another.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.diagnostics import Diagnostic, Severity
from reconciler.report.findings import counts, finding_as_text
from reconciler.report.markdown import Room, fenced
from reconciler.report.visible import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

SUMMARY_LIMIT = 500_000
"""GitHub takes a mebibyte for a step."""


def findings_as_annotations(findings: Sequence[Diagnostic]) -> str:
    """Return a workflow command for each finding, one on a line."""
    return "\n".join(map(_annotation, findings))


def _annotation(finding: Diagnostic) -> str:
    place, properties = finding.location, {}
    if place is not None:
        properties["file"] = visible(place.file)
    if place is not None and place.line:
        properties |= {"line": str(place.line), "col": str(place.column)}
    properties["title"] = finding.code
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = f"{visible(finding.told)}. {visible(finding.remedy)}"
    return f"::{_COMMANDS[finding.severity]} {said}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def findings_as_summary(findings: Sequence[Diagnostic], manifests: int) -> str:
    """Return findings as Markdown, for the page of a workflow run."""
    valid = not any(finding.is_error for finding in findings)
    noun = "manifest" if manifests == 1 else "manifests"
    head = f"## {'Valid' if valid else 'Not valid'}: {manifests} {noun}"
    if not findings:
        return f"{head}\n"
    fence, left = fenced(findings, _lines, "text", Room(SUMMARY_LIMIT))
    more = [f"{left} more are in the log of the step."] if left else []
    return "\n\n".join([head, counts(findings), *fence, *more]) + "\n"


def _lines(finding: Diagnostic) -> list[str]:
    return finding_as_text(finding).split("\n")
