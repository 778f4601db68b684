"""A plan as Markdown, for the comment under a pull request, with a limit of characters.

A trusted account posts what the author of the pull request wrote. So that stands in fences that
are longer than any run of back-ticks inside. What does not fit is counted, the summary never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TypeVar

from reconciler.diagnostics import Diagnostic
from reconciler.plan.diff import FieldChange
from reconciler.plan.risk import MEANINGS, names_of
from reconciler.report.differences import (
    Row,
    is_list,
    items_by_place,
    remark_on,
    rows_of,
    sides_of,
    unified,
    value_as_text,
)
from reconciler.report.findings import counts, equal_start, finding_groups, rest_in_words
from reconciler.report.groups import MANY, NAMED
from reconciler.report.layout import BARE, Layout, wrapped
from reconciler.report.place import as_code, place_as_marker, place_as_text
from reconciler.report.plan_document import (
    OWED,
    PART,
    Group,
    PlanDocument,
    Shown,
    equal_together,
    members_in_words,
    refs_as_text,
    risky,
    title_of,
)
from reconciler.report.visible import LEAST, longest_ticks, shortened, visible
from reconciler.resources.ref import ResourceRef

CLASSES_NAMED = 8
LINE = 400
PART_LONGEST = 200
COLUMNS = 100
"""Of a remedy in a fence, which is not wrapped where it is shown."""
LINES = 120
AROUND = 40
"""Characters beside what differs that are shown of a line that is too long."""
_TITLES = 140  # of sections that have room for nothing else
_TOGETHER = "- Equal changes stand together: `reconciler plan --full` shows each."
_MARGIN = 10  # of the mark and the blanks before a line of a field
_MARKS = {"delete": "-", "update": "!", "adopt": "!", "create": "+"}
_REMARKS = {"adopt": ": updates of what this tree never applied"}


def plan_as_markdown(document: PlanDocument, layout: Layout = BARE) -> str:
    """Return a plan and the findings that go with it, in the characters that the layout allows."""
    plan, shown, warnings = document.plan, document.for_review, document.warnings
    together = equal_together(shown)
    after = _next(document)
    *head, digest = _head(document)
    if len(together) < len(shown):
        head.append(_TOGETHER)
    longest_note = _hidden(len(shown), len(shown), len(shown))
    around = "\n".join([*head, *longest_note, digest, after])
    room = Room(max(layout.limit, LEAST) - len(around) - _TITLES)
    sections = _above(document, room)
    with room.part(0.15) as part:
        sections += _folded(counts(warnings), _findings(warnings, part))
    operations = {
        name: groups
        for name in _MARKS
        if (groups := [group for group in together if group[0].word == name])
    }
    hidden = cut_short = 0
    for at, (name, groups) in enumerate(operations.items()):
        with room.part(1 / (len(operations) - at)) as part:
            lines, unseen = fenced(groups, lambda group: _drawn(group)[0], "diff", part)
        seen = groups[: len(groups) - unseen]
        left = _members(groups) - _members(seen)
        title = f"{_members(groups)} {document.operations[name]}{_REMARKS.get(name, '')}"
        sections += _folded(title, (lines, left))
        hidden += left
        cut_short += _members([group for group in seen if _drawn(group)[1]])
    unmanaged = [left.name + left.remark for left in document.unmanaged]
    for title, lines in (
        (OWED, document.owed),
        (f"{len(unmanaged)} held but declared nowhere: left alone", unmanaged),
        (f"{len(plan.ignored)} left to others by metadata.ignore", document.ignored),
        (f"{len(plan.inactive)} inactive, and left so", document.inactive),
        (f"{len(plan.waived)} refused by policies and waived", document.waived),
    ):
        sections += _folded(title, fenced(lines, _line, "text", room))
    above = "\n".join([*head, *_hidden(hidden, cut_short, len(shown)), digest])
    return "\n\n".join([above, *sections, after]) + "\n"


def _next(document: PlanDocument) -> str:
    sentence, command = document.next_step(document.about.on_merge)
    code = f"\n\n```sh\n{command}\n```" if command else ""
    return f"**Next:** {sentence}{code}"


def _above(document: PlanDocument, room: Room) -> list[str]:
    """Return what blocks the plan and what is risky, above all folds of changes."""
    sections = []
    with room.part(0.25) as part:
        sections += _listed("### Blocked", _findings(document.plan.blocks, part))
    with room.part(0.25) as part:
        found = risky(document.for_review)
        risks = _folded_risks if len(found) > MANY else _listed_risks
        sections += risks(document, found, part)
    return sections


def _listed_risks(document: PlanDocument, found: Sequence[Shown], room: Room) -> list[str]:
    """Return the meaning of each class of risk, as far as there is room, then the changes."""
    lines = []
    for name, count in document.risk_counts.items():
        page = document.about.page_of(name)
        tag = f"[`{name}`]({page})" if page else f"`{name}`"
        line = f"- {tag} ({count}): {MEANINGS[name]}"
        if len(line) + 1 > room.left - OVERHEAD:
            break
        room.left -= len(line) + 1
        lines.append(line)
    named = [f"{names_of(each.risks)}: {each.name}" for each in found]
    title, *listed = _listed("### Risks", fenced(named, _line, "text", room)) or [""]
    meanings = ["\n".join(lines)] if lines else []
    return [title, *meanings, *listed] if title else []


def _folded_risks(document: PlanDocument, found: Sequence[Shown], room: Room) -> list[str]:
    """Return a fold for each class of risk, with its meaning and its changes by name.

    A class without room is only in the counts at the top. The folds of other things follow under
    a heading of their own.
    """
    refs: dict[str, list[ResourceRef]] = {}
    for each in found:
        for name in {risk.name for risk in each.risks}:
            refs.setdefault(name, []).append(each.ref)
    sections = ["### Risks"]
    for at, (name, count) in enumerate(document.risk_counts.items()):
        page = document.about.page_of(name)
        tag = f'<a href="{page}"><code>{name}</code></a>' if page else f"<code>{name}</code>"
        title = f"{tag} ({count}): {escape(MEANINGS[name], quote=False)}"
        with room.part(1 / (len(refs) - at)) as part:
            part.left -= len(title)
            fold = _folded(title, fenced(refs_as_text(sorted(refs[name])), _line, "text", part))
            part.left += 0 if fold else len(title)
        sections += fold
    return [*sections, "### Details"] if len(sections) > 1 else []


def _head(document: PlanDocument) -> list[str]:
    """Return the lines of the summary, the digest last."""
    place = document.place
    headline = str(document.headline).removesuffix(".")
    marker = place_as_marker(place, document.plan.scope)
    lines = [marker, f"## {headline}", "", f"- {as_code(place_as_text(place))}"]
    facts = document.about.facts
    if named := ", ".join(f"{name.lower()} `{value}`" for name, value in facts.items()):
        lines.append(f"- {named[0].upper()}{named[1:]}")
    if document.blocked:
        lines.append(f"- **{document.blocked}** {document.way_out}")
    if risks := [f"{count} `{name}`" for name, count in document.risk_counts.items()]:
        left = len(risks) - CLASSES_NAMED
        more = f" and {left} more classes" if left > 0 else ""
        lines.append(f"- Risks: {', '.join(risks[:CLASSES_NAMED])}{more}")
    if document.warnings:
        lines.append(f"- {counts(document.warnings)}")
    lines.append(f"- {document.untouched}")
    lines += [f"- **{sentence}**" for sentence in document.owed_sentences]
    if document.shard:
        lines.append(f"- Shard {document.shard}")
    if document.judged:
        lines.append(f"- {document.judged}")
    if part := document.part:
        lines.append(f"- {PART} {as_code(part.selected, PART_LONGEST)}{part.counts}")
    return [*lines, f"- Digest: `{document.digest}`"] if document.digest else lines


def _hidden(count: int, cut_short: int, of: int) -> list[str]:
    """Return the line on changes that are not shown, or not whole; nothing if all are."""
    told = f"**{count} of {of} changes are not shown below**" if count else ""
    if cut_short and count:
        told += f" and **{cut_short} are cut short**"
    elif cut_short:
        told = f"**{cut_short} of {of} changes are cut short below**"
    limit = "a comment has a limit. `reconciler plan --full` shows them all."
    return [f"- {told}: {limit}"] if told else []


def _members(groups: Sequence[Group]) -> int:
    return sum(map(len, groups))


def _listed(title: str, fenced: tuple[list[str], int]) -> list[str]:
    fence, left = fenced
    return [title, *fence, *_rest(left)] if fence or left else []


def _folded(title: str, fenced: tuple[list[str], int]) -> list[str]:
    fence, left = fenced
    if not fence:
        return []
    return [f"<details>\n<summary>{title}</summary>", *fence, *_rest(left), "</details>"]


def _rest(left: int) -> list[str]:
    return [f"{left} more {'is' if left == 1 else 'are'} not shown here."] if left else []


def _line(text: str) -> list[str]:
    return [shortened(text, LINE)]


def _findings(findings: Sequence[Diagnostic], room: Room) -> tuple[list[str], int]:
    """Return a fence around the groups of findings that fit, and the number of other findings."""
    groups = finding_groups(findings)
    lines, left = fenced(groups, _group_of_findings, "text", room)
    return lines, sum(map(len, groups[len(groups) - left :]))


def _group_of_findings(group: Sequence[Diagnostic]) -> list[str]:
    """Return the first few findings of a group, and how many more there are."""
    rest = rest_in_words(group)
    lines = [line for finding in group[:NAMED] for line in _finding(finding)]
    return [*lines, rest] if rest else lines


def _finding(finding: Diagnostic) -> list[str]:
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    head = f"{place}{finding.severity.value} {finding.code}: {visible(finding.told)}"
    remedy = shortened(f"    {visible(finding.remedy)}", 4 * LINE)
    return [shortened(head, LINE), *wrapped(remedy, COLUMNS).split("\n")]


def _drawn(group: Group) -> tuple[list[str], bool]:
    """Return changes shown as one, and whether any of what they change is left out.

    Marks stand in the first column, where a diff has its colours.
    """
    shown, is_single = group[0], len(group) == 1
    number = f"  (id {shown.id})" if is_single and shown.id else ""
    title = f"{_MARKS[shown.word]} {title_of(group)}{number}"
    lines = [shortened(title, LINE)]
    if not is_single:
        lines.append(shortened(f"# {members_in_words(group)}", LINE))
    lines += [f"# {cause}" for cause in shown.causes(dated=is_single)]
    lines += [f"# {block.code}: {visible(block.summary)}" for block in shown.blocks]
    lines += [f"# {risk.name}: {risk.sentence}" for risk in shown.risks]
    lines += [f"# {key}: {message}" for key, message in shown.problems]
    if shown.lost:
        lines.append(f"-   lost for good: client id {shown.lost}")
    told = [
        line
        for field in shown.fields
        for line in (
            _item_lines(field)
            if is_list(field) and not is_single
            else _field_lines(field, is_new=shown.is_new)
        )
    ]
    lines += [shortened(line, LINE) for line in told]
    of_change = [title, *(line for line in told if line[0] in "+-")]
    is_cut = len(lines) > LINES or any(len(line) > LINE for line in of_change)
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"# {len(lines) - LINES} more lines of this change"]
    return lines, is_cut


def _field_lines(field: FieldChange, *, is_new: bool) -> Iterator[str]:
    if is_new and not sides_of(field).by_line and not isinstance(field.after, list):
        yield f"+   {field.name}: {value_as_text(field.after)}"
        return
    yield f"{'+' if is_new else ' '}   {field.name}:{remark_on(field)}"
    for mark, line in unified(map(_difference_alone, rows_of(field))):
        yield f"{mark}     {line}"


def _difference_alone(row: Row) -> Row:
    """Return a row whose lines, if too long to be shown, are what differs and a bit around it.

    Otherwise the two sides could be cut before the place at which they differ, and look the same.
    """
    if row.alike or row.before is None or row.after is None:
        return row
    (old, before), (new, after) = row.before, row.after
    if max(len(visible(before)), len(visible(after))) <= LINE - _MARGIN:
        return row
    start = equal_start(before, after)
    end = equal_start(before[start:][::-1], after[start:][::-1])
    start, end = max(0, start - AROUND), max(0, end - AROUND)
    return Row((old, _middle(before, start, end)), (new, _middle(after, start, end)))


def _middle(line: str, start: int, end: int) -> str:
    """Return a line without so many characters at its start, and at its end."""
    before = f"[{start} equal characters] " if start else ""
    after = f" [{end} equal characters]" if end else ""
    return f"{before}{line[start : len(line) - end]}{after}"


def _item_lines(field: FieldChange) -> Iterator[str]:
    """Yield what a list lost and gained; what it has beside may differ within a group."""
    for name, values in items_by_place(field):
        yield f"    {name}:{remark_on(field)}"
        for added, value in values.items():
            yield f"{'+' if added else '-'}     {value}"


Item = TypeVar("Item")

OVERHEAD = 220
"""Characters of a section beside what it shows: title, fold, fence, and the note on omissions."""


class Room:
    """The number of characters that are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    @contextmanager
    def part(self, share: float) -> Iterator[Room]:
        """Lend a share of the room; what is left of it afterwards comes back."""
        part = Room(int(self.left * share))
        self.left -= part.left
        yield part
        self.left += part.left


def fenced(
    items: Sequence[Item], show: Callable[[Item], Sequence[str]], info: str, room: Room
) -> tuple[list[str], int]:
    """Return a fence around the items that fit, and the number of those that do not."""
    lines: list[str] = []
    longest, size, fitting = 2, OVERHEAD, 0
    for item in items:
        block = show(item)
        longest_now = max(longest, *map(longest_ticks, block))
        size_now = size + sum(len(line) + 1 for line in block)
        if size_now + 2 * longest_now > room.left:
            break
        lines += block
        longest, size, fitting = longest_now, size_now, fitting + 1
    if not lines:
        return [], len(items)
    room.left -= size + 2 * longest
    ticks = "`" * (longest + 1)
    return ["\n".join([ticks + info, *lines, ticks])], len(items) - fitting
