"""Parts that all reports of a plan share: the order of changes, and what is left alone and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic
from reconciler.plan.causes import causes_in_words
from reconciler.plan.foresight import foreseen_problems
from reconciler.plan.model import Change, Create, Fate, Plan, Unmanaged, ref_of
from reconciler.plan.risk import Risk, most_dangerous, risks_of
from reconciler.report.limits import WHOLE
from reconciler.resources.ref import ResourceRef


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
    return Shown(change, risks_of(change), blocks.get(ref_of(change), ()), causes)


def is_plain(shown: Shown) -> bool:
    """Return whether a change is a create without a risk, a block or a foreseen problem.

    Reports may fold those where they are many; every other change is always shown.
    """
    change = shown.change
    needs_review = shown.risks or shown.blocks or foreseen_problems(change)
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


def fate_in_words(found: Unmanaged) -> str:
    """Return what would delete an unmanaged object, or why nothing does."""
    if found.fate is not Fate.KEPT:
        return f"{found.fate.value} would delete it"
    return f"tree {found.owner} owns it" if found.owner else "never deleted"
