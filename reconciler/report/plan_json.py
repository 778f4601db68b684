"""A plan as JSON, for machines: the same content in stable keys. Minor versions add keys only."""

from __future__ import annotations

from reconciler import __version__
from reconciler.plan.causes import cause_in_plan, cause_of_field
from reconciler.plan.model import Cause, IgnoredField, Plan, Scope, Unmanaged, held_of
from reconciler.report.differences import fields_as_json
from reconciler.report.findings import FORMAT_VERSION, finding_as_json
from reconciler.report.place import place_as_json
from reconciler.report.plan_document import PlanDocument, Shown
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import ResourceRef
from reconciler.state import OwedSecret


def plan_as_json(document: PlanDocument) -> JsonObject:
    """Return a plan and the findings that go with it."""
    plan = document.plan
    changes = [
        {**change_as_json(each), "cause": _cause(plan, cause_in_plan(plan, each.change))}
        for each in document.changes
    ]
    return {
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        **place_as_json(document.place),
        "new_service": not (plan.instance or plan.is_refused or plan.compared_with),
        "shard": str(plan.scope.shard) if plan.scope.shard else None,
        "selection": selection_as_json(plan),
        "digest": document.digest or None,
        "summary": {**plan.summary._asdict(), "risks": sum(bool(c["risks"]) for c in changes)},
        "changes": changes,
        "owed": [owed_as_json(secret) for secret in plan.owed],
        "unmanaged": [_unmanaged(found) for found in plan.unmanaged],
        "ignored": [ignored_as_json(field) for field in plan.ignored],
        "inactive": [ref_as_json(ref) for ref in plan.inactive],
        **({"policies": [each._asdict() for each in plan.policies]} if plan.policies else {}),
        **(
            {"waived": [{**each._asdict(), "ref": each.ref or None} for each in plan.waived]}
            if plan.waived
            else {}
        ),
        "diagnostics": [finding_as_json(finding) for finding in (*document.warnings, *plan.blocks)],
    }


def selection_as_json(plan: Plan) -> JsonObject | None:
    """Return the part of the tree that a plan is of, and what it leaves out; null for the whole."""
    part = scope_as_json(plan.scope)
    needed = [ref_as_json(ref) for ref in plan.needed]
    return part and {**part, "needed": needed, "left_out": plan.left_out._asdict()}


def scope_as_json(scope: Scope) -> JsonObject | None:
    """Return what selects a part of a tree; null for the whole."""
    chosen = {"target": [*scope.target], "exclude": [*scope.exclude]}
    return chosen if scope.is_partial else None


def change_as_json(shown: Shown) -> JsonObject:
    """Return one change of a plan: its fields, its risks, what the service will say of it."""
    plan = shown.plan
    is_of_a_service = not plan.compared_with or plan.is_of_moments
    held = held_of(shown.change) if is_of_a_service else None
    return {
        "ref": ref_as_json(shown.ref),
        "change": shown.word,
        "id": held.id if held else None,
        "sequence": str(held.sequence) if held else None,
        "fields": [
            {
                **said,
                "reset": field.reset,
                "kept": field.kept,
                "cause": _cause(plan, cause_of_field(plan, shown.change, field.name)),
            }
            for field, said in zip(shown.fields, fields_as_json(shown.fields), strict=True)
        ],
        "risks": [
            {"class": risk.name, "field": risk.field or None, "message": risk.sentence}
            for risk in shown.risks
        ],
        "carried": list(shown.carried),
        "problems": [{"key": key, "message": said} for key, said in shown.problems],
    }


def ignored_as_json(field: IgnoredField) -> JsonObject:
    """Return a field that is left to others: its ref, its name, and both values."""
    return {**field._asdict(), "ref": ref_as_json(field.ref)}


def _unmanaged(found: Unmanaged) -> dict[str, str | None]:
    """Return kind and names, id and owner, and the flag that would delete it (null for none)."""
    flag = {"id": found.id, "owner": found.owner or None, "deleted_by": found.flag.value or None}
    return {**ref_as_json(found.ref), **flag}


def _cause(plan: Plan, cause: Cause | None) -> dict[str, str | None] | None:
    if cause is None or (plan.compared_with and not plan.is_of_moments):
        return None
    return {
        **({"why": cause.why or None} if plan.is_of_moments else {}),
        "kind": cause.kind.value,
        "by": cause.by or None,
        "at": cause.at or None,
        "sequence": str(cause.sequence) if cause.sequence else None,
        "tree": cause.tree or None,
    }


def owed_as_json(secret: OwedSecret) -> JsonObject:
    """Return what is known of an owed secret; the secret itself is not."""
    return {
        "ref": ref_as_json(secret.ref),
        "id": secret.id,
        "client_id": secret.client_id,
        "since": secret.since,
        "by": secret.by,
        "tree": secret.tree,
        "run": secret.run,
        "lost": secret.lost,
    }


def ref_as_json(ref: ResourceRef) -> dict[str, str]:
    """Return kind and names."""
    return {**ref._asdict(), "kind": ref.kind.value}
