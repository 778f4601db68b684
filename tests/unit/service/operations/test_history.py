"""The events of an object, and what was removed."""

from __future__ import annotations

import pytest

from reconciler.service.domain.refusal import Code
from tests.unit.service.asking import Asking


@pytest.mark.parametrize("after", ["x", "01", "1.", "-1", "1.2.3", "9" * 19])
def test_a_cursor_that_no_page_gave_is_refused(ask: Asking, after: str) -> None:
    made = ask.an_action()["id"]

    refusal = ask.refused("GetObjectHistory", id=made, after=after)

    assert (refusal.code, refusal.details["field"]) == (Code.INVALID_ARGUMENT, "after")


def test_past_the_last_event_there_is_nothing(ask: Asking) -> None:
    made = ask.an_action()["id"]

    assert ask("GetObjectHistory", id=made, after="7") == {"events": [], "next": ""}


def test_a_removal_has_the_trees_that_wrote_the_object_since_it_came_to_be(ask: Asking) -> None:
    action = ask.an_action()["id"]
    flow = {"organization": ask.organization, "flowType": "3", "triggerType": "2"}
    for tree in ("first", "second"):
        context = f'{{"tree":"{tree}"}}'
        ask("SetTriggerActions", **flow, actionIds=[action], context=context)
        ask("ClearFlow", organization=ask.organization, type="3")

    removals = ask("ListRemovals", organizationId=ask.organization)["removals"]

    assert [removal["trees"] for removal in removals] == [["first"], ["second"]]
