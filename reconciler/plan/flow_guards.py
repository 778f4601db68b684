"""Guards of actions that critical flows run.

What a flow enforces is in the scripts of its actions. So a critical flow keeps these from being
weakened and removed, as if each of them was critical.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.guards import addresses_of, break_glass
from reconciler.plan.model import Change, Create, Delete, ref_of
from reconciler.plan.risk import risks_of
from reconciler.resources.flows import named_actions
from reconciler.resources.ref import ACTION, ACTION_FLOW, ResourceRef
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource


def actions_of_critical_flows(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    named: Collection[str],
) -> Iterator[Diagnostic]:
    """Yield why changes of actions may lock people out: a critical flow runs them.

    ``named`` are the folded addresses of the objects that ``--break-glass`` names. An action that
    is critical itself is left to the guard of critical objects.
    """
    found = [change for change in changes if _is_harmful(change)]
    flows = _critical_flows(desired, observed) if found else {}
    for change in found:
        ref = ref_of(change)
        keys = {ref.key} if isinstance(change, Create) else {ref.key, change.held.ref.key}
        flow = next((flows[key] for key in sorted(keys) if key in flows), None)
        if flow is None or not set(addresses_of(change)).isdisjoint(named):
            continue
        done = "removed" if isinstance(change, Delete) else "changed"
        risks = ", ".join(dict.fromkeys(risk.name for risk in risks_of(change)))
        yield error(
            "GUARD-CRITICAL",
            f"an action of a critical flow would be {done}",
            f"{flow} was declared with metadata.critical, and runs {ref}; its risks here: "
            f"{risks}. {break_glass(ref)}",
            ref=ref,
        )


def _is_harmful(change: Change) -> bool:
    if isinstance(change, Create) or ref_of(change).kind is not ACTION:
        return False
    is_critical = change.held.critical
    if not isinstance(change, Delete):
        is_critical = is_critical or change.resource.critical
    return not is_critical and bool(risks_of(change))


def _critical_flows(
    desired: DesiredState, observed: ObservedState
) -> Mapping[ResourceRef, ResourceRef]:
    """Return a critical flow for each action (key) that one runs, as declared or as held."""
    everything: list[Resource | ObservedObject] = [*desired.resources.values()]
    everything += observed.objects.values()
    return {
        action.key: flow.ref
        for flow in everything
        if flow.critical and flow.ref.kind is ACTION_FLOW
        for action, _ in named_actions(flow.ref, flow.spec)
    }
