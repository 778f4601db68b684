"""The events of flows: which actions each trigger has.

A flow begins with the first trigger that gets actions, and again with the first one after it was
removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconciler.resources.fields import Spec
from reconciler.service.domain.events import (
    Event,
    Held,
    ImpossibleHistoryError,
    KindEvents,
    OwnEvent,
    Removed,
    Unborn,
)


@dataclass(frozen=True, slots=True)
class TriggerSet(OwnEvent):
    """A trigger of a flow got actions, by their ids and in their order; none empties it."""

    VERB = "trigger.set"
    flow: str
    trigger: str
    actions: Sequence[str]

    def triggers(self, before: Spec) -> Spec:
        """Return the triggers of the flow with their actions; those without any are left out."""
        return _with_actions({**before, self.trigger: [*self.actions]})

    def after(self, state: Unborn | Held) -> Held:
        """Return the flow with this trigger."""
        if isinstance(state, Held):
            return replace(state, spec=self.triggers(state.spec))
        owner = state.organization
        return Held(self.kind, state.id, owner, owner, self.flow, self.triggers({}))


@dataclass(frozen=True, slots=True)
class ActionDropped(OwnEvent):
    """An action that was removed left every trigger of a flow."""

    VERB = "action.dropped"
    GIVES_OWNER = False
    action: str

    def triggers(self, before: Spec) -> Spec:
        """Return the triggers of the flow with their actions; those without any are left out."""
        return _with_actions(
            {
                trigger: [action for action in actions if action != self.action]
                for trigger, actions in before.items()
            }
        )

    def after(self, state: Unborn | Held) -> Held:
        """Return the flow without the action."""
        if isinstance(state, Unborn):
            raise ImpossibleHistoryError(self, state)
        return replace(state, spec=self.triggers(state.spec))


def _with_actions(triggers: Spec) -> Spec:
    return {trigger: actions for trigger, actions in triggers.items() if actions}


def change_flow(triggers: Spec, event: TriggerSet | ActionDropped) -> tuple[Event, ...]:
    """Return the event of a change of a flow's triggers; one that changes nothing is no event.

    A flow that has no actions afterwards is removed.
    """
    after = event.triggers(triggers)
    if after == triggers:
        return ()
    return (event,) if after else (Removed(event.kind),)


ROW = KindEvents((TriggerSet, ActionDropped))
