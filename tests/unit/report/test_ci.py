"""Findings as GitHub takes them: annotations on lines, and the summary of a step."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

import jsonschema
import pytest
from markdown_it import MarkdownIt

from reconciler.diagnostics import Diagnostic, SourceLocation, error, note
from reconciler.report.ci import (
    findings_as_annotations,
    findings_as_junit,
    findings_as_sarif,
    findings_as_summary,
)
from reconciler.report.visible import visible
from tests.hostile import (
    COMMANDS,
    FENCES,
    HTML,
    INVISIBLE,
    hostile_findings,
    marked,
    payloads,
)
from tests.unit.report.findings import FINDINGS, PLACE, WRONG
from tests.unit.report.sarif_schema import SARIF


def test_an_annotation_is_one_line_with_its_place() -> None:
    """GitHub's own escapes: a colon and a comma end a property, a percent sign begins an escape."""
    place = "file=manifests/a b%2Cc%3Ad.yaml,line=14,col=7,title=OIDC-ORIGIN"
    assert findings_as_annotations(FINDINGS).split("\n") == [
        f"::error {place}::origin has a path. Write `https://a.test`. 100 %25.",
        "::warning file=manifests/x.yaml,title=NAME-ODD::name is odd. Choose another.",
        "::warning title=TREE-ODD::tree is odd. Look at it.",
    ]


def test_a_note_is_a_notice() -> None:
    """GitHub's word for it."""
    found = note("FILE-SKIPPED", "it is not read", "Rename it.", SourceLocation("x.yml.txt"))

    assert findings_as_annotations([found]) == (
        "::notice file=x.yml.txt,title=FILE-SKIPPED::it is not read. Rename it."
    )
    assert findings_as_sarif([found])["runs"][0]["results"][0]["level"] == "note"


COMMAND = re.compile(r"::(error|warning) (?:[a-z]+=[^,:\r\n]*,)*title=[A-Z-]+::[^\r\n]*")


@pytest.mark.parametrize("payload", payloads(*COMMANDS))
def test_no_finding_ends_its_own_command_or_begins_another(payload: str) -> None:
    """One command for each finding, and nothing in it that a runner or a terminal obeys."""
    findings = hostile_findings(payload)
    lines = findings_as_annotations(findings).split("\n")

    assert len(lines) == len(findings)
    for line in lines:
        assert COMMAND.fullmatch(line)
        assert "##[" not in line
        assert visible(line[2:]) == line[2:]


def test_the_summary_of_a_step_counts_and_lists() -> None:
    """What the page of a run shows without a look at its log."""
    assert findings_as_summary(FINDINGS, 3) == (
        "## Not valid: 3 manifests\n\n1 error, 2 warnings\n\n```text\n"
        "manifests/a b,c:d.yaml:14:7: error OIDC-ORIGIN: origin has a path\n"
        "    Write `https://a.test`. 100 %.\n"
        "manifests/x.yaml: warning NAME-ODD: name is odd\n    Choose another.\n"
        "warning TREE-ODD: tree is odd\n    Look at it.\n```\n"
    )
    assert findings_as_summary([], 1) == "## Valid: 1 manifest\n"


@pytest.mark.parametrize("payload", payloads(*FENCES))
def test_the_summary_holds_what_others_wrote_in_one_fence(payload: str) -> None:
    """A heading, a count, a fence."""
    text = findings_as_summary(hostile_findings(payload), 1)

    assert [token.type for token in MarkdownIt("commonmark").parse(text)] == [
        "heading_open", "inline", "heading_close", "paragraph_open", "inline", "paragraph_close",
        "fence",
    ]  # fmt: skip


def test_a_summary_that_is_too_long_is_cut_with_its_count() -> None:
    """GitHub drops a summary past a mebibyte without a word."""
    text = findings_as_summary([WRONG] * 6_000, 3)

    assert len(text) < 600_000
    assert re.search(r"\n\d+ more are in the log of the step\.\n$", text)


@dataclass
class Element:
    """One element of a document."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self) -> list[Element]:
        return [self, *(found for element in self.inside for found in element.all())]


def xml_of(document: str) -> Element:
    """Return the outermost element; a document that is not well-formed is an error."""
    path = [Element("", {})]
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes)
        path[-1].inside.append(element)
        path.append(element)

    def text(data: str) -> None:
        path[-1].text += data

    def end(_: str) -> None:
        path.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    is_final = True  # a document that ends too soon is an error
    parser.Parse(document, is_final)
    return path[0].inside[0]


def test_every_file_is_a_test_that_its_errors_fail() -> None:
    """A file without findings is there too: a report of nothing looks like a run that broke."""
    files = ["manifests/x.yaml", "ok.yaml", "ok.yaml"]
    suites = xml_of(findings_as_junit([*FINDINGS, WRONG], files))

    assert suites.attributes == {
        "name": "reconciler validate", "tests": "4", "failures": "1", "errors": "0",
    }  # fmt: skip
    (suite,) = suites.inside
    assert {
        case.attributes["name"]: [part.tag for part in case.inside] for case in suite.inside
    } == {
        "manifests/x.yaml": ["system-out"],
        "ok.yaml": [],
        "manifests/a b,c:d.yaml": ["failure"],
        "(no file)": ["system-out"],
    }
    (failure,) = [found for found in suite.all() if found.tag == "failure"]
    assert failure.attributes == {
        "type": "OIDC-ORIGIN",
        "message": "origin has a path (and 1 more)",
    }
    assert failure.text.count("Write `https://a.test`. 100 %.") == 2


@pytest.mark.parametrize("payload", payloads(*HTML))
def test_junit_is_xml_whatever_a_finding_says(payload: str) -> None:
    """XML cannot hold every character, not even escaped; made visible, it can."""
    suites = xml_of(findings_as_junit(hostile_findings(payload), [f"{payload}.yaml"]))

    assert {element.tag for element in suites.all()} == {
        "testsuites", "testsuite", "testcase", "failure", "system-out",
    }  # fmt: skip
    assert visible(payload) in "".join(element.text for element in suites.all())


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


@pytest.mark.parametrize("payload", payloads(*INVISIBLE))
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
