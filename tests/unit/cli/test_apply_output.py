"""Progress of an apply on stderr: a bar on a terminal, lines in a log, nothing when quiet."""

from __future__ import annotations

import io
import itertools
import sys
import time
from collections.abc import Iterator

import pytest

from reconciler.apply.changes import Outcome, Progress, Status
from reconciler.cli.apply_output import TerminalWatch
from reconciler.cli.process import choose, forget_run
from reconciler.plan.model import Create
from tests.builders import WEB, declared

LATEST = Outcome(Create(declared(WEB)), Status.MADE)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        """Say that somebody looks at it."""
        return True


@pytest.fixture(autouse=True)
def no_choice() -> Iterator[None]:
    yield
    forget_run()


def watched(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, step: float) -> str:
    """Return what is told of ten changes, each of which takes so many seconds."""
    clock = itertools.count(0.0, step)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    with TerminalWatch() as watch:
        for done in range(1, 11):
            watch.progress(Progress(done, 10, LATEST))
    return stream.getvalue()


def test_a_terminal_shows_a_bar_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of it is left at the end."""
    parts = watched(monkeypatch, Terminal(), 1.0).split("\r")

    assert parts[5] == "applying [############------------] 5 of 10, 1/s, 5 s left\x1b[K"
    assert parts[-1] == "\x1b[K"
    assert len(parts) == 12


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every five seconds."""
    assert watched(monkeypatch, io.StringIO(), 1.0) == "applying: 5 of 10\napplying: 10 of 10\n"


def test_a_quick_run_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Terminal(), 0.001) == ""


def test_quiet_shows_no_progress_and_verbose_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among other lines a bar would be torn."""
    choose("quiet", value=True)
    quiet = watched(monkeypatch, Terminal(), 1.0)
    forget_run()
    choose("verbose", value=True)
    verbose = watched(monkeypatch, Terminal(), 1.0)

    assert quiet == ""
    assert verbose == "applying: 5 of 10\napplying: 10 of 10\n"
