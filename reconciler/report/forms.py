"""The forms of a plan by the value of ``--format``: a new one is a drawing and a row here.

Those of drift, of histories and of secrets stand in the modules of their documents; those of
findings in ``cli/validate.py``, which loads nothing of plans; those of an apply as it happens in
``cli/apply_output.py``.
"""

from __future__ import annotations

from reconciler.report.html import plan_as_html
from reconciler.report.layout import Forms, in_json
from reconciler.report.markdown import plan_as_markdown
from reconciler.report.plan_document import PlanDocument
from reconciler.report.plan_json import plan_as_json
from reconciler.report.plan_text import plan_as_text

PLAN: Forms[PlanDocument] = {
    "text": plan_as_text,
    "json": in_json(plan_as_json),
    "markdown": plan_as_markdown,
    "html": plan_as_html,
}
