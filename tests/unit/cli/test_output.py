"""Output of commands: what goes where, and words for times."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.output import (
    age_in_words,
    detail,
    hint,
    is_folded,
    line_reader,
    not_quiet,
    print_json,
    show_error,
    show_warnings,
    time_in_words,
    timed,
    width_of,
)
from reconciler.cli.process import choose, forget_run
from reconciler.diagnostics import SourceLocation, note, warning
from reconciler.errors import UsageError

WARNED, NOTED = warning("A", "be careful", "Look."), note("B", "by the way", "Nothing.")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Begin and end with the defaults."""
    forget_run()
    yield
    forget_run()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (7199, "1 hour"),
        (7200, "2 hours"),
        (86_400, "1 day"),
        (10**9, "11574 days"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(seconds: int, words: str) -> None:
    assert age_in_words(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (10**18, "an invalid time"),
    ],
)
def test_a_time_is_told_to_the_second(seconds: int, words: str) -> None:
    assert time_in_words(seconds) == words


def test_quiet_leaves_out_notes_and_hints_and_no_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not_quiet([WARNED, NOTED]) == [WARNED, NOTED]
    choose("quiet", value=True)

    hint("a hint")
    show_warnings([WARNED, NOTED])

    said = capsys.readouterr()
    assert said.out == ""
    assert "be careful" in said.err
    assert "by the way" not in said.err
    assert "a hint" not in said.err


def test_details_are_told_only_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    detail("one")
    choose("verbose", value=True)
    detail("two\x1b")
    with timed("reading"):
        pass

    said = capsys.readouterr().err
    assert "one" not in said
    assert "two\\u{1b}" in said
    assert "reading: 0." in said


def test_json_is_one_document_that_no_runner_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "##[group]é\n::error::"})

    out = capsys.readouterr().out
    assert "##[" not in out
    assert out.isascii()
    assert json.loads(out) == {"a": "##[group]é\n::error::"}


def test_an_error_says_what_to_do_and_shows_hidden_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_error(UsageError("bad\x1b", remedy="Write it again."))

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "Error: bad\\u{1b}\n  Write it again.\n"


def test_a_pipe_has_no_width_and_folds_nothing() -> None:
    choose("folds", value=True)

    assert width_of(sys.stderr) == 0
    assert not is_folded(sys.stderr)


def test_the_lines_that_findings_are_about_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffone\r\ntwo\n\xff".encode())
    line_at = line_reader()

    def line(number: int) -> str | None:
        return line_at(SourceLocation(str(path), number, 1))

    assert [line(number) for number in (0, 1, 2, 3, 4)] == [None, "one", "two", "\xff", None]
    assert line_at(SourceLocation(str(tmp_path / "gone"), 1, 1)) is None
