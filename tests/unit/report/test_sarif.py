"""Findings as SARIF, which code scanning takes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.report.sarif import findings_as_sarif
from tests.hostile import PAYLOADS, hostile_findings, marked
from tests.unit.report.findings import FINDINGS, PLACE, WRONG
from tests.unit.report.sarif_schema import SARIF

SARIF_VALIDATOR = jsonschema.validators.validator_for(SARIF)(SARIF)


def results(findings: list[Diagnostic]) -> list[dict[str, Any]]:
    report = findings_as_sarif(findings)
    SARIF_VALIDATOR.validate(report)
    found: list[dict[str, Any]] = report["runs"][0]["results"]
    return found


def test_sarif_says_rule_level_place_and_what_to_do() -> None:
    """As code scanning shows it beside the line."""
    first, second, third = results(FINDINGS)

    assert (first["ruleId"], first["level"]) == ("OIDC-ORIGIN", "error")
    assert first["message"] == {"text": "origin has a path. Write `https://a.test`. 100 %."}
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "manifests/a%20b%2Cc%3Ad.yaml"},
                "region": {"startLine": 14, "startColumn": 7},
            }
        }
    ]
    assert second["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "manifests/x.yaml"}}}
    ]
    assert "locations" not in third


def test_sarif_names_each_rule_once_and_results_point_at_theirs() -> None:
    """By position, as the standard asks for."""
    (run,) = findings_as_sarif([*FINDINGS, WRONG])["runs"]
    rules = run["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == ["NAME-ODD", "OIDC-ORIGIN", "TREE-ODD"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        "OIDC-ORIGIN", "NAME-ODD", "TREE-ODD", "OIDC-ORIGIN",
    ]  # fmt: skip
    assert run["results"][0]["partialFingerprints"] == run["results"][3]["partialFingerprints"]


def test_a_finding_keeps_its_fingerprint_when_lines_move() -> None:
    """Otherwise an alert that somebody has dismissed comes back with each edit."""
    moved = error(WRONG.code, WRONG.summary, WRONG.remedy, SourceLocation(PLACE.file, 99, 1))
    other = error(WRONG.code, WRONG.summary, WRONG.remedy, SourceLocation("other.yaml", 14, 7))

    one, two, three = (found["partialFingerprints"] for found in results([WRONG, moved, other]))

    assert one == two
    assert one != three


def test_no_findings_is_a_valid_report_too() -> None:
    """It is what closes the alerts of the run before."""
    assert results([]) == []


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_sarif_is_valid_whatever_a_finding_says(payload: str) -> None:
    """The path is a URI reference, and no letter of it leads elsewhere."""
    findings = hostile_findings(marked(payload))

    first = results(findings)[0]

    json.dumps(first).encode("ascii")
    uri = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert ":" not in uri
    if "//" not in payload and not any("\ud800" <= letter <= "\udfff" for letter in payload):
        assert unquote(uri) == f"{marked(payload)}.yaml".replace("/./", "/")


def test_an_absolute_path_is_a_file_uri() -> None:
    """Where manifests are given by an absolute path, that is where they are."""
    (found,) = results([error("X-Y", "s", "r", SourceLocation("/srv/a b.yaml", 1, 1))])

    place = found["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "file:///srv/a%20b.yaml"}
