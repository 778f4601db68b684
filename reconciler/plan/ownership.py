"""Owners of objects, and their effect: what is pruned, and what is taken over.

The owner is the tree that was the last to create, update, adopt or take over an object. Only its
owner prunes an object. A service that knows no owners (a ZITADEL) leaves the question open: there
``--prune`` goes by the trees that ever applied an object, and ``--prune-unmanaged`` takes
everything that is declared nowhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.plan.model import Change, Delete, Fate, Scope
from reconciler.resources.ref import Kind
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    is_in_step,
    is_owned_by,
    other_owner,
)

DELETABLE = frozenset({Kind.IDP_JWT_CONFIG, Kind.OIDC_APPLICATION, Kind.ACTION})
NAMED = 20


def fate_of(held: ObservedObject, tree: str) -> Fate:
    """Return the flag with which a run of a tree deletes an object that it does not declare.

    An object with fields that no manifest could say is not known well enough to be deleted.
    """
    if held.ref.kind not in DELETABLE or held.uncarried or other_owner(held, tree):
        return Fate.KEPT
    return Fate.PRUNE if is_owned_by(held, tree) else Fate.PRUNE_UNMANAGED


def is_pruned(held: ObservedObject, scope: Scope) -> bool:
    """Return whether a run deletes an object that it does not declare."""
    fate = fate_of(held, scope.tree)
    return fate is not Fate.KEPT and (scope.prune_unmanaged or (scope.prune and fate is Fate.PRUNE))


def is_to_take_over(resource: Resource, scope: Scope) -> bool:
    """Return whether the take-over of an object was asked for."""
    return resource.ref.key in scope.take_over


def new_owner_of(resource: Resource, held: ObservedObject, scope: Scope) -> str:
    """Return the tree that becomes the owner, where the plan shows that as a difference.

    An update makes its tree the owner without being asked to; that is shown where another tree
    is the owner now.
    """
    if held.owner is None or held.owner == scope.tree:
        return ""
    is_asked = is_to_take_over(resource, scope)
    is_written = other_owner(held, scope.tree) and not is_in_step(resource, held)
    return scope.tree if is_asked or is_written else ""


def cannot_take_over(
    desired: DesiredState, observed: ObservedState, scope: Scope
) -> Iterator[Diagnostic]:
    """Yield why the take-over of an object cannot be recorded."""
    for key in scope.take_over:
        resource, held = desired.resources.get(key), observed.objects.get(key)
        if resource is None:
            yield error(
                "GUARD-TAKE-OVER",
                "--take-over names what no manifest declares",
                f"No manifest that was read declares {key.address}. Declare it, correct the name, "
                "or leave the flag out.",
            )
        elif held is not None and held.owner is None:
            yield error(
                "GUARD-TAKE-OVER",
                "the service does not record owners",
                f"{resource.ref} cannot be taken over: this service does not tell which tree "
                "owns an object. Leave the flag out.",
                resource.source.place("metadata", "name"),
                resource.ref,
            )


def ownership_notes(
    changes: Sequence[Change],
    pairs: Sequence[tuple[Resource, ObservedObject | None]],
    scope: Scope,
) -> Iterator[Diagnostic]:
    """Yield warnings about objects of other trees, and about a service that knows no owners."""
    yield from _owned_elsewhere(pairs, scope)
    unknown = [
        change.held
        for change in changes
        if isinstance(change, Delete) and change.held.owner is None and not change.held.trees
    ]
    if unknown:
        yield warning(
            "PLAN-NO-OWNERS",
            "the service does not tell which tree owns an object",
            f"--prune-unmanaged deletes {len(unknown)} object(s) because no manifest of this tree "
            "declares them. Objects that another tree or another tool looks after are among them, "
            "if there are any.",
        )


def _owned_elsewhere(
    pairs: Sequence[tuple[Resource, ObservedObject | None]], scope: Scope
) -> Iterator[Diagnostic]:
    """Yield a warning for each tree that owns objects which this tree declares as they are.

    Only what can be deleted is named: organizations and projects are often declared by several
    trees, and none of them deletes one.
    """
    found: dict[str, list[Resource]] = {}
    for resource, held in pairs:
        if held is None or held.ref.kind not in DELETABLE or not is_in_step(resource, held):
            continue
        owner = other_owner(held, scope.tree)
        if owner and not is_to_take_over(resource, scope):
            found.setdefault(owner, []).append(resource)
    for owner, unsorted in sorted(found.items()):
        resources = sorted(unsorted, key=lambda resource: resource.ref.key)
        refs = [resource.ref for resource in resources]
        flags = " ".join(f"--take-over {shlex.quote(ref.address)}" for ref in refs[:NAMED])
        more = f" Another {len(refs) - NAMED} are not listed here." if len(refs) > NAMED else ""
        yield warning(
            "PLAN-OTHER-TREE",
            "objects in step belong to another tree",
            f"Tree {owner} owns {len(refs)} object(s) that this tree declares as they are. When "
            "its own manifests no longer declare them, its --prune deletes them. To become the "
            f"owner without a change of any field: {flags}.{more}",
            resources[0].source.place("metadata", "name"),
        )
