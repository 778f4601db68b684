"""Reports of what was changed on the service: drift, and the events of one object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.plan.drift import Drift, DriftedObject, Reason, Unjudged, Unknown
from reconciler.plan.history import Step
from reconciler.plan.model import Cause
from reconciler.report.differences import field_lines, fields_as_json
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.plan_json import ref_as_json
from reconciler.report.plan_parts import (
    LEFT_INACTIVE,
    Place,
    owed_sentences,
    place_as_json,
    place_as_text,
    refs_as_text,
    section,
)
from reconciler.report.visible import LIMIT, PLAIN, Style, longest_ticks, visible
from reconciler.resources.call import JsonObject

NO_HISTORY = (
    "This service keeps no history and no record of trees, so these questions are left open here:"
)
QUESTIONS = {
    Unknown.OWNERS: "which tree or tool an object belongs to: what is declared nowhere may be of "
    "another one",
    Unknown.ORIGINS: "whether a difference was made on the service or in the manifests, and by "
    "whom",
    Unknown.REMOVALS: "what was removed: it is missing, as is what was never applied",
    Unknown.REPLACEMENTS: "whether an object was deleted and made again, with a new client id",
    Unknown.UNDONE: "what was changed and changed back since the last apply",
}
REASONS = {
    Reason.NEVER_APPLIED: "never applied by this tree",
    Reason.NO_HISTORY: "not held: never applied, or removed",
}


def drift_as_text(drift: Drift, place: Place, style: Style = PLAIN) -> str:
    """Return what drifted, below its place: as applied, then as held; the count last."""
    blocks = [place_as_text(place)]
    blocks += ["\n".join(_drifted(drifted, style)) for drifted in drift.objects]
    for title, lines in (
        ("Held, but declared nowhere:", refs_as_text(drift.unmanaged)),
        ("Differs, and the service does not tell who changed it:", refs_as_text(drift.untold)),
        ("Cannot be judged:", [_unjudged(each) for each in drift.unjudged]),
        (f"{LEFT_INACTIVE}:", refs_as_text(drift.inactive)),
    ):
        blocks += section(title, lines, style)
    if not drift.keeps_history:
        blocks.append(
            "\n".join([NO_HISTORY, *(f"  - {QUESTIONS[each]}" for each in drift.unknown)])
        )
    blocks += owed_sentences(drift.owed, drift.owed_elsewhere)
    return "\n\n".join([*blocks, drift_sentence(drift, style)])


def drift_sentence(drift: Drift, style: Style = PLAIN) -> str:
    """Return how much drifted, in one sentence."""
    left = f"{len(drift.unjudged)} cannot be judged" if drift.unjudged else ""
    if not drift.objects and not drift.untold:
        if not left and drift.keeps_history:
            return f"{style('No drift.', 'bold', 'green')} Nothing was changed on the service."
        return f"{style('No drift found', 'bold', 'green')}{left and '; '}{left}."
    removed = sum(drifted.removed for drifted in drift.objects)
    return (
        f"{style('Drift:', 'bold')} {len(drift.objects) - removed} changed on the service, "
        f"{removed} removed{f', {len(drift.untold)} by an unknown writer' if drift.untold else ''}"
        f"{left and '; '}{left}."
    )


def drift_as_markdown(drift: Drift, place: Place, limit: int = LIMIT) -> str:
    """Return drift for an issue: everything that others wrote stands in one fence."""
    text = drift_as_text(drift, place)
    if len(text) > limit:
        text = f"{text[:limit]}\n[cut: the whole of it is in the output of the job]"
    fence = "`" * max(3, 1 + longest_ticks(text))
    return f"### {drift_sentence(drift)}\n\n{fence}text\n{text}\n{fence}\n"


def drift_as_json(drift: Drift, place: Place) -> JsonObject:
    """Return drift in stable keys."""
    return {
        "format_version": FORMAT_VERSION,
        **place_as_json(place),
        "summary": {
            "changed": sum(not drifted.removed for drifted in drift.objects),
            "removed": sum(drifted.removed for drifted in drift.objects),
            "untold": len(drift.untold),
            "unmanaged": len(drift.unmanaged),
            "unjudged": len(drift.unjudged),
            "owed": drift.owed,
            "owed_elsewhere": drift.owed_elsewhere,
        },
        "history": drift.keeps_history,
        "unknown": [each.value for each in drift.unknown],
        "drift": [_drifted_as_json(drifted) for drifted in drift.objects],
        "untold": [ref_as_json(ref) for ref in drift.untold],
        "unmanaged": [ref_as_json(ref) for ref in drift.unmanaged],
        "inactive": [ref_as_json(ref) for ref in drift.inactive],
        "unjudged": [
            {"ref": ref_as_json(each.ref), "reason": each.reason.value} for each in drift.unjudged
        ],
    }


def _drifted(drifted: DriftedObject, style: Style) -> Iterator[str]:
    symbol, look = ("-", "red") if drifted.removed else ("~", "yellow")
    name = visible(str(drifted.ref))
    yield f"{style(symbol, look, 'bold')} {style(name, 'bold')}  (id {visible(drifted.id)})"
    done = "removed" if drifted.removed else "changed"
    if drifted.removed_id:
        yield f"    what this tree applied was deleted (id {visible(drifted.removed_id)})"
        done = "made again"
    yield f"    {done} {_author(drifted.cause)}"
    for field in drifted.fields:
        shown = field_lines(field, style, is_new=field.before is None)
        yield from (f"    {line}" for line in shown)


def _unjudged(each: Unjudged) -> str:
    return f"{visible(str(each.ref))}  ({REASONS[each.reason]})"


def _author(cause: Cause) -> str:
    tree = f" for tree {visible(cause.tree)}" if cause.tree else ""
    return f"by {visible(cause.by)}{tree} at {visible(cause.at)} (sequence {cause.sequence})"


def _drifted_as_json(drifted: DriftedObject) -> JsonObject:
    return {
        "ref": ref_as_json(drifted.ref),
        "drift": "removed" if drifted.removed else "changed",
        "id": drifted.id,
        "removed_id": drifted.removed_id or None,
        "by": drifted.cause.by,
        "at": drifted.cause.at,
        "sequence": str(drifted.cause.sequence),
        "tree": drifted.cause.tree or None,
        "fields": [
            {**each, "declared": drifted.declared.get(str(each["name"]), each["before"])}
            for each in fields_as_json(drifted.fields, after="held")
        ],
    }


_CONTEXT = (("tree", "tree"), ("revision", "revision"), ("plan", "plan"))

_REASON = "reason"  # with --break-glass


def history_as_text(name: str, steps: Sequence[Step], style: Style = PLAIN) -> str:
    """Return the events of an object, the oldest first."""
    blocks = ["\n".join(_step(step, style)) for step in steps]
    return "\n\n".join([style(visible(name), "bold"), *blocks])


def history_as_json(object_id: str, steps: Sequence[Step]) -> JsonObject:
    """Return the events of an object in stable keys."""
    return {
        "format_version": FORMAT_VERSION,
        "id": object_id,
        "events": [
            {
                "type": step.event.type,
                "sequence": str(step.event.sequence),
                "at": step.event.at,
                "by": step.event.writer,
                **{shown: _said(step, key) or None for key, shown in _CONTEXT},
                "reason": _said(step, _REASON) or None,
                "fields": fields_as_json(step.fields),
                "secret_changed": step.secret,
                "removed": step.removed,
            }
            for step in steps
        ],
    }


def _step(step: Step, style: Style) -> Iterator[str]:
    event = step.event
    head = f"{event.at}  {style(visible(event.type), 'cyan')}  by {visible(event.writer)}"
    yield f"{head}  {style(f'(sequence {event.sequence})', 'dim')}"
    said = [f"{shown} {visible(text)}" for key, shown in _CONTEXT if (text := _said(step, key))]
    if said:
        yield f"    {style(', '.join(said), 'dim')}"
    if reason := _said(step, _REASON):
        yield f"    reason: {visible(reason)}"
    for field in step.fields:
        shown = field_lines(field, style, is_new=field.before is None)
        yield from (f"    {line}" for line in shown)
    if step.secret:
        yield "    a new client secret; the one before has ended"
    if step.removed:
        yield f"    {style('removed', 'red')}"


def _said(step: Step, key: str) -> str:
    value = step.event.context.get(key)
    return value if isinstance(value, str) else ""
