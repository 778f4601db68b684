"""A plan for a person: what would change, field by field, and how much of it there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.plan.causes import causes_in_words
from reconciler.plan.diff import carried_fields, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    Summary,
    Unmanaged,
    Update,
    ref_of,
    word,
)
from reconciler.plan.risk import Risk, expected_problems, names_of, risks_of
from reconciler.report.differences import field_lines
from reconciler.report.plan_parts import (
    LEFT_INACTIVE,
    TITLE,
    flag_in_words,
    folded_changes,
    in_review_order,
    owed_line,
    owed_sentences,
    place_as_text,
    place_of,
    refs_as_text,
    risks_in,
    risky,
    section,
)
from reconciler.report.visible import PLAIN, Style, visible
from reconciler.resources.oidc import MESSAGES
from reconciler.resources.ref import Kind

SYMBOLS = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "adopt": ("~", "cyan"),
    "delete": ("-", "red"),
}
FIRST = 30
IN_STEP = "The service holds what the manifests declare."
THE_SAME = "Both environments declare the same."
REFUSED = "Nothing was planned: the service was not asked."
OTHER_SHARDS = "organizations of other shards are not in this plan."


def plan_as_text(plan: Plan, service: str, style: Style = PLAIN, *, folded: bool = False) -> str:
    """Return a plan in words: the service first, the summary last.

    Where it is ``folded``, creates above ``WHOLE`` are counted and not shown; those with a risk,
    a problem or a block are shown, as is every other change.
    """
    blocks = [place_as_text(place_of(plan, service))]
    if plan.is_refused:
        blocks.append("\n".join(_refusals(plan, style)))
    blocks += _risky(plan, style)
    shown, hidden = folded_changes(plan) if folded else (plan.changes, [])
    blocks += [
        change_as_text(change, style, tuple(_causes(plan, change)), risks_in(plan, change))
        for change in shown
    ]
    if hidden:
        blocks.append(style(_hidden(hidden), "bold"))
    blocks += section(f"{TITLE}:", map(owed_line, plan.owed), style)
    unmanaged = (_unmanaged(found, style) for found in plan.unmanaged)
    blocks += section("Held, but declared nowhere (left alone):", unmanaged, style)
    blocks += section(f"{LEFT_INACTIVE}:", refs_as_text(plan.inactive), style)
    return "\n\n".join([*blocks, _summary(plan, style)])


def _refusals(plan: Plan, style: Style) -> Iterator[str]:
    yield style("Blocked: merge these changes of the configuration on their own.", "bold", "red")
    for block in plan.blocks:
        yield f"  {visible(f'{block.location}: {block.summary}')}"


def _hidden(changes: Sequence[Change]) -> str:
    counted = Counter(ref_of(change).kind for change in changes)
    kinds = ", ".join(f"{counted[kind]} {kind.value}" for kind in Kind if kind in counted)
    creates = f"{len(changes)} more create{'' if len(changes) == 1 else 's'}"
    return f"+ {creates} without a risk ({kinds}). Show them with --full."


def plan_in_short(plan: Plan, service: str, style: Style = PLAIN) -> str:
    """Return the first and the last lines of a plan: the service, and the summary."""
    return f"{place_as_text(place_of(plan, service))}\n{_summary(plan, style)}"


def _summary(plan: Plan, style: Style = PLAIN) -> str:
    """Return the last lines of a plan: its counts, of which shard it is, and its digest."""
    lines = [headline(plan, style)]
    if plan.scope.shard is not None:
        lines.append(f"Shard {plan.scope.shard}: {OTHER_SHARDS}")
    lines += owed_sentences(len(plan.deliverable), plan.owed_elsewhere, plan.owed_left)
    if (plan.changes or plan.deliverable) and not plan.compared_with:
        lines.append(style(f"Digest: {plan_digest(plan)}", "dim"))
    return "\n".join(lines)


def headline(plan: Plan, style: Style = PLAIN) -> str:
    """Return the counts of a plan in one sentence, or that it was refused."""
    if plan.compared_with:
        return _compared(plan, style)
    return style(REFUSED, "bold") if plan.is_refused else summary_sentence(plan.summary, style)


def _compared(plan: Plan, style: Style) -> str:
    summary, one, other = plan.summary, plan.compared_with, plan.scope.environment
    if not plan.changes:
        return f"{style('No differences.', 'bold', 'green')} {THE_SAME}"
    return (
        f"{style('Compared:', 'bold')} {summary.create} only in {other}, {summary.update} "
        f"different, {summary.delete} only in {one}, {summary.in_step} the same."
    )


def untouched(plan: Plan) -> str:
    """Return how much is not changed by a plan."""
    summary = plan.summary
    if plan.compared_with:
        return f"{summary.in_step} the same in both environments"
    return f"{summary.in_step} in step, {summary.unmanaged} held but declared nowhere"


def summary_sentence(summary: Summary, style: Style = PLAIN) -> str:
    """Return the counts of a plan in one sentence."""
    if not (summary.create or summary.update or summary.adopt or summary.delete):
        return f"{style('No changes.', 'bold', 'green')} {IN_STEP}"
    adopt = f"{summary.adopt} to adopt, " if summary.adopt else ""
    return (
        f"{style('Plan:', 'bold')} {summary.create} to create, {summary.update} to update, "
        f"{adopt}{summary.delete} to delete."
    )


def change_as_text(
    change: Change,
    style: Style = PLAIN,
    causes: Sequence[str] = (),
    risks: Sequence[Risk] | None = None,
) -> str:
    """Return one change: its heading, why it is there, its fields, what the service will say.

    Without ``risks`` those of the change are shown.
    """
    symbol, look = SYMBOLS[word(change)]
    lines = [f"{style(symbol, look, 'bold')} {style(visible(str(ref_of(change))), 'bold')}"]
    lines[0] += style(_remark(change, is_explained=bool(causes)), "dim")
    lines += [style(f"# {visible(why)}", "dim") for why in causes]
    for field in field_changes(change):
        lines += field_lines(field, style, is_new=isinstance(change, Create))
    lines += _notes(change, risks_of(change) if risks is None else risks, style)
    return "\n    ".join(lines)


def _remark(change: Change, *, is_explained: bool) -> str:
    if isinstance(change, Create) or not change.held.id:
        return ""
    meaning = {
        "update": "",
        "adopt": ", never applied by this tree before",
        "delete": "" if is_explained else ", declared nowhere",
    }[word(change)]
    return f"  (id {visible(change.held.id)}{meaning})"


def _causes(plan: Plan, change: Change) -> Iterator[str]:
    """Yield why a change is there, where its heading does not say so already."""
    if isinstance(change, Update) or ref_of(change) in plan.declared_elsewhere:
        yield from causes_in_words(plan, change)


def _notes(change: Change, risks: Sequence[Risk], style: Style) -> Iterator[str]:
    """Yield what a change keeps, loses and endangers, and what the service will say of it."""
    if names := ", ".join(visible(name) for name in carried_fields(change)):
        yield style(f"kept as they are, and not known to this version: {names}", "dim")
    if isinstance(change, Delete) and change.held.client_id:
        gone = f"lost for good: client id {visible(change.held.client_id)} and any client secret"
        yield style(gone, "red")
    for risk in risks:
        field = f" ({risk.field})" if risk.field else ""
        yield style(f"! {risk.name}{field}: {risk.sentence}", "yellow", "bold")
    for key in expected_problems(change):
        yield style(f"! {key}: {MESSAGES[key]}", "yellow")


def _risky(plan: Plan, style: Style) -> list[str]:
    """Return a block with the changes that have risks; a long list is cut."""
    found = risky(in_review_order(plan))
    lines = [
        f"{style(names_of(each.risks), 'yellow')}  {visible(str(ref_of(each.change)))}"
        for each in found[:FIRST]
    ]
    if len(found) > FIRST:
        lines.append(f"and {len(found) - FIRST} more changes, each marked below")
    return section("Risks, the most dangerous first:", lines, style, "yellow")


def _unmanaged(found: Unmanaged, style: Style) -> str:
    remark = style(f"  (id {visible(found.id)}, {visible(flag_in_words(found))})", "dim")
    return f"{visible(str(found.ref))}{remark}"
