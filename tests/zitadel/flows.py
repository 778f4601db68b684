"""Flows of a ZITADEL: one state for its commands, and another one that its reads show.

A command knows what was set (`internal/command/org_flow.go`). The removal of an action is no part
of that: a trigger which lost its only action is still not empty to it. A read joins what was set
with the actions that are there (`internal/query/action_flow.go`), lags as lists do, and does not
refuse a flow that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.zitadel.held import Held, Item, made
from tests.zitadel.refusals import FakeError

TRIGGERS = {"1": "123", "2": "45", "3": "123", "4": "6"}  # of each flow
# The words of the API before it had numbers.
OLD_WORDS = {
    "FLOW_TYPE_EXTERNAL_AUTHENTICATION": "1",
    "TRIGGER_TYPE_POST_AUTHENTICATION": "1",
    "TRIGGER_TYPE_PRE_CREATION": "2",
    "TRIGGER_TYPE_POST_CREATION": "3",
}
FLOW_KEYS = {
    "0": "Unspecified", "1": "ExternalAuthentication", "2": "CustomiseToken",
    "3": "InternalAuthentication", "4": "CustomizeSAMLResponse",
}  # fmt: skip
TRIGGER_KEYS = {
    "1": "PostAuthentication", "2": "PreCreation", "3": "PostCreation", "4": "PreUserinfoCreation",
    "5": "PreAccessTokenCreation", "6": "PreSAMLResponseCreation",
}  # fmt: skip


class Flows:
    """The flows of every organization, in ``flows`` of what is held."""

    def __init__(self, things: Held, view: Callable[[Item], Item]) -> None:
        self._things = things
        self._view = view

    def get(self, asked: Item, org: str) -> Item:
        """Return a flow as it is shown: triggers without actions are left out, in no order."""
        self._things.catch_up()
        number = _number(asked["type"], FLOW_KEYS, "0")
        item = self._things.shown["flows"].get(_id(org, number), {"triggers": {}, "details": {}})
        shown = {
            trigger: [action for action in map(self._shown_action, ids) if action]
            for trigger, ids in item["triggers"].items()
        }
        rows = {trigger: actions for trigger, actions in shown.items() if actions}
        flow: Item = {
            "type": {"id": number, "name": {"key": f"Action.Flow.Type.{FLOW_KEYS[number]}"}},
            "details": item["details"] if rows else {},
            "state": "FLOW_STATE_ACTIVE",  # a constant
            "triggerActions": [_trigger_view(*row) for row in sorted(rows.items(), reverse=True)],
        }
        return {"flow": flow}

    def set(self, asked: Item, org: str) -> Item:
        """Set the actions of one trigger."""
        flow = _number(asked["flowType"], TRIGGERS, "")
        trigger = _number(asked["triggerType"], TRIGGER_KEYS, "0")
        if not flow:
            raise FakeError(3, "COMMAND-Dfhj5", "Errors.Flow.FlowTypeMissing")
        if trigger not in TRIGGERS[flow]:
            raise FakeError(3, "COMMAND-Dfgh6", "Errors.Flow.WrongTriggerType")
        triggers, ids = self._known(org, flow), asked["actionIds"]
        if triggers.get(trigger, []) == ids:
            raise FakeError(9, "COMMAND-Nfh52", "Errors.Flow.NoChanges")
        # The server counts those that it finds, so that one named twice is one too few.
        if sum(map(self._is_action_of(org), set(ids))) != len(ids):
            raise FakeError(9, "COMMAND-dg422", "Errors.Flow.ActionIDsNotExist")
        return {"details": made(self._put(org, flow, {**triggers, trigger: [*ids]}))}

    def clear(self, asked: Item, org: str) -> Item:
        """Empty every trigger of a flow."""
        flow = _number(asked["type"], TRIGGERS, "")
        if not flow:
            raise FakeError(3, "COMMAND-Dfw2h", "Errors.Flow.FlowTypeMissing")
        # A trigger that was set to no actions counts as one that was set.
        if not self._known(org, flow):
            raise FakeError(9, "COMMAND-DgGh3", "Errors.Flow.Empty")
        return {"details": dict(self._put(org, flow, {})["details"])}

    def _known(self, org: str, flow: str) -> dict[str, list[str]]:
        item = self._things.held["flows"].get(_id(org, flow), {"triggers": {}})
        known: dict[str, list[str]] = item["triggers"]
        return known

    def _put(self, org: str, flow: str, triggers: dict[str, list[str]]) -> Item:
        item = self._things.held["flows"].get(_id(org, flow))
        if item is None:
            return self._things.add(
                "flows", {"name": flow, "triggers": triggers}, org, _id(org, flow)
            )
        item["triggers"] = triggers
        self._things.touch("flows", item)
        return item

    def _is_action_of(self, org: str) -> Callable[[str], bool]:
        actions = self._things.held["actions"]
        return lambda action: (
            action in actions and actions[action]["details"]["resourceOwner"] == org
        )

    def _shown_action(self, action: str) -> Item | None:
        item = self._things.shown["actions"].get(action)
        return None if item is None else self._view(item)


def _id(org: str, flow: str) -> str:
    return f"{org}-{flow}"


def _number(text: str, known: dict[str, Any], otherwise: str) -> str:
    number = OLD_WORDS.get(text, text)
    return number if number in known else otherwise


def _trigger_view(trigger: str, actions: list[Item]) -> Item:
    name = {"key": f"Action.TriggerType.{TRIGGER_KEYS[trigger]}"}
    return {"triggerType": {"id": trigger, "name": name}, "actions": actions}
