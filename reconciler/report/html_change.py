"""One change as HTML: its heading, what to know of it, and its fields side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from reconciler.plan.diff import FieldChange
from reconciler.plan.risk import is_severe
from reconciler.report.differences import Row, note_on, rows_of, sides_of
from reconciler.report.plan_document import Shown
from reconciler.report.visible import visible
from reconciler.resources.normal import TYPES

SIGNS = {"create": "+", "update": "~", "adopt": "~", "delete": "-"}
LINES = 400
LINE = 4_000


def words(text: str) -> str:
    """Return foreign text as HTML: nothing hidden, no markup obeyed, never too long."""
    seen = visible(text)
    over = len(seen) - LINE
    return escape(f"{seen[:LINE]} [{over} more characters]" if over > 0 else seen)


def shown_text(text: str) -> str:
    """Return foreign text in an element of its own; its writing direction stays inside."""
    return f"<code>{words(text)}</code>"


def named(shown: Shown) -> str:
    """Return what a change is about."""
    ref = shown.ref
    return f'<span class="kind">{ref.kind.value}</span> <code class="name">{words(ref.path)}</code>'


def changed(shown: Shown, place: int, *, is_open: bool) -> str:
    """Return one change. Its attributes hold words of ours alone."""
    name = shown.word
    fields = "".join(_field(field, is_new=shown.is_new) for field in shown.fields)
    risks = " ".join(dict.fromkeys(risk.name for risk in shown.risks))
    number = f'<span class="id">id <code>{words(shown.id)}</code></span>' if shown.id else ""
    return (
        f'<details class="{_severity(shown)}" id="c{place}" data-c="{name}" '
        f'data-k="{shown.ref.kind.value}" data-r="{risks}"{" open" if is_open else ""}>'
        f'<summary><span class="sign {name}">{SIGNS[name]}</span>{named(shown)}'
        f"<span>{tags(shown)}</span>{number}</summary>"
        f'<div class="body">{_notes(shown)}{fields}'
        "</div></details>"
    )


def tags(shown: Shown) -> str:
    """Return what a reviewer must know of a change first, as tags."""
    blocked = '<span class="tag stop">blocked</span>' if shown.blocks else ""
    names = dict.fromkeys(risk.name for risk in shown.risks)
    return blocked + "".join(map(tag, names))


def tag(name: str, text: str = "") -> str:
    """Return a class of risk as a tag, coloured by how severe it is."""
    look = "tag severe" if is_severe(name) else "tag"
    return f'<span class="{look}">{text or name}</span>'


def _severity(shown: Shown) -> str:
    """Return the class of a card, by the worst that is to be said of it."""
    if shown.blocks:
        return "c stop"
    if any(is_severe(risk.name) for risk in shown.risks):
        return "c severe"
    return "c risk" if shown.risks else "c"


def _notes(shown: Shown) -> str:
    notes = "".join(f"<li>{note}</li>" for note in _each_note(shown))
    return f'<ul class="notes">{notes}</ul>' if notes else ""


def _each_note(shown: Shown) -> Iterator[str]:
    for block in shown.blocks:
        yield f'<span class="tag stop">{block.code}</span> <bdi>{words(block.remedy)}</bdi>'
    for risk in shown.risks:
        field = f" <code>{risk.field}</code>:" if risk.field else ""
        yield f"{tag(risk.name)}{field} {escape(risk.sentence)}"
    for key, message in shown.problems:
        yield f"the service will report <code>{key}</code>: {escape(message)}"
    for cause in shown.causes:
        yield f'<bdi class="plain">{words(cause)}</bdi>'
    if shown.lost:
        yield f"lost for good: client id {shown_text(shown.lost)} and any client secret"
    if shown.is_new and not shown.fields:
        has = "sets" if TYPES[shown.ref.kind] else "has"
        yield f'<span class="plain">it {has} no fields</span>'


def _field(field: FieldChange, *, is_new: bool) -> str:
    by_line = sides_of(field, is_new=is_new).by_line
    rows = rows_of(field, is_new=is_new)
    show = _one_side if is_new else _two_sides
    cells = "".join(f"<tr{look}>{row}</tr>" for look, row in show(rows[:LINES], numbered=by_line))
    more = f'<p class="plain">{len(rows) - LINES} more lines</p>' if len(rows) > LINES else ""
    note = note_on(field)
    reset = f" <small>{escape(note)}</small>" if note else ""
    side = '<col class="c-no"><col>' if by_line else "<col>"
    return (
        f'<section class="f"><h3>{escape(field.name)}{reset}</h3>'
        f'<table class="d{" numbered" if by_line else ""}">'
        f"<colgroup>{side if is_new else side + side}</colgroup>"
        f"<tbody>{cells}</tbody></table>{more}</section>"
    )


def _one_side(rows: Sequence[Row], *, numbered: bool) -> Iterator[tuple[str, str]]:
    for row in rows:
        if row.after:
            number = f'<td class="no">{row.after[0]}</td>' if numbered else ""
            yield "", f'{number}<td class="n">{words(row.after[1])}</td>'


def _two_sides(rows: Sequence[Row], *, numbered: bool) -> Iterator[tuple[str, str]]:
    for row in rows:
        if row.skipped:
            span = 4 if numbered else 2
            yield "", f'<td class="skip" colspan="{span}">{row.skipped} more alike</td>'
            continue
        left = _side(row.before, "s" if row.alike else "o", numbered=numbered)
        right = _side(row.after, "s" if row.alike else "n", numbered=numbered)
        yield ' class="same"' if row.alike else "", left + right


def _side(line: tuple[int, str] | None, look: str, *, numbered: bool) -> str:
    if line is None:
        return '<td class="e"></td>' * (2 if numbered else 1)
    number = f'<td class="no">{line[0]}</td>' if numbered else ""
    return f'{number}<td class="{look}">{words(line[1])}</td>'
