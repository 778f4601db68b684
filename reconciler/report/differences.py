"""Fields before and after, as every report shows them: rows side by side, lines, and JSON.

Items that a list lost and gained are those of the plan (``FieldChange.items``) in every form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import groupby, islice, zip_longest
from typing import NamedTuple

from reconciler.plan.diff import CREDENTIAL, FieldChange, ItemChange
from reconciler.report.layout import BARE, Layout
from reconciler.report.visible import (
    PLAIN,
    Style,
    visible,
    with_escaped_forms,
    without_colours,
)
from reconciler.resources.fields import SpecValue

CONTEXT = 3
_RESET = "not in the manifest: the update resets it"
_KEPT = "this server will not empty it"
_LOOKS = {"+": "green", "-": "red", "@": "cyan"}


class Row(NamedTuple):
    """One row: a number from 1 and a line on each side, or nothing where a side has none.

    Lines are escaped where they are not in Unicode's normal form NFC, but not yet made visible.

    Attributes:
        alike: Whether both sides are the same.
        skipped: How many rows that are alike are left out here; such a row has no sides.
    """

    before: tuple[int, str] | None = None
    after: tuple[int, str] | None = None
    alike: bool = False
    skipped: int = 0


class Sides(NamedTuple):
    """The two sides of a field.

    Attributes:
        by_line: Whether these are the lines of a text, which have numbers.
    """

    before: list[str]
    after: list[str]
    by_line: bool


def sides_of(field: FieldChange) -> Sides:
    """Return the lines of a field: of a script, the items of a list, or the value itself.

    A line break at the end of both is not shown; one that only one of them has is.
    """
    if field.name == CREDENTIAL:
        before_word, after_word = secret_words(field)
        return Sides([before_word], [after_word], by_line=False)
    values = [field.before, field.after]
    texts = [value for value in values if isinstance(value, str)]
    by_line = field.name == "script" or any("\n" in text for text in texts)
    strip = all(text.endswith("\n") for text in texts)
    before, after = (_lines(value, by_line=by_line, strip=strip) for value in values)
    return Sides(before, after, by_line)


def note_on(field: FieldChange) -> str:
    """Return what an update does to a field beyond what its values say; mostly nothing."""
    notes = [_RESET] if field.reset else []
    return "; ".join([*notes, _KEPT] if field.kept else notes)


def remark_on(field: FieldChange, style: Style = PLAIN) -> str:
    """Return the same as it stands behind a name or a value."""
    note = note_on(field)
    return style(f"  # {note}", "dim") if note else ""


def secret_words(field: FieldChange) -> tuple[str, str]:
    """Return the words for a client secret before and after, which are whether there is one."""
    after = "(new)" if field.after else "(none)"
    return ("(held)" if field.before else "(none)"), after


def _lines(value: object, *, by_line: bool, strip: bool) -> list[str]:
    if value is None:
        return []
    if by_line and isinstance(value, str):
        return (value.removesuffix("\n") if strip else value).split("\n")
    items = value if isinstance(value, list) else [value]
    return [json.dumps(item, ensure_ascii=False) for item in items]


def value_as_text(value: object) -> str:
    """Return a value as JSON, on one line and with nothing hidden."""
    return _drawn(json.dumps(value, ensure_ascii=False))


def _drawn(line: str) -> str:
    return visible(with_escaped_forms(line))


def rows_of(field: FieldChange) -> list[Row]:
    """Return the rows of a field, with a few that are alike around those that are not.

    The items of a list are paired as in the plan, the lines of a script as difflib does.
    """
    before, after, _ = sides_of(field)
    if not before or not after:
        return list(_paired(0, before, 0, after))
    if is_list(field):
        return _folded([*_aligned(before, after, field.items)])
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    rows: list[Row] = []
    for tag, old, old_end, new, new_end in matcher.get_opcodes():
        rows += _paired(old, before[old:old_end], new, after[new:new_end], alike=tag == "equal")
    return _folded(rows)


def _aligned(
    before: Sequence[str], after: Sequence[str], items: Sequence[ItemChange]
) -> Iterator[Row]:
    """Yield every item of two lists: what was neither lost nor gained is alike, in its order."""
    lost = {item.position for item in items if not item.added}
    gained = {item.position for item in items if item.added}
    old = new = 0
    while old < len(before) or new < len(after):
        old_end, new_end = old, new
        while old_end in lost:
            old_end += 1
        while new_end in gained:
            new_end += 1
        is_alike = (old_end, new_end) == (old, new)
        if is_alike:
            old_end, new_end = old + 1, new + 1
        yield from _paired(old, before[old:old_end], new, after[new:new_end], alike=is_alike)
        old, new = old_end, new_end


def _folded(rows: Sequence[Row]) -> list[Row]:
    """Return rows in which those alike are counted, but for a few beside the others."""
    beside = range(-CONTEXT, CONTEXT + 1)
    kept = {at + far for at, row in enumerate(rows) if not row.alike for far in beside}
    found: list[Row] = []
    for is_kept, part in groupby(enumerate(rows), key=lambda each: each[0] in kept):
        run = [row for _, row in part]
        found += run if is_kept else [Row(skipped=len(run))]
    return found


def _paired(
    old: int, before: Sequence[str], new: int, after: Sequence[str], *, alike: bool = False
) -> Iterator[Row]:
    left = enumerate(map(with_escaped_forms, before), old + 1)
    right = enumerate(map(with_escaped_forms, after), new + 1)
    for pair in zip_longest(left, right):
        yield Row(*pair, alike)


def unified(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Yield a mark (``-``, ``+``, `` `` or ``@``) and a visible line, one after the other."""
    gained: list[str] = []
    for row in rows:
        if row.before and not row.alike:
            yield "-", visible(row.before[1])
        if row.after and not row.alike:
            gained.append(row.after[1])
            continue
        if row.alike or row.skipped:
            yield from (("+", visible(line)) for line in gained)
            gained = []
        if row.skipped:
            yield "@", f"{row.skipped} more alike"
        elif row.alike and row.after:
            yield " ", visible(row.after[1])
    yield from (("+", visible(line)) for line in gained)


def field_lines(field: FieldChange, style: Style, *, is_new: bool, width: int = 0) -> Iterator[str]:
    """Yield a field for a terminal: scripts by line, lists by item, other values on one line.

    ``width`` is the columns above which a value stands on a line of its own; 0 for no limit.
    """
    remark = remark_on(field, style)
    if field.name == "script":
        yield f"{field.name}:{remark}"
        yield from _script_lines(field.before or "", field.after or "", style)
    elif isinstance(field.after, list) and (field.after or field.before):
        yield f"{field.name}:{remark}"
        yield from _item_lines(field, style)
    elif is_new:
        yield f"{field.name}: {value_as_text(field.after)}"
    else:
        values = map(value_as_text, (field.before, field.after))
        before, after = secret_words(field) if field.name == CREDENTIAL else values
        yield from _from_to(field.name, before, after, style, width, remark)


def is_list(field: FieldChange) -> bool:
    """Return whether a field is a list before and after."""
    return isinstance(field.before, list) and isinstance(field.after, list)


def what_differs(field: FieldChange) -> tuple[int, SpecValue, SpecValue]:
    """Return what differs between two values: of lists, the part between equal ends.

    The number is the place at which that part begins. Two lists with equal results are changed in
    the same way, whatever else is in them.
    """
    before, after = field.before, field.after
    if not isinstance(before, list) or not isinstance(after, list):
        return 0, before, after
    start, old, new = 0, len(before), len(after)
    while start < min(old, new) and before[start] == after[start]:
        start += 1
    while min(old, new) > start and before[old - 1] == after[new - 1]:
        old, new = old - 1, new - 1
    return start, before[start:old], after[start:new]


def items_by_place(field: FieldChange) -> Iterator[tuple[str, Mapping[bool, str]]]:
    """Yield the name of each place at which a list differs, and its values.

    They are by whether they were gained. A name is such as ``redirectUris[0]``.
    """
    start, before, after = what_differs(field)
    items = FieldChange(field.name, before, after).items
    for position, found in groupby(items, key=lambda item: item.position):
        values = {item.added: value_as_text(item.value) for item in found}
        yield f"{field.name}[{start + position}]", values


def item_lines(field: FieldChange, style: Style, width: int = 0) -> Iterator[str]:
    """Yield the items that a list lost and gained, each with its place in the list, from 0."""
    remark = remark_on(field, style)
    for name, values in items_by_place(field):
        if len(values) > 1:
            yield from _from_to(name, values[False], values[True], style, width, remark)
            continue
        ((added, value),) = values.items()
        yield f"{name}: {_item(value, style, added=added)}{remark}"


def _from_to(
    name: str, before: str, after: str, style: Style, width: int, remark: str
) -> Iterator[str]:
    """Yield both values on one line, or the second one below the first where they do not fit."""
    first, second = f"{name}: {style(before, 'red')}", f"-> {style(after, 'green')}{remark}"
    line = f"{first} {second}"
    is_short = not width or len(without_colours(line)) <= width
    yield from (line,) if is_short else (first, f"  {second}")


def _item_lines(field: FieldChange, style: Style) -> Iterator[str]:
    if not field.before:
        yield from (f"  {style('+', 'green')} {value_as_text(item)}" for item in field.after)
    for item in field.items if field.before else ():
        yield f"  {_item(value_as_text(item.value), style, added=item.added)}"


def _item(value: str, style: Style, *, added: bool) -> str:
    mark = "+" if added else "-"
    return style(f"{mark} {value}", _LOOKS[mark])


def _script_lines(before: str, after: str, style: Style) -> Iterator[str]:
    """Yield the lines that differ between two scripts, line breaks of every kind included."""
    if not before:
        lines = after.removesuffix("\n").split("\n")
        yield from (f"  {style('+', 'green')} {_drawn(line)}" for line in lines)
        return
    difference = unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=2)
    for line in islice(difference, 2, None):  # after the names of the two sides
        shown = line if line.startswith("@@") else f"{line[0]} {_drawn(line[1:])}"
        look = _LOOKS.get(line[0])
        yield style(f"  {shown}", look) if look else f"  {shown}"


def fields_as_json(fields: Sequence[FieldChange], after: str = "after") -> list[dict[str, object]]:
    """Return fields by name with both values, and the items that a list lost and gained."""
    return [
        {"name": field.name, "before": field.before, after: field.after}
        | ({"items": [item._asdict() for item in field.items]} if is_list(field) else {})
        for field in fields
    ]


class FileChange(NamedTuple):
    """A file as it is and as it will be; None for a file that is missing."""

    name: str
    before: str | None
    after: str | None


def changes_as_text(changes: Sequence[FileChange], layout: Layout = BARE) -> str:
    """Return the lines that differ, file by file, everything hidden made visible."""
    return "\n".join(line for change in changes for line in _changed_lines(change, layout.style))


def _changed_lines(change: FileChange, style: Style) -> Iterator[str]:
    for mark, text in (("---", change.before), ("+++", change.after)):
        yield style(f"{mark} {visible(change.name) if text is not None else '/dev/null'}", "bold")
    before, after = (_LINE.findall(text or "") for text in (change.before, change.after))
    for line in islice(unified_diff(before, after), 2, None):  # after the names of the two sides
        mark, look = line[0], _LOOKS.get(line[0])
        text = line.removesuffix("\n").removesuffix("\r")
        drawn = text if mark == "@" else mark + _drawn(text[1:])
        yield style(drawn, look) if look else drawn
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


_LINE = re.compile(r"[^\n]*\n|[^\n]+")
