"""Desired state and observed state in, plan out. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.diagnostics import Diagnostic, by_place
from reconciler.errors import InvalidManifestsError
from reconciler.plan.advice import advice, second_objects
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.matching import match, taken_names
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Unmanaged,
    Update,
    lacks_secret,
)
from reconciler.plan.ordering import in_order
from reconciler.plan.ownership import (
    cannot_take_over,
    fate_of,
    is_pruned,
    new_owner_of,
    ownership_notes,
)
from reconciler.plan.secrets import lost_secrets, owed_elsewhere, owed_left, owed_to, to_rotate
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource, is_in_step


def build_plan(
    desired: DesiredState,
    observed: ObservedState,
    scope: Scope | None = None,
    allowed: Allowances | None = None,
) -> Plan:
    """Decide what to do about every declared resource, and do none of it.

    Raises:
        InvalidManifestsError: the manifests contradict what is held (an unknown pinned id, an
            owner that exists nowhere, names that are taken or swapped).
        UsageError: a secret is to be replaced of what is no declared application with one.
    """
    scope = scope or Scope()
    rotated = to_rotate(desired, scope)
    matching = match(desired, observed)
    _refuse(matching.findings)
    changes: list[Change] = []
    in_step: list[ResourceRef] = []
    for resource, held in matching.pairs:
        change = _change(resource, held, scope, is_rotated=resource.ref.key in rotated)
        if change is None:
            in_step.append(resource.ref)
        else:
            changes.append(change)
    doomed = [held for held in matching.leftover if is_pruned(held, scope)]
    staying = [held for held in matching.leftover if not is_pruned(held, scope)]
    changes += [Delete(held) for held in doomed]
    ordered, swapped = in_order(changes)
    allowed = allowed or Allowances()
    owed = owed_to(scope, observed)
    _refuse([*taken_names(matching, staying), *swapped])
    return Plan(
        scope=scope,
        instance=observed.instance,
        organizations=desired.organizations,
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        unmanaged=tuple(sorted(_unmanaged(staying, scope.tree), key=_place)),
        blocks=(
            *blocks(ordered, desired, observed, allowed),
            *cannot_take_over(desired, observed, scope),
        ),
        warnings=(
            *advice(ordered, desired, observed, scope, allowed.glass),
            *ownership_notes(ordered, matching.pairs, scope),
            *second_objects(ordered, staying, scope.tree),
            *lost_secrets(owed),
        ),
        owed=owed,
        owed_elsewhere=owed_elsewhere(scope, observed),
        owed_left=owed_left(desired, scope, observed),
    )


def _change(
    resource: Resource, held: ObservedObject | None, scope: Scope, *, is_rotated: bool
) -> Change | None:
    """Return what to do about a declared resource; None where nothing is to be done."""
    if held is None:
        return Create(resource)
    is_as_declared = is_in_step(resource, held) and not lacks_secret(resource, held)
    new_owner = new_owner_of(resource, held, scope)
    if is_as_declared and not is_rotated and not new_owner:
        return None
    update = Update if scope.tree in held.trees else Adopt
    return update(resource, held, is_rotated, new_owner)


def _unmanaged(staying: Iterable[ObservedObject], tree: str) -> Iterable[Unmanaged]:
    """Yield what is left alone. An organization that is only referred to is not news."""
    return (
        Unmanaged(held.ref, held.id, held.owner, fate_of(held, tree))
        for held in staying
        if held.ref.kind is not Kind.ORGANIZATION
    )


def _place(found: Unmanaged) -> tuple[ResourceRef, str]:
    return found.ref, found.id


def _refuse(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise InvalidManifestsError(by_place(findings))
