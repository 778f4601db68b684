"""A plan as one HTML file that a reviewer can read anywhere: nothing is loaded, nothing is sent.

The author of the pull request writes names and values: they stand in it as escaped text, and no
attribute holds one. The page's policy lets only its own style and script count, and no connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TypeVar

from reconciler import __version__
from reconciler.diagnostics import Diagnostic
from reconciler.plan.diff import FieldChange
from reconciler.plan.risk import MEANINGS, is_severe
from reconciler.report.differences import Row, note_on, rows_of, sides_of
from reconciler.report.layout import BARE, Layout
from reconciler.report.page import facts, hash_of, panel, shown_text, style, words
from reconciler.report.place import Place
from reconciler.report.plan_document import (
    LEFT_INACTIVE,
    LEFT_TO_OTHERS,
    OWED,
    WAIVED,
    Left,
    PlanDocument,
    Shown,
    risky,
)
from reconciler.report.visible import WHOLE
from reconciler.resources.normal import TYPES
from reconciler.resources.ref import Kind, ResourceRef

LIMIT = 12_000_000
"""How many characters of changes a page holds; the others are counted."""

LISTED = 500
FIRST = 12
OPEN = 40
SIGNS = {"create": "+", "update": "~", "adopt": "~", "delete": "-"}
LINES = 400
Item = TypeVar("Item")
_SLOT = re.compile(r"<!--slot:([a-z-]+)-->")


def plan_as_html(document: PlanDocument, layout: Layout = BARE, limit: int = LIMIT) -> str:
    """Return a plan and the findings that go with it as a page."""
    template = (Path(__file__).parent / "plan.html").read_text(encoding="utf-8")
    plan, shown, warnings = document.plan, document.for_review, document.warnings
    changes, cut = _changes(document, limit)
    kinds = {each.ref.kind for each in shown}
    slots = {
        "policy": _policy(template),
        "style": style(),
        "title": str(document.headline),
        "heading": _heading(document),
        "meter": _meter(document),
        "facts": _facts(document),
        "blocked": _blocked(plan.blocks),
        "risks": _risks(document),
        "owed": _owed(document),
        "warnings": _folded("Warnings and notes", warnings, _finding),
        "changes-there": _options(each for each in SIGNS if getattr(plan.summary, each)),
        "kinds-there": _options(kind.value for kind in Kind if kind in kinds),
        "risks-there": _options(document.risk_counts),
        "changes": changes,
        "cut": cut,
        "unmanaged": _folded("Held but declared nowhere, left alone", document.unmanaged, _left)
        + _folded(LEFT_TO_OTHERS, document.ignored, _line)
        + _folded(LEFT_INACTIVE, document.inactive, _line)
        + _folded(WAIVED, document.waived, _line),
        "next": _next(document),
    }
    return _SLOT.sub(lambda slot: slots[slot.group(1)], template)


def _policy(template: str) -> str:
    """Return the content security policy: the page's own style and script, by their hashes."""
    script = template.split("<script>", 1)[1].split("</script>", 1)[0]
    return (
        f"default-src 'none'; style-src {hash_of(style())}; "
        f"script-src {hash_of(script)}; base-uri 'none'; form-action 'none'"
    )


def _heading(document: PlanDocument) -> str:
    return escape(str(document.headline).removeprefix("Plan: ").removesuffix("."))


def _meter(document: PlanDocument) -> str:
    summary, total = document.plan.summary, len(document.changes)
    if not total:
        return ""
    rects, x = [], 0.0
    for name in SIGNS:
        width = 100 * getattr(summary, name) / total
        if width:
            rects.append(
                f'<rect class="{name}" x="{x:.2f}" y="0" width="{width:.2f}" height="1"></rect>'
            )
            x += width
    return (
        '<svg class="meter" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" '
        f'aria-label="{_heading(document)}">{"".join(rects)}</svg>'
    )


def _facts(document: PlanDocument) -> str:
    part, place = document.part, document.place
    button = '<button type="button" id="copy" hidden>Copy</button>'
    digest = f'<code id="digest">{document.digest}</code> {button}' if document.digest else ""
    about = {name: f"<code>{escape(value)}</code>" for name, value in document.about.facts.items()}
    known = {
        "Environment": shown_text(place.environment) if place.environment else "",
        **_service(place),
        "Shard": document.shard,
        "Part of the tree": f"{shown_text(part.selected)}{escape(part.counts)}" if part else "",
        **about,
        "Digest": digest,
        "Untouched": document.untouched,
        "Policies": document.judged,
        "Made by": f"reconciler {__version__}",
    }
    return facts(known)


def _service(place: Place) -> dict[str, str]:
    if place.compared_with and not place.is_of_moments:
        return {"Compared with": shown_text(place.compared_with)}
    service = {
        "Service": shown_text(place.address),
        "Instance": shown_text(place.instance_in_words),
    }
    if place.is_of_moments:
        return {**service, "From": shown_text(place.compared_with), "To": shown_text(place.until)}
    undo = {"Undo of run": shown_text(place.undo)} if place.undo else {}
    return {**service, "Tree": shown_text(place.tree), **undo}


def _items(items: Iterable[str]) -> str:
    return f"<ul>{''.join(items)}</ul>"


def _blocked(blocks: Sequence[Diagnostic]) -> str:
    if not blocks:
        return ""
    return panel("blocked", "Blocked: apply refuses this plan", _listed(blocks, _finding))


def _finding(finding: Diagnostic) -> str:
    place = f' <span class="place">{shown_text(str(finding.location))}</span>'
    return (
        f'<li class="{finding.severity.value}"><span class="code">{finding.code}</span> '
        f"<bdi>{words(finding.told)}</bdi>"
        f"{place if finding.location else ''}"
        f'<p class="remedy"><bdi>{words(finding.remedy)}</bdi></p></li>'
    )


def _owed(document: PlanDocument) -> str:
    owed = document.owed
    if not (owed or document.owed_sentences):
        return ""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in document.owed_sentences)
    items = _listed(owed, lambda line: f"<li><bdi>{words(line)}</bdi></li>")
    return panel("owed", OWED, said + items)


def _risks(document: PlanDocument) -> str:
    found = risky(document.for_review)
    if not found:
        return ""
    places = {id(each): place for place, each in enumerate(document.for_review)}
    items = [
        f'<li>{tags(each)} <a href="#c{places[id(each)]}">{named_ref(each.ref)}</a></li>'
        for each in found[:LISTED]
    ]
    inside = _meanings(document) + _items(items[:FIRST])
    if len(items) > FIRST:
        rest = _items(items[FIRST:]) + _more(len(found))
        inside += f"<details><summary>{len(found) - FIRST} more</summary>{rest}</details>"
    return panel("risky", "Risks: look at these first", inside)


def _meanings(document: PlanDocument) -> str:
    """Return each class of risk: a link that filters by it, its meaning, its page if known."""
    rows = (
        f'<dt><a href="#risk={name}">{tag(name, f"{count} {name}")}</a></dt>'
        f"<dd>{escape(MEANINGS[name])}{_page(document.about.page_of(name))}</dd>"
        for name, count in document.risk_counts.items()
    )
    return f'<dl class="classes">{"".join(rows)}</dl>'


def _page(address: str) -> str:
    return f' <a href="{address}" rel="noreferrer">More</a>' if address else ""


def _more(count: int) -> str:
    if count <= LISTED:
        return ""
    return f'<p class="remedy">{count - LISTED} more are not listed here.</p>'


def _changes(document: PlanDocument, limit: int) -> tuple[str, str]:
    """Return the changes there is room for, and what to say of the others.

    Creates above ``WHOLE`` that need no review stand last, in a fold of their own.
    """
    shown = document.for_review
    if not shown:
        same = document.no_change
        return f'<p class="plain">{same}</p>', ""
    parts: list[str] = []
    folded: list[str] = []
    size = plain = 0
    for place, each in enumerate(shown):
        part = changed(each, place, is_open=place < OPEN)
        size += len(part)
        if size > limit:
            return _page_of(parts, folded), _cut(len(shown) - place, len(shown))
        is_plain = each.is_new and not each.needs_review
        plain += is_plain
        (folded if is_plain and plain > WHOLE else parts).append(part)
    return _page_of(parts, folded), ""


def _page_of(parts: Sequence[str], folded: Sequence[str]) -> str:
    if not folded:
        return "\n".join(parts)
    title = f"{len(folded)} more create{'' if len(folded) == 1 else 's'} without a risk"
    fold = ['<details id="more">', f"<summary>{title}</summary>", *folded, "</details>"]
    return "\n".join([*parts, *fold])


def _next(document: PlanDocument) -> str:
    sentence, command = document.next_step(document.about.on_merge)
    code = f'<p><code class="command">{escape(command)}</code></p>' if command else ""
    return panel("next", "Next", f"<p>{escape(sentence)}</p>{code}")


def _cut(left: int, total: int) -> str:
    return (
        f'<p class="cut"><b>{left} of {total} changes are not on this page</b>: it would be too '
        "large to read. The most dangerous ones are here. All counts above are of the whole plan, "
        "and <code>reconciler plan --format json</code> has every change.</p>"
    )


def _left(found: Left) -> str:
    name, number = shown_text(found.name), shown_text(found.id)
    return f"<li>{name} id {number}, <bdi>{words(found.why)}</bdi></li>"


def _line(text: str) -> str:
    return f"<li>{shown_text(text)}</li>"


def _listed(items: Sequence[Item], draw: Callable[[Item], str]) -> str:
    return _items(map(draw, items[:LISTED])) + _more(len(items))


def _folded(title: str, items: Sequence[Item], draw: Callable[[Item], str]) -> str:
    if not items:
        return ""
    summary = f"<summary>{title} ({len(items)})</summary>"
    return f'<details class="panel">{summary}{_listed(items, draw)}</details>'


def _options(values: Iterable[str]) -> str:
    """Return options of a choice; the values are words of ours."""
    return "".join(f'<option value="{value}">{value}</option>' for value in values)


def plan_head(document: PlanDocument) -> str:
    """Return what comes before the changes of a plan: its counts, blocks and owed secrets."""
    return _meter(document) + _blocked(document.plan.blocks) + _owed(document)


def named_ref(ref: ResourceRef) -> str:
    """Return which object it is: its kind and its path."""
    return f'<span class="kind">{ref.kind.value}</span> <code class="name">{words(ref.path)}</code>'


def changed(shown: Shown, place: int, *, is_open: bool) -> str:
    """Return one change. Its attributes hold words of ours alone."""
    name = shown.word
    fields = "".join(drawn_field(field, is_new=shown.is_new) for field in shown.fields)
    risks = " ".join(dict.fromkeys(risk.name for risk in shown.risks))
    number = f'<span class="id">id <code>{words(shown.id)}</code></span>' if shown.id else ""
    return (
        f'<details class="{_severity(shown)}" id="c{place}" data-c="{name}" '
        f'data-k="{shown.ref.kind.value}" data-r="{risks}"{" open" if is_open else ""}>'
        f'<summary><span class="sign {name}">{SIGNS[name]}</span>{named_ref(shown.ref)}'
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
    for cause in shown.causes():
        yield f'<bdi class="plain">{words(cause)}</bdi>'
    if shown.lost:
        yield f"lost for good: client id {shown_text(shown.lost)} and any client secret"
    if shown.is_new and not shown.fields:
        has = "sets" if TYPES[shown.ref.kind] else "has"
        yield f'<span class="plain">it {has} no fields</span>'


def drawn_field(field: FieldChange, *, is_new: bool) -> str:
    """Return a field, before and after; of a new object, its value alone."""
    by_line = sides_of(field).by_line
    rows = rows_of(field)
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
    yield from (("", _side(row.after, "n", numbered=numbered)) for row in rows if row.after)


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
