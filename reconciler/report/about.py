"""The head and foot of a plan report: when and of what it was made, and the next step.

None of it is in the digest. Every text here is made safe before it reaches a report: a date and a
commit have a fixed form, and the address of the documents holds no character of markup.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Plan

DOCS = re.compile(r"https?://[A-Za-z0-9._~:/-]{1,200}", re.ASCII)
"""The address of the documents: no query, no character that Markdown or HTML could obey."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


class About(NamedTuple):
    """Facts about a report itself.

    Attributes:
        made_at: When the plan was made, such as ``2026-11-22T00:31:07Z``.
        commit: Commit that the manifests are of; another text is not shown.
        docs: Address of the folder with the documents of this program.
    """

    made_at: str = ""
    commit: str = ""
    docs: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Return what is known, by its name."""
        commit = self.commit if _COMMIT.fullmatch(self.commit) else ""
        known = {"Made": self.made_at, "Commit": commit}
        return {name: value for name, value in known.items() if value}

    def page_of(self, risk: str) -> str:
        """Return the address of the page about a class of risk, or nothing."""
        if not DOCS.fullmatch(self.docs):
            return ""
        return f"{self.docs.rstrip('/')}/guards.md#{risk}"


NOTHING = About()


_APPLY = (
    "Review the risks. After approval, this command with the options of this plan applies exactly "
    "this plan, or nothing."
)


def next_step(plan: Plan) -> tuple[str, str]:
    """Return what to do about a plan in one sentence, and the command for it, or no command."""
    if plan.blocks:
        return "Change the manifests, or allow what each guard names, and plan again.", ""
    if plan.changes:
        return _APPLY, f"reconciler apply --digest {plan_digest(plan)}"
    if plan.deliverable:
        return "Deliver the client secrets that are owed.", "reconciler apply"
    return "Nothing to do.", ""
