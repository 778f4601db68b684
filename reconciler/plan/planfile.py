"""Saved plans: what was approved, in a file that orders nothing.

A plan file says what a plan would do, so that it can be shown later and compared with what would
be done then. ``apply`` never carries out what stands in it: it reads manifests and service again,
plans again, and goes on only if the outcome is the same. It holds no secret. Its integrity digest
covers every byte; it is no signature, and does not need to be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic
from reconciler.plan.digest import plan_digest
from reconciler.plan.integrity import Document, SavedFileError, like, sealed, unsealed
from reconciler.plan.model import Cause, Plan, Unmanaged
from reconciler.plan.saved_forms import (
    Nothing,
    SavedCause,
    SavedChange,
    SavedFinding,
    SavedOptions,
    SavedOptionsInEnvironment,
)
from reconciler.resources.ref import ResourceRef
from reconciler.resources.strict_json import LATER, Count, Seconds
from reconciler.state import OwedSecret

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
    options: SavedOptionsInEnvironment | SavedOptions
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
    inactive: tuple[ResourceRef, ...] = field(default=(), metadata=LATER)


def _document(file: PlanFile) -> _PlanDocument:
    plan = file.plan
    return like(
        _PlanDocument,
        plan,
        file,
        against=file.against or (),
        manifests=file.declared,
        digest=file.digest,
        options=(SavedOptionsInEnvironment if plan.scope.environment else SavedOptions).of(
            plan.scope
        ),
        changes=tuple(map(SavedChange.of, plan.changes)),
        causes=tuple(
            SavedCause(ref, name, cause.kind, cause.by, cause.at, cause.sequence, cause.tree)
            for ref, fields in plan.causes.items()
            for name, cause in fields.items()
        ),
        blocks=_saved(plan.blocks),
        warnings=_saved(plan.warnings),
        findings=_saved(file.warnings),
    )


def _file(document: _PlanDocument) -> PlanFile:
    causes: dict[ResourceRef, dict[str, Cause]] = {}
    for each in document.causes:
        causes.setdefault(each.ref, {})[each.name] = each.cause
    plan = like(
        Plan,
        document,
        scope=document.options.scope(),
        changes=tuple(change.planned() for change in document.changes),
        blocks=_findings(document.blocks),
        warnings=_findings(document.warnings),
        causes=causes,
    )
    return like(
        PlanFile,
        document,
        plan=plan,
        declared=document.manifests,
        against=document.against or None,
        warnings=_findings(document.findings),
    )


def _saved(findings: Sequence[Diagnostic]) -> tuple[SavedFinding, ...]:
    return tuple(map(SavedFinding.of, findings))


def _findings(saved: Sequence[SavedFinding]) -> tuple[Diagnostic, ...]:
    return tuple(each.finding() for each in saved)
