"""The flows of the identity service, and the triggers in them at which actions run.

On the wire a flow and a trigger are decimal numbers written as texts; manifests and messages use
their names. The numbers are ZITADEL's own (wire facts 2.7). A trigger belongs to one flow or to
both authentication flows, and always has the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Actions of one trigger; ZITADEL has no limit of its own.
MAX_TRIGGER_ACTIONS = 100


class Trigger(NamedTuple):
    """A point in a flow: its name and its number on the wire."""

    name: str
    number: str


class Flow(NamedTuple):
    """A flow: its name, its number on the wire, and its triggers in the order of their numbers."""

    name: str
    number: str
    triggers: tuple[Trigger, ...]


_AUTHENTICATION = (
    Trigger("POST_AUTHENTICATION", "1"),
    Trigger("PRE_CREATION", "2"),
    Trigger("POST_CREATION", "3"),
)
_TOKEN = (
    Trigger("PRE_USERINFO_CREATION", "4"),
    Trigger("PRE_ACCESS_TOKEN_CREATION", "5"),
)

FLOWS = (
    Flow("EXTERNAL_AUTHENTICATION", "1", _AUTHENTICATION),
    Flow("COMPLEMENT_TOKEN", "2", _TOKEN),
    Flow("INTERNAL_AUTHENTICATION", "3", _AUTHENTICATION),
    Flow("COMPLEMENT_SAML_RESPONSE", "4", (Trigger("PRE_SAML_RESPONSE_CREATION", "6"),)),
)

FLOW_NAMED: Mapping[str, Flow] = {flow.name: flow for flow in FLOWS}
FLOW_NUMBERED: Mapping[str, Flow] = {flow.number: flow for flow in FLOWS}

_TRIGGERS = sorted(
    {trigger for flow in FLOWS for trigger in flow.triggers}, key=lambda each: each.number
)
TRIGGER_NAMED: Mapping[str, Trigger] = {trigger.name: trigger for trigger in _TRIGGERS}
TRIGGER_NUMBERED: Mapping[str, Trigger] = {trigger.number: trigger for trigger in _TRIGGERS}


def flow_id(organization: str, flow: Flow) -> str:
    """Return the id under which our own service keeps a flow of the organization of an id."""
    return f"{organization}-{flow.number}"
