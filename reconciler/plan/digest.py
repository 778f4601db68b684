"""The digest of a plan: the same for the same effect, however the files are laid out.

It covers the options that change what would be done, the id of the service or else the place of the
store that is to be made, and of each change its ref, id, sequence and hashes of before and after.
It covers no positions, clocks or warnings. Of an object with ignored fields it covers what the plan
judged, in place of the sequence: another writer of those fields makes no plan stale.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple, TypeGuard

from reconciler.plan.model import Change, Create, Delete, Plan, Rewrite, held_of, ref_of, word
from reconciler.resources.normal import without_idle
from reconciler.resources.ref import ResourceRef, fold
from reconciler.state import DesiredState, ObservedObject, Resource, left_to_others, without


def plan_digest(plan: Plan) -> str:
    """Return the digest, as ``sha256:`` and 64 hexadecimal digits; a plan keeps its own."""
    kept = vars(plan)
    if "digest" not in kept:
        kept["digest"] = _digest(plan)
    digest: str = kept["digest"]
    return digest


def _digest(plan: Plan) -> str:
    scope = plan.scope
    # Only what is used is covered, so that an option that a later version adds changes no digest.
    used = {
        "shard": str(scope.shard or ""),
        "takeOver": scope.take_over,
        "target": scope.target,
        "exclude": scope.exclude,
        "otherTree": scope.other_tree,
        "undo": scope.undo,
        "keep": scope.keep,
        "newStore": plan.new_store,
    }
    return "sha256:" + hash_of(
        {
            **{name: value for name, value in used.items() if value},
            "tree": scope.tree,
            "prune": scope.prune,
            "pruneUnmanaged": scope.prune_unmanaged,
            "instance": plan.instance,
            "organizations": sorted({fold(name) for name in plan.organizations}),
            "changes": [essence(change) for change in plan.changes],
        }
    )


def hash_of(value: object) -> str:
    """Return the SHA-256 of a JSON-shaped value in its one canonical form, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Essence(NamedTuple):
    """The part of a change that the digest covers; id, sequence and hashes may be empty or 0."""

    change: str
    ref: ResourceRef
    id: str
    sequence: int
    before: str
    after: str


def essence(change: Change) -> Essence:
    """Return what the digest covers of a change."""
    held = held_of(change)
    return Essence(
        word(change),
        ref_of(change),
        held.id if held else "",
        held.sequence if held and not _is_shared(change) else 0,
        _hash_before(change, held) if held else "",
        "" if isinstance(change, Delete) else _hash_after(change),
    )


def _is_shared(change: Change) -> TypeGuard[Rewrite]:
    """Return whether others may write to the object between plan and apply.

    Only the sequence shows whether the secret that a change replaces is still the one that the
    plan was about.
    """
    return isinstance(change, Rewrite) and bool(
        left_to_others(change.resource) and not change.new_secret
    )


def _hash_before(change: Change, held: ObservedObject) -> str:
    """Return the hash of what is held; that it is inactive is part of it where that is declared."""
    before: list[object] = [held.ref.name, without_idle(held.ref.kind, held.spec)]
    if _is_shared(change):
        before[1] = without(change.resource.ignored, without_idle(held.ref.kind, held.spec))
        marks = [held.prevent_delete, held.critical, sorted(held.ignored or ())]
        before += [held.owner, held.has_secret, *marks]
    is_declared = not isinstance(change, Delete) and change.resource.active is not None
    return hash_of(before if held.active or not is_declared else [*before, "inactive"])


def _hash_after(change: Create | Rewrite) -> str:
    """Return the hash of what is declared; that a secret is replaced is part of it."""
    resource = change.resource
    spec = without_idle(resource.ref.kind, resource.spec)
    if _is_shared(change):
        spec = without(resource.ignored, spec)
    after = [spec, *_marks(resource)]
    is_replaced = isinstance(change, Rewrite) and change.new_secret
    return hash_of([*after, "new secret"] if is_replaced else after)


def declared_digest(desired: DesiredState) -> str:
    """Return the digest of what the manifests declare, however their files are laid out."""
    declared = [
        [*key, *resource.ref, resource.pinned_id, hash_of(resource.spec), *_marks(resource)]
        for key, resource in sorted(desired.resources.items(), key=lambda item: item[0])
    ]
    return "sha256:" + hash_of(declared)


def _marks(resource: Resource) -> list[object]:
    """Return the marks, and the declared state and the ignored fields, if any."""
    marks: list[object] = [resource.prevent_delete, resource.critical]
    marks += [] if resource.active is None else [{"active": resource.active}]
    return [*marks, {"ignore": sorted(resource.ignored)}] if resource.ignored else marks
