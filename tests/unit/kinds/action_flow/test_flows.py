"""The table of flows says what a ZITADEL says of its own."""

from __future__ import annotations

from reconciler.kinds.action_flow.flows import (
    FLOW_NAMED,
    FLOW_NUMBERED,
    FLOWS,
    TRIGGER_NAMED,
    TRIGGER_NUMBERED,
)


def test_each_flow_has_the_triggers_of_the_server() -> None:
    """A number sent for another trigger would run an action at the wrong point of a login."""
    assert {flow.number: [trigger.number for trigger in flow.triggers] for flow in FLOWS} == {
        "1": ["1", "2", "3"],
        "2": ["4", "5"],
        "3": ["1", "2", "3"],
        "4": ["6"],
    }


def test_flows_and_triggers_are_found_by_name_and_by_number() -> None:
    """Manifests have names, messages have numbers."""
    assert FLOW_NAMED["COMPLEMENT_TOKEN"] is FLOW_NUMBERED["2"]
    assert [*TRIGGER_NUMBERED] == ["1", "2", "3", "4", "5", "6"]
    assert [trigger.number for trigger in TRIGGER_NAMED.values()] == [*TRIGGER_NUMBERED]
    assert TRIGGER_NAMED["PRE_SAML_RESPONSE_CREATION"] is TRIGGER_NUMBERED["6"]
