"""What came of a plan, in words and as JSON."""

from __future__ import annotations

from typing import Any

from reconciler.apply.outcome import ApplyReport, Outcome, Status
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
    lines += [_outcome(outcome, style) for outcome in report.outcomes]
    counts = dict.fromkeys(DONE, 0)
    for outcome in report.outcomes:
        counts[word(outcome.change)] += outcome.status is Status.MADE
    made = ", ".join(
        f"{count} {DONE[name]}" for name, count in counts.items() if count or name != "adopt"
    )
    failed, skipped = report.count(Status.FAILED), report.count(Status.NOT_TRIED)
    if failed or skipped or report.interrupted:
        how = "Apply interrupted." if report.interrupted else "Apply incomplete."
        sentence = f"{style(how, 'bold', 'red')} {made}; {failed} failed, {skipped} not tried."
    else:
        sentence = f"{style('Apply complete!', 'bold', 'green')} {made}."
    if report.remaining is not None:
        sentence += f" {report.remaining} remaining."
    head = place_as_text(place)
    return "\n".join([head, "", *lines, "", sentence] if lines else [head, "", sentence])


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
        "diagnostics": [finding_as_json(note) for note in report.notes],
    }


def counts_as_json(report: ApplyReport) -> dict[str, int | None]:
    """Return how many changes came to what, and how many remain, if that is known."""
    return {
        "made": report.count(Status.MADE),
        "failed": report.count(Status.FAILED),
        "not_tried": report.count(Status.NOT_TRIED),
        "remaining": report.remaining,
    }


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    """Return what came of one change."""
    failure = outcome.error
    return {
        "ref": ref_as_json(ref_of(outcome.change)),
        "change": word(outcome.change),
        "status": outcome.status.value,
        "id": outcome.id or None,
        "client_id": outcome.client_id or None,
        "secret_at": outcome.secret_at or None,
        "error": f"{failure.problem}. {failure.remedy}" if failure else None,
    }
