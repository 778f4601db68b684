"""Findings, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.diagnostics import Diagnostic, Severity
from reconciler.report.style import PLAIN, Style
from reconciler.report.visible import visible


def finding_as_text(finding: Diagnostic, style: Style = PLAIN) -> str:
    """Return a finding in two lines: where and what, then what to do."""
    look = "red" if finding.is_error else "yellow"
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    head = style(f"{finding.severity.value} {finding.code}", look, "bold")
    return f"{place}{head}: {visible(finding.summary)}\n    {visible(finding.remedy)}"


def findings_as_text(findings: Sequence[Diagnostic], style: Style = PLAIN) -> str:
    """Return findings one after the other, and how many there are."""
    lines = [finding_as_text(finding, style) for finding in findings]
    lines.append(counts(findings))
    return "\n".join(lines)


def counts(findings: Sequence[Diagnostic]) -> str:
    """Return how many errors and warnings there are, in words."""
    errors = sum(finding.is_error for finding in findings)
    parts = [_count(errors, Severity.ERROR), _count(len(findings) - errors, Severity.WARNING)]
    return ", ".join(part for part in parts if part)


def _count(number: int, severity: Severity) -> str:
    return f"{number} {severity.value}{'' if number == 1 else 's'}" if number else ""


def finding_as_json(finding: Diagnostic) -> dict[str, Any]:
    """Return a finding as JSON-shaped fields."""
    place = finding.location
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "summary": finding.summary,
        "remedy": finding.remedy,
        "file": place.file if place else None,
        "line": place.line if place and place.line else None,
        "column": place.column if place and place.line else None,
    }
