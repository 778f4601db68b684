"""Saved plans: what was approved, in a file that orders nothing.

A plan file says what a plan would do, so that it can be shown later and compared with what would
be done then. ``apply`` never carries out what stands in it: it reads manifests and service again,
plans again, and goes on only if the outcome is the same. It holds no secret. Its integrity digest
covers every byte; it is no signature, and does not need to be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.diagnostics import Diagnostic
from reconciler.plan.digest import essence, plan_digest
from reconciler.plan.integrity import SavedFileError, sealed, unsealed
from reconciler.plan.model import (
    Adopt,
    Cause,
    CauseKind,
    Change,
    Create,
    Delete,
    Fate,
    Plan,
    Scope,
    Unmanaged,
    Update,
    held_of,
    ref_of,
    word,
)
from reconciler.plan.saved import (
    finding_as_json,
    object_as_json,
    owed_as_json,
    read_finding,
    read_object_held,
    read_owed,
    read_ref,
    read_resource,
    ref_as_list,
    resource_as_json,
)
from reconciler.resources.ref import ResourceRef
from reconciler.resources.shard import Shard, read_shard
from reconciler.resources.strict_json import Fields, JsonError

FORMAT = "reconciler-plan"
FORMAT_VERSION = "1.0"
_CAUSE_TYPES = [str, str, str, str, int, str]  # field, kind, by, at, sequence, tree


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The snapshot that a plan was made against, if it was: date and digest."""

    taken_at: int
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
    return sealed(FORMAT, FORMAT_VERSION, _as_json(file))


def read_plan_file(content: bytes) -> PlanFile:
    """Return the plan file of a content.

    Raises:
        SavedFileError: it is none, of another version, cut short, or not as it was written.
    """
    fields = unsealed(content, FORMAT, FORMAT_VERSION)
    try:
        file = _read(fields)
    except JsonError as fault:
        raise SavedFileError(str(fault)) from None
    if content != plan_file_content(file):
        raise SavedFileError("is not as this version writes it")
    return file


def _as_json(file: PlanFile) -> dict[str, Any]:
    plan = file.plan
    return {
        "tool_version": file.tool_version,
        "made_at": file.made_at,
        "expires_at": file.expires_at,
        "against": [file.against.taken_at, file.against.digest] if file.against else [],
        "instance": plan.instance,
        "service": file.service,
        "paths": list(file.paths),
        "revision": file.revision,
        "manifests": file.declared,
        "digest": file.digest,
        "options": _scope_as_json(plan.scope),
        "organizations": list(plan.organizations),
        "changes": [_change_as_json(change) for change in plan.changes],
        "causes": [
            [ref_as_list(ref), name, *_cause_as_list(cause)]
            for ref, fields in plan.causes.items()
            for name, cause in fields.items()
        ],
        "in_step": [ref_as_list(ref) for ref in plan.in_step],
        "unmanaged": [_unmanaged_as_list(found) for found in plan.unmanaged],
        "blocks": [finding_as_json(finding) for finding in plan.blocks],
        "warnings": [finding_as_json(finding) for finding in plan.warnings],
        "owed": [owed_as_json(secret) for secret in plan.owed],
        "owed_elsewhere": plan.owed_elsewhere,
        "owed_left": plan.owed_left,
        "findings": [finding_as_json(finding) for finding in file.warnings],
    }


def _change_as_json(change: Change) -> dict[str, Any]:
    held = held_of(change)
    *_, object_id, sequence, before, after = essence(change)
    return {
        "ref": ref_as_list(ref_of(change)),
        "change": word(change),
        "id": object_id,
        "sequence": sequence,
        "before": before,
        "after": after,
        "new_owner": change.new_owner if isinstance(change, Update | Adopt) else "",
        "held": object_as_json(held) if held else None,
        "resource": None if isinstance(change, Delete) else resource_as_json(change.resource),
        "new_secret": isinstance(change, Update | Adopt) and change.new_secret,
    }


def _cause_as_list(cause: Cause) -> list[Any]:
    return [cause.kind.value, cause.by, cause.at, cause.sequence, cause.tree]


def _read_cause(value: Any) -> tuple[ResourceRef, str, Cause]:
    """Return the ref, the field and its cause, from a list of seven."""
    if isinstance(value, list) and [type(part) for part in value[1:]] == _CAUSE_TYPES:
        ref, name, kind, *rest = value
        if kind in set(CauseKind):
            return read_ref(ref), name, Cause(CauseKind(kind), *rest)
    raise JsonError("has an invalid cause of a field")


def _by_ref(
    told: Sequence[tuple[ResourceRef, str, Cause]],
) -> Mapping[ResourceRef, Mapping[str, Cause]]:
    causes: dict[ResourceRef, dict[str, Cause]] = {}
    for ref, name, cause in told:
        causes.setdefault(ref, {})[name] = cause
    return causes


def _read(value: dict[str, Any]) -> PlanFile:
    fields = Fields(value)
    digest = fields.text("digest")
    file = PlanFile(
        plan=Plan(
            scope=_read_scope(fields.part("options")),
            instance=fields.text("instance"),
            organizations=fields.texts("organizations"),
            changes=fields.each("changes", _read_change),
            in_step=fields.each("in_step", read_ref),
            unmanaged=fields.each("unmanaged", _read_unmanaged),
            blocks=fields.each("blocks", read_finding),
            warnings=fields.each("warnings", read_finding),
            owed=fields.each("owed", read_owed),
            owed_elsewhere=fields.number("owed_elsewhere"),
            owed_left=fields.number("owed_left"),
            causes=_by_ref(fields.each("causes", _read_cause)),
        ),
        tool_version=fields.text("tool_version"),
        service=fields.text("service"),
        paths=fields.texts("paths"),
        revision=fields.text("revision"),
        declared=fields.text("manifests"),
        made_at=fields.number("made_at"),
        expires_at=fields.number("expires_at"),
        against=fields.one("against", _read_against),
        warnings=fields.each("findings", read_finding),
    )
    fields.end()
    if digest != file.digest:
        raise JsonError("has a digest that is not that of its changes")
    return file


def _scope_as_json(scope: Scope) -> dict[str, Any]:
    return {
        "tree": scope.tree,
        "prune": scope.prune,
        "prune_unmanaged": scope.prune_unmanaged,
        "shard": str(scope.shard or ""),
        "rotate_missing": [ref_as_list(ref) for ref in scope.rotate_missing],
        "take_over": [ref_as_list(ref) for ref in scope.take_over],
        "other_tree": list(scope.other_tree),
    }


def _read_scope(fields: Fields) -> Scope:
    scope = Scope(
        tree=fields.text("tree"),
        prune=fields.flag("prune"),
        prune_unmanaged=fields.flag("prune_unmanaged"),
        shard=fields.one("shard", _read_shard),
        rotate_missing=fields.each("rotate_missing", read_ref),
        take_over=fields.each("take_over", read_ref),
        other_tree=fields.texts("other_tree"),
    )
    fields.end()
    return scope


def _unmanaged_as_list(found: Unmanaged) -> list[Any]:
    return [ref_as_list(found.ref), found.id, found.owner, found.fate.value]


def _read_unmanaged(value: Any) -> Unmanaged:
    if isinstance(value, list) and len(value) == len(Unmanaged._fields):
        ref, object_id, owner, fate = value
        texts = type(object_id) is str and type(fate) is str and type(owner) in {str, type(None)}
        if texts and fate in set(Fate):
            return Unmanaged(read_ref(ref), object_id, owner, Fate(fate))
    raise JsonError("has an invalid unmanaged object")


def _read_shard(value: Any) -> Shard | None:
    if value == "":
        return None
    try:
        return read_shard(value)
    except (TypeError, ValueError):
        raise JsonError("has an invalid shard") from None


def _read_against(value: Any) -> Snapshot | None:
    if value == []:
        return None
    if isinstance(value, list) and [type(part) for part in value] == [int, str]:
        return Snapshot(*value)
    raise JsonError("has an invalid snapshot")


def _read_change(value: Any) -> Change:
    fields = Fields(value)
    fields.one("ref", read_ref), fields.text("id"), fields.number("sequence")
    name, new_owner = fields.text("change"), fields.text("new_owner")
    hashes = [fields.text("before"), fields.text("after")]
    held = fields.one("held", lambda kept: None if kept is None else read_object_held(kept))
    resource = fields.one("resource", lambda kept: None if kept is None else read_resource(kept))
    new_secret = fields.flag("new_secret")
    fields.end()
    change: Change
    if resource is not None and held is None and name == "create":
        change = Create(resource)
    elif resource is not None and held is not None and name in {"update", "adopt"}:
        kind = Update if name == "update" else Adopt
        change = kind(resource, held, new_secret, new_owner)
    elif resource is None and held is not None and name == "delete":
        change = Delete(held)
    else:
        raise JsonError("has an invalid change")
    if essence(change)[-2:] != hashes:
        raise JsonError("has a change with wrong hashes")
    return change
