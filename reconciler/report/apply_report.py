"""The report of an apply, in words, as JSON, as a stream of JSON lines; and its progress.

The first line of the stream has its version. Readers take no notice of types and keys they do not
know. No record holds a secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler import __version__
from reconciler.apply.changes import ApplyReport, Delivered, Outcome, Status
from reconciler.diagnostics import Diagnostic, Severity
from reconciler.errors import ReconcilerError
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Change, ref_of, word
from reconciler.report.findings import (
    FORMAT_VERSION,
    SHOW,
    finding_as_json,
    finding_groups,
    findings_in_short,
)
from reconciler.report.layout import BARE, Layout, fitted
from reconciler.report.place import Place, place_as_json, place_as_text
from reconciler.report.plan_document import PlanDocument
from reconciler.report.plan_json import change_as_json, ref_as_json, selection_as_json
from reconciler.report.visible import WHOLE, Sentence, Style, visible
from reconciler.resources.call import JsonObject

DONE = {"create": "created", "update": "updated", "adopt": "adopted", "delete": "deleted"}


@dataclass(frozen=True)
class ResultDocument:
    """The results of an apply and where they were made, as all forms show them.

    Attributes:
        run_id: Under which the service keeps what was written; empty where it keeps no history.
    """

    report: ApplyReport
    place: Place
    run_id: str = ""

    @property
    def run(self) -> str:
        """Return the id of the run; empty where it wrote nothing that is kept under it."""
        is_written = any(outcome.written for outcome in self.report.outcomes)
        return self.run_id if self.made or is_written else ""

    @cached_property
    def counts(self) -> Mapping[str, int | None]:
        """Return how many changes came to what, and how many remain, if that is known."""
        report = self.report
        return {
            "made": report.count(Status.MADE),
            "failed": report.count(Status.FAILED),
            "not_tried": report.count(Status.NOT_TRIED),
            "untouched": report.count(Status.UNTOUCHED),
            "remaining": report.remaining,
            "delivered": sum(delivered.error is None for delivered in report.delivered),
            "left_out": report.left_out,
        }

    @property
    def made(self) -> list[Outcome]:
        """Return the changes that were made."""
        return [outcome for outcome in self.report.outcomes if outcome.status is Status.MADE]

    @property
    def sentence(self) -> Sentence:
        """Return what the whole run came to."""
        report, counts = self.report, self.counts
        words = Counter(word(outcome.change) for outcome in self.made)
        made = ", ".join(
            f"{words[name]} {done}" for name, done in DONE.items() if words[name] or name != "adopt"
        )
        if report.delivered:
            made += f"; {counts['delivered']} of {len(report.delivered)} owed secrets delivered"
        left = "" if report.remaining is None else f" {report.remaining} remaining."
        if report.left_out:
            were = "1 change was" if report.left_out == 1 else f"{report.left_out} changes were"
            left += f" The tree is not in step: {were} left out."
        if report.is_complete:
            return Sentence("Apply complete!", f" {made}.{left}", ("bold", "green"))
        how = "Apply interrupted." if report.interrupted else "Apply incomplete."
        rest = f", {counts['untouched']} untouched" if counts["untouched"] else ""
        ends = f"{counts['failed']} failed, {counts['not_tried']} not tried{rest}"
        return Sentence(how, f" {made}; {ends}.{left}", ("bold", "red"))


def report_as_text(document: ResultDocument, layout: Layout = BARE) -> str:
    """Return what was done where, what was not and why, and what remains.

    Failures come first. Changes that were not tried are counted in the last sentence. Where the
    layout is folded, what was made above ``WHOLE`` is counted too.
    """
    report, style, folded = document.report, layout.style, layout.folded
    lines = list(_failures(report, style))
    lines += [delivered_as_text(each, style) for each in report.delivered if each.error]
    groups = finding_groups(report.notes) if folded else [(note,) for note in report.notes]
    lines += findings_in_short(groups, Layout(style), SHOW)
    lines += [delivered_as_text(each, style) for each in report.delivered if not each.error]
    made = document.made
    shown = made[:WHOLE] if folded else made
    lines += [_outcome(outcome, style) for outcome in shown]
    if len(made) > len(shown):
        lines.append(f"and {len(made) - len(shown)} more. {SHOW}")
    ending = ["", document.sentence.drawn(style)]
    ending += [style(f"Run: {document.run}", "dim")] if document.run else []
    text = [place_as_text(document.place), "", *lines, *(ending if lines else ending[1:])]
    return fitted("\n".join(text), layout.width)


def _failures(report: ApplyReport, style: Style) -> Iterator[str]:
    """Yield the names of what failed, with each problem and remedy once."""
    alike: dict[tuple[str, str], list[str]] = {}
    for outcome in report.outcomes:
        if outcome.error is not None:
            why = visible(outcome.error.problem), visible(outcome.error.remedy)
            alike.setdefault(why, []).append(visible(str(ref_of(outcome.change))))
    failed = style("failed", "red", "bold")
    for (problem, remedy), names in alike.items():
        yield from (f"{failed}  {name}" for name in names[:-1])
        yield f"{failed}  {names[-1]}: {problem}\n    {remedy}"


def delivered_as_text(delivered: Delivered, style: Style) -> str:
    """Return what became of a secret that was owed, and its place."""
    name = visible(str(delivered.ref))
    if delivered.error is not None:
        why = f"{visible(delivered.error.problem)}\n    {visible(delivered.error.remedy)}"
        return f"{style('still owed', 'red', 'bold')}  {name}: {why}"
    return f"{style('delivered', 'green')}  {name}{_whereabouts(delivered)}"


def _outcome(outcome: Outcome, style: Style) -> str:
    done = style(DONE[word(outcome.change)], "green")
    return f"{done}  {visible(str(ref_of(outcome.change)))}{_whereabouts(outcome)}"


def _whereabouts(made: Outcome | Delivered) -> str:
    client = f"  client id {visible(made.client_id)}" if made.client_id else ""
    return client + (f"  secret in {visible(made.secret_at)}" if made.secret_at else "")


def report_as_json(document: ResultDocument) -> JsonObject:
    """Return what came of every change, and where."""
    report = document.report
    return {
        "format_version": FORMAT_VERSION,
        **place_as_json(document.place),
        "run": document.run or None,
        "summary": document.counts,
        "outcomes": [outcome_as_json(outcome) for outcome in report.outcomes],
        "delivered": [delivered_as_json(delivered) for delivered in report.delivered],
        "diagnostics": [finding_as_json(note) for note in report.notes],
    }


def delivered_as_json(delivered: Delivered) -> JsonObject:
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


def outcome_as_json(outcome: Outcome) -> JsonObject:
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


BAR = 24
"""Characters between the brackets."""

_SHOWN_FROM = 0.5
"""Seconds before a rate means something."""


def progress_bar(done: int, total: int, seconds: float, columns: int) -> str:
    """Return the line for a terminal of so many columns, after so many seconds.

    >>> progress_bar(300, 1200, 2.0, 80)
    'applying [######------------------] 300 of 1200, 150/s, 6 s left'
    """
    full = BAR * done // total if total else BAR
    bar = f"[{'#' * full}{'-' * (BAR - full)}] "
    counts = f"{done} of {total}{_rate(done, total, seconds)}"
    line = f"applying {bar}{counts}"
    if len(line) >= columns:
        line = f"applying {counts}"
    return line[: max(columns - 1, 0)]  # a full last column would wrap


def _rate(done: int, total: int, seconds: float) -> str:
    if not done or seconds < _SHOWN_FROM:
        return ""
    rate = done / seconds
    left = (total - done) / rate
    return f", {rate:.0f}/s, {left:.0f} s left" if rate >= 1 else f", {left:.0f} s left"


VERSION = "1.0"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warn", Severity.NOTE: "info"}

_ENDS = {
    Status.MADE: ("apply_complete", "info", "done"),
    Status.FAILED: ("apply_errored", "error", "failed"),
    Status.NOT_TRIED: ("apply_skipped", "warn", "not tried"),
    Status.UNTOUCHED: ("apply_skipped", "warn", "nothing to send"),
}


def version_record() -> JsonObject:
    """Return the record every stream begins with."""
    said = f"reconciler {__version__}"
    return _record("version", "info", said, version=VERSION, tool_version=__version__)


def place_record(place: Place) -> JsonObject:
    """Return which service and tree a run is about; the report repeats it with the id it has."""
    return _record("service", "info", place_as_text(place), **place_as_json(place))


def plan_records(document: PlanDocument) -> Iterator[JsonObject]:
    """Yield what is planned, and what there is to say about it."""
    plan = document.plan
    yield from map(diagnostic_record, (*document.warnings, *plan.blocks))
    for each in document.changes:
        message = f"{each.name}: plan to {each.word}"
        yield _record("planned_change", "info", message, **change_as_json(each))
    yield _record(
        "change_summary",
        "info",
        str(document.headline),
        operation="plan",
        digest=plan_digest(plan),
        summary=plan.summary._asdict(),
        selection=selection_as_json(plan),
    )


def start_record(change: Change) -> JsonObject:
    """Return that a change is about to be sent."""
    ref = ref_of(change)
    message = f"{visible(str(ref))}: {word(change)} begins"
    return _record("apply_start", "info", message, ref=ref_as_json(ref), change=word(change))


def end_record(outcome: Outcome) -> JsonObject:
    """Return what became of a change."""
    kind, level, said = _ENDS[outcome.status]
    message = f"{visible(str(ref_of(outcome.change)))}: {word(outcome.change)} {said}"
    return _record(kind, level, message, **outcome_as_json(outcome))


def report_records(document: ResultDocument) -> Iterator[JsonObject]:
    """Yield what the whole run came to."""
    yield from map(diagnostic_record, document.report.notes)
    yield from map(delivered_record, document.report.delivered)
    message = ", ".join(
        f"{count} {name.replace('_', ' ')}"
        for name, count in document.counts.items()
        if count is not None and (count or name not in {"delivered", "untouched", "left_out"})
    )
    yield _record(
        "change_summary",
        "info",
        message,
        operation="apply",
        summary=document.counts,
        **place_as_json(document.place),
    )


def delivered_record(delivered: Delivered) -> JsonObject:
    """Return what became of a secret that was owed; the secret itself is not known here."""
    level, said = ("error", "still owed") if delivered.error else ("info", "delivered")
    message = f"{visible(str(delivered.ref))}: client secret {said}"
    return _record("secret_delivered", level, message, **delivered_as_json(delivered))


def diagnostic_record(finding: Diagnostic) -> JsonObject:
    """Return a finding."""
    level = _LEVELS[finding.severity]
    message = f"{finding.code}: {visible(finding.summary)}"
    return _record("diagnostic", level, message, diagnostic=finding_as_json(finding))


def error_record(failure: ReconcilerError) -> JsonObject:
    """Return why a run ended early."""
    finding = Diagnostic(Severity.ERROR, "RUN-FAILED", failure.problem, failure.remedy)
    return diagnostic_record(finding)


def _record(kind: str, level: str, message: str, **fields: object) -> JsonObject:
    return {"@level": level, "@message": message, "type": kind, **fields}
