"""Parts that all reports of a plan share: order of changes, owed secrets, head and next step.

The facts about a report are not in the digest. Each is made safe before it reaches a report: a
date and a commit have a fixed form, and the address of the documents holds no character of markup.
A secret that is owed is never known here: a plan says whose it is, since when, and which command
delivers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic
from reconciler.plan.causes import causes_in_words
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Change, Create, DeletedBy, Plan, Unmanaged, ref_of
from reconciler.plan.risk import Risk, expected_problems, most_dangerous, risks_of
from reconciler.report.style import WHOLE
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.state import OwedSecret


class Shown(NamedTuple):
    """A change as it is shown, with what a reviewer must know of it first.

    Attributes:
        causes: Why it is there, in words; names of tokens and trees in them are not ours.
    """

    change: Change
    risks: tuple[Risk, ...]
    blocks: Sequence[Diagnostic]
    causes: tuple[str, ...] = ()


def in_plan_order(plan: Plan) -> list[Shown]:
    """Return the changes in the order in which they are applied."""
    blocks: dict[ResourceRef, list[Diagnostic]] = {}
    for block in plan.blocks:
        if block.ref is not None:
            blocks.setdefault(block.ref, []).append(block)
    return [_shown(change, blocks, plan) for change in plan.changes]


def in_review_order(plan: Plan) -> list[Shown]:
    """Return the changes as a reviewer should meet them; those of one rank stay in their order."""
    shown = in_plan_order(plan)
    return sorted(shown, key=lambda each: (not each.blocks, most_dangerous(each.risks)))


def _shown(change: Change, blocks: Mapping[ResourceRef, Sequence[Diagnostic]], plan: Plan) -> Shown:
    causes = tuple(causes_in_words(plan, change))
    return Shown(change, risks_in(plan, change), blocks.get(ref_of(change), ()), causes)


def risks_in(plan: Plan, change: Change) -> tuple[Risk, ...]:
    """Return the risks of a change; a comparison changes nothing, so that it has none."""
    return () if plan.compared_with else risks_of(change)


def is_plain(shown: Shown) -> bool:
    """Return whether a change is a create without a risk, a block or a foreseen problem.

    Reports may fold those where they are many; every other change is always shown.
    """
    change = shown.change
    needs_review = shown.risks or shown.blocks or expected_problems(change)
    return isinstance(change, Create) and not needs_review


def folded_changes(shown: Sequence[Shown]) -> tuple[list[Shown], list[Shown]]:
    """Return the changes that a folded report shows, and the plain creates that it does not."""
    plain = [each for each in shown if is_plain(each)]
    hidden = {id(each) for each in plain[WHOLE:]}
    return [each for each in shown if id(each) not in hidden], plain[WHOLE:]


def risky(shown: Sequence[Shown]) -> list[Shown]:
    """Return the changes that have risks, the most dangerous first."""
    found = [each for each in shown if each.risks]
    return sorted(found, key=lambda each: most_dangerous(each.risks))


def flag_in_words(found: Unmanaged) -> str:
    """Return what would delete an unmanaged object, or why nothing does."""
    if found.flag is not DeletedBy.NO_FLAG:
        return f"{found.flag.value} would delete it"
    return f"tree {found.owner} owns it" if found.owner else "never deleted"


LEFT_INACTIVE = "Inactive, and left so: no manifest says metadata.active"

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
    if plan.compared_with:
        return f"No service was asked: `reconciler plan --env {plan.scope.environment}` asks.", ""
    if plan.is_refused:
        return "Merge the change of the configuration on its own, then plan again.", ""
    if plan.blocks:
        return "Change the manifests, or allow what each guard names, and plan again.", ""
    if plan.changes:
        return _APPLY, f"reconciler apply{_chosen(plan)} --digest {plan_digest(plan)}"
    if plan.deliverable:
        return "Deliver the client secrets that are owed.", f"reconciler apply{_chosen(plan)}"
    return "Nothing to do.", ""


def _chosen(plan: Plan) -> str:
    """Return the option that chooses the environment of a plan, if it has one."""
    return f" --env {plan.scope.environment}" if plan.scope.environment else ""


TITLE = "Client secrets that are owed"


def owed_sentences(owed: int, elsewhere: int, left: int = 0) -> Iterator[str]:
    """Yield how many secrets are owed to the tree and to others, and what delivers them.

    ``left`` is how many are owed to the tree where it declares nothing any more. Nothing is
    yielded where none is owed.
    """
    if owed:
        yield (
            f"{_count(owed)} owed: reconciler apply delivers {'it' if owed == 1 else 'them'}, "
            "as does reconciler secret deliver."
        )
    if left:
        yield (
            f"{_count(left)} owed in organizations that the manifests no longer name: "
            "reconciler secret deliver delivers what is owed there."
        )
    if elsewhere:
        yield f"{_count(elsewhere)} owed to other trees: their own apply delivers what is theirs."


def owed_line(secret: OwedSecret) -> str:
    """Return whose secret is owed, since when and made by which token; made visible."""
    lost = "lost: no longer kept, " if secret.lost else ""
    made = f"made by {secret.by} at {secret.since}" if secret.by else f"made at {secret.since}"
    return visible(f"{secret.ref}  (client id {secret.client_id}, {lost}{made})")


def _count(number: int) -> str:
    return "1 client secret is" if number == 1 else f"{number} client secrets are"
