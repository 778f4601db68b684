"""An undo that was killed, and the undo of such a one: what is half done can always go on."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.acceptance.conftest import Place, Ran, an_action, an_application
from tests.acceptance.test_action_flows import ACCESS_TOKEN, USERINFO, a_flow
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_project_roles import a_role
from tests.acceptance.test_undo import GLASS
from tests.acceptance.test_undo_cases import ours, run_of, run_of_last, with_metadata
from tests.acceptance.ways import on_two_ways, pairs

__all__ = ["ours"]

ALLOWED = (
    *("--auto-approve", "--prune", "--allow-deletes", "9", "--allow-updates", "9", *GLASS),
    *("--break-glass", "ProjectRole/acme/shop/guest=test"),
    *("--break-glass", "Action/acme/marked=test"),
    *("--break-glass", "OidcApplication/acme/shop/fresh=test"),
)


class Rich(NamedTuple):
    """A run that made, changed, marked, renamed and deleted, and what was held around it."""

    run: str
    before: str
    after: str


@pytest.fixture
def rich(ours: Place) -> Rich:
    first = {
        "role": a_role("staff"),
        "token": a_flow({USERINFO: ["greet"]}),
        "gone": an_action("gone"),
        "marked": an_action("marked"),
        "waiting": with_metadata(an_action("waiting"), active=False),
        "idle": with_metadata(an_action("idle"), active=False),
        "slow": an_action("slow"),
    }
    applied(ours.run, ours.manifests, **first)
    before = exported(ours.run)
    held = ours.direct.objects()["greet"]["id"]
    changed = applied(
        ours.run,
        ours.manifests,
        greet=with_metadata(an_action("welcome", timeout="3s"), id=held),
        role=a_role("staff", displayName="Staff") + "\n---\n" + a_role("guest"),
        token=a_flow({ACCESS_TOKEN: ["welcome", "more"]}),
        more=an_action("more"),
        gone="",
        marked=with_metadata(an_action("marked"), preventDelete=True, critical=True),
        waiting="",
        idle=with_metadata(an_action("idle"), active=True),
        slow=an_action("slow", timeout="9s"),
        fresh=an_application("fresh"),
        partner="",
        web="",
    )
    return Rich(run_of(changed), before, exported(ours.run))


def undo(place: Place, run_id: str, **known: str) -> Ran:
    return place.run("undo", run_id, "--format", "json", *ALLOWED, **known)


KILLED = ("C2:1", "C4:1", "C4:2", "C6:1", "C8:1", "C10:1", "C11:1", "C12:1")


@pytest.mark.parametrize(("ours", "point"), pairs(KILLED, "C4:2", "C10:1"), indirect=["ours"])
def test_a_killed_undo_of_everything_goes_on_when_it_is_asked_for_again(
    ours: Place, rich: Rich, point: str
) -> None:
    """Also between a new object and its deactivation."""
    killed = undo(ours, rich.run, RECONCILER_CRASHPOINT=point)
    assert killed.code < 0, killed.all

    ran = undo(ours, rich.run)

    assert ran.code == 0, ran.all
    assert exported(ours.run) == rich.before


@pytest.mark.parametrize(("ours", "point"), pairs(["C4:1", "C11:1"], "C11:1"), indirect=["ours"])
def test_half_an_undo_is_undone_and_its_undo_is_and_then_goes_on(
    ours: Place, rich: Rich, point: str
) -> None:
    """What an undo of an undo of the undo made again is still that of the run."""
    assert undo(ours, rich.run, RECONCILER_CRASHPOINT=point).code < 0
    half, first = exported(ours.run), run_of_last(ours.run)
    second = undo(ours, first)
    assert second.code == 0, second.all
    assert exported(ours.run) == rich.after
    third = undo(ours, run_of(second))
    assert third.code == 0, third.all
    assert exported(ours.run) == half

    ran = undo(ours, rich.run)

    assert ran.code == 0, ran.all
    assert exported(ours.run) == rich.before


@on_two_ways
def test_an_undo_of_an_undo_of_an_undo_and_so_on(ours: Place, rich: Rich) -> None:
    """Back and forth; every plan of the manifests is blocked or empty."""
    last = rich.run
    for held, code in ((rich.before, 3), (rich.after, 0)) * 2:
        ran = undo(ours, last)
        assert ran.code == 0, ran.all
        last = run_of(ran)
        assert exported(ours.run) == held
        plan = ours.run("plan", "--detailed-exitcode", "--prune", "--allow-deletes", "9")
        assert plan.code == code, plan.all
