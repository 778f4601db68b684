"""Differences of two values: rows side by side, and lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from reconciler.plan.diff import CREDENTIAL, FieldChange
from reconciler.report.style import Style
from reconciler.report.visible import visible

CONTEXT = 3


class Row(NamedTuple):
    """One row: a number from 1 and a line on each side, or nothing where a side has none.

    Lines are as they are compared, not yet made visible: two that are not the same may look so.

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


def sides_of(field: FieldChange, *, is_new: bool) -> Sides:
    """Return the lines of a field: of a script, the items of a list, or the value itself.

    A line break at the end of both is not shown; one that only one of them has is.
    """
    if field.name == CREDENTIAL:
        before_word, after_word = secret_words(field)
        return Sides([before_word], [after_word], by_line=False)
    values = [None if is_new else field.before, field.after]
    texts = [value for value in values if isinstance(value, str)]
    by_line = field.name == "script" or any("\n" in text for text in texts)
    strip = all(text.endswith("\n") for text in texts)
    before, after = (_lines(value, by_line=by_line, strip=strip) for value in values)
    return Sides(before, after, by_line)


def secret_words(field: FieldChange) -> tuple[str, str]:
    """Return the words for a client secret before and after, which are whether there is one."""
    after = "(new)" if field.after else "(none)"
    return ("(held)" if field.before else "(none)"), after


def _lines(value: Any, *, by_line: bool, strip: bool) -> list[str]:
    if value is None:
        return []
    if by_line and isinstance(value, str):
        return (value.removesuffix("\n") if strip else value).split("\n")
    items = value if isinstance(value, list) else [value]
    return [json.dumps(item, ensure_ascii=False) for item in items]


def value_as_text(value: Any) -> str:
    """Return a value as JSON, on one line and with nothing hidden."""
    return visible(json.dumps(value, ensure_ascii=False))


def rows_of(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of two sides, with a few that are alike around those that are not."""
    if not before or not after:
        yield from _paired(0, before, 0, after)
        return
    done = 0
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > done:
            yield Row(skipped=group[0][1] - done)
        for tag, old, old_end, new, new_end in group:
            sides = before[old:old_end], after[new:new_end]
            yield from _paired(old, sides[0], new, sides[1], alike=tag == "equal")
            done = old_end
    if done < len(before):
        yield Row(skipped=len(before) - done)


def _paired(
    old: int, before: Sequence[str], new: int, after: Sequence[str], *, alike: bool = False
) -> Iterator[Row]:
    numbered = (
        enumerate(before, old + 1),
        enumerate(after, new + 1),
    )
    for left, right in zip_longest(*numbered):
        yield Row(left, right, alike)


def unified(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a mark (``-``, ``+``, `` `` or ``@``) and a visible line, one after the other."""
    gained: list[str] = []
    for row in rows_of(before, after):
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


_LOOKS = {"+": "green", "-": "red", "@": "cyan"}


def field_lines(field: FieldChange, style: Style) -> Iterator[str]:
    """Yield a field: scripts by line, lists by item, anything else on one line."""
    before_lines, after_lines, by_line = sides_of(field, is_new=False)
    if not by_line and not isinstance(field.after, list):
        values = (value_as_text(field.before), value_as_text(field.after))
        was, now = secret_words(field) if field.name == CREDENTIAL else values
        before = "" if field.before is None else f"{style(was, 'red')} -> "
        yield f"{field.name}: {before}{style(now, 'green')}"
        return
    lines = list(unified(before_lines, after_lines))
    yield f"{field.name}:{'' if lines else ' []'}"
    for mark, line in lines:
        look = _LOOKS.get(mark)
        yield f"  {style(f'{mark} {line}', look)}" if look else f"  {mark} {line}"
