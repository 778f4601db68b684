"""The fields of action flows: the triggers."""

from __future__ import annotations

from reconciler.kinds.action_flow.flows import FLOWS, TRIGGER_NAMED
from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import Field, Form, texts
from reconciler.resources.kinds import IN_ORGANIZATION, MAX_NAME, KindRow
from reconciler.resources.ref import Kind

# A trigger has the same name in every flow that has it, so all flows share these fields. Which of
# them a flow has is said by ``flows.py``; a manifest with another one is refused.
_TRIGGERS = tuple(
    texts(
        trigger.name, f"Names of the actions to run, in order, {trigger.when}.", "greet"
    )._replace(shortest=1, longest=MAX_NAME, refers=Kind.ACTION)
    for trigger in TRIGGER_NAMED.values()
)

_FLOWS = f"{MANAGEMENT}/flows"

ROW = KindRow(
    "The actions that run at the triggers of one flow. It is the whole flow: a trigger that is "
    "left out runs no action.",
    rank=3,
    schema="action-flow",
    noun="flow",
    plural="action flows",
    renamable=False,
    name=Field("name", Form.CHOICE, "The flow.", words=tuple(flow.name for flow in FLOWS)),
    owner=IN_ORGANIZATION,
    fields=_TRIGGERS,
    gone_when_empty=True,
    verb="runs",
    addresses={
        "GetFlow": (f"GET {_FLOWS}/{{type}}",),
        "SetTriggerActions": (f"POST {_FLOWS}/{{flowType}}/trigger/{{triggerType}}",),
        "ClearFlow": (f"POST {_FLOWS}/{{type}}/_clear",),
    },
)
