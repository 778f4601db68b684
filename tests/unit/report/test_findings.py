"""Findings in words and as JSON, with the line each is about and no secret in it."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import Diagnostic, SourceLocation, by_place, error, note, warning
from reconciler.report import findings as findings_module
from reconciler.report.ci import findings_as_annotations, findings_as_junit, findings_as_sarif
from reconciler.report.findings import (
    counts,
    excerpt,
    finding_as_json,
    finding_as_text,
    findings_as_text,
)
from reconciler.report.layout import Layout
from reconciler.report.visible import Style
from tests.builders import WEB
from tests.effort import cases
from tests.rows import each_row

PLACE = SourceLocation("shop.yaml", 7, 3)
WRONG = error("SCHEMA-TYPE", "timeout is a number", "Write a text such as 5s.", PLACE, WEB)
ODD = warning("URI-HTTP", "a redirect URI is not encrypted", "Write https.")
GOOD = note("SCRIPT-CRLF", "it has CRLF", "Use LF.")
WHOLE = error("FILE-EMPTY", "the file is empty", "Remove it.", SourceLocation("a.yaml"))
HOST = error(
    "URI-HTTP",
    "not encrypted",
    "Write https.",
    SourceLocation("shop.yaml", 7, 3, "host from reconciler.yaml:4:9"),
)


@each_row(
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
            HOST,
            "shop.yaml:7:3: error URI-HTTP: not encrypted (host from reconciler.yaml:4:9)\n"
            "    Write https.",
            id="a value with a variable in it",
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


@settings(max_examples=cases(25), deadline=None)
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


@each_row(
    ("line", "column", "shown"),
    [
        pytest.param(
            "  timeout: 5",
            12,
            ["    7 |   timeout: 5", "      |            ^"],
            id="a value",
        ),
        pytest.param(
            "  näme: 日本 x",
            12,
            ["    7 |   näme: 日本 x", "      |              ^"],
            id="behind wide letters",
        ),
        pytest.param(
            "a\tb: \x1b[2J",
            6,
            ["    7 | a\\tb: \\u{1b}[2J", "      |       ^"],
            id="what a terminal would obey",
        ),
        pytest.param(
            f"{'a' * 150}X{'b' * 150}",
            151,
            [f"    7 | ...{'a' * 60}X{'b' * 39}...", f"      | {' ' * 63}^"],
            id="a long line, cut on both sides",
        ),
        pytest.param("short", 99, ["    7 | short", "      |      ^"], id="behind the end"),
        pytest.param("whole", 0, ["    7 | whole"], id="no column"),
        pytest.param("x: 1  \t", 4, ["    7 | x: 1", "      |    ^"], id="blanks at the end"),
    ],
)
def test_a_line_has_a_caret_beneath_the_place(line: str, column: int, shown: list[str]) -> None:
    assert excerpt(line, SourceLocation("a.yaml", 7, column)) == shown


@each_row(
    ("line", "shown"),
    [
        ("  clientSecret: hunter2", "  clientSecret: ***"),
        ('  "client_secret": "hunter2", a: b', '  "client_secret": ***'),
        ("  password : hunter2", "  password : ***"),
        ("const API_KEY = 'hunter2';", "const API_KEY = ***"),
        ("  keysEndpoint: https://ana:hunter2@id.example.com", "  keysEndpoint: https://ana:***@"),
        ("  headerName: Bearer hunter2", "  headerName: Bearer ***"),
        ("  note: rct_hunter2", "  note: ***"),
        ("  issuer: eyJhbGciOi.hunter2.x", "  issuer: ***"),
        ("  idTokenRoleAssertion: true", "  idTokenRoleAssertion: true"),
        ("  accessTokenType: OIDC_TOKEN_TYPE_JWT", "  accessTokenType: OIDC_TOKEN_TYPE_JWT"),
        ("  clientSecret: |", "  clientSecret: |"),
    ],
)
def test_a_secret_in_a_line_is_not_shown(line: str, shown: str) -> None:
    """The finding that says it must not be there would put it into the log of a CI job."""
    text = "\n".join(excerpt(line, SourceLocation("a.yaml", 7, 3)))

    assert text.startswith(f"    7 | {shown}")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "line",
    [
        "a" * 50_000,
        "secret" * 10_000,
        "eyJ-" * 12_000,
        "token " * 10_000,
        "secret: " + " " * 50_000,
    ],
)
def test_a_search_for_secrets_takes_time_linear_in_the_line(line: str) -> None:
    """A line can have a million characters; the square of a tenth of that takes too long."""
    assert len(excerpt(line, SourceLocation("a.yaml", 7, 1))) == 2


def test_a_line_is_searched_for_secrets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list on one line has many findings."""
    searched: list[str] = []

    def search(line: str) -> str:
        searched.append(line)
        return line

    monkeypatch.setattr(findings_module, "without_secrets", search)
    line = "x: [" + ", ".join(["1"] * 100) + "], once: here"

    shown = [excerpt(line, SourceLocation("a.yaml", 7, column)) for column in range(5, 300, 3)]

    assert searched == [line]
    assert len(set(map(tuple, shown))) > 10


def test_there_is_no_caret_beneath_a_hidden_secret() -> None:
    assert excerpt("password: hunter2", SourceLocation("a.yaml", 7, 13)) == [
        "    7 | password: ***"
    ]


def test_every_form_names_the_source_of_a_variable_once() -> None:
    assert finding_as_json(HOST)["value_from"] == "host from reconciler.yaml:4:9"
    assert "value_from" not in finding_as_json(WRONG)
    for form in (
        findings_as_annotations([HOST]),
        json.dumps(findings_as_sarif([HOST])),
        findings_as_junit([HOST], []).partition('message="')[2].partition('"')[0],
    ):
        assert form.count("host from reconciler.yaml:4:9") == 1


def test_a_finding_shows_its_line_between_what_and_what_to_do() -> None:
    finding = error("X-Y", "wrong", "Write it right.", SourceLocation("a.yaml", 2, 3))
    layout = Layout(line_at=lambda location: f"a: {location.line}")

    assert finding_as_text(finding, layout).splitlines() == [
        "a.yaml:2:3: error X-Y: wrong",
        "    2 | a: 2",
        "      |   ^",
        "    Write it right.",
    ]
    gone = Layout(line_at=lambda _: None)
    assert finding_as_text(finding, gone) == finding_as_text(finding)


def test_a_long_finding_is_broken_between_words_only() -> None:
    """A name or an address that is longer than the terminal stays whole, to be copied."""
    long = "https://id.example.com/" + "x" * 60
    finding = error("X-Y", f"the address {long} is wrong", "Write it. " * 9)

    lines = finding_as_text(finding, Layout(width=40)).splitlines()

    assert any(line.strip() == long for line in lines)
    assert all(len(line) <= 40 for line in lines if long not in line)
    assert " ".join(" ".join(lines).split()) == " ".join(finding_as_text(finding).split())


@pytest.mark.parametrize("column", [1, 40, 150, 300])
def test_an_excerpt_is_no_wider_than_the_terminal(column: int) -> None:
    """Else the caret stands beneath another word."""
    first, caret = excerpt("word " * 60, SourceLocation("a.yaml", 7, column), 60)

    assert max(map(len, (first, caret))) <= 60
    assert caret.endswith("^")
