"""The forms of each document by the value of ``--format``: a new one is a drawing and a row here.

Forms of findings are in ``cli/validate.py``, which loads nothing of plans, and those of an apply as
it happens in ``cli/apply_output.py``.
"""

from __future__ import annotations

from reconciler.report.drift_and_history import (
    DriftDocument,
    HistoryDocument,
    LogDocument,
    drift_as_json,
    drift_as_markdown,
    drift_as_text,
    history_as_json,
    history_as_text,
    log_as_json,
    log_as_text,
)
from reconciler.report.html import plan_as_html
from reconciler.report.layout import Forms, in_json, in_lines
from reconciler.report.markdown import plan_as_markdown
from reconciler.report.plan_document import PlanDocument
from reconciler.report.plan_json import plan_as_json
from reconciler.report.plan_text import plan_as_text
from reconciler.report.secrets import SecretsDocument, secrets_as_json, secrets_as_text

PLAN: Forms[PlanDocument] = {
    "text": plan_as_text,
    "json": in_json(plan_as_json),
    "markdown": plan_as_markdown,
    "html": plan_as_html,
}

DRIFT: Forms[DriftDocument] = {
    "text": drift_as_text,
    "json": in_json(drift_as_json),
    "markdown": drift_as_markdown,
}

HISTORY: Forms[HistoryDocument] = {"text": history_as_text, "json": in_json(history_as_json)}
LOG: Forms[LogDocument] = {"text": log_as_text, "json": in_json(log_as_json)}

SECRETS: Forms[SecretsDocument] = {
    "text": in_lines(secrets_as_text),
    "json": in_json(secrets_as_json),
}
