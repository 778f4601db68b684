"""Findings in words and as JSON: where, what, and what to do."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import (
    Diagnostic,
    SourceLocation,
    by_place,
    error,
    note,
    warning,
)
from reconciler.report.findings import (
    Layout,
    counts,
    finding_as_json,
    finding_as_text,
    findings_as_text,
)
from reconciler.report.style import Style
from tests.builders import WEB

PLACE = SourceLocation("shop.yaml", 7, 3)
WRONG = error("SCHEMA-TYPE", "timeout is a number", "Write a text such as 5s.", PLACE, WEB)
ODD = warning("URI-HTTP", "a redirect URI is not encrypted", "Write https.")
GOOD = note("SCRIPT-CRLF", "it has CRLF", "Use LF.")
WHOLE = error("FILE-EMPTY", "the file is empty", "Remove it.", SourceLocation("a.yaml"))


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        pytest.param(
            WRONG,
            "shop.yaml:7:3: error SCHEMA-TYPE: timeout is a number\n    Write a text such as 5s.",
            id="an error at a place",
        ),
        pytest.param(
            ODD,
            "warning URI-HTTP: a redirect URI is not encrypted\n    Write https.",
            id="a warning without a place",
        ),
        pytest.param(GOOD, "note SCRIPT-CRLF: it has CRLF\n    Use LF.", id="a note"),
        pytest.param(
            WHOLE, "a.yaml: error FILE-EMPTY: the file is empty\n    Remove it.", id="a whole file"
        ),
        pytest.param(
            error("X", "a\nb", "::stop", SourceLocation("::error\x1b.yaml", 1, 1)),
            ":\\u{3a}error\\u{1b}.yaml:1:1: error X: a\\nb\n    :\\u{3a}stop",
            id="what commands a runner is broken, wherever it stands",
        ),
    ],
)
def test_a_finding_says_where_and_what_and_then_what_to_do(finding: Diagnostic, text: str) -> None:
    """Editors and terminals make the first part a link."""
    assert finding_as_text(finding) == text


def test_findings_end_with_their_number() -> None:
    """The last line tells at a glance."""
    assert findings_as_text([WRONG, ODD]).splitlines()[-1] == "1 error, 1 warning"
    assert findings_as_text([]) == ""


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([], ""),
        ([WRONG], "1 error"),
        ([WRONG, WHOLE], "2 errors"),
        ([ODD], "1 warning"),
        ([ODD, ODD, WRONG], "1 error, 2 warnings"),
    ],
)
def test_findings_are_counted_in_words(findings: list[Diagnostic], words: str) -> None:
    """One error, two errors."""
    assert counts(findings) == words


def test_an_error_is_red_and_a_warning_yellow() -> None:
    """On a terminal that shows it."""
    assert finding_as_text(WRONG, Layout(Style(colour=True))).startswith(
        "shop.yaml:7:3: \x1b[31;1merror SCHEMA-TYPE\x1b[0m: "
    )
    assert finding_as_text(ODD, Layout(Style(colour=True))).startswith(
        "\x1b[33;1mwarning URI-HTTP\x1b[0m"
    )


@pytest.mark.parametrize(
    ("finding", "fields"),
    [
        pytest.param(
            WRONG,
            {
                "severity": "error",
                "code": "SCHEMA-TYPE",
                "summary": "timeout is a number",
                "remedy": "Write a text such as 5s.",
                "file": "shop.yaml",
                "line": 7,
                "column": 3,
            },
            id="at a place",
        ),
        pytest.param(
            WHOLE,
            {
                "severity": "error",
                "code": "FILE-EMPTY",
                "summary": "the file is empty",
                "remedy": "Remove it.",
                "file": "a.yaml",
                "line": None,
                "column": None,
            },
            id="of a whole file",
        ),
        pytest.param(
            ODD,
            {
                "severity": "warning",
                "code": "URI-HTTP",
                "summary": "a redirect URI is not encrypted",
                "remedy": "Write https.",
                "file": None,
                "line": None,
                "column": None,
            },
            id="of no file",
        ),
    ],
)
def test_a_finding_is_json_with_stable_keys(finding: Diagnostic, fields: dict[str, object]) -> None:
    """Minor versions add keys and take none away."""
    found = finding_as_json(finding)

    assert {name: found[name] for name in fields} == fields
    assert json.loads(json.dumps(found)) == found


FINDINGS = st.builds(
    lambda summary, remedy, place: error("CODE", summary, remedy, place),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["1", "2"]),
    st.sampled_from([None, SourceLocation("a.yaml"), PLACE, SourceLocation("b.yaml", 1)]),
)


@settings(max_examples=200, deadline=None)
@given(findings=st.lists(FINDINGS, max_size=8), seed=st.integers())
def test_findings_come_once_each_in_the_order_of_their_places(
    findings: list[Diagnostic], seed: int
) -> None:
    """In whatever order they were found: output that jumps about cannot be compared."""
    shuffled = random.Random(seed).sample(findings, k=len(findings))

    ordered = by_place(shuffled)

    assert ordered == by_place(findings)
    assert set(ordered) == set(findings)
    assert len(ordered) == len(set(findings))
    places = [finding.location or SourceLocation("") for finding in ordered]
    assert places == sorted(places)
