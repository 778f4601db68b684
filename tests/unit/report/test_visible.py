"""What others wrote, made safe to print: nothing hidden, nothing obeyed."""

from __future__ import annotations

import io
import re
import string
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.report.visible import PLAIN, Style, style_of, visible
from tests.effort import cases
from tests.rows import each_row

# What terminals and readers do not see, or are deceived by.
ODD = (
    "\x00\x07\x08\t\n\r\x1b\x7f\x80\x85\x9b\xa0\xad"
    "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200c\u200d\u200e\u200f\u2028\u2029"
    "\u202a\u202e\u2060\u2066\u2069\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffe\ue000"
    "\ud800\U000e0001\U000e0041\U000e0100\U000e01ef\U000f0000"
)
TEXT = st.text(st.characters() | st.sampled_from(ODD + "::##[[ "), max_size=40)


@each_row(
    ("text", "shown"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("acme/shop", "acme/shop", id="plain"),
        pytest.param("naïve 日本 Ωmega 🙂", "naïve 日本 Ωmega 🙂", id="letters of any script"),
        pytest.param("a: b, a::b", "a: b, a::b", id="colons within a line"),
        pytest.param("#1 ## [x]", "#1 ## [x]", id="marks that are no command"),
        pytest.param("\x1b[31mred", "\\u{1b}[31mred", id="a colour"),
        pytest.param("a\rb", "a\\u{d}b", id="a carriage return"),
        pytest.param("a\nb\tc", "a\\nb\\tc", id="a line break and a tab"),
        pytest.param("user\u202etxt.exe", "user\\u{202e}txt.exe", id="text turned round"),
        pytest.param("ad\u200bmin", "ad\\u{200b}min", id="no width"),
        pytest.param("ad\u3164min", "ad\\u{3164}min", id="a letter that is blank"),
        pytest.param("x\ufe0f", "x\\u{fe0f}", id="a choice of looks"),
        pytest.param("a\U000e0041b", "a\\u{e0041}b", id="a tag, as hidden text is made of"),
        pytest.param("\ud800", "\\u{d800}", id="half a character"),
        pytest.param("::error::x", ":\\u{3a}error::x", id="a command of a CI runner"),
        pytest.param("  ::error::x", "  :\\u{3a}error::x", id="one after blanks"),
        pytest.param(":::set-output", ":\\u{3a}:set-output", id="one with a colon more"),
        pytest.param("a ##[error] b", "a ##\\u{5b}error] b", id="the other form, anywhere"),
        pytest.param("###[x", "###\\u{5b}x", id="the other form with a mark more"),
        pytest.param("##[##[x", "##\\u{5b}##\\u{5b}x", id="the other form twice"),
    ],
)
def test_what_is_hidden_or_obeyed_is_written_out(text: str, shown: str) -> None:
    """A name from a manifest must not paint, move, hide or command anything."""
    assert visible(text) == shown


@settings(max_examples=cases(50), deadline=None)
@given(text=TEXT)
@example(text=ODD)
def test_no_character_that_cannot_be_seen_survives(text: str) -> None:
    """Whatever category Unicode has it in."""
    shown = visible(text)

    assert [hex(ord(character)) for character in shown if _is_hidden(character)] == []
    assert shown.isprintable()
    shown.encode()


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or character in ODD


@settings(max_examples=cases(50), deadline=None)
@given(text=TEXT)
@example(text="\u2028::error")
@example(text="#\u200b#[")
@example(text="\n::error")
@example(text="\xa0::error")
def test_no_text_is_a_command_of_a_runner(text: str) -> None:
    """Runners take :: at the start of a line, blanks aside, and ##[ anywhere in it."""
    shown = visible(text)

    for line in shown.splitlines():
        assert not re.match(r"\s*::", line)
        assert not line.strip().startswith("::")
    assert "##[" not in shown
    assert "\n" not in shown


@settings(max_examples=cases(50), deadline=None)
@given(text=st.text(string.ascii_letters + string.digits + " äßπя日本語🙂!?.,;-_/\\'\"()[]{}<>@"))
def test_printable_text_stays_as_it_is(text: str) -> None:
    """Nobody should have to read past escapes that protect from nothing."""
    assert visible(text) == text


@settings(max_examples=cases(50), deadline=None)
@given(text=TEXT)
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    """Text that goes through twice is not spoilt."""
    assert visible(visible(text)) == visible(text)


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@each_row(
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
