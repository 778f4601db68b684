"""Findings as GitHub takes them: annotations on lines, and the summary of a step."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from reconciler.diagnostics import SourceLocation, note
from reconciler.report.github import findings_as_annotations, findings_as_summary
from reconciler.report.sarif import findings_as_sarif
from reconciler.report.visible import visible
from tests.hostile import PAYLOADS, hostile_findings
from tests.unit.report.findings import FINDINGS, WRONG


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


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
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


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_the_summary_holds_what_others_wrote_in_one_fence(payload: str) -> None:
    """A heading, a count, a fence."""
    text = findings_as_summary(hostile_findings(payload), 1)

    assert [token.type for token in MarkdownIt("commonmark").parse(text)] == [
        "heading_open", "inline", "heading_close", "paragraph_open", "inline", "paragraph_close",
        "fence",
    ]  # fmt: skip


def test_a_summary_that_is_too_long_is_cut_with_its_count() -> None:
    """GitHub drops a summary past a mebibyte without a word."""
    text = findings_as_summary([WRONG] * 20_000, 3)

    assert len(text) < 600_000
    assert re.search(r"\n\d+ more are in the log of the step\.\n$", text)
