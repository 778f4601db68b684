"""The result of an apply, counted."""

from __future__ import annotations

import pytest

from reconciler.apply.outcome import ApplyReport, Outcome, Status
from reconciler.plan.model import Create
from tests.builders import declared

CHANGE = Create(declared())


@pytest.mark.parametrize("status", Status)
def test_outcomes_are_counted_by_their_status(status: Status) -> None:
    others = [Outcome(CHANGE, each) for each in Status]

    report = ApplyReport((Outcome(CHANGE, status), *others))

    assert report.count(status) == 2


def test_what_remains_is_unknown_until_it_was_looked_for() -> None:
    assert ApplyReport(()).remaining is None
