"""Owners of objects and of owed secrets: what a tree prunes, takes over, rotates and delivers.

The owner is the tree that was the last to create, update, adopt or take over an object. Where a
service knows no owners (a ZITADEL), ``--prune`` goes by the trees that ever applied an object,
and ``--prune-unmanaged`` takes everything that is declared nowhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.errors import UsageError
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import Change, Delete, DeletedBy, Pair, Scope, signs_in_with_secret
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    OwedSecret,
    Resource,
    is_in_step,
    is_owned_by,
    other_owner,
)

DELETABLE = frozenset(Kind) - {Kind.ORGANIZATION, Kind.PROJECT}
NAMED = 20


def flag_to_delete(held: ObservedObject, tree: str) -> DeletedBy:
    """Return the flag with which a run of a tree deletes an object that it does not declare.

    An object with fields that no manifest could say is not known well enough to be deleted.
    """
    if held.ref.kind not in DELETABLE or held.uncarried or other_owner(held, tree):
        return DeletedBy.NO_FLAG
    return DeletedBy.PRUNE if is_owned_by(held, tree) else DeletedBy.PRUNE_UNMANAGED


def _is_pruned(held: ObservedObject, scope: Scope) -> bool:
    flag = flag_to_delete(held, scope.tree)
    return flag is not DeletedBy.NO_FLAG and (
        scope.prune_unmanaged or (scope.prune and flag is DeletedBy.PRUNE)
    )


def divided(
    leftover: Iterable[ObservedObject], observed: ObservedState, scope: Scope
) -> tuple[list[ObservedObject], list[ObservedObject]]:
    """Return the undeclared objects that are deleted, and those that are kept."""
    deleted: list[ObservedObject] = []
    kept: list[ObservedObject] = []
    for held in leftover:
        is_deleted = _is_pruned(held, scope) and not observed.is_own(held)
        (deleted if is_deleted else kept).append(held)
    return deleted, kept


def new_owner_of(resource: Resource, held: ObservedObject, scope: Scope) -> str:
    """Return the tree that becomes the owner, where the plan shows that as a difference.

    An update makes its tree the owner without being asked to; that is shown where another tree
    is the owner now. An undo names the owner itself.
    """
    if resource.owner is not None or held.owner is None or held.owner == scope.tree:
        return ""
    is_asked = resource.ref.key in scope.take_over
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
                f"{resource.ref} cannot be taken over: this service does not report which tree "
                "owns an object. Leave the flag out.",
                resource.source.place("metadata", "name"),
                resource.ref,
            )


def ownership_notes(
    changes: Sequence[Change],
    pairs: Sequence[Pair],
    scope: Scope,
) -> Iterator[Diagnostic]:
    """Yield warnings about objects of other trees, and about a service that knows no owners."""
    if not scope.undo:  # it declares nothing: what it does not take back stays with its tree
        yield from _owned_elsewhere(pairs, scope)
    unknown = [
        change.held
        for change in changes
        if isinstance(change, Delete) and change.held.owner is None and not change.held.trees
    ]
    if unknown:
        yield warning(
            "PLAN-NO-OWNERS",
            "the service does not report which tree owns an object",
            f"--prune-unmanaged deletes {len(unknown)} object(s) because no manifest of this tree "
            "declares them. Objects that another tree or another tool looks after are among them, "
            "if there are any.",
        )


def _owned_elsewhere(pairs: Sequence[Pair], scope: Scope) -> Iterator[Diagnostic]:
    """Yield a warning for each tree that owns objects which this tree declares as they are.

    Only what can be deleted is named: organizations and projects are often declared by several
    trees, and none of them deletes one.
    """
    found: dict[str, list[Resource]] = {}
    for resource, held in pairs:
        if held is None or held.ref.kind not in DELETABLE or not is_in_step(resource, held):
            continue
        owner = other_owner(held, scope.tree)
        if owner and resource.ref.key not in scope.take_over:
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


def owed_to(scope: Scope, observed: ObservedState) -> tuple[OwedSecret, ...]:
    """Return the secrets owed to a tree, or to the organizations of its shard, by their refs."""
    found = [
        secret
        for secret in observed.owed
        if secret.tree == scope.tree and scope.covers(secret.ref.organization)
    ]
    return tuple(sorted(found, key=lambda secret: (secret.ref.key, secret.id)))


def owed_elsewhere(scope: Scope, observed: ObservedState) -> int:
    """Return how many secrets the service keeps for other trees."""
    return sum(secret.tree != scope.tree and not secret.lost for secret in observed.owed)


def owed_left(desired: DesiredState, scope: Scope, observed: ObservedState) -> int:
    """Return how many secrets are owed to a tree in organizations that it no longer names.

    Part of a tree says nothing about what the whole of it names.
    """
    if not desired.whole:
        return 0
    return sum(
        counts.get(scope.tree, 0)
        for name, counts in observed.owed_left.items()
        if scope.covers(name)
    )


def lost_secrets(owed: Sequence[OwedSecret]) -> Iterator[Diagnostic]:
    """Yield a warning about each secret that the service no longer keeps."""
    for secret in owed:
        if secret.lost:
            yield warning(
                "SECRET-LOST",
                "the service no longer keeps a secret that was never delivered",
                f"The client secret of {secret.ref}, made at {secret.since}, was kept for its "
                f"whole time and is gone. If no deployment has it, make a new one: "
                f"reconciler apply --rotate-missing {shlex.quote(secret.ref.address)}",
                ref=secret.ref,
            )


def to_rotate(pairs: Sequence[Pair], scope: Scope) -> Collection[ResourceRef]:
    """Return the keys of the declared applications whose secret is to be replaced.

    An application of another shard is left to that shard. Where the way to sign in is left to
    others, it is the one that is held.

    Raises:
        UsageError: a name is that of no declared application with a client secret.
    """
    if not scope.rotate_missing:
        return frozenset()  # the usual plan does not look through everything declared
    known = {resource.ref.key for resource, _ in pairs if signs_in_with_secret(resource)}
    named = [key for key in scope.rotate_missing if scope.covers(key.organization)]
    for key in named:
        if key not in known:
            secrets = KINDS[key.kind].secrets
            raise UsageError(
                f"--rotate-missing {key.path} is not a declared application with a client secret",
                remedy="Write organization/project/name of an application that is declared with "
                f"{secrets.said_by if secrets else 'one'}, or held with it where metadata.ignore "
                "has that field. Nothing was written.",
            )
    return frozenset(named)
