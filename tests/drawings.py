"""Plans, drift and results of tests, drawn: the document is made, and then its drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.apply.changes import ApplyReport
from reconciler.diagnostics import Diagnostic
from reconciler.plan.drift import Drift
from reconciler.plan.history import Step
from reconciler.plan.model import Change, Plan
from reconciler.report import apply_report, drift_and_history, html, markdown, plan_json, plan_text
from reconciler.report.layout import Layout
from reconciler.report.place import Place
from reconciler.report.plan_document import NOTHING, About, PlanDocument, Shown
from reconciler.report.visible import LIMIT
from reconciler.resources.call import JsonObject
from tests.builders import a_plan


def plan_as_text(plan: Plan, service: str, **layout: Any) -> str:
    return plan_text.plan_as_text(PlanDocument(plan, service), Layout(**layout))


def shown(change: Change, **more: Any) -> Shown:
    """Return the only change of a plan as it is shown; what is given is shown instead."""
    (one,) = PlanDocument(a_plan(change), "sqlite:x.db").changes
    return one._replace(**more)


def change_as_text(change: Change) -> str:
    return plan_text.group_as_text((shown(change),))


def plan_as_json(plan: Plan, service: str, findings: Sequence[Diagnostic]) -> JsonObject:
    return plan_json.plan_as_json(PlanDocument(plan, service, findings))


def plan_as_markdown(
    plan: Plan,
    service: str,
    findings: Sequence[Diagnostic] = (),
    limit: int = LIMIT,
    about: About = NOTHING,
) -> str:
    document = PlanDocument(plan, service, findings, about)
    return markdown.plan_as_markdown(document, Layout(limit=limit))


def plan_as_html(
    plan: Plan,
    service: str,
    findings: Sequence[Diagnostic] = (),
    limit: int = html.LIMIT,
    about: About = NOTHING,
) -> str:
    return html.plan_as_html(PlanDocument(plan, service, findings, about), limit=limit)


def plan_records(plan: Plan, findings: Sequence[Diagnostic]) -> Iterator[JsonObject]:
    return apply_report.plan_records(PlanDocument(plan, "sqlite:x.db", findings))


def report_as_text(report: ApplyReport, place: Place, **layout: Any) -> str:
    document = apply_report.ResultDocument(report, place)
    return apply_report.report_as_text(document, Layout(**layout))


def report_as_json(report: ApplyReport, place: Place) -> JsonObject:
    return apply_report.report_as_json(apply_report.ResultDocument(report, place))


def report_records(report: ApplyReport, place: Place) -> Iterator[JsonObject]:
    return apply_report.report_records(apply_report.ResultDocument(report, place))


def drift_as_text(drift: Drift, place: Place) -> str:
    return drift_and_history.drift_as_text(drift_and_history.DriftDocument(drift, place))


def drift_as_json(drift: Drift, place: Place) -> JsonObject:
    return drift_and_history.drift_as_json(drift_and_history.DriftDocument(drift, place))


def drift_as_markdown(drift: Drift, place: Place, limit: int = LIMIT) -> str:
    document = drift_and_history.DriftDocument(drift, place)
    return drift_and_history.drift_as_markdown(document, Layout(limit=limit))


def history_as_text(name: str, steps: Sequence[Step]) -> str:
    return drift_and_history.history_as_text(drift_and_history.HistoryDocument(name, "7", steps))


def history_as_json(object_id: str, steps: Sequence[Step]) -> JsonObject:
    document = drift_and_history.HistoryDocument("", object_id, steps)
    return drift_and_history.history_as_json(document)
