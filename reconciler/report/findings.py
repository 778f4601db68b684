"""Findings, in words and as JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.report.excerpt import excerpt
from reconciler.report.style import PLAIN, Style
from reconciler.report.visible import visible

_LOOKS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
NARROWEST = 40
_INDENT = "    "
# Stands for the blank between severity and code while a text is wrapped. Visible texts have none.
_HELD = "\0"


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of findings on one stream.

    Attributes:
        style: Their colours.
        width: Columns after which lines are broken, between words; 0 for no such limit.
        line_at: Returns the line of a file at a location, or None where it cannot be shown.
    """

    style: Style = PLAIN
    width: int = 0
    line_at: Callable[[SourceLocation], str | None] | None = None


BARE = Layout()


def finding_as_text(finding: Diagnostic, layout: Layout = BARE) -> str:
    """Return a finding in lines: where and what, the line it is about, then what to do."""
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    name, code = finding.severity.value, finding.code
    text = wrapped(f"{place}{name}{_HELD}{code}: {visible(finding.summary)}", layout.width)
    head = layout.style(f"{name} {code}", _LOOKS[finding.severity], "bold")
    lines = [
        text.replace(f"{name}{_HELD}{code}", head, 1),
        *_source(finding.location, layout),
        wrapped(_INDENT + visible(finding.remedy), layout.width),
    ]
    return "\n".join(lines)


def _source(location: SourceLocation | None, layout: Layout) -> list[str]:
    if location is None or not location.line or layout.line_at is None:
        return []
    line = layout.line_at(location)
    if line is None:
        return []
    return [layout.style(each, "dim") for each in excerpt(line, location)]


def wrapped(text: str, width: int, indent: str = _INDENT) -> str:
    """Return a text in lines of at most this width, broken between words only; 0 is no limit."""
    if not width:
        return text
    lines = textwrap.wrap(
        text,
        max(width, NARROWEST),
        subsequent_indent=indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def findings_as_text(findings: Sequence[Diagnostic], layout: Layout = BARE) -> str:
    """Return findings one after the other, and how many there are."""
    lines = [finding_as_text(finding, layout) for finding in findings]
    lines.append(counts(findings))
    return "\n".join(lines)


def counts(findings: Sequence[Diagnostic]) -> str:
    """Return how many errors, warnings and notes there are, in words."""
    counted = Counter(finding.severity for finding in findings)
    parts = [_count(counted[severity], severity) for severity in Severity]
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
