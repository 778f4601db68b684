"""A plan for a person: what would change, field by field, and how much of it there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reconciler.plan.diff import OPTIONS, OPTIONS_IN_WORDS
from reconciler.plan.risk import names_of
from reconciler.report.differences import field_lines, is_list, item_lines
from reconciler.report.findings import SHOW, finding_groups, findings_in_short
from reconciler.report.groups import MANY, NAMED, grouped
from reconciler.report.layout import BARE, Layout, fitted, wrapped
from reconciler.report.place import place_as_text
from reconciler.report.plan_document import (
    LEFT_INACTIVE,
    LEFT_TO_OTHERS,
    OWED,
    PART,
    WAIVED,
    Group,
    PlanDocument,
    Shown,
    members_in_words,
    risky,
    title_of,
)
from reconciler.report.visible import Style, visible, without_colours
from reconciler.resources.ref import Kind

SYMBOLS = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "adopt": ("~", "cyan"),
    "delete": ("-", "red"),
}
_REMARKS = {"adopt": "never applied by this tree before", "delete": "declared nowhere"}
FIRST = 30
MARGIN = "    "
MERGE_FIRST = "Blocked: merge these changes of the configuration on their own."
SHOW_EACH = "Give --full to see each."


def plan_as_text(document: PlanDocument, layout: Layout = BARE) -> str:
    """Return a plan in words: the service first, what decides last.

    Where the layout is folded, equal changes of a long plan stand together; creates and updates
    without a risk, and deletes of one kind with the same risks, are counted and not shown above
    ``WHOLE``. Every other change is shown.
    """
    style = layout.style
    groups: list[Group] = [(each,) for each in document.changes]
    hidden: list[Shown] = []
    if layout.folded:
        groups, hidden = document.folded()
    blocks = [wrapped(place_as_text(document.place), layout.width)]
    if document.plan.is_refused:
        refusals = (visible(f"{each.location}: {each.summary}") for each in document.plan.blocks)
        blocks += section(MERGE_FIRST, refusals, style, "red")
    blocks += _risky(document, layout)
    blocks += [group_as_text(group, layout) for group in groups]
    blocks += _hidden(hidden, layout)
    blocks += section(f"{OWED}:", document.owed, style)
    unmanaged = (f"{left.name}{style(left.remark, 'dim')}" for left in document.unmanaged)
    blocks += section("Held, but declared nowhere (left alone):", unmanaged, style)
    blocks += ignored_section(document.ignored, layout)
    blocks += section(f"{LEFT_INACTIVE}:", document.inactive, style)
    blocks += section(f"{WAIVED}:", document.waived, style, "yellow")
    in_short = len(hidden) + sum(len(group) for group in groups if len(group) > 1)
    ending = _ending(document, layout, in_short)
    return fitted("\n\n".join([*blocks, "\n".join(ending)]), layout.width)


def plan_in_short(document: PlanDocument, layout: Layout = BARE) -> str:
    """Return the first and the last lines of a plan: the service, counts and digest."""
    style = layout.style
    lines = [place_as_text(document.place), *_counts(document, style), *_digest(document, style)]
    return fitted("\n".join(lines), layout.width)


def section(title: str, lines: Iterable[str], style: Style, *looks: str) -> list[str]:
    """Return a block of lines below a title, or nothing where there are none."""
    block = "".join(f"\n  {line}" for line in lines)
    return [f"{style(title, 'bold', *looks)}{block}"] if block else []


def ignored_section(lines: Sequence[str], layout: Layout) -> list[str]:
    """Return a block with the fields that are left to others; a long list is cut when folded."""
    more = len(lines) - FIRST
    if layout.folded and more > 0:
        lines = [*lines[:FIRST], f"and {more} more: --format json lists each"]
    return section(f"{LEFT_TO_OTHERS}:", lines, layout.style)


_HIDDEN = {"create": " without a risk", "update": " without a risk", "delete": ""}


def _hidden(changes: Sequence[Shown], layout: Layout) -> Iterator[str]:
    """Yield a line for each operation whose changes are counted and not shown."""
    for name, which in _HIDDEN.items():
        kinds = Counter(each.ref.kind for each in changes if each.word == name)
        if count := kinds.total():
            counted = ", ".join(f"{kinds[kind]} {kind.value}" for kind in Kind if kind in kinds)
            noun = name if count == 1 else f"{name}s"
            line = f"{SYMBOLS[name][0]} {count} more {noun}{which} ({counted}). {SHOW}"
            yield "\n".join(_fitted(line, layout, "bold"))


def _ending(document: PlanDocument, layout: Layout, in_short: int) -> Iterator[str]:
    """Yield the last lines: the counts; of a long plan what decides; that it is blocked.

    ``in_short`` is how many changes are not shown one by one.
    """
    count = len(document.changes)
    yield from _counts(document, layout.style)
    if count > MANY:
        within = replace(layout, width=max(layout.width - len("  "), 0))  # of the section
        guards = findings_in_short(finding_groups(document.plan.blocks), within)
        yield from section("Guards:", guards, layout.style)
        named = ", ".join(f"{of} {name}" for name, of in document.risk_counts.items())
        if named:
            yield from _fitted(f"Risks: {named}.", layout, "yellow")
    yield from _digest(document, layout.style)
    if in_short:
        told = f"Shown in short: {in_short} of {count} changes. {SHOW_EACH}"
        yield from _fitted(told, layout, "bold")
    if count > MANY and not document.for_apply:
        sentence, command = document.next_step()
        yield from _fitted(f"Next: {sentence}", layout)
        if command:
            yield f"  {command}"
    if document.blocked:
        yield layout.style(document.blocked, "bold", "red")


def _counts(document: PlanDocument, style: Style) -> Iterator[str]:
    """Yield the counts, the shard, and the secrets owed."""
    yield document.headline.drawn(style)
    if document.shard:
        yield f"Shard {document.shard}"
    if part := document.part:
        yield f"{PART} {part.selected}{part.counts}"
    yield from document.owed_sentences
    if document.judged:
        yield document.judged


def _digest(document: PlanDocument, style: Style) -> Iterator[str]:
    plan = document.plan
    if document.digest and (plan.changes or plan.deliverable):
        yield style(f"Digest: {document.digest}", "dim")


def group_as_text(group: Group, layout: Layout = BARE) -> str:
    """Return changes that are shown as one: why they are there, their fields, what to know.

    Of several, values that they share are shown, and a few of their names.
    """
    first, is_single, style = group[0], len(group) == 1, layout.style
    plan = first.plan
    is_explained = (
        first.word == "update" or first.ref in plan.declared_elsewhere or plan.is_of_moments
    )
    lines = [_heading(group, style, is_explained=is_explained)]
    fields: list[str] = []
    for field in first.fields:
        if is_list(field) and not is_single:
            fields += item_lines(field, style, _room(layout))
        else:
            fields += field_lines(field, style, is_new=first.is_new, width=_room(layout))
    if not is_single:
        lines[0] += ":"
        line = f"{lines[0]} {fields[0]}" if len(fields) == 1 else ""
        if line and (not layout.width or len(without_colours(line)) <= layout.width):
            lines, fields = [line], []
    if is_explained:
        for why in first.causes(dated=is_single):
            lines += _fitted(f"# {why}", layout, "dim")
    lines += fields
    lines += _notes(first, layout)
    if not is_single:
        lines += _fitted(members_in_words(group), layout, "bold")
    return "\n    ".join(lines)


def _heading(group: Group, style: Style, *, is_explained: bool) -> str:
    """Return what a group is about, with the id, which only a single change has."""
    first, remark = group[0], ""
    symbol, look = SYMBOLS[first.word]
    if first.id:
        number = f"id {first.id}" if len(group) == 1 else ""
        meaning = "" if is_explained else _REMARKS.get(first.word, "")
        remark = ", ".join(filter(None, (number, meaning)))
    named = f"{style(symbol, look, 'bold')} {style(title_of(group), 'bold')}"
    return named + (style(f"  ({remark})", "dim") if remark else "")


def _room(layout: Layout) -> int:
    """Return the columns below a heading; 0 for no limit."""
    return max(layout.width - len(MARGIN), 1) if layout.width else 0


def _fitted(text: str, layout: Layout, *looks: str) -> Iterator[str]:
    """Yield a note in lines that fit below a heading."""
    for line in wrapped(text, _room(layout), "  ").split("\n"):
        yield layout.style(line, *looks)


def _notes(shown: Shown, layout: Layout) -> Iterator[str]:
    """Yield what a change keeps, loses and endangers, and what the service will say of it."""
    if not OPTIONS.isdisjoint(shown.carried):
        yield from _fitted(f"kept: {OPTIONS_IN_WORDS}", layout, "dim")
    if names := ", ".join(visible(name) for name in shown.carried if name not in OPTIONS):
        kept = f"kept as they are, and not known to this version: {names}"
        yield from _fitted(kept, layout, "dim")
    if shown.lost:
        gone = f"lost for good: client id {shown.lost} and any client secret"
        yield from _fitted(gone, layout, "red")
    for risk in shown.risks:
        field = f" ({risk.field})" if risk.field else ""
        yield from _fitted(f"! {risk.name}{field}: {risk.sentence}", layout, "yellow", "bold")
    for key, message in shown.problems:
        yield from _fitted(f"! {key}: {message}", layout, "yellow")


def _risky(document: PlanDocument, layout: Layout) -> list[str]:
    """Return a block with the changes that have risks; a long list is cut.

    Where the layout is folded, those of one kind with the same risks stand together.
    """
    found = risky(document.changes)
    groups: list[Group] = [(each,) for each in found]
    if layout.folded and len(found) > MANY:
        groups = grouped(found, lambda each: (names_of(each.risks), each.ref.kind), NAMED)
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
