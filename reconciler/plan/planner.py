"""Desired state and observed state in, plan out. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.diagnostics import Diagnostic, by_place
from reconciler.errors import InvalidManifestsError
from reconciler.plan.advice import advice
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.matching import match, taken_names
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Update,
    lacks_secret,
)
from reconciler.plan.ordering import in_order
from reconciler.plan.secrets import lost_secrets, owed_elsewhere, owed_to, to_rotate
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource

DELETABLE = frozenset({Kind.IDP_JWT_CONFIG, Kind.OIDC_APPLICATION, Kind.ACTION})


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
        if held is None:
            changes.append(Create(resource))
            continue
        new_secret = resource.ref.key in rotated
        if is_in_step(resource, held) and not new_secret and not lacks_secret(resource, held):
            in_step.append(resource.ref)
        elif scope.tree in held.trees:
            changes.append(Update(resource, held, new_secret))
        else:
            changes.append(Adopt(resource, held, new_secret))
    doomed = [held for held in matching.leftover if _is_pruned(held, scope)]
    staying = [held for held in matching.leftover if not _is_pruned(held, scope)]
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
        unmanaged=tuple(sorted(_unmanaged(staying))),
        blocks=blocks(ordered, desired, observed, allowed),
        warnings=(
            *advice(ordered, desired, observed, scope, allowed.glass),
            *lost_secrets(owed),
        ),
        owed=owed,
        owed_elsewhere=owed_elsewhere(scope, observed),
    )


def is_in_step(resource: Resource, held: ObservedObject) -> bool:
    """Say whether the service holds exactly what is declared."""
    return (
        held.spec == resource.spec
        and held.ref.name == resource.ref.name
        and held.prevent_delete in {None, resource.prevent_delete}
        and held.critical in {None, resource.critical}
    )


def _is_pruned(held: ObservedObject, scope: Scope) -> bool:
    """Say whether an object goes. What no manifest could say is not known well enough for that."""
    if held.ref.kind not in DELETABLE or held.uncarried:
        return False
    return scope.prune_unmanaged or (scope.prune and scope.tree in held.trees)


def _unmanaged(staying: Iterable[ObservedObject]) -> Iterable[ResourceRef]:
    """Yield what is left alone. An organization that is only referred to is not news."""
    return (held.ref for held in staying if held.ref.kind is not Kind.ORGANIZATION)


def _refuse(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise InvalidManifestsError(by_place(findings))
