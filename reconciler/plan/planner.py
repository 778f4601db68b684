"""Desired state and observed state in, plan out. Nothing here reads or writes.

Declared resources are paired with held objects first: by pinned id, otherwise by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from reconciler.diagnostics import Diagnostic, by_place, error
from reconciler.errors import InvalidManifestsError
from reconciler.plan.advice import advice, second_objects
from reconciler.plan.flow_guards import actions_of_critical_flows
from reconciler.plan.flows import (
    action_findings,
    compared_by_names,
    flows_not_run,
    flows_that_lose,
    runs_nothing,
)
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.kept_lists import kept_lists, kept_notes
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
from reconciler.plan.own_project import unsure_deletes
from reconciler.plan.ownership import (
    cannot_take_over,
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
from reconciler.plan.states import left_inactive, not_deactivatable
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.kinds import KINDS
from reconciler.resources.nearest import NearOwners
from reconciler.resources.ref import Kind, ResourceRef, owner_of
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    completed,
    is_in_step,
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
    rotated = to_rotate(desired, scope)
    matching = match(desired, observed)
    _refuse(_not_possible(desired, observed, matching))
    changes: list[Change] = []
    in_step: list[ResourceRef] = []
    for pair in matching.pairs:
        ref, generation = pair[0].ref, observed.generation
        change = _change(pair, scope, generation, is_rotated=ref.key in rotated)
        if change is None:
            in_step.append(ref)
        else:
            changes.append(change)
    deleted, kept = divided(matching.leftover, observed, scope)
    changes += [Delete(held) for held in deleted]
    ordered, swapped = in_order(changes)
    allowed = allowed or Allowances()
    owed = owed_to(scope, observed)
    missing = action_findings(matching.pairs, kept, deleted)
    _refuse([*taken_names(matching, kept), *swapped, *missing])
    return Plan(
        scope=scope,
        instance=observed.instance,
        organizations=desired.organizations,
        changes=ordered,
        in_step=tuple(sorted(in_step)),
        unmanaged=tuple(sorted(_unmanaged(kept, observed, scope.tree), key=_place)),
        blocks=(
            *_blocks(ordered, desired, observed, allowed),
            *cannot_take_over(desired, observed, scope),
        ),
        warnings=(
            *advice(ordered, desired, observed, scope, allowed.lockouts),
            *ownership_notes(ordered, matching.pairs, scope),
            *second_objects(ordered, kept, scope.tree),
            *flows_that_lose(kept, deleted),
            *flows_not_run(ordered, observed),
            *lost_secrets(owed),
            *kept_notes(ordered, "PLAN-LIST-KEPT"),
        ),
        owed=owed,
        owed_elsewhere=owed_elsewhere(scope, observed),
        owed_left=owed_left(desired, scope, observed),
        inactive=left_inactive(matching.pairs, kept),
    )


def _blocks(
    changes: Sequence[Change], desired: DesiredState, observed: ObservedState, allowed: Allowances
) -> Iterator[Diagnostic]:
    """Yield every reason why changes must not be applied."""
    yield from blocks(changes, desired, observed, allowed)
    yield from actions_of_critical_flows(changes, desired, observed, allowed.lockouts)
    yield from unsure_deletes(changes, observed)


def _unmet(desired: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield an error for each thing that the service does not take."""
    service = CAPABILITIES[observed.capabilities]
    # A ZITADEL that takes no more than the source is too old for the calls that tell more of it.
    if service.name == SOURCE and not observed.keeps_history:
        service = service._replace(title="this old ZITADEL")
    return (finding for need in desired.needs if (finding := need.unmet(service)))


def _not_possible(
    desired: DesiredState, observed: ObservedState, matching: Matching
) -> list[Diagnostic]:
    """Return what the service at hand does not take, and what contradicts what it holds."""
    states = not_deactivatable(matching.pairs, observed)
    return [*_unmet(desired, observed), *matching.findings, *states]


def _change(
    pair: tuple[Resource, ObservedObject | None],
    scope: Scope,
    generation: int | None,
    *,
    is_rotated: bool,
) -> Change | None:
    """Return what to do about a declared resource; None where nothing is to be done."""
    resource, held = pair
    if held is None:
        return None if runs_nothing(resource) else Create(resource)
    is_as_declared = is_in_step(resource, held) and not lacks_secret(resource, held)
    new_owner = new_owner_of(resource, held, scope)
    if is_as_declared and not is_rotated and not new_owner:
        return None
    update = Update if scope.tree in held.trees else Adopt
    kept = kept_lists(resource, held, generation)
    return update(completed(resource, held), held, is_rotated, new_owner, kept)


def _unmanaged(
    kept: Iterable[ObservedObject], observed: ObservedState, tree: str
) -> Iterable[Unmanaged]:
    """Yield what is left alone.

    No news are an organization that is only referred to, and the service's own console.
    """
    return (
        Unmanaged(held.ref, held.id, held.owner, flag_to_delete(held, tree))
        for held in kept
        if held.ref.kind is not Kind.ORGANIZATION and not observed.is_own(held)
    )


def _place(found: Unmanaged) -> tuple[ResourceRef, str]:
    return found.ref, found.id


def _refuse(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise InvalidManifestsError(by_place(findings))


@dataclass(frozen=True, slots=True)
class Matching:
    """Declared and held, side by side.

    Attributes:
        pairs: Every declared resource with the object it is, or None.
        leftover: What is held and declared nowhere.
        findings: Errors in the manifests that only show beside what is held.
    """

    pairs: Sequence[tuple[Resource, ObservedObject | None]]
    leftover: Sequence[ObservedObject]
    findings: Sequence[Diagnostic]


def match(desired: DesiredState, observed: ObservedState) -> Matching:
    """Pair declared resources with held objects; no object is in two pairs."""
    pinned, findings = _match_pinned(desired, observed)
    taken = {held.id for held in pinned.values()}
    pairs: list[tuple[Resource, ObservedObject | None]] = []
    for key, resource in desired.resources.items():
        held = pinned.get(key)
        if held is None and not resource.pinned_id:
            held = observed.objects.get(key)
            if held is not None and held.id in taken:
                held = None
        if held is not None:
            taken.add(held.id)
        pairs.append((resource, held))
    findings = [*findings, *_missing_owners(desired, observed), *_wrong_renames(pairs)]
    leftover = [held for held in observed.everything if held.id not in taken]
    return Matching(compared_by_names(pairs, leftover), leftover, findings)


def taken_names(matching: Matching, kept: Sequence[ObservedObject]) -> list[Diagnostic]:
    """Return an error for each pinned resource whose name an object that stays already has."""
    names = {held.ref.key: held for held in kept}
    if not names:
        return []
    return [
        error(
            "PLAN-NAME-TAKEN",
            "another object has the name",
            f"{holder.ref} is the object of id {holder.id}, which is declared nowhere. Choose "
            "another name, or declare that object under another one.",
            resource.source.place("metadata", "name"),
            resource.ref,
        )
        for resource, held in matching.pairs
        if (holder := names.get(resource.ref.key))
        and (held is None or held.ref.key != resource.ref.key)
    ]


def _match_pinned(
    desired: DesiredState, observed: ObservedState
) -> tuple[Mapping[ResourceRef, ObservedObject], list[Diagnostic]]:
    pins = {key: resource for key, resource in desired.resources.items() if resource.pinned_id}
    if not pins:
        return {}, []
    by_id = {held.id: held for held in observed.everything}
    found: dict[ResourceRef, ObservedObject] = {}
    findings: list[Diagnostic] = []
    for key, resource in pins.items():
        held = by_id.get(resource.pinned_id)
        if held is not None and _same_owner(key, held.ref.key):
            found[key] = held
        else:
            findings.append(_wrong_pin(resource, held))
    return found, findings


def _same_owner(declared: ResourceRef, held: ResourceRef) -> bool:
    if declared.kind is Kind.ORGANIZATION:
        return held.kind is Kind.ORGANIZATION
    return declared[:3] == held[:3]


def _wrong_pin(resource: Resource, held: ObservedObject | None) -> Diagnostic:
    place = resource.source.place("metadata", "id")
    if held is None:
        return error(
            "PLAN-ID-NOT-HELD",
            "metadata.id names no object of this organization",
            f"The service holds nothing under id {resource.pinned_id} in "
            f"{resource.ref.organization}. Take the id from the service, or leave metadata.id "
            "out to make a new object.",
            place,
            resource.ref,
        )
    return error(
        "PLAN-ID-OTHER-OBJECT",
        "metadata.id names an object of another kind or owner",
        f"Id {held.id} is {held.ref}, and an object cannot move. Correct the id, or leave "
        "metadata.id out to make a new object.",
        place,
        resource.ref,
    )


def _missing_owners(desired: DesiredState, observed: ObservedState) -> list[Diagnostic]:
    missing = []
    for key, resource in desired.resources.items():
        owner = owner_of(key)
        if owner is None or owner in desired.resources or owner in observed.objects:
            continue
        missing.append((resource, owner))
    if not missing:
        return []
    declared = (resource.ref for resource in desired.resources.values())
    near = NearOwners(chain(declared, (held.ref for held in observed.objects.values())))
    return [_missing_owner(resource, near.name_for(owner)) for resource, owner in missing]


def _missing_owner(resource: Resource, meant: str | None) -> Diagnostic:
    owner = owner_of(resource.ref) or resource.ref
    field = owner.kind.value.lower()
    hint = f"Did you mean {meant}? Otherwise add" if meant else "Add"
    return error(
        "REF-NOT-HELD",
        f"{owner} is neither declared nor held",
        f"{hint} a manifest for {owner}, or correct the name (metadata.{field}).",
        resource.source.place("metadata", field),
        resource.ref,
    )


def _wrong_renames(
    pairs: Sequence[tuple[Resource, ObservedObject | None]],
) -> list[Diagnostic]:
    findings = []
    for resource, held in pairs:
        kind = resource.ref.kind
        if held is None or held.ref.name == resource.ref.name or KINDS[kind].renamable:
            continue
        findings.append(
            error(
                "PLAN-NOT-RENAMABLE",
                f"{kind.value.lower()}s are not renamed",
                f"The service holds it as {held.ref.name!r}: write that name in the manifests.",
                resource.source.place("metadata", "name"),
                resource.ref,
            )
        )
    return findings
