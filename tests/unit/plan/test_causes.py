"""Why a change is in a plan: told by who wrote the object's last event."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.plan.causes import Cause, CauseKind, cause_in_words, cause_of
from reconciler.plan.model import Adopt, Change, Create, Delete, Update
from tests.builders import GREET, declared, held

ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "2026-01-01T00:00:00Z", "sequence": 43}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param(Create(declared(GREET)), CauseKind.NOT_HELD, id="not held"),
        pytest.param(
            Update(declared(GREET), held(GREET, changed_in="default", **ANA)),
            CauseKind.DECLARED,
            id="the last event is of this tree",
        ),
        pytest.param(
            Update(declared(GREET), held(GREET, **ANA)),
            CauseKind.SERVICE,
            id="somebody wrote without a tree",
        ),
        pytest.param(
            Update(declared(GREET), held(GREET, changed_in="other", **ANA)),
            CauseKind.SERVICE,
            id="another tree wrote",
        ),
        pytest.param(
            Adopt(declared(GREET), held(GREET, trees=(), **ANA)),
            CauseKind.NEVER_APPLIED,
            id="this tree never wrote",
        ),
        pytest.param(
            Delete(held(GREET, changed_in="default", **ANA)),
            CauseKind.UNDECLARED,
            id="no longer declared",
        ),
        pytest.param(
            Delete(held(GREET, trees=(), **ANA)), CauseKind.NEVER_APPLIED, id="somebody else's"
        ),
        pytest.param(
            Update(declared(GREET), held(GREET)), CauseKind.UNKNOWN, id="the service does not tell"
        ),
    ],
)
def test_the_cause_of_a_change(change: Change, kind: CauseKind) -> None:
    """A reviewer approves what was declared, and asks about the rest."""
    assert cause_of(change, "default").kind is kind


def test_a_change_on_the_service_is_told_with_author_time_and_sequence() -> None:
    """Whoever reads it knows whom to ask."""
    cause = cause_of(Update(declared(GREET), held(GREET, changed_in="other", **ANA)), "default")

    assert cause == Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43, "other")
    assert cause_in_words(cause) == (
        "changed on the service since, by ana for tree other at 2026-01-01T00:00:00Z (sequence 43)"
    )


@pytest.mark.parametrize("kind", CauseKind)
def test_every_cause_has_words_or_none_are_needed(kind: CauseKind) -> None:
    """A new cause must be told as well."""
    silent = {CauseKind.NOT_HELD, CauseKind.UNKNOWN}

    assert (cause_in_words(Cause(kind)) == "") is (kind in silent)
