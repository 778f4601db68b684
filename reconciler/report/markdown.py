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
from reconciler.kinds.oidc_application.compliance import MESSAGES
from reconciler.plan.diff import FieldChange, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Delete, Plan, Unmanaged, held_of, ref_of, word
from reconciler.plan.risk import MEANINGS, expected_problems, names_of
from reconciler.report.differences import (
    is_list,
    items_by_place,
    note_on,
    rows_of,
    sides_of,
    unified,
    value_as_text,
)
from reconciler.report.findings import counts, finding_groups, rest_in_words
from reconciler.report.groups import MANY, NAMED
from reconciler.report.plan_parts import (
    NOTHING,
    TITLE,
    About,
    Group,
    Place,
    Shown,
    blocked_sentence,
    equal_together,
    flag_in_words,
    in_review_order,
    members_in_words,
    next_step,
    owed_line,
    owed_sentences,
    place_as_code,
    place_as_marker,
    place_of,
    refs_as_text,
    risk_counts,
    risky,
    title_of,
)
from reconciler.report.plan_text import OTHER_SHARDS, headline, untouched
from reconciler.report.visible import LEAST, LIMIT, longest_ticks, visible
from reconciler.resources.ref import ResourceRef

CLASSES_NAMED = 8
LINE = 400
LINES = 120
_TITLES = 140  # of sections that have room for nothing else
_TOGETHER = "- Equal changes stand together: `reconciler plan --full` shows each."
_MARKS = {"create": "+", "update": "!", "adopt": "!", "delete": "-"}
_GROUPS = {
    "delete": "to delete",
    "update": "to update",
    "adopt": "to adopt: updates of what this tree never applied",
    "create": "to create",
}


def plan_as_markdown(
    plan: Plan,
    service: str,
    findings: Sequence[Diagnostic] = (),
    limit: int = LIMIT,
    about: About = NOTHING,
) -> str:
    """Return a plan and the findings that go with it, in at most so many characters."""
    shown = in_review_order(plan)
    together = equal_together(shown)
    warnings = [*findings, *plan.warnings]
    after = _next(plan, about)
    *head, digest = _head(plan, place_of(plan, service), about, shown, counts(warnings))
    if len(together) < len(shown):
        head.append(_TOGETHER)
    around = "\n".join([*head, *_hidden(len(shown), len(shown)), digest, after])
    room = Room(max(limit, LEAST) - len(around) - _TITLES)
    sections = _above(plan, shown, room, about)
    with room.part(0.15) as part:
        fence = _in_groups(finding_groups(warnings), _findings, "text", part)
    sections += _folded(counts(warnings), fence)
    operations = {
        name: groups
        for name in _GROUPS
        if (groups := [group for group in together if word(group[0].change) == name])
    }
    hidden = 0
    for at, (name, groups) in enumerate(operations.items()):
        with room.part(1 / (len(operations) - at)) as part:
            fence = _in_groups(groups, _group_lines, "diff", part)
        sections += _folded(f"{sum(map(len, groups))} {_group(plan, name)}", fence)
        hidden += fence[1]
    sections += _folded(TITLE, fenced([owed_line(one) for one in plan.owed], _line, "text", room))
    title = f"{len(plan.unmanaged)} held but declared nowhere: left alone"
    sections += _folded(title, fenced(plan.unmanaged, _unmanaged, "text", room))
    title = f"{len(plan.inactive)} inactive, and left so"
    sections += _folded(title, fenced(refs_as_text(plan.inactive), _line, "text", room))
    above = "\n".join([*head, *_hidden(hidden, len(shown)), digest])
    return "\n\n".join([above, *sections, after]) + "\n"


def _group(plan: Plan, name: str) -> str:
    """Return what the changes of one word are, in a plan or in a comparison."""
    if not plan.compared_with:
        return _GROUPS[name]
    one, other = map(visible, (plan.compared_with, plan.scope.environment))
    return {"delete": f"only in {one}", "create": f"only in {other}"}.get(name, "different")


def _next(plan: Plan, about: About) -> str:
    sentence, command = next_step(plan, about.on_merge)
    code = f"\n\n```sh\n{command}\n```" if command else ""
    return f"**Next:** {sentence}{code}"


def _above(plan: Plan, shown: Sequence[Shown], room: Room, about: About) -> list[str]:
    """Return what blocks the plan and what is risky, above all folds of changes."""
    sections = []
    with room.part(0.25) as part:
        fence = _in_groups(finding_groups(plan.blocks), _findings, "text", part)
        sections += _listed("### Blocked", fence)
    with room.part(0.25) as part:
        found = risky(shown)
        risks = _folded_risks if len(found) > MANY else _listed_risks
        sections += risks(found, part, about)
    return sections


def _listed_risks(found: Sequence[Shown], room: Room, about: About) -> list[str]:
    """Return the meaning of each class of risk, as far as there is room, then the changes."""
    lines = []
    for name, count in risk_counts(found).items():
        page = about.page_of(name)
        tag = f"[`{name}`]({page})" if page else f"`{name}`"
        line = f"- {tag} ({count}): {MEANINGS[name]}"
        if len(line) + 1 > room.left - OVERHEAD:
            break
        room.left -= len(line) + 1
        lines.append(line)
    title, *listed = _listed("### Risks", fenced(found, _risk, "text", room)) or [""]
    meanings = ["\n".join(lines)] if lines else []
    return [title, *meanings, *listed] if title else []


def _folded_risks(found: Sequence[Shown], room: Room, about: About) -> list[str]:
    """Return a fold for each class of risk, with its meaning and its changes by name.

    A class without room is only in the counts at the top. The folds of other things follow under
    a heading of their own.
    """
    refs: dict[str, list[ResourceRef]] = {}
    for each in found:
        for name in {risk.name for risk in each.risks}:
            refs.setdefault(name, []).append(ref_of(each.change))
    sections = ["### Risks"]
    for at, (name, count) in enumerate(risk_counts(found).items()):
        page = about.page_of(name)
        tag = f'<a href="{page}"><code>{name}</code></a>' if page else f"<code>{name}</code>"
        title = f"{tag} ({count}): {escape(MEANINGS[name], quote=False)}"
        with room.part(1 / (len(refs) - at)) as part:
            part.left -= len(title)
            fold = _folded(title, fenced(refs_as_text(sorted(refs[name])), _line, "text", part))
            part.left += 0 if fold else len(title)
        sections += fold
    return [*sections, "### Details"] if len(sections) > 1 else []


def _head(
    plan: Plan, place: Place, about: About, shown: Sequence[Shown], warnings: str
) -> list[str]:
    """Return the lines of the summary, the digest last; ``warnings`` counts them in words."""
    lines = [place_as_marker(place, plan.scope.shard), f"## {headline(plan).removesuffix('.')}", ""]
    lines.append(f"- {place_as_code(place)}")
    if facts := ", ".join(f"{name.lower()} `{value}`" for name, value in about.facts.items()):
        lines.append(f"- {facts[0].upper()}{facts[1:]}")
    if plan.blocks:
        lines.append(f"- **{blocked_sentence(plan)}** Each guard says how to allow just that.")
    named = [f"{count} `{name}`" for name, count in risk_counts(shown).items()]
    if named:
        left = len(named) - CLASSES_NAMED
        more = f" and {left} more classes" if left > 0 else ""
        lines.append(f"- Risks: {', '.join(named[:CLASSES_NAMED])}{more}")
    if warnings:
        lines.append(f"- {warnings}")
    lines.append(f"- {untouched(plan)}")
    lines += [
        f"- **{sentence}**"
        for sentence in owed_sentences(len(plan.deliverable), plan.owed_elsewhere, plan.owed_left)
    ]
    if plan.scope.shard is not None:
        lines.append(f"- Shard {plan.scope.shard}: {OTHER_SHARDS}")
    if plan.compared_with:
        return lines
    return [*lines, f"- Digest: `{plan_digest(plan)}`"]


def _hidden(count: int, of: int) -> list[str]:
    if not count:
        return []
    told = f"**{count} of {of} changes are not shown below**"
    return [f"- {told}: a comment has a limit. `reconciler plan --full` shows them all."]


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
    return [_cut(text)]


def _unmanaged(found: Unmanaged) -> list[str]:
    remark = f"  (id {visible(found.id)}, {visible(flag_in_words(found))})"
    return [_cut(_named(found.ref) + remark)]


def _findings(group: Sequence[Diagnostic]) -> list[str]:
    """Return the first few findings of a group, and how many more there are."""
    rest = rest_in_words(group)
    lines = [line for finding in group[:NAMED] for line in _finding(finding)]
    return [*lines, rest] if rest else lines


def _finding(finding: Diagnostic) -> list[str]:
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    head = f"{place}{finding.severity.value} {finding.code}: {visible(finding.told)}"
    return [_cut(head), _cut(f"    {visible(finding.remedy)}", 4 * LINE)]


def _risk(shown: Shown) -> list[str]:
    return [_cut(f"{names_of(shown.risks)}: {_named(ref_of(shown.change))}")]


def _group_lines(group: Group) -> list[str]:
    """Return changes shown as one, with marks in the first column, where a diff has its colours."""
    shown, is_single = group[0], len(group) == 1
    change, is_new = shown.change, isinstance(shown.change, Create)
    mark, held = _MARKS[word(change)], held_of(change)
    number = f"  (id {visible(held.id)})" if is_single and held and held.id else ""
    lines = [_cut(f"{mark} {title_of(group)}{number}")]
    if not is_single:
        lines.append(_cut(f"# {members_in_words(group)}"))
    lines += [f"# {visible(cause)}" for cause in (shown.causes if is_single else shown.undated)]
    lines += [f"# {block.code}: {visible(block.summary)}" for block in shown.blocks]
    lines += [f"# {risk.name}: {risk.sentence}" for risk in shown.risks]
    lines += [f"# {key}: {MESSAGES[key]}" for key in expected_problems(change)]
    if isinstance(change, Delete) and change.held.client_id:
        lines.append(f"-   lost for good: client id {visible(change.held.client_id)}")
    for field in field_changes(change):
        is_by_item = is_list(field) and not is_single
        told = _item_lines(field) if is_by_item else _field_lines(field, is_new=is_new)
        lines += map(_cut, told)
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"# {len(lines) - LINES} more lines of this change"]
    return lines


def _field_lines(field: FieldChange, *, is_new: bool) -> Iterator[str]:
    if is_new and not sides_of(field, is_new=True).by_line and not isinstance(field.after, list):
        yield f"+   {field.name}: {value_as_text(field.after)}"
        return
    note = note_on(field)
    reset = f"  # {note}" if note else ""
    yield f"{'+' if is_new else ' '}   {field.name}:{reset}"
    for mark, line in unified(rows_of(field, is_new=is_new)):
        yield f"{mark}     {line}"


def _item_lines(field: FieldChange) -> Iterator[str]:
    """Yield what a list lost and gained; what it has beside may differ within a group."""
    note = note_on(field)
    remark = f"  # {note}" if note else ""
    for name, values in items_by_place(field):
        yield f"    {name}:{remark}"
        for added, value in values.items():
            yield f"{'+' if added else '-'}     {value}"


def _named(ref: ResourceRef) -> str:
    return visible(str(ref))


def _cut(line: str, limit: int = LINE) -> str:
    over = len(line) - limit
    return f"{line[:limit]} [{over} more characters]" if over > 0 else line


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


def _in_groups(
    groups: Sequence[tuple[Item, ...]],
    show: Callable[[tuple[Item, ...]], Sequence[str]],
    info: str,
    room: Room,
) -> tuple[list[str], int]:
    """Return a fence around the groups that fit, and the number of members of those that do not."""
    lines, left = fenced(groups, show, info, room)
    return lines, sum(map(len, groups[len(groups) - left :]))
