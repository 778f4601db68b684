"""Dangers of a change at one trigger of a flow: the same at each trigger, of any flow."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.plan.field_tests import Test, gains_any, keeps_some, moves, turned_off


class TriggerRisk(NamedTuple):
    """The condition under which a change of a trigger's actions is a risk.

    Attributes:
        test: Asked with the names of the actions before and after.
        also_new: Whether it is asked of a new flow, too.
    """

    name: str
    test: Test
    sentence: str
    also_new: bool = False


SEVERE = (
    TriggerRisk(
        "trigger-emptied",
        turned_off,
        "no action runs at the trigger any more: what they enforced is not enforced",
    ),
    TriggerRisk(
        "trigger-action-removed",
        keeps_some,
        "what the action enforced at the trigger is no longer enforced",
    ),
    TriggerRisk(
        "trigger-action-added",
        gains_any,
        "other code runs while people sign in or tokens are made",
        also_new=True,
    ),
)
"""Risks that weaken a protection, most dangerous first."""

ORDER = TriggerRisk(
    "trigger-order-changed",
    moves,
    "an action may see what one that came after it before has set, or miss it",
)
