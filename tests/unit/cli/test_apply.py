"""The exit code of an apply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import errors
from reconciler.apply.changes import ApplyReport, Delivered, Outcome, Status
from reconciler.cli import apply
from reconciler.diagnostics import error, warning
from reconciler.errors import ReconcilerError
from reconciler.plan.model import Create
from tests.builders import GREET, WEB, declared
from tests.rows import each_row

MADE = Outcome(Create(declared(WEB)), Status.MADE, "7")
SKIPPED = Outcome(Create(declared(GREET)), Status.NOT_TRIED)


DENIED = errors.AccessDeniedError("problem", remedy="remedy")
KEPT = Delivered(WEB, "7", "7@shop", "kept/web.json")
OWED = Delivered(WEB, "7", "7@shop", error=DENIED)
UNTAKEN = replace(OWED, error=errors.LocalFileError("problem", remedy="remedy"))
MISSING = error("SECRET-NOT-IN-SINK", "s", "r")


def failed(kind: type[ReconcilerError]) -> Outcome:
    return Outcome(Create(declared(GREET)), Status.FAILED, error=kind("problem", remedy="remedy"))


@each_row(
    ("report", "code"),
    [
        pytest.param(ApplyReport((MADE,), remaining=0), 0, id="all made"),
        pytest.param(ApplyReport((), remaining=0), 0, id="nothing to do"),
        pytest.param(ApplyReport((MADE,)), 0, id="made, and nobody could look again"),
        pytest.param(ApplyReport((MADE,), remaining=1), 5, id="the service made something else"),
        pytest.param(
            ApplyReport((MADE, failed(errors.InvalidArgumentError))), 5, id="one of two failed"
        ),
        pytest.param(ApplyReport((MADE, SKIPPED)), 5, id="one of two not tried"),
        pytest.param(
            ApplyReport((failed(errors.PreconditionFailedError), SKIPPED)), 4, id="outdated"
        ),
        pytest.param(
            ApplyReport((replace(failed(errors.AccessDeniedError), written=True),), remaining=0),
            5,
            id="written, and its secret refused",
        ),
        pytest.param(ApplyReport((failed(errors.LockHeldError),)), 6, id="the lock was lost"),
        pytest.param(ApplyReport((failed(errors.AccessDeniedError),)), 7, id="not allowed"),
        pytest.param(ApplyReport((failed(errors.InvalidArgumentError),)), 1, id="refused"),
        pytest.param(ApplyReport((MADE, SKIPPED), interrupted=15), 143, id="interrupted"),
        pytest.param(ApplyReport((), delivered=(KEPT,), remaining=0), 0, id="delivered"),
        pytest.param(ApplyReport((), delivered=(OWED,), remaining=0), 7, id="owed still"),
        pytest.param(ApplyReport((), delivered=(KEPT, OWED), remaining=0), 5, id="one of two"),
        pytest.param(ApplyReport((), delivered=(UNTAKEN,), remaining=0), 5, id="the sink failed"),
        pytest.param(ApplyReport((), (MISSING,), remaining=0), 5, id="a secret is nowhere"),
        pytest.param(
            ApplyReport((MADE,), (warning("W", "s", "r"),), remaining=0), 0, id="only warned"
        ),
    ],
)
def test_an_apply_ends_with_what_came_of_it(report: ApplyReport, code: int) -> None:
    """Partly applied is a number of its own: something was changed."""
    assert apply.exit_code(report) == code
