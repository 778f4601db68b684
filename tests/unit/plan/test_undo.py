"""What an undo wants the service to hold, and which later changes refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reconciler.plan.undo import BeforeAndNow, changed_since, takes_back
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.undone import Undone
from reconciler.state import FeedEvent, ObservedObject
from tests.builders import GREET, HOUSE, an_action, held, observed

MARK = Undone("", "R", "", {})
MORE = ResourceRef(Kind.ACTION, GREET.organization, "", "more")
FLOW = ResourceRef(Kind.ACTION_FLOW, GREET.organization, "", "COMPLEMENT_TOKEN")
TRIGGERS = {
    "POST_AUTHENTICATION": [],
    "PRE_CREATION": [],
    "POST_CREATION": [],
    "PRE_USERINFO_CREATION": ["greet"],
    "PRE_ACCESS_TOKEN_CREATION": [],
    "PRE_SAML_RESPONSE_CREATION": [],
}


def event(sequence: int, run: str, undo: str = "") -> FeedEvent:
    context = {"run": run} if run else {}
    context |= {"undo": undo} if undo else {}
    return FeedEvent(
        kind="Action",
        project_id="",
        sequence=sequence,
        at="2026-11-27T00:00:00Z",
        type="action.changed",
        writer="ana",
        context=context,
        id="1",
        name="greet",
    )


@pytest.mark.parametrize(
    ("undoes", "expected"),
    [
        ({}, {"R"}),
        ({"U": "R"}, {"R", "U"}),
        ({"U": "R", "V": "U"}, {"R", "U"}),
        ({"U": "R", "V": "U", "W": "V"}, {"R", "U", "W"}),
        ({"U": "R", "V": "R"}, {"R", "U", "V"}),
        ({"U": "S"}, {"R"}),
        pytest.param({"": "R"}, {"R"}, id="an event of no run, whose context names the run"),
        pytest.param({"U": "V", "V": "U"}, {"R"}, id="a circle, which is only claimed"),
        pytest.param({"R": "U", "U": "R"}, {"R", "U"}, id="a circle with the run"),
    ],
)
def test_what_takes_a_run_back(undoes: Mapping[str, str], expected: set[str]) -> None:
    events = [event(number, run, of) for number, (run, of) in enumerate(undoes.items())]

    assert takes_back("R", events) == expected


@pytest.mark.parametrize(
    ("later", "is_refused"),
    [
        ([], False),
        ([event(2, "S")], True),
        pytest.param([event(2, "")], True, id="by hand"),
        ([event(2, "U", "R")], False),
        pytest.param([event(2, "S"), event(3, "U", "S")], False, id="undone since"),
        pytest.param([event(2, "S"), event(3, "U", "S"), event(4, "V", "U")], True, id="and back"),
        pytest.param([event(2, "S"), event(3, "T"), event(4, "U", "S")], True, id="not the last"),
    ],
)
def test_a_later_change_refuses(later: Sequence[FeedEvent], *, is_refused: bool) -> None:
    happened = [event(0, "earlier"), event(1, "R"), *later]

    found = changed_since({"1": happened}, "R", takes_back("R", happened), {"1": GREET})

    assert ("1" in found) is is_refused
    assert not is_refused or "--keep Action/acme/greet" in found["1"].remedy


def states(
    before: Sequence[ObservedObject],
    now: Sequence[ObservedObject],
    *,
    prune: bool = False,
    again: Sequence[str] = (),
) -> BeforeAndNow:
    return BeforeAndNow(observed(*HOUSE, *before), observed(*HOUSE, *now), again, prune, MARK)


def test_only_what_is_undone_is_wanted_as_it_was() -> None:
    old, new = (
        held(GREET, an_action(timeout="1s"), object_id="1"),
        held(GREET, an_action(), object_id="1"),
    )

    desired, refused = states([old], [new]).undoing(["1"])
    left, _ = states([old], [new]).undoing([])

    assert not refused
    assert desired.resources[GREET.key].spec["timeout"] == "1s"
    assert desired.resources[GREET.key].undone == MARK
    assert left.resources[GREET.key].spec["timeout"] == "20s"
    assert left.resources[GREET.key].undone is None


def test_what_an_undo_made_again_is_no_obstacle_and_another_object_is() -> None:
    gone, new = held(GREET, an_action(), object_id="1"), held(GREET, an_action(), object_id="2")

    _, refused = states([gone], [new]).undoing(["1"])
    desired, none = states([gone], [new], again=["2"]).undoing(["1"])

    assert list(refused) == ["1"]
    assert not none
    assert desired.resources[GREET.key].undone == MARK


@pytest.mark.parametrize(("prune", "expected"), [(True, ["9"]), (False, [])])
def test_what_others_name_is_not_deleted(*, prune: bool, expected: list[str]) -> None:
    made = held(MORE, an_action(), object_id="9")
    flow = held(
        FLOW, {**TRIGGERS, "PRE_CREATION": ["more"], "PRE_USERINFO_CREATION": []}, object_id="5"
    )

    _, refused = states([], [made, flow], prune=prune).undoing(["9"])

    assert list(refused) == expected


def test_what_is_not_selected_stays_and_what_needs_it_is_refused() -> None:
    """The action was changed since and is gone; the flow of before names it."""
    action, flow = held(GREET, an_action(), object_id="1"), held(FLOW, TRIGGERS, object_id="5")
    empty = held(FLOW, {**TRIGGERS, "PRE_USERINFO_CREATION": []}, object_id="5")
    later = changed_since({"1": [event(1, "R"), event(2, "S")]}, "R", {"R"}, {"1": GREET})
    both = states([action, flow], [empty])

    _, whole, refused = both.undoing_part(later, ["1", "5"], lambda _: True)
    _, part, lacking = both.undoing_part(later, ["1", "5"], lambda key: key == "5")
    _, none, nothing = both.undoing_part(later, ["1", "5"], lambda _: False)

    assert (sorted(whole), [each.ref for each in refused]) == (["1", "5"], [GREET])
    assert ([*part], [each.ref for each in lacking]) == (["5"], [FLOW])
    assert ([*none], [*nothing]) == ([], [])
