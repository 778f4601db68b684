"""Two bodies of manifests compared, as a plan: one is declared, the other stands for what is held.

Nothing here is about a service: there are no ids, no owners and no guards. Ids that manifests pin
are left out, because each service has its own.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.plan.model import Change, Create, Delete, Plan, Scope, Update
from reconciler.plan.ordering import in_order
from reconciler.state import DesiredState, ObservedObject, Resource, is_in_step


def compare(one: DesiredState, other: DesiredState, names: tuple[str, str]) -> Plan:
    """Return what would make one body of manifests the other: what the other adds is a create.

    Args:
        one: Stands for what is held.
        other: Stands for what is declared.
        names: Names of the two environments, in this order.
    """
    changes: list[Change] = []
    in_step = []
    for key, resource in other.resources.items():
        found = one.resources.get(key)
        if found is None:
            changes.append(Create(resource))
        elif _is_same(resource := _with_state(resource, found), held := _as_held(found)):
            in_step.append(resource.ref)
        else:
            # Each difference is one of values, whether or not the other manifest says the field.
            named = frozenset({*resource.spec, *found.spec})
            changes.append(Update(replace(resource, written=named), held))
    changes += [
        Delete(_as_held(resource))
        for key, resource in one.resources.items()
        if key not in other.resources
    ]
    ordered, _ = in_order(changes)
    return Plan(
        scope=Scope(environment=names[1]),
        instance="",
        organizations=tuple(sorted({*one.organizations, *other.organizations})),
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        compared_with=names[0],
    )


def _is_same(resource: Resource, held: ObservedObject) -> bool:
    return is_in_step(resource, held) and resource.spec == held.spec


def _with_state(resource: Resource, other: Resource) -> Resource:
    """Return a resource that says its state where the other one does: a new object is active."""
    is_said = resource.active is not None or other.active is None
    return resource if is_said else replace(resource, active=True)


def _as_held(resource: Resource) -> ObservedObject:
    return ObservedObject(
        ref=resource.ref,
        id="",
        sequence=0,
        spec=resource.spec,
        organization_id="",
        prevent_delete=resource.prevent_delete,
        critical=resource.critical,
        active=resource.active is not False,
    )
