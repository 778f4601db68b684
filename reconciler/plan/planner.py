"""Desired state and observed state in, plan out. Nothing here reads or writes.

Declared resources are paired with held objects first: by pinned id, otherwise by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from reconciler.diagnostics import Diagnostic, by_place
from reconciler.errors import InvalidManifestsError
from reconciler.plan.advice import advice, second_objects
from reconciler.plan.diff import kept_lists, kept_notes
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.matching import match, taken_names
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    IgnoredField,
    Pair,
    Plan,
    Scope,
    Unmanaged,
    Update,
    gives_back,
    is_nothing,
    lacks_secret,
)
from reconciler.plan.ordering import in_order
from reconciler.plan.ownership import (
    divided,
    flag_to_delete,
    lost_secrets,
    new_owner_of,
    owed_elsewhere,
    owed_left,
    owed_to,
    ownership_notes,
    to_rotate,
)
from reconciler.plan.references import missing_references, those_that_lose
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    completed,
    is_in_step,
    left_to_others,
)


def build_plan(
    desired: DesiredState,
    observed: ObservedState,
    scope: Scope | None = None,
    allowed: Allowances | None = None,
) -> Plan:
    """Decide what to do about every declared resource, and do none of it.

    Raises:
        InvalidManifestsError: the manifests contradict what is held (an unknown pinned id, an
            owner that exists nowhere, names that are taken or swapped), or use what it does not
            take.
        UsageError: a secret is to be replaced of what is no declared application with one.
    """
    scope = scope or Scope()
    allowed = allowed or Allowances()
    matching = match(desired, observed, scope.environment)
    _refuse([*_unmet(desired, observed), *matching.findings])
    rotated = to_rotate(matching.pairs, scope)
    found = [_change(*pair, scope, observed.generation, rotated) for pair in matching.pairs]
    changes: list[Change] = [change for change in found if change is not None]
    in_step = [
        resource.ref
        for (resource, _), change in zip(matching.pairs, found, strict=True)
        if change is None
    ]
    deleted, kept = divided(matching.leftover, observed, scope)
    changes += [Delete(held) for held in deleted]
    ordered, swapped = in_order(changes)
    owed = owed_to(scope, observed)
    missing = missing_references(matching.pairs, kept, deleted)
    _refuse([*taken_names(matching, kept), *swapped, *missing])
    return Plan(
        scope=scope,
        instance=observed.instance,
        organizations=desired.organizations,
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        unmanaged=tuple(_unmanaged(kept, observed, scope.tree)),
        blocks=blocks(ordered, desired, observed, scope, allowed),
        warnings=(
            *advice(ordered, desired, observed, scope, allowed.lockouts),
            *ownership_notes(ordered, matching.pairs, scope),
            *second_objects(ordered, kept, scope),
            *those_that_lose(kept, deleted),
            *lost_secrets(owed),
            *kept_notes(ordered, "PLAN-LIST-KEPT"),
        ),
        owed=owed,
        owed_elsewhere=owed_elsewhere(scope, observed),
        owed_left=owed_left(desired, scope, observed),
        inactive=_left_inactive(matching.pairs, kept),
        # Each has a ref and name of its own: values, which may have no order, are not compared.
        ignored=tuple(sorted(_left_to_others(matching.pairs, desired))),
        new_store=observed.new_store,
    )


def _unmet(desired: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    service = CAPABILITIES[observed.capabilities]
    # A ZITADEL that takes no more than the source is too old for the calls that report more of it.
    if service.name == SOURCE and not observed.keeps_history:
        service = service._replace(title="this old ZITADEL", refuses_empty=True)
    return (finding for need in desired.needs if (finding := need.unmet(service)))


def _change(
    resource: Resource,
    held: ObservedObject | None,
    scope: Scope,
    generation: int | None,
    rotated: Collection[ResourceRef],
) -> Change | None:
    """Return what to do about a declared resource; None where nothing is to be done."""
    if held is None:
        return None if is_nothing(resource) else Create(resource)
    is_rotated = resource.ref.key in rotated
    is_as_declared = is_in_step(resource, held) and not lacks_secret(resource, held)
    new_owner = new_owner_of(resource, held, scope)
    if is_as_declared and not (is_rotated or new_owner or gives_back(resource, held)):
        return None
    update = Update if scope.tree in held.trees else Adopt
    kept = kept_lists(resource, held, generation)
    return update(completed(resource, held), held, is_rotated, new_owner, kept)


def _unmanaged(
    kept: Iterable[ObservedObject], observed: ObservedState, tree: str
) -> Iterator[Unmanaged]:
    """Yield the objects that are left alone, in order.

    An organization that is only referred to and the service's own console are left out.
    """
    for held in sorted(kept, key=lambda held: (held.ref, held.id)):
        if held.ref.kind is not Kind.ORGANIZATION and not observed.is_own(held):
            yield Unmanaged(held.ref, held.id, held.owner, flag_to_delete(held, tree))


def _refuse(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise InvalidManifestsError(by_place(findings))


def _left_inactive(
    pairs: Sequence[Pair], kept: Sequence[ObservedObject]
) -> tuple[ResourceRef, ...]:
    """Return the inactive objects whose state no manifest says, in order: they stay so."""
    unsaid = (held for resource, held in pairs if held is not None and resource.active is None)
    return tuple(sorted(held.ref for held in chain(unsaid, kept) if not held.active))


def _left_to_others(pairs: Sequence[Pair], desired: DesiredState) -> Iterator[IgnoredField]:
    """Yield the ignored fields of what is held."""
    for resource, held in pairs:
        for name in left_to_others(resource) if held is not None else ():
            declared = desired.resources[resource.ref.key].spec.get(name)
            yield IgnoredField(resource.ref, name, declared, resource.spec.get(name))


def compare(one: DesiredState, other: DesiredState, names: tuple[str, str]) -> Plan:
    """Return what would make one body of manifests the other: what the other adds is a create.

    Nothing here is about a service: there are no ids, no owners and no guards. Ids that manifests
    pin are left out, because each service has its own.

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
            continue
        wanted, held = _with_state(resource, found), _as_held(found)
        if is_in_step(wanted, held) and wanted.spec == held.spec:
            in_step.append(wanted.ref)
        else:
            # Each difference is one of values, whether or not the other manifest says the field.
            named = frozenset({*wanted.spec, *found.spec})
            changes.append(Update(replace(wanted, written=named), held))
    changes += [
        Delete(_as_held(resource))
        for key, resource in one.resources.items()
        if key not in other.resources
    ]
    ordered, _ = in_order(changes)
    return Plan(
        scope=Scope(tree="", environment=names[1]),
        instance="",
        organizations=tuple(sorted({*one.organizations, *other.organizations})),
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        compared_with=names[0],
    )


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
        ignored=resource.ignored,
        active=resource.active is not False,
    )
