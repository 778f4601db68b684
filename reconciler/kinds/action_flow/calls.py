"""The calls that write action flows: one for each trigger.

On the wire a flow and a trigger are numbers, and the actions of a trigger are ids. No call makes a
flow: it is there as soon as one of its triggers has actions, and gone when the last one is emptied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.kinds.action_flow.flows import FLOW_NAMED, flow_id
from reconciler.resources.call import JsonObject
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW, fold
from reconciler.service_client.kinds import KindCalls, OneCall, Placed
from reconciler.service_client.port import CreateOrder, UpdateOrder


class _Calls(KindCalls):
    def target(self, at: Placed, object_id: str) -> JsonObject:
        return {"type": FLOW_NAMED[at.ref.name].number}

    def known_id(self, order: CreateOrder) -> str:
        return flow_id(order.organization_id, FLOW_NAMED[order.ref.name])

    def creates(self, order: CreateOrder) -> Iterator[OneCall]:
        return self._triggers(order, DEFAULTS[ACTION_FLOW], order.resource.spec)

    def rewrites(self, order: UpdateOrder) -> Iterator[OneCall]:
        return self._triggers(order, order.held.spec, order.resource.spec)

    def _triggers(
        self, order: CreateOrder | UpdateOrder, before: Spec, wanted: Spec
    ) -> Iterator[OneCall]:
        """Yield one call for each trigger whose actions change."""
        flow = FLOW_NAMED[order.ref.name]
        # Triggers are emptied last, so that a flow is not without actions on the way.
        for trigger in sorted(flow.triggers, key=lambda each: not wanted[each.name]):
            names = wanted[trigger.name]
            if names != before[trigger.name]:
                ids = [order.named_ids[fold(name)] for name in names]
                fields = {"flowType": flow.number, "triggerType": trigger.number, "actionIds": ids}
                yield self.configure, fields

    def with_names(self, spec: JsonObject, names: Mapping[str, str]) -> tuple[JsonObject, bool]:
        # It is answered without triggers that have no actions.
        named = {
            trigger: [names.get(str(action), str(action)) for action in actions]
            for trigger, actions in spec.items()
            if isinstance(actions, list)
        }
        ids = {str(action) for trigger in named for action in spec[trigger]}
        return {**DEFAULTS[ACTION_FLOW], **spec, **named}, ids <= names.keys()


ROW = _Calls(configure="SetTriggerActions", remove="ClearFlow", carries=False, named=ACTION)
