"""How a command ends: the numbers that scripts and pipelines rely on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import errors
from reconciler.apply.outcome import ApplyReport, Delivered, Outcome, Status
from reconciler.cli import apply, plan
from reconciler.cli.exit_codes import exit_code_of
from reconciler.diagnostics import error, warning
from reconciler.errors import ReconcilerError
from reconciler.plan.model import Create, Plan, Unmanaged
from tests.builders import GREET, WEB, a_plan, declared

CODES: dict[type[ReconcilerError], int] = {
    errors.UsageError: 1,
    errors.PlanError: 1,
    errors.BlockedPlanError: 3,
    errors.StalePlanError: 4,
    errors.LocalFileError: 1,
    errors.LockHeldError: 6,
    errors.ServiceError: 1,
    errors.InvalidArgumentError: 1,
    errors.ObjectNotFoundError: 1,
    errors.AlreadyExistsError: 1,
    errors.AccessDeniedError: 7,
    errors.PreconditionFailedError: 4,
    errors.ServiceUnavailableError: 1,
}


@pytest.mark.parametrize(
    ("kind", "code"), CODES.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_every_failure_has_its_number(kind: type[ReconcilerError], code: int) -> None:
    """A pipeline waits for a lock, asks for a review or gives up, by the number alone."""
    assert exit_code_of(kind("problem", remedy="remedy")) == code


@pytest.mark.parametrize(("signal", "code"), [(2, 130), (15, 143)])
def test_an_interrupted_run_ends_as_shells_expect(signal: int, code: int) -> None:
    """Of a signal's number and 128."""
    assert exit_code_of(errors.InterruptedRunError(signal)) == code


def test_wrong_manifests_are_an_error() -> None:
    """One, whatever is wrong and however often."""
    assert exit_code_of(errors.InvalidManifestsError([error("X", "s", "r")] * 3)) == 1


MADE = Outcome(Create(declared(WEB)), Status.MADE, "7")
SKIPPED = Outcome(Create(declared(GREET)), Status.NOT_TRIED)


DENIED = errors.AccessDeniedError("problem", remedy="remedy")
KEPT = Delivered(WEB, "7", "7@shop", "kept/web.json")
OWED = Delivered(WEB, "7", "7@shop", error=DENIED)
MISSING = error("SECRET-NOT-IN-SINK", "s", "r")


def failed(kind: type[ReconcilerError]) -> Outcome:
    return Outcome(Create(declared(GREET)), Status.FAILED, error=kind("problem", remedy="remedy"))


@pytest.mark.parametrize(
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
        pytest.param(ApplyReport((), (MISSING,), remaining=0), 5, id="a secret is nowhere"),
        pytest.param(
            ApplyReport((MADE,), (warning("W", "s", "r"),), remaining=0), 0, id="only warned"
        ),
    ],
)
def test_an_apply_ends_with_what_came_of_it(report: ApplyReport, code: int) -> None:
    """Partly applied is a number of its own: something was changed."""
    assert apply.exit_code(report) == code


@pytest.mark.parametrize(
    ("found", "code"),
    [
        pytest.param(a_plan(), 0, id="nothing to do"),
        pytest.param(a_plan(unmanaged=(Unmanaged(WEB),)), 0, id="only unmanaged"),
        pytest.param(a_plan(Create(declared(WEB))), 2, id="changes"),
        pytest.param(
            a_plan(Create(declared(WEB)), blocks=(error("G", "s", "r"),)), 3, id="blocked wins"
        ),
    ],
)
def test_a_plan_ends_with_whether_anything_would_change(found: Plan, code: int) -> None:
    """With --detailed-exitcode, as in the tools people know."""
    assert plan.exit_code(found) == code
