"""Saved plans: what was approved, to be shown later and compared with what would be done then.

``apply`` never carries out what stands in a plan file: it reads manifests and service again, plans
again, and goes on only if the outcome is the same. A plan file holds no secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, TypeAlias

from reconciler.diagnostics import Diagnostic, OnePlace, Severity, SourceLocation
from reconciler.plan.diff import emptied
from reconciler.plan.digest import essence, plan_digest
from reconciler.plan.integrity import Document, SavedFileError, check_spec, like, sealed, unsealed
from reconciler.plan.model import (
    Adopt,
    Cause,
    CauseKind,
    Change,
    Create,
    Delete,
    IgnoredField,
    JudgedBy,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
    Waived,
)
from reconciler.resources.fields import Spec
from reconciler.resources.ref import ResourceRef, read_shard
from reconciler.resources.strict_json import Count, Seconds, SequenceNumber
from reconciler.state import ObservedObject, OwedSecret, Resource, Undone

FORMAT = "reconciler-plan"
FORMAT_VERSION = "1.0"


class Snapshot(NamedTuple):
    """The snapshot that a plan was made against, if it was: date and digest."""

    taken_at: Seconds
    digest: str


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan, and when, of what and against what it was made.

    Attributes:
        service: Address of the service, for the reader only; the plan has the service's id.
        paths: Where the manifests were, for the reader only.
        declared: Digest of all that the manifests declare.
        revision: Commit that the manifests are of, for the reader only; empty where unknown.
        reason: Of an undo; its writes carry it. May be empty.
        made_at: Seconds since the epoch, as is ``expires_at``.
        against: The snapshot it was made against, if it was.
        warnings: What was found in the manifests.
    """

    plan: Plan
    tool_version: str
    service: str
    paths: tuple[str, ...]
    declared: str
    made_at: int
    expires_at: int
    against: Snapshot | None = None
    warnings: tuple[Diagnostic, ...] = ()
    revision: str = ""
    reason: str = ""

    @property
    def digest(self) -> str:
        """Return the digest of the plan."""
        return plan_digest(self.plan)


def looks_like_plan_file(beginning: bytes) -> bool:
    """Return whether a file that begins so is, or was, a plan file."""
    return f'"format": "{FORMAT}"'.encode() in beginning[:200]


def plan_file_content(file: PlanFile) -> bytes:
    """Return the content of a plan file: the same for the same plan, to the byte."""
    return sealed(FORMAT, FORMAT_VERSION, _document(file))


def read_plan_file(content: bytes) -> PlanFile:
    """Return the plan file of a content.

    Raises:
        SavedFileError: it is something else, of another version, cut short, or changed.
    """
    document = unsealed(content, FORMAT, FORMAT_VERSION, _PlanDocument)
    file = _file(document)
    if document.digest != file.digest:
        raise SavedFileError("has a digest that is not that of its changes")
    if content != plan_file_content(file):
        raise SavedFileError("is not as this version writes it")
    return file


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanDocument(Document):
    tool_version: str
    made_at: Seconds
    expires_at: Seconds
    against: Snapshot | Nothing
    instance: str
    service: str
    paths: tuple[str, ...]
    revision: str
    manifests: str
    digest: str
    options: SavedOptions
    organizations: tuple[str, ...]
    changes: tuple[SavedChange, ...]
    causes: tuple[SavedCause, ...]
    in_step: tuple[ResourceRef, ...]
    unmanaged: tuple[Unmanaged, ...]
    blocks: tuple[SavedFinding, ...]
    warnings: tuple[SavedFinding, ...]
    owed: tuple[OwedSecret, ...]
    owed_elsewhere: Count
    owed_left: Count
    findings: tuple[SavedFinding, ...]
    inactive: tuple[ResourceRef, ...]
    ignored: tuple[IgnoredField, ...]
    new_store: str
    policies: tuple[JudgedBy, ...]
    waived: tuple[Waived, ...]
    needed: tuple[ResourceRef, ...]
    left_out: Summary
    reason: str


def _document(file: PlanFile) -> _PlanDocument:
    plan = file.plan
    return like(
        _PlanDocument,
        plan,
        file,
        against=file.against or (),
        manifests=file.declared,
        digest=file.digest,
        options=SavedOptions.of(plan.scope),
        changes=tuple(map(SavedChange.of, plan.changes)),
        causes=tuple(
            SavedCause(ref, name, *cause[:5])  # only comparisons, which are not saved, say why
            for ref, fields in plan.causes.items()
            for name, cause in fields.items()
        ),
        blocks=tuple(map(SavedFinding.of, plan.blocks)),
        warnings=tuple(map(SavedFinding.of, plan.warnings)),
        findings=tuple(map(SavedFinding.of, file.warnings)),
    )


def _file(document: _PlanDocument) -> PlanFile:
    causes: dict[ResourceRef, dict[str, Cause]] = {}
    for each in document.causes:
        causes.setdefault(each.ref, {})[each.name] = Cause(*each[2:])
    scope = document.options.scope()
    # An undo decides ignored fields, too; the mark that it leaves says that it is one.
    mark = Undone("", scope.undo, document.reason, {}) if scope.undo else None
    plan = like(
        Plan,
        document,
        scope=scope,
        changes=tuple(change.planned(mark) for change in document.changes),
        blocks=tuple(map(SavedFinding.finding, document.blocks)),
        warnings=tuple(map(SavedFinding.finding, document.warnings)),
        causes=causes,
    )
    return like(
        PlanFile,
        document,
        plan=plan,
        declared=document.manifests,
        against=document.against or None,
        warnings=tuple(map(SavedFinding.finding, document.findings)),
    )


# Forms of values in a plan file. The order of their fields is that of the file: released versions
# read it. A missing place or ref is an empty list there, a missing shard an empty text.
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
    policy: str

    @classmethod
    def of(cls, finding: Diagnostic) -> Self:
        """Return the form of a finding."""
        return like(cls, finding, place=_place_of(finding.location), ref=finding.ref or ())

    def finding(self) -> Diagnostic:
        """Return the finding."""
        return like(Diagnostic, self, location=self.place or None, ref=self.ref or None)


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
    active: bool | None
    ignored: frozenset[str]

    @classmethod
    def of(cls, resource: Resource) -> Self:
        """Return the form of a resource."""
        return like(cls, resource, place=_place_of(resource.source.place()))

    def resource(self, mark: Undone | None = None) -> Resource:
        """Return the resource; ``mark`` is of the undo that it is of.

        Raises:
            SavedFileError: its spec is not one of its kind.
        """
        check_spec(self.ref.kind, self.spec, whole=True)
        return like(Resource, self, source=OnePlace(self.place), undone=mark)


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
    kept: frozenset[str] = frozenset()

    @classmethod
    def of(cls, change: Change) -> Self:
        """Return the form of a change, with what its digest is made of."""
        resource = None if isinstance(change, Delete) else SavedResource.of(change.resource)
        return like(cls, change, essence(change), resource=resource)

    def planned(self, mark: Undone | None = None) -> Change:
        """Return the change; ``mark`` is of the undo that it is of.

        Raises:
            SavedFileError: it has no object or no resource where it needs one, or wrong hashes.
        """
        change = self._unchecked(mark)
        if essence(change)[-2:] != (self.before, self.after):
            raise SavedFileError("has a change with wrong hashes")
        return change

    def _unchecked(self, mark: Undone | None) -> Change:
        held, resource = self.held, self.resource.resource(mark) if self.resource else None
        if held is not None:
            check_spec(held.ref.kind, held.spec, whole=False)
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
    environment: str
    target: tuple[str, ...]
    exclude: tuple[str, ...]
    undo: str
    keep: tuple[ResourceRef, ...]

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
