"""Findings as SARIF 2.1.0, which code scanning shows beside the lines they are about."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePath
from urllib.parse import quote

from reconciler import __version__
from reconciler.diagnostics import Diagnostic, SourceLocation
from reconciler.report.codes import CODES, as_sentence
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject

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
    """Return what code scanning shows of a code."""
    rule: dict[str, object] = {"id": name, "name": _pascal(name)}
    code = CODES.get(name)
    if code is not None:
        rule["shortDescription"] = {"text": as_sentence(code.title)}
        rule["fullDescription"] = {"text": code.meaning}
        rule["help"] = {"text": code.remedy}
    return rule


def _pascal(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("-"))


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
    """Return a path as a URI reference, with every special character escaped."""
    path = PurePath(file).as_posix()
    escaped = quote(path, safe="/", errors="surrogatepass")
    return f"file://{escaped}" if path.startswith("/") else escaped


def _fingerprint(finding: Diagnostic) -> str:
    """Return what stays the same while lines above the finding come and go."""
    file = finding.location.file if finding.location else ""
    said = repr((finding.code, file, finding.summary, finding.remedy))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()
