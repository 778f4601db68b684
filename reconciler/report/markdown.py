"""A plan as Markdown, for the comment under a pull request, with a limit of characters.

A trusted account posts what the author of the pull request wrote. So that stands in fences that
are longer than any run of back-ticks inside. What does not fit is counted, the summary never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from reconciler.diagnostics import Diagnostic
from reconciler.plan.diff import FieldChange, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Delete, Plan, Unmanaged, held_of, ref_of, word
from reconciler.plan.risk import CLASSES, MEANINGS, expected_problems, names_of
from reconciler.report.differences import note_on, rows_of, sides_of, unified, value_as_text
from reconciler.report.findings import counts
from reconciler.report.plan_parts import (
    NOTHING,
    TITLE,
    About,
    Place,
    Shown,
    flag_in_words,
    in_review_order,
    next_step,
    owed_line,
    owed_sentences,
    place_as_code,
    place_as_marker,
    place_of,
    refs_as_text,
    risky,
)
from reconciler.report.plan_text import OTHER_SHARDS, headline, untouched
from reconciler.report.visible import LEAST, LIMIT, longest_ticks, visible
from reconciler.resources.oidc import MESSAGES
from reconciler.resources.ref import ResourceRef

NAMED = 8
LINE = 400
LINES = 120
_TITLES = 120  # of two sections above the fold that have room for nothing else
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
    warnings = [*findings, *plan.warnings]
    after = _next(plan)
    *head, digest = _head(plan, place_of(plan, service), about, shown, counts(warnings))
    around = "\n".join([*head, *_hidden(len(shown), len(shown)), digest, after])
    room = Room(max(limit, LEAST) - len(around) - _TITLES)
    sections = _above(plan, shown, room, about)
    with room.part(0.15) as part:
        fence = fenced(warnings, _finding, "text", part)
    sections += _folded(counts(warnings), fence)
    groups = {
        name: group
        for name in _GROUPS
        if (group := [each for each in shown if word(each.change) == name])
    }
    hidden = 0
    for at, (name, group) in enumerate(groups.items()):
        with room.part(1 / (len(groups) - at)) as part:
            fence = fenced(group, _change_lines, "diff", part)
        sections += _folded(f"{len(group)} {_group(plan, name)}", fence)
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


def _next(plan: Plan) -> str:
    sentence, command = next_step(plan)
    code = f"\n\n```sh\n{command}\n```" if command else ""
    return f"**Next:** {sentence}{code}"


def _meanings(shown: Sequence[Shown], about: About, room: Room) -> list[str]:
    """Return a list of the classes of risk with their meanings, as far as there is room."""
    lines = []
    for name, count in _risk_counts(shown).items():
        page = about.page_of(name)
        tag = f"[`{name}`]({page})" if page else f"`{name}`"
        line = f"- {tag} ({count}): {MEANINGS[name]}"
        if len(line) + 1 > room.left - OVERHEAD:
            break
        room.left -= len(line) + 1
        lines.append(line)
    return ["\n".join(lines)] if lines else []


def _risk_counts(shown: Sequence[Shown]) -> dict[str, int]:
    risks = Counter(name for each in shown for name in {risk.name for risk in each.risks})
    return {name: risks[name] for name in CLASSES if name in risks}


def _above(plan: Plan, shown: Sequence[Shown], room: Room, about: About) -> list[str]:
    sections = []
    with room.part(0.25) as part:
        sections += _listed("### Blocked", plan.blocks, _finding, part)
    with room.part(0.25) as part:
        meanings = _meanings(shown, about, part)
        title, *listed = _listed("### Risks", risky(shown), _risk, part) or [""]
        sections += [title, *meanings, *listed] if title else []
    return sections


def _head(
    plan: Plan, place: Place, about: About, shown: Sequence[Shown], warnings: str
) -> list[str]:
    """Return the lines of the summary, the digest last; ``warnings`` counts them in words."""
    lines = [place_as_marker(place, plan.scope.shard), f"## {headline(plan).removesuffix('.')}", ""]
    lines.append(f"- {place_as_code(place)}")
    if facts := ", ".join(f"{name.lower()} `{value}`" for name, value in about.facts.items()):
        lines.append(f"- {facts[0].upper()}{facts[1:]}")
    if plan.blocks:
        lines.append(
            f"- **Blocked by {_count(len(plan.blocks), 'guard')}: apply refuses this plan.** "
            "Each guard says how to allow just that."
        )
    risks = _risk_counts(shown)
    if risks:
        named = [f"{count} `{name}`" for name, count in risks.items()]
        more = f" and {len(named) - NAMED} more classes" if len(named) > NAMED else ""
        lines.append(f"- Risks: {', '.join(named[:NAMED])}{more}")
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
    return [f"- {told}: a comment has a limit. `reconciler plan` shows them all."]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(
    title: str, items: Sequence[Item], show: Callable[[Item], Sequence[str]], room: Room
) -> list[str]:
    fence, left = fenced(items, show, "text", room)
    return [title, *fence, *_rest(left)] if items else []


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


def _finding(finding: Diagnostic) -> list[str]:
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    head = f"{place}{finding.severity.value} {finding.code}: {visible(finding.told)}"
    return [_cut(head), _cut(f"    {visible(finding.remedy)}", 4 * LINE)]


def _risk(shown: Shown) -> list[str]:
    return [_cut(f"{names_of(shown.risks)}: {_named(ref_of(shown.change))}")]


def _change_lines(shown: Shown) -> list[str]:
    """Return one change, with its marks in the first column, where a diff has its colours."""
    change = shown.change
    mark, held = _MARKS[word(change)], held_of(change)
    number = f"  (id {visible(held.id)})" if held and held.id else ""
    lines = [_cut(f"{mark} {_named(ref_of(change))}{number}")]
    lines += [f"# {visible(cause)}" for cause in shown.causes]
    lines += [f"# {block.code}: {visible(block.summary)}" for block in shown.blocks]
    lines += [f"# {risk.name}: {risk.sentence}" for risk in shown.risks]
    lines += [f"# {key}: {MESSAGES[key]}" for key in expected_problems(change)]
    if isinstance(change, Delete) and change.held.client_id:
        lines.append(f"-   lost for good: client id {visible(change.held.client_id)}")
    for field in field_changes(change):
        lines += map(_cut, _field_lines(field, is_new=isinstance(change, Create)))
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
