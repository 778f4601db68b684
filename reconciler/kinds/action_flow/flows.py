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
    """A point in a flow.

    Attributes:
        number: On the wire.
        key: That of its translated name.
        when: The moment at which its actions run.
    """

    name: str
    number: str
    key: str
    when: str


class Flow(NamedTuple):
    """A flow, with its triggers in the order of their numbers; ``key`` is as that of a trigger."""

    name: str
    number: str
    key: str
    triggers: tuple[Trigger, ...]


_TRIGGERS = (
    Trigger("POST_AUTHENTICATION", "1", "PostAuthentication", "after a user signed in"),
    Trigger("PRE_CREATION", "2", "PreCreation", "before a user is created"),
    Trigger("POST_CREATION", "3", "PostCreation", "after a user was created"),
    Trigger(
        "PRE_USERINFO_CREATION", "4", "PreUserinfoCreation",
        "before the user info is made, and the claims of the id token",
    ),
    Trigger(
        "PRE_ACCESS_TOKEN_CREATION", "5", "PreAccessTokenCreation",
        "before an access token of type JWT is made",
    ),
    Trigger(
        "PRE_SAML_RESPONSE_CREATION", "6", "PreSAMLResponseCreation",
        "before a SAML response is made",
    ),
)  # fmt: skip

FLOWS = (
    Flow("EXTERNAL_AUTHENTICATION", "1", "ExternalAuthentication", _TRIGGERS[:3]),
    Flow("COMPLEMENT_TOKEN", "2", "CustomiseToken", _TRIGGERS[3:5]),
    Flow("INTERNAL_AUTHENTICATION", "3", "InternalAuthentication", _TRIGGERS[:3]),
    Flow("COMPLEMENT_SAML_RESPONSE", "4", "CustomizeSAMLResponse", _TRIGGERS[5:]),
)

FLOW_NAMED: Mapping[str, Flow] = {flow.name: flow for flow in FLOWS}
FLOW_NUMBERED: Mapping[str, Flow] = {flow.number: flow for flow in FLOWS}
TRIGGER_NAMED: Mapping[str, Trigger] = {trigger.name: trigger for trigger in _TRIGGERS}
TRIGGER_NUMBERED: Mapping[str, Trigger] = {trigger.number: trigger for trigger in _TRIGGERS}


def flow_id(organization: str, flow: Flow) -> str:
    """Return the id under which our own service keeps a flow of the organization of an id."""
    return f"{organization}-{flow.number}"
