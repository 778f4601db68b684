"""Progress of a long run in one line: a bar with a rate for a terminal, plain words for a log."""

from __future__ import annotations

BAR = 24
"""Characters between the brackets."""

_SHOWN_FROM = 0.5
"""Seconds before a rate means something."""


def progress_line(done: int, total: int) -> str:
    """Return the line for a log."""
    return f"applying: {done} of {total}"


def progress_bar(done: int, total: int, seconds: float, columns: int) -> str:
    """Return the line for a terminal of so many columns, after so many seconds.

    >>> progress_bar(300, 1200, 2.0, 80)
    'applying [######------------------] 300 of 1200, 150/s, 6 s left'
    """
    full = BAR * done // total if total else BAR
    bar = f"[{'#' * full}{'-' * (BAR - full)}] "
    counts = f"{done} of {total}{_rate(done, total, seconds)}"
    line = f"applying {bar}{counts}"
    if len(line) >= columns:
        line = f"applying {counts}"
    return line[: max(columns - 1, 0)]  # a full last column would wrap


def _rate(done: int, total: int, seconds: float) -> str:
    if not done or seconds < _SHOWN_FROM:
        return ""
    rate = done / seconds
    left = (total - done) / rate
    return f", {rate:.0f}/s, {left:.0f} s left" if rate >= 1 else f", {left:.0f} s left"
