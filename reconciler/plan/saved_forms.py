"""Forms that the values of a plan have in a plan file.

The order of the fields is that of the file. A place or a ref that is missing is an empty list
there, and a shard that is missing an empty text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self, TypeAlias

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.plan.digest import essence
from reconciler.plan.integrity import SavedFileError, check_planned_spec, like
from reconciler.plan.kept_lists import emptied
from reconciler.plan.model import Adopt, Cause, CauseKind, Change, Create, Delete, Scope, Update
from reconciler.resources.fields import Spec
from reconciler.resources.ref import ResourceRef, read_shard
from reconciler.resources.strict_json import LATER, SequenceNumber
from reconciler.state import ObservedObject, Resource

Nothing: TypeAlias = tuple[()]


def _place_of(place: SourceLocation | None) -> object:
    """Return the form of a place: file, line and column, and where variables come from, if any."""
    if place is None:
        return ()
    return place if place.value_from else place[:3]


@dataclass(frozen=True, slots=True)
class SavedFinding:
    """A finding, as a plan file has it."""

    severity: Severity
    code: str
    summary: str
    remedy: str
    place: SourceLocation | Nothing
    ref: ResourceRef | Nothing

    @classmethod
    def of(cls, finding: Diagnostic) -> Self:
        """Return the form of a finding."""
        return like(cls, finding, place=_place_of(finding.location), ref=finding.ref or ())

    def finding(self) -> Diagnostic:
        """Return the finding."""
        return like(Diagnostic, self, location=self.place or None, ref=self.ref or None)


@dataclass(frozen=True, slots=True)
class _SavedSource:
    location: SourceLocation

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of the manifest: those of its values were not kept."""
        return self.location


@dataclass(frozen=True, slots=True)
class SavedResource:
    """A resource and the place where its manifest begins, as a plan file has them."""

    ref: ResourceRef
    spec: Spec
    written: frozenset[str]
    place: SourceLocation
    pinned_id: str
    prevent_delete: bool
    critical: bool
    active: bool | None = field(default=None, metadata=LATER)

    @classmethod
    def of(cls, resource: Resource) -> Self:
        """Return the form of a resource."""
        return like(cls, resource, place=_place_of(resource.source.place()))

    def resource(self) -> Resource:
        """Return the resource.

        Raises:
            SavedFileError: its spec is not one of its kind, or an older version wrote it.
        """
        check_planned_spec(self.ref.kind, self.spec, whole=True)
        return like(Resource, self, source=_SavedSource(self.place))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChange:
    """A change, as a plan file has it."""

    ref: ResourceRef
    change: Literal["create", "update", "adopt", "delete"]
    id: str
    sequence: SequenceNumber
    before: str
    after: str
    new_owner: str = ""
    held: ObservedObject | None = None
    resource: SavedResource | None
    new_secret: bool = False
    kept: frozenset[str] = field(default=frozenset(), metadata=LATER)

    @classmethod
    def of(cls, change: Change) -> Self:
        """Return the form of a change, with what its digest is made of."""
        resource = None if isinstance(change, Delete) else SavedResource.of(change.resource)
        return like(cls, change, essence(change), resource=resource)

    def planned(self) -> Change:
        """Return the change.

        Raises:
            SavedFileError: it has no object or no resource where it needs one, or wrong hashes.
        """
        change = self._unchecked()
        if essence(change)[-2:] != (self.before, self.after):
            raise SavedFileError("has a change with wrong hashes")
        return change

    def _unchecked(self) -> Change:
        held, resource = self.held, self.resource.resource() if self.resource else None
        if held is not None:
            check_planned_spec(held.ref.kind, held.spec, whole=False)
        if resource is not None and held is None and self.change == "create":
            return Create(resource)
        if resource is not None and held is not None and self.change in {"update", "adopt"}:
            kind = Update if self.change == "update" else Adopt
            if not self.kept <= emptied(resource, held):
                raise SavedFileError("has a change with kept lists that are not emptied")
            return kind(resource, held, self.new_secret, self.new_owner, self.kept)
        if resource is None and held is not None and self.change == "delete":
            return Delete(held)
        raise SavedFileError("has an invalid change")


class SavedCause(NamedTuple):
    """The cause of a difference in a field, as a plan file has it."""

    ref: ResourceRef
    name: str
    kind: CauseKind
    by: str
    at: str
    sequence: SequenceNumber
    tree: str

    @property
    def cause(self) -> Cause:
        """Return the cause without the field."""
        return Cause(self.kind, self.by, self.at, self.sequence, self.tree)


@dataclass(frozen=True, slots=True)
class SavedOptions:
    """The options that a plan was made with, as a plan file has them."""

    tree: str
    prune: bool
    prune_unmanaged: bool
    shard: str
    rotate_missing: tuple[ResourceRef, ...]
    take_over: tuple[ResourceRef, ...]
    other_tree: tuple[str, ...]

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Return the form of a scope."""
        return like(cls, scope, shard=str(scope.shard or ""))

    def scope(self) -> Scope:
        """Return the scope."""
        try:
            return like(Scope, self, shard=read_shard(self.shard) if self.shard else None)
        except ValueError:
            raise SavedFileError("has an invalid shard") from None


@dataclass(frozen=True, slots=True)
class SavedOptionsInEnvironment(SavedOptions):
    """The options of a plan for an environment, as a plan file has them."""

    environment: str
