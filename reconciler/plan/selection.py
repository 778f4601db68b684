"""A part of a tree: the objects that a run names, and what they need.

The whole tree is planned and guarded first. The part is cut out of that plan and keeps every block
of the whole, so that a dangerous plan is not made harmless by halves.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from reconciler.diagnostics import Diagnostic, error, listed
from reconciler.errors import UsageError
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Summary,
    held_of,
    place_of,
    ref_of,
    refs_of,
)
from reconciler.plan.ordering import frees, needed_by
from reconciler.resources.ref import RefSet, ResourceRef, organization_ref, parse_ref
from reconciler.state import OwedSecret

NAMED = 5
"""Addresses that an error lists at most."""


class Part:
    """The objects that ``--target`` and ``--exclude`` of a scope select; all without them."""

    def __init__(self, scope: Scope) -> None:
        self.targets, self.excluded = RefSet(scope.target), RefSet(scope.exclude)
        self._begins_with_all = not scope.target

    def names(self, *refs: ResourceRef) -> bool:
        """Return whether an object is named, by its old name or its new one."""
        if self.excludes(*refs):
            return False
        return self._begins_with_all or any(ref in self.targets for ref in refs)

    def excludes(self, *refs: ResourceRef) -> bool:
        """Return whether an object is left out by name."""
        return any(ref in self.excluded for ref in refs)


class Selection:
    """The part of a plan that its scope selects.

    An object is named by its old name or by its new one. A change that is selected brings those
    that it needs, and they bring theirs: one that makes an object or gives it the name that is
    meant, and one that frees a name. What is held under that name is not needed, however it
    differs.

    Attributes:
        changes: Keys of the changes that are in it.
        in_step: Keys of what is in it and in step.
        needed: What the changes need and the scope does not name, in the order of the plan.
        blocks: An error for each change that is needed and excluded.
    """

    def __init__(self, plan: Plan, approved: Plan | None = None) -> None:
        """Select.

        Whatever an approved plan changes is in it: the part may have renamed or made it by now.

        Raises:
            UsageError: an address names nothing, and no approved plan had what it named.
        """
        self._part = Part(plan.scope)
        if approved is None:
            _refuse_unknown(plan, self._part)
        begun = {ref_of(change).key for change in approved.changes} if approved else set()
        self._planned = {ref_of(change).key: change for change in plan.changes}
        self._freeing = {key: change for change in plan.changes if (key := frees(change))}
        self._by_id = {
            held.id: key for key, each in self._planned.items() if (held := held_of(each))
        }
        named = {key for key, each in self._planned.items() if self._part.names(*refs_of(each))}
        self.changes = named | (begun & self._planned.keys())
        self.in_step = {
            ref.key for ref in plan.in_step if ref.key in begun or self._part.names(ref)
        }
        self.blocks = tuple(sorted(self._bring_needed(), key=lambda each: (each.ref, each.remedy)))
        brought = self.changes - named
        self.needed = tuple(ref for ref in map(ref_of, plan.changes) if ref.key in brought)

    def __contains__(self, ref: ResourceRef) -> bool:
        if ref.key in self._planned:
            return ref.key in self.changes
        return ref.key in self.in_step or self._part.names(ref)

    def holds_secret(self, secret: OwedSecret) -> bool:
        """Return whether an owed secret is that of an application in it, renamed or not."""
        key = self._by_id.get(secret.id)
        return secret.ref in self if key is None else key in self.changes

    def _bring_needed(self) -> Iterator[Diagnostic]:
        """Add what is needed; yield an error for each change among it that is excluded."""
        left = [*self.changes]
        while left:
            change = self._planned[left.pop()]
            for needed in self._needed_by(change):
                key = ref_of(needed).key
                if key in self.changes:
                    continue
                if self._part.excludes(*refs_of(needed)):
                    yield _not_held(change, needed)
                else:
                    self.changes.add(key)
                    left.append(key)

    def _needed_by(self, change: Change) -> Iterator[Change]:
        """Yield the changes without which one cannot be made."""
        for key in needed_by(change):
            needed = self._planned.get(key)
            held = held_of(needed) if needed is not None else None
            if needed is not None and (held is None or held.ref.key != key):
                yield needed
        freeing = self._freeing.get(ref_of(change).key)
        if freeing is not None and freeing is not change and not isinstance(change, Delete):
            yield freeing


def narrowed(plan: Plan, approved: Plan | None = None) -> Plan:
    """Return the part of a plan that its scope selects, with the blocks of the whole.

    Args:
        plan: Of the whole tree.
        approved: The plan of the part that is gone on with, or that was just carried out.

    Raises:
        UsageError: an address of the scope names nothing.
    """
    if not plan.scope.is_partial:
        return plan
    chosen = Selection(plan, approved)
    part = replace(
        plan,
        changes=tuple(change for change in plan.changes if ref_of(change).key in chosen.changes),
        in_step=tuple(ref for ref in plan.in_step if ref.key in chosen.in_step),
        unmanaged=tuple(found for found in plan.unmanaged if found.ref in chosen),
        blocks=(*plan.blocks, *chosen.blocks),
        warnings=tuple(each for each in plan.warnings if each.ref is None or each.ref in chosen),
        owed=tuple(secret for secret in plan.owed if chosen.holds_secret(secret)),
        owed_left=0,
        inactive=tuple(ref for ref in plan.inactive if ref in chosen),
        ignored=tuple(each for each in plan.ignored if each.ref in chosen),
        needed=chosen.needed,
        whole=plan.changes,
    )
    counts = zip(plan.summary, part.summary, strict=True)
    left_out = Summary(*(whole - some for whole, some in counts))
    return replace(part, left_out=left_out._replace(blocked=0))


def _refuse_unknown(plan: Plan, part: Part) -> None:
    """Refuse addresses that name nothing; one of another shard is left to that shard.

    Raises:
        UsageError: there are some.
    """
    known = [
        *chain.from_iterable(map(refs_of, plan.changes)),
        *plan.in_step,
        *(found.ref for found in plan.unmanaged),
        *(secret.ref for secret in plan.owed),
        *map(organization_ref, plan.organizations),  # no unmanaged object is an organization
    ]
    for flag, wanted in (("--target", part.targets), ("--exclude", part.excluded)):
        unknown = [each for each in wanted.without(known) if _is_of_shard(each, plan.scope)]
        if unknown:
            raise UsageError(
                f"{flag} names nothing that is declared or held: {listed(unknown, NAMED)}",
                remedy="Correct the names, or leave them out. * stands for any part of one name: "
                "'Project/acme/*'. Nothing was written.",
            )


def _is_of_shard(address: str, scope: Scope) -> bool:
    """Return whether an address names the objects of one organization, and of this shard."""
    if scope.shard is None:
        return True
    organization = address.split("/")[1]
    return "*" not in organization and scope.covers(parse_ref(f"Organization/{organization}").name)


def _not_held(change: Change, needed: Change) -> Diagnostic:
    ref, need = ref_of(change), ref_of(needed)
    is_made = isinstance(needed, Create)
    why = "which is not held yet" if is_made else "which has another name on the service yet"
    return error(
        "GUARD-EXCLUDED",
        "what a selected object needs is excluded",
        f"{ref} needs {need}, {why}. Take {need} out of --exclude, or exclude {ref} as well: "
        f"--exclude {shlex.quote(ref.address)}.",
        place_of(change),
        ref,
    )
