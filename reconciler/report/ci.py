"""Findings as CI servers take them: GitHub annotations and step summaries, JUnit XML, SARIF 2.1.0.

A runner takes commands from the log: what stands in one is made visible, then escaped, so that no
finding can end its own command or begin another.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import PurePath
from urllib.parse import quote

from reconciler import __version__
from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.report.codes import CODES, as_sentence
from reconciler.report.findings import counts, finding_as_text
from reconciler.report.markdown import Room, fenced
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

SUMMARY_LIMIT = 500_000
"""GitHub takes a mebibyte for a step."""


def findings_as_annotations(findings: Sequence[Diagnostic], folder: str = "") -> str:
    """Return a workflow command for each finding, one on a line.

    Files are named from the top of the repository, where GitHub looks for them. ``folder`` is the
    one that the findings name them from.
    """
    return "\n".join(_annotation(finding, folder) for finding in findings)


def _annotation(finding: Diagnostic, folder: str) -> str:
    place, properties = finding.location, {}
    if place is not None:
        is_file = folder and place.line
        file = posixpath.normpath(posixpath.join(folder, place.file)) if is_file else place.file
        properties["file"] = visible(file)
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
    listed = _fenced(findings, SUMMARY_LIMIT, "step")
    return "\n\n".join([head, counts(findings), *listed]) + "\n"


def findings_as_comment(findings: Sequence[Diagnostic], marker: str, limit: int) -> str:
    """Return findings as the comment of a plan that could not be made, in so many characters.

    ``marker`` is the first line of that plan's comment, so that this one takes its place.
    """
    head = f"{marker}\n## Not planned: the manifests are not valid\n\n- {counts(findings)}"
    after = "**Next:** Fix the manifests, then push again."
    listed = _fenced(findings, limit - len(head) - len(after), "job")
    return "\n\n".join([head, *listed, after]) + "\n"


def _fenced(findings: Sequence[Diagnostic], limit: int, of: str) -> list[str]:
    """Return the findings that fit, and that the log of a step or job has the others."""
    fence, left = fenced(findings, _lines, "text", Room(limit))
    return [*fence, f"{left} more are in the log of the {of}."] if left else fence


def _lines(finding: Diagnostic) -> list[str]:
    return finding_as_text(finding).split("\n")


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


VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def findings_as_sarif(findings: Sequence[Diagnostic]) -> JsonObject:
    """Return findings as one run."""
    codes = sorted({finding.code for finding in findings})
    places = {code: index for index, code in enumerate(codes)}
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "reconciler",
                        "version": __version__,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, places[finding.code]) for finding in findings],
            }
        ],
    }


def _rule(name: str) -> JsonObject:
    in_pascal_case = "".join(part.capitalize() for part in name.split("-"))
    rule: dict[str, object] = {"id": name, "name": in_pascal_case}
    code = CODES.get(name)
    if code is not None:
        rule["shortDescription"] = {"text": as_sentence(code.title)}
        rule["fullDescription"] = {"text": code.meaning}
        rule["help"] = {"text": code.remedy}
    return rule


def _result(finding: Diagnostic, rule: int) -> JsonObject:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": {"text": f"{visible(finding.told)}. {visible(finding.remedy)}"},
        "partialFingerprints": {"finding/v1": _fingerprint(finding)},
    }
    if finding.location:
        result["locations"] = [{"physicalLocation": _place(finding.location)}]
    return result


def _place(location: SourceLocation) -> JsonObject:
    place: dict[str, object] = {"artifactLocation": {"uri": _uri(location.file)}}
    if location.line:
        place["region"] = {"startLine": location.line, "startColumn": max(location.column, 1)}
    return place


def _uri(file: str) -> str:
    path = PurePath(file).as_posix()
    escaped = quote(path, safe="/", errors="surrogatepass")
    return f"file://{escaped}" if path.startswith("/") else escaped


def _fingerprint(finding: Diagnostic) -> str:
    """Return what stays the same while lines above the finding come and go."""
    file = finding.location.file if finding.location else ""
    said = repr((finding.code, file, finding.summary, finding.remedy))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()
