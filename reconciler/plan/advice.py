"""Warnings for the reader of a plan, which do not keep it from being applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, listed, warning
from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.guards import by_kind
from reconciler.plan.model import Change, Create, Scope, addresses_of
from reconciler.resources.capabilities import SOURCE
from reconciler.resources.ref import fold
from reconciler.rules.alike import alike
from reconciler.rules.form import place_of_id
from reconciler.state import (
    LET_THROUGH,
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    other_owner,
    pauses_of,
)

NOT_IDENTIFIED = "SERVICE-NOT-IDENTIFIED"


def advice(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    scope: Scope,
    named: Mapping[str, str],
) -> tuple[Diagnostic, ...]:
    """Return the warnings of a plan. They are not part of its digest.

    ``named`` are the addresses given with ``--break-glass``: folded, and as given.
    """
    return (
        *_paused(observed, scope),
        *_other_capabilities(desired, observed),
        *unidentified(observed),
        *_of_kinds(changes, desired, observed),
        *_no_longer_named(desired, observed, scope),
        *_allowed_for_nothing(changes, named),
    )


def _paused(observed: ObservedState, scope: Scope) -> Iterator[Diagnostic]:
    for name, pause in pauses_of(observed, scope.tree):
        yield warning(
            "PLAN-PAUSED",
            f"tree {pause.tree} is paused in {name} until {pause.until}: {pause.reason}",
            f"{pause.writer} paused it at {pause.since}. apply refuses until then. `reconciler "
            "resume` ends the pause; apply --despite-pause applies this once.",
        )


def _other_capabilities(desired: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield a warning where the service is not of the kind that the manifests are meant for."""
    chosen, found = desired.capabilities, observed.capabilities
    # Where the generation is unknown, a ZITADEL counts as the oldest that takes as much.
    is_sure = observed.generation != 0 or SOURCE in {chosen, found}
    if chosen and chosen != found and observed.instance and is_sure:
        yield warning(
            "PLAN-CAPABILITIES",
            f"the capabilities {chosen} were chosen, and the service has those of {found}",
            "The plan goes by the service; `reconciler validate` goes by what was chosen. Write "
            f"capabilities: {found} for the environment, or name the service that is meant.",
        )


def _of_kinds(
    changes: Sequence[Change], desired: DesiredState, observed: ObservedState
) -> Iterator[Diagnostic]:
    planned = by_kind(changes)
    for kind, row in RULES.items():
        yield from row.advice(planned[kind], desired, observed)


def _no_longer_named(
    desired: DesiredState, observed: ObservedState, scope: Scope
) -> Iterator[Diagnostic]:
    named = {fold(name) for name in desired.organizations}
    left = sorted(
        name
        for name, trees in observed.elsewhere.items()
        if scope.tree in trees and fold(name) not in named and scope.covers(name)
    )
    # A part of a tree does not say what the whole no longer names. An undo reads no manifests.
    if left and desired.whole and not scope.undo:
        yield warning(
            "PLAN-ORGANIZATION-LEFT",
            "the tree no longer names an organization it applied before",
            f"Tree {scope.tree} applied objects to {listed(left)}, and no manifest names "
            f"{'it' if len(left) == 1 else 'them'} any more. What is there is neither compared "
            "nor deleted. Declare the Organization again to see it in the plan, and to let "
            "--prune delete what is in it.",
        )


def _allowed_for_nothing(
    changes: Sequence[Change], named: Mapping[str, str]
) -> Iterator[Diagnostic]:
    touched = {address for change in changes for address in addresses_of(change)}
    idle = sorted(given for folded, given in named.items() if folded not in touched)
    if idle:
        yield warning(
            "PLAN-BREAK-GLASS-UNUSED",
            "--break-glass names what this plan does not touch",
            f"Nothing is planned for {listed(idle)}. Correct the name, or leave the flag out.",
        )


def second_objects(
    changes: Sequence[Change], kept: Sequence[ObservedObject], scope: Scope
) -> Iterator[Diagnostic]:
    """Yield creates beside an object that stays, is declared nowhere, and has the same content.

    That is what a rename without ``metadata.id`` looks like. Each held object is named once. What
    another tree owns is left out: that tree declares it.
    """
    made = [change.resource for change in changes if isinstance(change, Create)]
    left = [
        held
        for held in sorted(kept, key=lambda each: (each.ref.key, each.id))
        if KINDS[held.ref.kind].renamable and not other_owner(held, scope.tree)
    ]
    named: set[str] = set()
    for resource, twins in alike(made, left):
        twin = next((each for each in twins if each.id not in named), None)
        if twin is not None:
            named.add(twin.id)
            yield _second_object(resource, twin, scope.environment)


def _second_object(resource: Resource, twin: ObservedObject, environment: str) -> Diagnostic:
    has_clients = KINDS[twin.ref.kind].secrets is not None
    return warning(
        "PLAN-SECOND-OBJECT",
        "a second object of the same content would be created",
        f"The service holds {twin.ref} with the same content, and no manifest declares it. "
        f"{resource.ref} will be a second object with a new "
        f"{'client id' if has_clients else 'id'}. To rename the one that is held instead, "
        f'write in {place_of_id(environment)}: metadata.id: "{twin.id}"',
        resource.source.place("metadata", "name"),
        resource.ref,
    )


def unidentified(observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield a warning where the service does not report its id."""
    if observed.unidentified:
        yield warning(
            NOT_IDENTIFIED,
            "the service does not report its id",
            f"{observed.unidentified} The id {observed.instance} is made of the address instead: "
            "under another address, or once the service reports its id, plan files do not fit, and "
            "journals and locks of this one are not found. Which project is of its own console is "
            f"not known, so no application is deleted. {LET_THROUGH}.",
        )
