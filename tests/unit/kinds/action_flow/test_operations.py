"""Flows: their numbers and old words, and actions that leave them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.service.asking import Asking

LOGIN = {"flowType": "1", "triggerType": "1"}


def triggers(ask: Asking, flow: str = "1") -> dict[str, list[str]]:
    found = ask("GetFlow", organization=ask.organization, type=flow)["flow"]
    return {
        each["triggerType"]["id"]: [action["name"] for action in each["actions"]]
        for each in found["triggerActions"]
    }


def test_the_old_words_of_a_flow_and_a_trigger_are_its_numbers(ask: Asking) -> None:
    action = ask.an_action()["id"]
    words = {
        "flowType": "FLOW_TYPE_EXTERNAL_AUTHENTICATION",
        "triggerType": "TRIGGER_TYPE_PRE_CREATION",
    }

    ask("SetTriggerActions", organization=ask.organization, **words, actionIds=[action])

    assert triggers(ask) == {"2": ["greet"]}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({**LOGIN, "flowType": "9"}, "flowType"),
        ({**LOGIN, "triggerType": "6"}, "triggerType"),
        ({**LOGIN, "actionIds": ["7"]}, ""),
    ],
)
def test_an_unknown_number_or_action_is_refused(
    ask: Asking, fields: dict[str, Any], field: str
) -> None:
    refused = ask.refused("SetTriggerActions", organization=ask.organization, **fields)

    assert refused.details.get("field", "") == field
    assert triggers(ask) == {}


def test_a_removed_action_leaves_its_triggers_in_their_order(ask: Asking) -> None:
    ids = [ask.an_action(name)["id"] for name in ("a", "b", "c")]
    ask("SetTriggerActions", organization=ask.organization, **LOGIN, actionIds=ids)

    ask("DeleteAction", id=ids[1])
    assert triggers(ask) == {"1": ["a", "c"]}

    ask("ClearFlow", organization=ask.organization, type="1")
    assert triggers(ask) == {}
