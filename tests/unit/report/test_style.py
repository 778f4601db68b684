"""Colour where it is wanted, and plain text everywhere else."""

from __future__ import annotations

import io

import pytest

from reconciler.report.style import PLAIN, Style, style_of


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        pytest.param(Terminal(), {}, True, id="a terminal"),
        pytest.param(io.StringIO(), {}, False, id="a file"),
        pytest.param(Terminal(), {"NO_COLOR": "1"}, False, id="nobody wants colour"),
        pytest.param(Terminal(), {"NO_COLOR": ""}, True, id="an empty NO_COLOR is none"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, True, id="colour in a file"),
        pytest.param(Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, id="no colour wins"),
        pytest.param(Terminal(), {"TERM": "dumb"}, False, id="a terminal that cannot"),
        pytest.param(Terminal(), {"TERM": "dumb", "FORCE_COLOR": "1"}, True, id="and must"),
    ],
)
def test_colour_is_used_where_it_is_wanted(
    stream: io.StringIO, environ: dict[str, str], colour: object
) -> None:
    """By the conventions that people set once for all their tools."""
    assert style_of(stream, environ).colour is colour


@pytest.mark.parametrize(
    ("color", "environ", "colour"),
    [
        pytest.param("always", {"NO_COLOR": "1", "TERM": "dumb"}, True, id="always"),
        pytest.param("never", {"FORCE_COLOR": "1"}, False, id="never"),
        pytest.param("auto", {"FORCE_COLOR": "1"}, True, id="auto is as the environment says"),
    ],
)
def test_the_option_wins_over_the_environment(
    color: str, environ: dict[str, str], colour: object
) -> None:
    """It was written for this run."""
    assert style_of(io.StringIO(), environ, color).colour is colour


@pytest.mark.parametrize(
    ("style", "text", "looks", "expected"),
    [
        pytest.param(PLAIN, "a", ("bold",), "a", id="plain"),
        pytest.param(Style(colour=True), "a", ("bold", "red"), "\x1b[1;31ma\x1b[0m", id="coloured"),
        pytest.param(Style(colour=True), "", ("red",), "", id="nothing is not coloured"),
    ],
)
def test_a_text_is_given_its_looks(
    style: Style, text: str, looks: tuple[str, ...], expected: str
) -> None:
    """And the looks of what comes after it are its own."""
    assert style(text, *looks) == expected
