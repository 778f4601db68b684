"""What came of a plan, in words and as JSON."""

from __future__ import annotations

from typing import Any

from reconciler.apply.outcome import ApplyReport, Delivered, Outcome, Status
from reconciler.errors import ReconcilerError
from reconciler.plan.model import ref_of, word
from reconciler.report.findings import finding_as_json, finding_as_text
from reconciler.report.place import Place, place_as_json, place_as_text
from reconciler.report.plan_json import FORMAT_VERSION, ref_as_json
from reconciler.report.style import PLAIN, Style
from reconciler.report.visible import visible

DONE = {"create": "created", "update": "updated", "adopt": "adopted", "delete": "deleted"}


def report_as_text(report: ApplyReport, place: Place, style: Style = PLAIN) -> str:
    """Return what was done where, what was not and why, and what remains."""
    lines = [finding_as_text(note, style) for note in report.notes]
    lines += [delivered_as_text(delivered, style) for delivered in report.delivered]
    lines += [_outcome(outcome, style) for outcome in report.outcomes]
    counts = dict.fromkeys(DONE, 0)
    for outcome in report.outcomes:
        counts[word(outcome.change)] += outcome.status is Status.MADE
    made = ", ".join(
        f"{count} {DONE[name]}" for name, count in counts.items() if count or name != "adopt"
    )
    is_short = report.interrupted
    if report.delivered:
        handed = sum(delivered.error is None for delivered in report.delivered)
        made += f"; {handed} of {len(report.delivered)} owed secrets delivered"
        is_short = is_short or handed < len(report.delivered)
    failed, skipped = report.count(Status.FAILED), report.count(Status.NOT_TRIED)
    if failed or skipped or is_short:
        how = "Apply interrupted." if report.interrupted else "Apply incomplete."
        sentence = f"{style(how, 'bold', 'red')} {made}; {failed} failed, {skipped} not tried."
    else:
        sentence = f"{style('Apply complete!', 'bold', 'green')} {made}."
    if report.remaining is not None:
        sentence += f" {report.remaining} remaining."
    head = place_as_text(place)
    return "\n".join([head, "", *lines, "", sentence] if lines else [head, "", sentence])


def delivered_as_text(delivered: Delivered, style: Style) -> str:
    """Return what became of a secret that was owed, and its place."""
    name = visible(str(delivered.ref))
    if delivered.error is not None:
        why = f"{visible(delivered.error.problem)}\n    {visible(delivered.error.remedy)}"
        return f"{style('still owed', 'red', 'bold')}  {name}: {why}"
    done = style("delivered", "green")
    client = f"  client id {visible(delivered.client_id)}"
    return f"{done}  {name}{client}  secret in {visible(delivered.secret_at)}"


def _outcome(outcome: Outcome, style: Style) -> str:
    name = visible(str(ref_of(outcome.change)))
    if outcome.status is Status.NOT_TRIED:
        return f"{style('not tried', 'yellow')}  {name}"
    if outcome.error is not None:
        why = f"{visible(outcome.error.problem)}\n    {visible(outcome.error.remedy)}"
        return f"{style('failed', 'red', 'bold')}  {name}: {why}"
    done = style(DONE[word(outcome.change)], "green")
    line = f"{done}  {name}"
    if outcome.client_id:
        line += f"  client id {visible(outcome.client_id)}"
    if outcome.secret_at:
        line += f"  secret in {visible(outcome.secret_at)}"
    return line


def report_as_json(report: ApplyReport, place: Place) -> dict[str, Any]:
    """Return what came of every change, and where."""
    return {
        "format_version": FORMAT_VERSION,
        **place_as_json(place),
        "summary": counts_as_json(report),
        "outcomes": [outcome_as_json(outcome) for outcome in report.outcomes],
        "delivered": [delivered_as_json(delivered) for delivered in report.delivered],
        "diagnostics": [finding_as_json(note) for note in report.notes],
    }


def counts_as_json(report: ApplyReport) -> dict[str, int | None]:
    """Return how many changes came to what, and how many remain, if that is known."""
    return {
        "made": report.count(Status.MADE),
        "failed": report.count(Status.FAILED),
        "not_tried": report.count(Status.NOT_TRIED),
        "remaining": report.remaining,
        "delivered": sum(delivered.error is None for delivered in report.delivered),
    }


def delivered_as_json(delivered: Delivered) -> dict[str, Any]:
    """Return what became of a secret that was owed."""
    return {
        "ref": ref_as_json(delivered.ref),
        "id": delivered.id,
        "client_id": delivered.client_id,
        "secret_at": delivered.secret_at or None,
        "error": error_text(delivered.error),
    }


def error_text(failure: ReconcilerError | None) -> str | None:
    """Return a failure in whole sentences, or nothing where there was none."""
    return f"{failure.problem}. {failure.remedy}" if failure else None


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    """Return what came of one change."""
    return {
        "ref": ref_as_json(ref_of(outcome.change)),
        "change": word(outcome.change),
        "status": outcome.status.value,
        "id": outcome.id or None,
        "client_id": outcome.client_id or None,
        "secret_at": outcome.secret_at or None,
        "error": error_text(outcome.error),
    }
