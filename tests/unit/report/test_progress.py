"""One line that says how far a run is."""

from __future__ import annotations

import pytest

from reconciler.report.progress import progress_bar, progress_line


@pytest.mark.parametrize(
    ("done", "total", "seconds", "columns", "line"),
    [
        (300, 1200, 2.0, 80, "applying [######------------------] 300 of 1200, 150/s, 6 s left"),
        (0, 10, 3.0, 80, "applying [------------------------] 0 of 10"),
        (5, 10, 0.2, 80, "applying [############------------] 5 of 10"),
        (10, 10, 1.0, 80, "applying [########################] 10 of 10, 10/s, 0 s left"),
        (1, 10, 4.0, 80, "applying [##----------------------] 1 of 10, 36 s left"),
        (300, 1200, 2.0, 40, "applying 300 of 1200, 150/s, 6 s left"),
        (300, 1200, 2.0, 20, "applying 300 of 120"),
        (0, 0, 1.0, 80, "applying [########################] 0 of 0"),
    ],
    ids=["rate", "nothing yet", "too early", "done", "slow", "narrow", "cut", "nothing to do"],
)
def test_a_bar_fits_the_terminal(
    done: int, total: int, seconds: float, columns: int, line: str
) -> None:
    """A line that wraps could not be written over."""
    assert progress_bar(done, total, seconds, columns) == line
    assert len(line) < columns


def test_a_log_has_plain_words() -> None:
    assert progress_line(5, 10) == "applying: 5 of 10"
