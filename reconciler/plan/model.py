"""A plan as a value: it can be shown, saved, compared and applied."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reconciler.diagnostics import Diagnostic
from reconciler.resources.ref import ResourceRef
from reconciler.resources.shard import Shard
from reconciler.state import ObservedObject, Resource


@dataclass(frozen=True, slots=True)
class Create:
    """The service holds nothing under this name; make it."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class Update:
    """The service holds something else; send every field.

    ``held`` is what the plan was based on. Apply refuses to write over anything newer.
    """

    resource: Resource
    held: ObservedObject


@dataclass(frozen=True, slots=True)
class Adopt:
    """An update of an object that this tree never applied."""

    resource: Resource
    held: ObservedObject


@dataclass(frozen=True, slots=True)
class Delete:
    """The service holds what is declared nowhere, and pruning was asked for."""

    held: ObservedObject


Change: TypeAlias = Create | Update | Adopt | Delete

WORDS = {Create: "create", Update: "update", Adopt: "adopt", Delete: "delete"}


def word(change: Change) -> str:
    """Return what a change is called in output."""
    return WORDS[type(change)]


def ref_of(change: Change) -> ResourceRef:
    """Return what a change is about, by the names it has afterwards."""
    return change.held.ref if isinstance(change, Delete) else change.resource.ref


def held_of(change: Change) -> ObservedObject | None:
    """Return what the service holds before the change."""
    return None if isinstance(change, Create) else change.held


@dataclass(frozen=True, slots=True)
class Scope:
    """What a plan is about, beside the states it compares.

    Attributes:
        tree: Name of the body of manifests.
        prune: Delete what this tree applied before and no longer declares.
        prune_unmanaged: Delete whatever is declared nowhere.
        shard: Which organizations of the tree it is about; None for all.
    """

    tree: str = "default"
    prune: bool = False
    prune_unmanaged: bool = False
    shard: Shard | None = None


class Summary(NamedTuple):
    """The counts of a plan."""

    create: int
    update: int
    adopt: int
    delete: int
    in_step: int
    unmanaged: int
    blocked: int


@dataclass(frozen=True)
class Plan:
    """Everything one run would do, in the order it would do it.

    Attributes:
        scope: The tree and what it may delete.
        instance: Id of the service it was made for; empty where there is none yet.
        organizations: The names whose objects were compared.
        changes: What would be written.
        in_step: Declared, and held exactly so.
        unmanaged: Held, but declared nowhere. Reported, never written to.
        blocks: Why the plan must not be applied; each says how to allow just that.
        warnings: What a reader should know before it is applied.
    """

    scope: Scope
    instance: str
    organizations: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    in_step: tuple[ResourceRef, ...] = ()
    unmanaged: tuple[ResourceRef, ...] = ()
    blocks: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def summary(self) -> Summary:
        """Return the counts."""
        counts = Counter(word(change) for change in self.changes)
        return Summary(
            create=counts["create"],
            update=counts["update"],
            adopt=counts["adopt"],
            delete=counts["delete"],
            in_step=len(self.in_step),
            unmanaged=len(self.unmanaged),
            blocked=len(self.blocks),
        )
