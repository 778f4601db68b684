"""Findings as JUnit XML, which every CI server shows: each file is a test, failed by its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from reconciler.diagnostics import Diagnostic
from reconciler.report.findings import finding_as_text
from reconciler.report.visible import visible

NO_FILE = "(no file)"


def findings_as_junit(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Return findings as one test suite; a file without an error is a test that passed."""
    by_file: dict[str, list[Diagnostic]] = {name: [] for name in sorted(set(files))}
    for finding in findings:
        place = finding.location.file if finding.location else NO_FILE
        by_file.setdefault(place, []).append(finding)
    failed = sum(any(finding.is_error for finding in found) for found in by_file.values())
    cases = [_case(name, found) for name, found in by_file.items()]
    totals = _attributes({"tests": str(len(cases)), "failures": str(failed), "errors": "0"})
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="reconciler validate"{totals}>',
            f'<testsuite name="manifests"{totals} skipped="0" time="0">',
            *cases,
            "</testsuite>",
            "</testsuites>",
        ]
    )


def _case(name: str, findings: Sequence[Diagnostic]) -> str:
    errors = [finding for finding in findings if finding.is_error]
    warnings = [finding for finding in findings if not finding.is_error]
    inside = [_failure(errors)] if errors else []
    if warnings:
        inside.append(f"<system-out>{_text(warnings)}</system-out>")
    case = f'<testcase{_attributes({"classname": "manifests", "name": visible(name)})} time="0"'
    return "\n".join([f"{case}>", *inside, "</testcase>"]) if inside else f"{case}/>"


def _failure(errors: Sequence[Diagnostic]) -> str:
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    said = {"type": first.code, "message": f"{visible(first.told)}{more}"}
    return f"<failure{_attributes(said)}>{_text(errors)}</failure>"


def _text(findings: Sequence[Diagnostic]) -> str:
    return escape("\n".join(map(finding_as_text, findings)))


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in values.items())
