"""The line that a finding is about: a caret beneath the place, and no secret in it."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.report.excerpt import excerpt
from reconciler.report.findings import Layout, finding_as_text, wrapped


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def test_there_is_no_caret_beneath_a_hidden_secret() -> None:
    assert excerpt("password: hunter2", SourceLocation("a.yaml", 7, 13)) == [
        "    7 | password: ***"
    ]


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
    assert wrapped("a b", 0) == "a b"
