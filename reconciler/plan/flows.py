"""Action flows and the actions they name: what is compared, missing, dangerous or without effect.

A flow is declared by the names of its actions, and the service holds their ids. The names that
actions have after the plan are compared: an action that is renamed is no change of its flows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeGuard, TypeVar

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.kinds.action_flow.flows import named_actions
from reconciler.plan.guards import addresses_of, break_glass
from reconciler.plan.model import Adopt, Change, Create, Delete, Pair, Scope, Update, ref_of
from reconciler.plan.risk import names_of, risks_of
from reconciler.resources.nearest import NearNames
from reconciler.resources.ref import ACTION, ACTION_FLOW, ResourceRef, action_ref
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource

FlowT = TypeVar("FlowT", Resource, ObservedObject)
Names: TypeAlias = Mapping[ResourceRef, str]


def runs_nothing(resource: Resource) -> bool:
    """Return whether a resource is a flow without any action: the service then holds no object."""
    return resource.ref.kind is ACTION_FLOW and not any(resource.spec.values())


def empties(change: Change) -> TypeGuard[Update | Adopt]:
    """Return whether a change leaves a flow without any action: then it is gone."""
    return not isinstance(change, Create | Delete) and runs_nothing(change.resource)


def needs_flows(desired: DesiredState, scope: Scope) -> bool:
    """Return whether a plan must know the flows that are held.

    A service may have to be asked for each of them. Without a declared flow, and where nothing is
    deleted, a plan would only count them among the unmanaged.
    """
    is_declared = any(key.kind is ACTION_FLOW for key in desired.resources)
    return is_declared or scope.prune or scope.prune_unmanaged


def compared_by_names(pairs: Sequence[Pair], leftover: Iterable[ObservedObject]) -> Sequence[Pair]:
    """Return pairs whose flows name each action as it is named after the plan.

    Args:
        pairs: Declared resources with what is held of them.
        leftover: Objects that are held and declared nowhere.
    """
    if not any(resource.ref.kind is ACTION_FLOW for resource, _ in pairs):
        return pairs
    actions = [pair for pair in pairs if pair[0].ref.kind is ACTION]
    others = [held for held in leftover if held.ref.kind is ACTION]
    held_names, wanted_names = _held_names(actions, others), _wanted_names(actions, others)
    return [
        (_named(resource, wanted_names), _named(found, held_names) if found else None)
        if resource.ref.kind is ACTION_FLOW
        else (resource, found)
        for resource, found in pairs
    ]


def _wanted_names(actions: Sequence[Pair], others: Sequence[ObservedObject]) -> Names:
    undeclared = {held.ref.key: held.ref.name for held in others}
    return undeclared | {resource.ref.key: resource.ref.name for resource, _ in actions}


def _held_names(actions: Sequence[Pair], others: Sequence[ObservedObject]) -> Names:
    """Return the names that held actions have after the plan, by their present names.

    An action whose name is given to another one has no name that a manifest could mean.
    """
    names = {held.ref.key: resource.ref.name for resource, held in actions if held is not None}
    given = {resource.ref.key for resource, _ in actions}
    for held in others:
        is_given = held.ref.key in given
        names[held.ref.key] = f"{held.ref.name} (id {held.id})" if is_given else held.ref.name
    return names


def _named(flow: FlowT, names: Names) -> FlowT:
    spec = {
        trigger: [names.get(action_ref(flow.ref.organization, name).key, name) for name in actions]
        for trigger, actions in flow.spec.items()
    }
    return flow if spec == flow.spec else replace(flow, spec=spec)


def action_findings(
    pairs: Sequence[Pair], kept: Sequence[ObservedObject], deleted: Sequence[ObservedObject]
) -> Iterator[Diagnostic]:
    """Yield an error for each action of a declared flow that is not there after the plan.

    Args:
        pairs: Declared resources with what is held of them.
        kept: Objects that are declared nowhere and stay.
        deleted: Objects that are declared nowhere and that the plan deletes.
    """
    flows = [resource for resource, _ in pairs if resource.ref.kind is ACTION_FLOW]
    if not flows:
        return
    refs = [resource.ref for resource, _ in pairs]
    refs += [held.ref for held in kept]
    known = {ref.key: ref for ref in refs if ref.kind is ACTION}
    doomed = {held.ref.key: held for held in deleted if held.ref.kind is ACTION}
    near: NearNames | None = None
    for flow in flows:
        for action, path in named_actions(flow.ref, flow.spec):
            if action.key in known:
                continue
            place = flow.source.place(*path)
            if action.key in doomed:
                yield _in_use(flow, doomed[action.key], place)
            else:
                near = near or NearNames((ref.key.organization, ref.name) for ref in known.values())
                meant = near.name_for(action.name, action.key.organization)
                yield _not_held(flow, action, place, meant)


def _in_use(flow: Resource, action: ObservedObject, place: SourceLocation) -> Diagnostic:
    return error(
        "PLAN-ACTION-IN-USE",
        "an action would be deleted that a flow runs",
        f"No manifest declares {action.ref}, so this run would delete it. Declare the action, or "
        f"take its name out of {flow.ref}.",
        place,
        flow.ref,
    )


def _not_held(
    flow: Resource, action: ResourceRef, place: SourceLocation, meant: str | None
) -> Diagnostic:
    hint = f"Did you mean {meant}? Otherwise add" if meant else "Add"
    return error(
        "REF-NOT-HELD",
        f"{action} is neither declared nor held",
        f"{hint} a manifest for {action}, or correct the name.",
        place,
        flow.ref,
    )


def flows_not_run(changes: Sequence[Change], observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield one warning where actions of flows that are written never run.

    This project's own service stores flows and runs none. The Login V2 of a ZITADEL does not run
    those of the authentication flows; no call tells which login an organization has.
    """
    flows = [
        change.resource
        for change in changes
        if not isinstance(change, Delete)
        and change.resource.ref.kind is ACTION_FLOW
        and not runs_nothing(change.resource)
    ]
    if not flows:
        return
    if observed.keeps_history:
        yield warning(
            "PLAN-FLOW-NOT-RUN",
            "this service stores the actions of flows and runs none",
            "Scripts run on a ZITADEL only. Here flows are planned, reviewed and kept.",
            flows[0].source.place("metadata", "name"),
        )
        return
    logins = [flow for flow in flows if flow.ref.name in _OF_LOGIN]
    if logins:
        names = ", ".join(sorted({flow.ref.name for flow in logins}))
        yield warning(
            "PLAN-FLOW-NOT-RUN",
            "Login V2 does not run the actions of an authentication flow",
            f"{names}: only the pages of Login V1 run it. Login V2 is the default of instances "
            "that were made with ZITADEL 4: check which login the organization uses before it "
            "relies on these actions.",
            logins[0].source.place("metadata", "name"),
        )


_OF_LOGIN = frozenset({"EXTERNAL_AUTHENTICATION", "INTERNAL_AUTHENTICATION"})


def flows_that_lose(
    kept: Sequence[ObservedObject], deleted: Sequence[ObservedObject]
) -> Iterator[Diagnostic]:
    """Yield a warning for each flow that is declared nowhere and runs an action to be deleted."""
    doomed = {held.ref.key for held in deleted if held.ref.kind is ACTION}
    if not doomed:
        return
    for flow in sorted(kept, key=lambda held: held.ref.key):
        if flow.ref.kind is not ACTION_FLOW:
            continue
        lost = [ref.name for ref, _ in named_actions(flow.ref, flow.spec) if ref.key in doomed]
        if lost:
            yield warning(
                "PLAN-ACTION-IN-USE",
                "a flow loses actions that would be deleted",
                f"No manifest declares {flow.ref}, which runs {', '.join(dict.fromkeys(lost))}: "
                "the service takes deleted actions out of it. Declare the actions to keep them.",
                ref=flow.ref,
            )


def emptied_flows(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    """Yield an error for each protected flow that would run nothing.

    A flow without actions is no longer an object.
    """
    for change in changes:
        if not empties(change):
            continue
        # A service may not remember the mark; a manifest that has it contradicts itself.
        if change.held.prevent_delete or change.resource.prevent_delete:
            yield error(
                "GUARD-PREVENT-DELETE",
                "a flow with preventDelete would be emptied",
                f"{ref_of(change)} is protected, and to empty it is to delete it. Declare an "
                "action; to empty the flow, first apply it with metadata.preventDelete: false.",
                ref=ref_of(change),
            )


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
        yield error(
            "GUARD-CRITICAL",
            f"an action of a critical flow would be {done}",
            f"{flow} was declared with metadata.critical, and runs {ref}; its risks here: "
            f"{names_of(risks_of(change))}. {break_glass(ref)}",
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
