"""Standard streams: a write that fails is remembered, and stops nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from reconciler.cli import streams
from reconciler.cli.streams import OutputChoice, choose, chosen, forget_choice, lost_output
from reconciler.errors import UsageError


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Begin and end with the defaults."""
    forget_choice()
    yield
    forget_choice()


def test_a_reader_that_has_gone_is_remembered_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = streams._text(streams._Stream(writer, "w"), None)
    monkeypatch.setattr(sys, "stdout", out)

    out.write("one\n")
    out.write("two\n")

    assert lost_output() == "its reader has gone"
    monkeypatch.undo()
    out.close()


def test_a_stream_that_takes_everything_has_lost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    out = streams._text(streams._Stream(writer, "w"), None)
    monkeypatch.setattr(sys, "stdout", out)

    out.write("é\ud800\n")

    assert lost_output() == ""
    monkeypatch.undo()
    out.close()
    assert os.read(reader, 99) == "é\\ud800\n".encode(), "what has no bytes is escaped"
    os.close(reader)


def test_another_stream_lost_nothing() -> None:
    """That of a test, or of a program that uses this one as a library."""
    assert lost_output() == ""


def test_options_are_taken_where_they_were_given() -> None:
    choose("color", "never")
    choose("verbose", value=True)
    choose("color", None)

    assert chosen() == OutputChoice("never", verbose=True)


def test_contradicting_options_are_refused() -> None:
    choose("quiet", value=True)

    with pytest.raises(UsageError, match="contradict"):
        choose("verbose", value=True)
