"""Foreseen failures: the sentences that they make themselves, and what each stands for."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import error, warning
from reconciler.errors import (
    REFUSED,
    InterruptedRunError,
    InvalidManifestsError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
    UnseenOrganizationError,
    ungrouped_interruption,
)

WRONG, DOUBTFUL = error("A", "s", "r"), warning("B", "s", "r")


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (InvalidManifestsError([WRONG, DOUBTFUL]), "1 error in the manifests"),
        (InvalidManifestsError([WRONG, WRONG]), "2 errors in the manifests"),
        (UnseenOrganizationError(["acme"]), "cannot say whether acme exists with this token"),
        (
            UnseenOrganizationError(["acme", "b", "c"]),
            "cannot say whether acme and 2 more exists with this token",
        ),
        (InterruptedRunError(15), "interrupted"),
    ],
)
def test_a_failure_says_what_is_wrong_and_what_to_do(
    failure: ReconcilerError, problem: str
) -> None:
    assert failure.problem == str(failure) == problem
    assert failure.remedy.endswith(".")


def test_invalid_manifests_keep_every_finding() -> None:
    assert InvalidManifestsError([WRONG, DOUBTFUL]).diagnostics == (WRONG, DOUBTFUL)


def test_an_answer_that_may_have_come_too_late_is_no_refusal() -> None:
    """After a refusal nothing was done; where there was no answer, that is not known."""
    assert all(issubclass(refused, ServiceError) for refused in REFUSED)
    assert not issubclass(ServiceUnavailableError, REFUSED)


def test_an_interruption_leaves_a_group_as_itself() -> None:
    """A task group puts it into a group, however deep."""
    interruption = InterruptedRunError(2)
    group = BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [interruption]), OSError()])

    with pytest.raises(InterruptedRunError) as raised, ungrouped_interruption():
        raise group

    assert raised.value is interruption


@pytest.mark.parametrize("failure", [ExceptionGroup("all", [OSError()]), ValueError("x")])
def test_other_failures_stay_as_they_are(failure: Exception) -> None:
    with pytest.raises(type(failure)) as raised, ungrouped_interruption():
        raise failure

    assert raised.value is failure
