"""A plan for a person: what would change, field by field, and how much of it there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.kinds.oidc_application.compliance import MESSAGES
from reconciler.plan.diff import (
    OPTIONS,
    OPTIONS_IN_WORDS,
    FieldChange,
    carried_fields,
    field_changes,
)
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
from reconciler.report.differences import field_lines, is_list, item_lines
from reconciler.report.findings import SHOW, Layout, finding_groups, findings_in_short, wrapped
from reconciler.report.groups import MANY, NAMED, grouped
from reconciler.report.plan_parts import (
    LEFT_INACTIVE,
    TITLE,
    Group,
    Shown,
    blocked_sentence,
    equal_together,
    flag_in_words,
    folded_changes,
    in_plan_order,
    members_in_words,
    next_step,
    owed_line,
    owed_sentences,
    place_as_text,
    place_of,
    refs_as_text,
    risk_counts,
    risky,
    section,
    title_of,
)
from reconciler.report.visible import PLAIN, Style, visible, without_colours
from reconciler.resources.ref import Kind

SYMBOLS = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "adopt": ("~", "cyan"),
    "delete": ("-", "red"),
}
FIRST = 30
MARGIN = "    "
SHOW_EACH = "Give --full to see each."
IN_STEP = "The service holds what the manifests declare."
THE_SAME = "Both environments declare the same."
REFUSED = "Nothing was planned: the service was not asked."
OTHER_SHARDS = "organizations of other shards are not in this plan."


def plan_as_text(
    plan: Plan,
    service: str,
    style: Style = PLAIN,
    *,
    folded: bool = False,
    width: int = 0,
    for_apply: bool = False,
) -> str:
    """Return a plan in words: the service first, what decides last.

    Where it is ``folded``, equal changes of a long plan stand together, and creates and updates
    without a risk above ``WHOLE`` are counted and not shown. Every other change is shown.

    Args:
        plan: What is shown.
        service: Its address.
        style: The colours.
        folded: Whether long lists are cut.
        width: Columns after which notes are broken, between words; 0 for no such limit.
        for_apply: Whether an apply shows it, so that the next command is not told.
    """
    layout = Layout(style, width)
    shown = in_plan_order(plan)
    groups: list[Group] = [(each,) for each in shown]
    hidden: list[Change] = []
    if folded:
        groups, hidden = folded_changes(equal_together(shown))
    blocks = [wrapped(place_as_text(place_of(plan, service)), width)]
    if plan.is_refused:
        blocks.append("\n".join(_refusals(plan, style)))
    blocks += _risky(shown, layout, folded=folded)
    blocks += [_group_as_text(plan, group, layout) for group in groups]
    blocks += _hidden(hidden, layout)
    blocks += section(f"{TITLE}:", map(owed_line, plan.owed), style)
    unmanaged = (_unmanaged(found, style) for found in plan.unmanaged)
    blocks += section("Held, but declared nowhere (left alone):", unmanaged, style)
    blocks += section(f"{LEFT_INACTIVE}:", refs_as_text(plan.inactive), style)
    in_short = len(hidden) + sum(len(group) for group in groups if len(group) > 1)
    ending = _ending(plan, shown, layout, in_short, for_apply=for_apply)
    return "\n\n".join([*blocks, "\n".join(ending)])


def _refusals(plan: Plan, style: Style) -> Iterator[str]:
    yield style("Blocked: merge these changes of the configuration on their own.", "bold", "red")
    for block in plan.blocks:
        yield f"  {visible(f'{block.location}: {block.summary}')}"


def _hidden(changes: Sequence[Change], layout: Layout) -> Iterator[str]:
    """Yield a line for each operation of which changes are counted and not shown."""
    for name in ("create", "update"):
        kinds = Counter(ref_of(change).kind for change in changes if word(change) == name)
        if count := kinds.total():
            counted = ", ".join(f"{kinds[kind]} {kind.value}" for kind in Kind if kind in kinds)
            noun = name if count == 1 else f"{name}s"
            line = f"{SYMBOLS[name][0]} {count} more {noun} without a risk ({counted}). {SHOW}"
            yield "\n".join(_fitted(line, layout, "bold"))


def _ending(
    plan: Plan, shown: Sequence[Shown], layout: Layout, in_short: int, *, for_apply: bool
) -> Iterator[str]:
    """Yield the last lines: the counts; of a long plan what decides; that it is blocked.

    ``in_short`` is how many changes are not shown one by one.
    """
    is_long = len(shown) > MANY
    yield from _counts(plan, layout.style)
    if is_long:
        yield from _guards(plan, layout)
        named = ", ".join(f"{count} {name}" for name, count in risk_counts(shown).items())
        if named:
            yield from _fitted(f"Risks: {named}.", layout, "yellow")
    yield from _digest(plan, layout.style)
    if in_short:
        told = f"Shown in short: {in_short} of {len(shown)} changes. {SHOW_EACH}"
        yield from _fitted(told, layout, "bold")
    if is_long and not for_apply:
        sentence, command = next_step(plan)
        yield from _fitted(f"Next: {sentence}", layout)
        if command:
            yield f"  {command}"
    if plan.blocks:
        yield layout.style(blocked_sentence(plan), "bold", "red")


def _guards(plan: Plan, layout: Layout) -> Iterator[str]:
    """Yield what blocks a plan, a few of each guard, with the flags that allow just that."""
    groups = finding_groups(plan.blocks)
    yield from section("Guards:", findings_in_short(groups, layout), layout.style)


def plan_in_short(plan: Plan, service: str, style: Style = PLAIN) -> str:
    """Return the first and the last lines of a plan: the service, counts and digest."""
    lines = [place_as_text(place_of(plan, service)), *_counts(plan, style), *_digest(plan, style)]
    return "\n".join(lines)


def _counts(plan: Plan, style: Style) -> Iterator[str]:
    """Yield how much there is to do, of which shard it is, and what is owed."""
    yield headline(plan, style)
    if plan.scope.shard is not None:
        yield f"Shard {plan.scope.shard}: {OTHER_SHARDS}"
    yield from owed_sentences(len(plan.deliverable), plan.owed_elsewhere, plan.owed_left)


def _digest(plan: Plan, style: Style) -> Iterator[str]:
    if (plan.changes or plan.deliverable) and not plan.compared_with:
        yield style(f"Digest: {plan_digest(plan)}", "dim")


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
    width: int = 0,
) -> str:
    """Return one change: its heading, why it is there, its fields, what the service will say.

    Without ``risks`` those of the change are shown.
    """
    layout = Layout(style, width)
    lines = [_heading((Shown(change, (), ()),), style, is_explained=bool(causes))]
    for why in causes:
        lines += _fitted(f"# {visible(why)}", layout, "dim")
    for field in field_changes(change):
        is_new = isinstance(change, Create)
        lines += field_lines(field, style, is_new=is_new, width=_room(layout))
    lines += _notes(change, risks_of(change) if risks is None else risks, layout)
    return "\n    ".join(lines)


def _group_as_text(plan: Plan, group: Group, layout: Layout) -> str:
    """Return changes that are shown as one."""
    first = group[0]
    is_explained = isinstance(first.change, Update) or (
        ref_of(first.change) in plan.declared_elsewhere
    )
    change, style = first.change, layout.style
    if len(group) == 1:
        causes = first.causes if is_explained else ()
        return change_as_text(change, style, causes, first.risks, layout.width)
    heading = _heading(group, style, is_explained=is_explained)
    fields = [line for field in field_changes(change) for line in _fields(field, change, layout)]
    lines = [f"{heading}:"]
    if len(fields) == 1 and _fits(f"{lines[0]} {fields[0]}", layout):
        lines[0] += f" {fields.pop()}"
    for why in first.undated if is_explained else ():
        lines += _fitted(f"# {visible(why)}", layout, "dim")
    lines += fields
    lines += _notes(change, first.risks, layout)
    lines += _fitted(members_in_words(group), layout, "bold")
    return "\n    ".join(lines)


def _fields(field: FieldChange, change: Change, layout: Layout) -> Iterator[str]:
    """Yield a field that several changes alter: of a list, the places of its items."""
    if is_list(field):
        return item_lines(field, layout.style, _room(layout))
    is_new = isinstance(change, Create)
    return field_lines(field, layout.style, is_new=is_new, width=_room(layout))


def _heading(group: Group, style: Style, *, is_explained: bool) -> str:
    symbol, look = SYMBOLS[word(group[0].change)]
    remark = style(_remark(group, is_explained=is_explained), "dim")
    return f"{style(symbol, look, 'bold')} {style(title_of(group), 'bold')}{remark}"


def _room(layout: Layout) -> int:
    """Return the columns below a heading; 0 for no limit."""
    return max(layout.width - len(MARGIN), 1) if layout.width else 0


def _fits(line: str, layout: Layout) -> bool:
    return not layout.width or len(without_colours(line)) <= layout.width


def _fitted(text: str, layout: Layout, *looks: str) -> Iterator[str]:
    """Yield a note in lines that fit below a heading."""
    for line in wrapped(text, _room(layout), "  ").split("\n"):
        yield layout.style(line, *looks)


def _remark(group: Group, *, is_explained: bool) -> str:
    """Return the ids of a group, which only a single change has, and what else its name leaves."""
    change = group[0].change
    if isinstance(change, Create) or not change.held.id:
        return ""
    meaning = {
        "update": "",
        "adopt": "never applied by this tree before",
        "delete": "" if is_explained else "declared nowhere",
    }[word(change)]
    number = f"id {visible(change.held.id)}" if len(group) == 1 else ""
    remark = ", ".join(filter(None, (number, meaning)))
    return f"  ({remark})" if remark else ""


def _notes(change: Change, risks: Sequence[Risk], layout: Layout) -> Iterator[str]:
    """Yield what a change keeps, loses and endangers, and what the service will say of it."""
    carried = carried_fields(change)
    if not OPTIONS.isdisjoint(carried):
        yield from _fitted(f"kept: {OPTIONS_IN_WORDS}", layout, "dim")
    if names := ", ".join(visible(name) for name in carried if name not in OPTIONS):
        kept = f"kept as they are, and not known to this version: {names}"
        yield from _fitted(kept, layout, "dim")
    if isinstance(change, Delete) and change.held.client_id:
        gone = f"lost for good: client id {visible(change.held.client_id)} and any client secret"
        yield from _fitted(gone, layout, "red")
    for risk in risks:
        field = f" ({risk.field})" if risk.field else ""
        yield from _fitted(f"! {risk.name}{field}: {risk.sentence}", layout, "yellow", "bold")
    for key in expected_problems(change):
        yield from _fitted(f"! {key}: {MESSAGES[key]}", layout, "yellow")


def _risky(shown: Sequence[Shown], layout: Layout, *, folded: bool) -> list[str]:
    """Return a block with the changes that have risks; a long list is cut.

    Where it is ``folded``, those of one kind with the same risks stand together.
    """
    found = risky(shown)
    groups: list[Group] = [(each,) for each in found]
    if folded and len(found) > MANY:
        groups = grouped(found, _risks_and_kind, NAMED)
    lines: list[str] = []
    for group in groups[:FIRST]:
        named = f": {members_in_words(group)}" if len(group) > 1 else ""
        risks = names_of(group[0].risks)
        first, *rest = _fitted(f"{risks}  {title_of(group)}{named}", layout)
        lines += [first.replace(risks, layout.style(risks, "yellow"), 1), *rest]
    left = sum(map(len, groups[FIRST:]))
    if left:
        lines.append(f"and {left} more changes, each marked below")
    return section("Risks, the most dangerous first:", lines, layout.style, "yellow")


def _risks_and_kind(shown: Shown) -> tuple[str, Kind]:
    return names_of(shown.risks), ref_of(shown.change).kind


def _unmanaged(found: Unmanaged, style: Style) -> str:
    remark = style(f"  (id {visible(found.id)}, {visible(flag_in_words(found))})", "dim")
    return f"{visible(str(found.ref))}{remark}"
