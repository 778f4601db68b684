"""A plan as a value: it can be shown, saved, compared and applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeGuard

from reconciler.diagnostics import Diagnostic, SourceLocation, listed
from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import SpecValue
from reconciler.resources.ref import DEFAULT_TREE, ResourceRef, Shard
from reconciler.resources.strict_json import SequenceNumber
from reconciler.state import (
    ObservedObject,
    OwedSecret,
    Resource,
    Undone,
    is_in_step,
    left_to_others,
)

# Changes have no slots, because each keeps its field differences once they are computed; see
# ``diff.field_changes``.


@dataclass(frozen=True)
class Create:
    """The service holds nothing under this name; make it."""

    resource: Resource


@dataclass(frozen=True)
class Rewrite:
    """The service holds something else; send every field.

    ``held`` is what the plan was based on. Apply refuses to write over anything newer.

    Attributes:
        new_secret: Replace the client secret too (``--rotate-missing``).
        new_owner: The tree that becomes the owner, where that is shown as a difference: another
            tree owns the object, or the take-over of an object was asked for.
        kept: Lists that are declared empty and that this server will not empty (``kept_lists``).
            Not covered by the digest.
    """

    resource: Resource
    held: ObservedObject
    new_secret: bool = False
    new_owner: str = ""
    kept: frozenset[str] = frozenset()


class Update(Rewrite):
    """A rewrite of an object that this tree applied before."""


class Adopt(Rewrite):
    """A rewrite of an object that this tree never applied."""


@dataclass(frozen=True)
class Delete:
    """The service holds an object that no manifest declares, and pruning was asked for.

    Attributes:
        undone: The mark that it leaves; only an undo leaves one.
    """

    held: ObservedObject
    undone: Undone | None = None


Change: TypeAlias = Create | Rewrite | Delete

Pair: TypeAlias = tuple[Resource, ObservedObject | None]
"""A declared resource with the object it is, if it is held."""

PARTIAL_TREE = "GUARD-PARTIAL-TREE"
"""Code of a block: a delete is planned, and not all manifests of the tree were read."""

UNTRUSTED_CONFIG = "GUARD-CONFIG"
"""Code of a block: ``reconciler.yaml`` differs from the trusted one, so no service was asked."""

MOST_WAIVED = 8
"""Waivers of one object that its event names; a context has little room."""

WORDS = {Create: "create", Update: "update", Adopt: "adopt", Delete: "delete"}


def word(change: Change) -> str:
    """Return what a change is called in output."""
    return WORDS[type(change)]


def only_takes_over(change: Change) -> bool:
    """Return whether a change records an owner and alters nothing else."""
    if not isinstance(change, Rewrite) or makes_secret(change):
        return False
    if not change.new_owner and not gives_back(change.resource, change.held):
        return False
    return is_in_step(change.resource, change.held)


def gives_back(resource: Resource, held: ObservedObject) -> bool:
    """Return whether an undo gives an object back to the tree that owned it, maybe to none."""
    return None not in {resource.owner, held.owner} and resource.owner != held.owner


def ref_of(change: Change) -> ResourceRef:
    """Return what a change is about, by the names it has afterwards."""
    return change.held.ref if isinstance(change, Delete) else change.resource.ref


def held_of(change: Change) -> ObservedObject | None:
    """Return what the service holds before the change."""
    return None if isinstance(change, Create) else change.held


def is_critical(change: Rewrite | Delete) -> bool:
    """Return whether an object is critical, as it is held or as it is declared."""
    is_declared = isinstance(change, Rewrite) and change.resource.critical
    return change.held.critical or is_declared


def refs_of(change: Change) -> tuple[ResourceRef, ...]:
    """Return what a change is about, by its names after the change, and by those before it."""
    held = held_of(change)
    return (ref_of(change), held.ref) if held else (ref_of(change),)


def addresses_of(change: Change) -> tuple[str, ...]:
    """Return the folded addresses to look up an object by: after a change, and before it."""
    return tuple(ref.folded for ref in refs_of(change))


def place_of(change: Change) -> SourceLocation | None:
    """Return the place of the name in the manifest; None for a delete, which has none."""
    if isinstance(change, Delete):
        return None
    return change.resource.source.place("metadata", "name")


def is_nothing(resource: Resource) -> bool:
    """Return whether the service holds no object of a resource, because it has nothing in it."""
    return KINDS[resource.ref.kind].gone_when_empty and not any(resource.spec.values())


def empties(change: Change) -> TypeGuard[Rewrite]:
    """Return whether a change leaves nothing of an object: then it is gone."""
    return not isinstance(change, Create | Delete) and is_nothing(change.resource)


def lacks_secret(resource: Resource, held: ObservedObject) -> bool:
    """Return whether a held application has no client secret and is declared to sign in with one.

    False where the service does not report it, and where the way to sign in is left to others.
    """
    secrets = KINDS[resource.ref.kind].secrets
    is_left = secrets is not None and secrets.field in left_to_others(resource)
    return held.has_secret is False and signs_in_with_secret(resource) and not is_left


def signs_in_with_secret(resource: Resource | ObservedObject) -> bool:
    """Return whether something signs in with a client secret."""
    secrets = KINDS[resource.ref.kind].secrets
    return secrets is not None and secrets.has(resource.spec)


def makes_secret(change: Change) -> bool:
    """Return whether carrying out a change makes a client secret."""
    if isinstance(change, Delete) or not signs_in_with_secret(change.resource):
        return False
    return (
        isinstance(change, Create)
        or change.new_secret
        or lacks_secret(change.resource, change.held)
        or not signs_in_with_secret(change.held)
    )


def is_secret_alone(change: Change) -> bool:
    """Return whether a change is a new client secret and nothing else.

    An adoption or a take-over is not: it also records a new owner.
    """
    return (
        isinstance(change, Update)
        and not change.new_owner
        and makes_secret(change)
        and is_in_step(change.resource, change.held)
    )


def _without_its_secret(change: Change) -> ObservedObject | None:
    """Return the application whose present secret is of no use after a change, if it is one."""
    if isinstance(change, Create):
        return None
    stays = not isinstance(change, Delete) and signs_in_with_secret(change.resource)
    return None if stays and not makes_secret(change) else change.held


class CauseKind(StrEnum):
    """The reasons for a change, or for one of its fields."""

    NOT_HELD = "not_held"
    DECLARED = "declared"
    SERVICE = "changed_on_service"
    BOTH = "both"
    NEVER_APPLIED = "never_applied"
    UNDECLARED = "no_longer_declared"
    UNDO = "undo"
    TAKE_OVER = "take_over"
    ROTATE_MISSING = "rotate_missing"
    LACKING = "lacks_secret"
    ELSEWHERE = "declared_elsewhere"
    EVENT = "event"
    UNKNOWN = "unknown"


class Cause(NamedTuple):
    """The reason for a change, or for one of its fields.

    Attributes:
        by: Name of the token behind the event, where the service was written to.
        at: When, RFC 3339.
        sequence: That of the event.
        tree: The other tree that applied it, if one did.
        why: Of an event between two moments, what its writer said: run, commit, reason and so on.
    """

    kind: CauseKind
    by: str = ""
    at: str = ""
    sequence: SequenceNumber = 0
    tree: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of a plan, beside the states it compares.

    Attributes:
        tree: Name of the body of manifests.
        prune: Delete what this tree owns and no longer declares.
        prune_unmanaged: Delete what is declared nowhere and no other tree owns.
        shard: Which organizations of the tree it is about; None for all.
        rotate_missing: Keys of the applications whose client secret is replaced, sorted.
        take_over: Keys of the objects to become the owner of, without a change of their fields,
            sorted.
        other_tree: Folders of the repository whose manifests are of another tree or service, and
            do not keep anything from being deleted: from the root of the repository, sorted.
        environment: Name of the environment of ``reconciler.yaml``; empty for none. Not covered by
            the digest: resolved values and the id of the service are.
        target: Addresses (``resources.ref.parse_pattern``) of all that a run is about, sorted;
            empty for the whole tree.
        exclude: Addresses of what it leaves out, sorted.
        undo: Id of the run that is undone; empty for a plan of manifests.
        keep: Keys of what an undo leaves as it is held, sorted.
    """

    tree: str = DEFAULT_TREE
    prune: bool = False
    prune_unmanaged: bool = False
    shard: Shard | None = None
    rotate_missing: tuple[ResourceRef, ...] = ()
    take_over: tuple[ResourceRef, ...] = ()
    other_tree: tuple[str, ...] = ()
    environment: str = ""
    target: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    undo: str = ""
    keep: tuple[ResourceRef, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Return whether a run is about a part of the tree that ``plan.selection`` selects."""
        return bool(self.target or self.exclude)

    def covers(self, organization: str) -> bool:
        """Return whether an organization is of the shard."""
        return self.shard is None or self.shard.holds(organization)


class DeletedBy(StrEnum):
    """The flag with which a run of this tree would delete an unmanaged object."""

    PRUNE = "--prune"
    PRUNE_UNMANAGED = "--prune-unmanaged"
    NO_FLAG = ""


class Unmanaged(NamedTuple):
    """An object that is held and declared nowhere.

    Attributes:
        owner: The tree that owns it; empty where no tree does, None where the service cannot
            tell.
        flag: What would delete it; ``NO_FLAG`` for what no flag of this tree deletes.
    """

    ref: ResourceRef
    id: str = ""
    owner: str | None = None
    flag: DeletedBy = DeletedBy.NO_FLAG


class IgnoredField(NamedTuple):
    """A field of a held object that ``metadata.ignore`` leaves to others.

    Attributes:
        declared: The value that a new object would get; None where the manifest says none.
        held: The present value, which updates send back.
    """

    ref: ResourceRef
    name: str
    declared: SpecValue
    held: SpecValue


class JudgedBy(NamedTuple):
    """A policy that judged a plan.

    Attributes:
        severity: ``error``, ``warning`` or ``note``.
        digest: SHA-256 of all that decides its verdicts, in hexadecimal.
    """

    name: str
    severity: str
    digest: str


class Waived(NamedTuple):
    """A refusal of a policy that a waiver takes back.

    Attributes:
        ref: Address of the object; empty for the whole plan.
        until: The last day on which the waiver counts, such as ``2026-12-31``.
    """

    policy: str
    ref: str
    waiver: str
    reason: str
    owner: str
    until: str


class Summary(NamedTuple):
    """The counts of a plan."""

    create: int
    update: int
    adopt: int
    delete: int
    in_step: int
    unmanaged: int
    blocked: int
    owed: int = 0
    owed_elsewhere: int = 0
    owed_left: int = 0

    @property
    def changes(self) -> int:
        """Return how many changes there are."""
        return self.create + self.update + self.adopt + self.delete


NONE_LEFT_OUT = Summary(0, 0, 0, 0, 0, 0, 0)


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
        owed: Client secrets that the service keeps for this tree, or has lost. An apply delivers
            them. Not covered by the digest.
        owed_elsewhere: How many it keeps for other trees.
        owed_left: How many it keeps for this tree in organizations that the tree no longer names.
            ``secret deliver`` delivers them.
        inactive: Held inactive, and no manifest says so: they stay as they are. Not covered by the
            digest.
        ignored: Fields that are left to others, in order. Not covered by the digest.
        causes: By the ref of an update whose history was read: the cause of each field, by its
            name. Between two moments also those of a create and of a delete, by that word. Not
            covered by the digest.
        compared_with: Of a comparison, the environment that stands for what is held; empty for a
            plan of a service. The environment of the scope stands for what is declared.
        is_of_moments: Whether it compares two moments of a service: ``compared_with`` is the first
            and the environment of the scope the second; empty for now.
        new_store: Address of the store that it makes, and the only one that it is for; empty where
            there is a service.
        policies: The policies that judged it. Not covered by the digest.
        waived: What they would have refused. Not covered by the digest.
        needed: Of a part of the tree, the changes that what is selected needs and that the scope
            does not name.
        left_out: Of a part of the tree, the counts of what is not in it. Blocks are never left out.
            Not covered by the digest.
        whole: Of a part of the tree, the changes of the whole, which policies over the plan judge.
            Not kept in a plan file.
    """

    scope: Scope
    instance: str
    organizations: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    in_step: tuple[ResourceRef, ...] = ()
    unmanaged: tuple[Unmanaged, ...] = ()
    blocks: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    owed: tuple[OwedSecret, ...] = ()
    owed_elsewhere: int = 0
    owed_left: int = 0
    causes: Mapping[ResourceRef, Mapping[str, Cause]] = field(default_factory=dict)
    compared_with: str = ""
    is_of_moments: bool = False
    inactive: tuple[ResourceRef, ...] = ()
    ignored: tuple[IgnoredField, ...] = ()
    new_store: str = ""
    policies: tuple[JudgedBy, ...] = ()
    waived: tuple[Waived, ...] = ()
    needed: tuple[ResourceRef, ...] = ()
    left_out: Summary = NONE_LEFT_OUT
    whole: tuple[Change, ...] = ()

    def waived_for(self, change: Change) -> str:
        """Return the policies that would refuse a change or the whole plan, and their waivers."""
        known = self._waived_in_words
        keys = (ref_of(change).address, "") if known else ()
        return ", ".join(known[key] for key in keys if key in known)

    @cached_property
    def _waived_in_words(self) -> Mapping[str, str]:
        """Return them by the address of an object, or by an empty text for all changes."""
        found: dict[str, list[str]] = {}
        for each in self.waived:
            found.setdefault(each.ref, []).append(f"{each.policy} by {each.waiver}")
        return {ref: listed(said, MOST_WAIVED) for ref, said in found.items()}

    @cached_property
    def declared_elsewhere(self) -> Mapping[ResourceRef, SourceLocation]:
        """Return the places of manifests that declare what would be deleted, by its ref."""
        return {
            block.ref: block.location
            for block in self.blocks
            if block.code == PARTIAL_TREE and block.ref is not None and block.location is not None
        }

    @property
    def is_refused(self) -> bool:
        """Return whether no service was asked, so that the plan holds nothing but its blocks."""
        return any(block.code == UNTRUSTED_CONFIG for block in self.blocks)

    @property
    def deliverable(self) -> tuple[OwedSecret, ...]:
        """Return the owed secrets that a run delivers before it makes anything new.

        Those whose time is over are left out, and those that a change of the plan ends.
        """
        ended = {held.id for change in self.changes if (held := _without_its_secret(change))}
        return tuple(secret for secret in self.owed if not secret.lost and secret.id not in ended)

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
            owed=len(self.deliverable),
            owed_elsewhere=self.owed_elsewhere,
            owed_left=self.owed_left,
        )


NO_PLAN = Plan(Scope(), "", ())
