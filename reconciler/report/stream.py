"""An apply as it happens: typed records for machines, one JSON object on each line.

The first record says the version of the stream. Readers take no notice of types and keys they do
not know; a new version of the stream would say so first. No record holds a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reconciler import __version__
from reconciler.apply.outcome import ApplyReport, Delivered, Outcome, Status
from reconciler.diagnostics import Diagnostic, Severity
from reconciler.errors import ReconcilerError
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Change, Plan, ref_of, word
from reconciler.report.apply_report import counts_as_json, delivered_as_json, outcome_as_json
from reconciler.report.findings import finding_as_json
from reconciler.report.place import Place, place_as_json, place_as_text
from reconciler.report.plan_json import change_as_json, ref_as_json
from reconciler.report.plan_text import headline
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject

VERSION = "1.0"

Record: TypeAlias = JsonObject
"""One line of the stream."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warn", Severity.NOTE: "info"}

_ENDS = {
    Status.MADE: ("apply_complete", "info", "done"),
    Status.FAILED: ("apply_errored", "error", "failed"),
    Status.NOT_TRIED: ("apply_skipped", "warn", "not tried"),
}


def version_record() -> Record:
    """Return the record every stream begins with."""
    said = {"version": VERSION, "tool_version": __version__}
    return _record("version", "info", f"reconciler {__version__}", **said)


def place_record(place: Place) -> Record:
    """Return which service and tree a run is about; the report repeats it with the id it has."""
    return _record("service", "info", place_as_text(place), **place_as_json(place))


def plan_records(plan: Plan, findings: Sequence[Diagnostic]) -> Iterator[Record]:
    """Yield what is planned, and what there is to say about it."""
    yield from map(diagnostic_record, (*findings, *plan.warnings, *plan.blocks))
    for change in plan.changes:
        message = f"{visible(str(ref_of(change)))}: plan to {word(change)}"
        yield _record("planned_change", "info", message, **change_as_json(plan, change))
    yield _record(
        "change_summary",
        "info",
        headline(plan),
        operation="plan",
        digest=plan_digest(plan),
        summary=plan.summary._asdict(),
    )


def start_record(change: Change) -> Record:
    """Return that a change is about to be sent."""
    ref = ref_of(change)
    message = f"{visible(str(ref))}: {word(change)} begins"
    return _record("apply_start", "info", message, ref=ref_as_json(ref), change=word(change))


def end_record(outcome: Outcome) -> Record:
    """Return what became of a change."""
    kind, level, said = _ENDS[outcome.status]
    message = f"{visible(str(ref_of(outcome.change)))}: {word(outcome.change)} {said}"
    return _record(kind, level, message, **outcome_as_json(outcome))


def report_records(report: ApplyReport, place: Place) -> Iterator[Record]:
    """Yield what the whole run came to."""
    yield from map(diagnostic_record, report.notes)
    yield from map(delivered_record, report.delivered)
    summary = counts_as_json(report)
    message = ", ".join(
        f"{count} {name.replace('_', ' ')}"
        for name, count in summary.items()
        if count is not None and (count or name != "delivered")
    )
    yield _record(
        "change_summary",
        "info",
        message,
        operation="apply",
        summary=summary,
        **place_as_json(place),
    )


def delivered_record(delivered: Delivered) -> Record:
    """Return what became of a secret that was owed; the secret itself is not known here."""
    level, said = ("error", "still owed") if delivered.error else ("info", "delivered")
    message = f"{visible(str(delivered.ref))}: client secret {said}"
    return _record("secret_delivered", level, message, **delivered_as_json(delivered))


def diagnostic_record(finding: Diagnostic) -> Record:
    """Return a finding."""
    level = _LEVELS[finding.severity]
    message = f"{finding.code}: {visible(finding.summary)}"
    return _record("diagnostic", level, message, diagnostic=finding_as_json(finding))


def error_record(failure: ReconcilerError) -> Record:
    """Return why a run ended early."""
    finding = Diagnostic(Severity.ERROR, "RUN-FAILED", failure.problem, failure.remedy)
    return diagnostic_record(finding)


def _record(kind: str, level: str, message: str, **fields: object) -> Record:
    return {"@level": level, "@message": message, "type": kind, **fields}
