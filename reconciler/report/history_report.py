"""The history of one object: every event with its writer and what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.plan.causes import Step
from reconciler.report.differences import field_lines, fields_as_json
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.style import PLAIN, Style
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject

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
