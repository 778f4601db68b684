"""The exit code of a plan."""

from __future__ import annotations

import pytest

from reconciler.cli import plan
from reconciler.diagnostics import error
from reconciler.plan.model import Create, Plan, Unmanaged
from tests.builders import WEB, a_plan, declared


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
