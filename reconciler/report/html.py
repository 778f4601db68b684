"""A plan as one HTML file that a reviewer can read anywhere: nothing is loaded, nothing is sent.

The author of the pull request writes names and values: they stand in it as escaped text, and no
attribute holds one. The page's policy lets only its own style and script count, and no connection.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from reconciler import __version__
from reconciler.diagnostics import Diagnostic
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Plan, Unmanaged, ref_of
from reconciler.plan.risk import CLASSES, MEANINGS
from reconciler.report.html_change import changed, named, shown_text, tag, tags, words
from reconciler.report.plan_parts import (
    LEFT_INACTIVE,
    NOTHING,
    TITLE,
    About,
    Place,
    Shown,
    flag_in_words,
    in_review_order,
    is_plain,
    next_step,
    owed_line,
    owed_sentences,
    place_of,
    risky,
)
from reconciler.report.plan_text import IN_STEP, OTHER_SHARDS, THE_SAME, headline, untouched
from reconciler.report.visible import WHOLE
from reconciler.resources.ref import Kind, ResourceRef

LIMIT = 12_000_000
"""How many characters of changes a page holds; the others are counted."""

LISTED = 500
FIRST = 12
OPEN = 40
_SLOT = re.compile(r"<!--slot:([a-z-]+)-->")
_WORDS = ("create", "update", "adopt", "delete")


def plan_as_html(
    plan: Plan,
    service: str,
    findings: Sequence[Diagnostic] = (),
    limit: int = LIMIT,
    about: About = NOTHING,
) -> str:
    """Return a plan and the findings that go with it as a page."""
    template = (Path(__file__).parent / "plan.html").read_text(encoding="utf-8")
    shown = in_review_order(plan)
    warnings = [*findings, *plan.warnings]
    changes, cut = _changes(shown, limit)
    if plan.compared_with and not shown:
        changes = f'<p class="plain">{THE_SAME}</p>'
    kinds = {ref_of(each.change).kind for each in shown}
    classes = {risk.name for each in shown for risk in each.risks}
    slots = {
        "policy": _policy(template),
        "title": headline(plan),
        "heading": _heading(plan),
        "meter": _meter(plan),
        "facts": _facts(plan, service, about),
        "blocked": _blocked(plan.blocks),
        "risks": _risks(shown, about),
        "owed": _owed(plan),
        "warnings": _folded(
            f"Warnings and notes ({len(warnings)})", map(_finding, warnings[:LISTED])
        ),
        "changes-there": _options(each for each in _WORDS if getattr(plan.summary, each)),
        "kinds-there": _options(kind.value for kind in Kind if kind in kinds),
        "risks-there": _options(name for name in CLASSES if name in classes),
        "changes": changes,
        "cut": cut,
        "unmanaged": _unmanaged(plan.unmanaged) + _inactive(plan.inactive),
        "next": _next(plan, about),
    }
    return _SLOT.sub(lambda slot: slots[slot.group(1)], template)


def _policy(template: str) -> str:
    """Return the content security policy: the page's own style and script, by their hashes."""
    hashes = {}
    for name in ("style", "script"):
        inside = template.split(f"<{name}>", 1)[1].split(f"</{name}>", 1)[0]
        hashes[name] = b64encode(sha256(inside.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; base-uri 'none'; form-action 'none'"
    )


def _heading(plan: Plan) -> str:
    return escape(headline(plan).removeprefix("Plan: ").removesuffix("."))


def _meter(plan: Plan) -> str:
    total = len(plan.changes)
    if not total:
        return ""
    rects, x = [], 0.0
    for name in _WORDS:
        width = 100 * getattr(plan.summary, name) / total
        if width:
            rects.append(
                f'<rect class="{name}" x="{x:.2f}" y="0" width="{width:.2f}" height="1"></rect>'
            )
            x += width
    return (
        '<svg class="meter" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" '
        f'aria-label="{_heading(plan)}">{"".join(rects)}</svg>'
    )


def _facts(plan: Plan, service: str, about: About) -> str:
    place = place_of(plan, service)
    environment = place.environment
    facts = {
        **({"Environment": shown_text(environment)} if environment else {}),
        **_service(place),
        **({"Shard": f"{shard}: {OTHER_SHARDS}"} if (shard := plan.scope.shard) else {}),
        **{name: f"<code>{escape(value)}</code>" for name, value in about.facts.items()},
        **({} if plan.compared_with else {"Digest": _digest(plan)}),
        "Untouched": untouched(plan),
        "Made by": f"reconciler {__version__}",
    }
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _service(place: Place) -> dict[str, str]:
    if place.compared_with:
        return {"Compared with": shown_text(place.compared_with)}
    return {
        "Service": shown_text(place.address),
        "Instance": shown_text(place.instance_in_words),
        "Tree": shown_text(place.tree),
    }


def _digest(plan: Plan) -> str:
    button = '<button type="button" id="copy" hidden>Copy</button>'
    return f'<code id="digest">{plan_digest(plan)}</code> {button}'


def _panel(look: str, title: str, above: str, items: Iterable[str], below: str) -> str:
    return (
        f'<section class="panel {look}"><h2>{title}</h2>{above}<ul>{"".join(items)}</ul>'
        f"{below}</section>"
    )


def _blocked(blocks: Sequence[Diagnostic]) -> str:
    if not blocks:
        return ""
    items = map(_finding, blocks[:LISTED])
    return _panel("blocked", "Blocked: apply refuses this plan", "", items, _more(len(blocks)))


def _finding(finding: Diagnostic) -> str:
    place = f' <span class="place">{shown_text(str(finding.location))}</span>'
    return (
        f'<li class="{finding.severity.value}"><span class="code">{finding.code}</span> '
        f"<bdi>{words(finding.told)}</bdi>"
        f"{place if finding.location else ''}"
        f'<p class="remedy"><bdi>{words(finding.remedy)}</bdi></p></li>'
    )


def _owed(plan: Plan) -> str:
    if not (plan.owed or plan.owed_elsewhere or plan.owed_left):
        return ""
    said = "".join(
        f"<p>{escape(sentence)}</p>"
        for sentence in owed_sentences(len(plan.deliverable), plan.owed_elsewhere, plan.owed_left)
    )
    items = (f"<li><bdi>{words(owed_line(one))}</bdi></li>" for one in plan.owed[:LISTED])
    return _panel("owed", TITLE, said, items, _more(len(plan.owed)))


def _risks(shown: Sequence[Shown], about: About) -> str:
    found = risky(shown)
    if not found:
        return ""
    places = {id(each.change): place for place, each in enumerate(shown)}
    items = [
        f'<li>{tags(each)} <a href="#c{places[id(each.change)]}">{named(each.change)}</a></li>'
        for each in found[:LISTED]
    ]
    rest = "".join(items[FIRST:])
    folded = (
        f"<details><summary>{len(found) - FIRST} more</summary><ul>{rest}</ul>"
        f"{_more(len(found))}</details>"
        if rest
        else ""
    )
    title = "Risks: look at these first"
    return _panel("risky", title, _meanings(found, about), items[:FIRST], folded)


def _meanings(found: Sequence[Shown], about: About) -> str:
    """Return each class of risk: a link that filters by it, its meaning, its page if known."""
    counted = Counter(name for each in found for name in {risk.name for risk in each.risks})
    rows = (
        f'<dt><a href="#risk={name}">{tag(name, f"{counted[name]} {name}")}</a></dt>'
        f"<dd>{escape(MEANINGS[name])}{_page(about.page_of(name))}</dd>"
        for name in CLASSES
        if name in counted
    )
    return f'<dl class="classes">{"".join(rows)}</dl>'


def _page(address: str) -> str:
    return f' <a href="{address}" rel="noreferrer">More</a>' if address else ""


def _more(count: int) -> str:
    if count <= LISTED:
        return ""
    return f'<p class="remedy">{count - LISTED} more are not listed here.</p>'


def _changes(shown: Sequence[Shown], limit: int) -> tuple[str, str]:
    """Return the changes there is room for, and what to say of the others.

    Creates above ``WHOLE`` that need no review stand last, in a fold of their own.
    """
    if not shown:
        return f'<p class="plain">{IN_STEP}</p>', ""
    parts: list[str] = []
    folded: list[str] = []
    size = plain = 0
    for place, each in enumerate(shown):
        part = changed(each, place, is_open=place < OPEN)
        size += len(part)
        if size > limit:
            return _page_of(parts, folded), _cut(len(shown) - place, len(shown))
        plain += is_plain(each)
        (folded if is_plain(each) and plain > WHOLE else parts).append(part)
    return _page_of(parts, folded), ""


def _page_of(parts: Sequence[str], folded: Sequence[str]) -> str:
    if not folded:
        return "\n".join(parts)
    title = f"{len(folded)} more create{'' if len(folded) == 1 else 's'} without a risk"
    fold = ['<details id="more">', f"<summary>{title}</summary>", *folded, "</details>"]
    return "\n".join([*parts, *fold])


def _next(plan: Plan, about: About) -> str:
    sentence, command = next_step(plan, about.on_merge)
    code = f'<p><code class="command">{escape(command)}</code></p>' if command else ""
    return f'<section class="panel next"><h2>Next</h2><p>{escape(sentence)}</p>{code}</section>'


def _cut(left: int, total: int) -> str:
    return (
        f'<p class="cut"><b>{left} of {total} changes are not on this page</b>: it would be too '
        "large to read. The most dangerous ones are here. All counts above are of the whole plan, "
        "and <code>reconciler plan --format json</code> has every change.</p>"
    )


def _unmanaged(left: Sequence[Unmanaged]) -> str:
    items = (
        f"<li>{shown_text(str(found.ref))} id {shown_text(found.id)}, "
        f"<bdi>{words(flag_in_words(found))}</bdi></li>"
        for found in left[:LISTED]
    )
    return _folded(f"Held but declared nowhere, left alone ({len(left)})", items, len(left))


def _inactive(left: Sequence[ResourceRef]) -> str:
    items = (f"<li>{shown_text(str(ref))}</li>" for ref in left[:LISTED])
    return _folded(f"{LEFT_INACTIVE} ({len(left)})", items, len(left))


def _folded(title: str, items: Iterable[str], total: int = 0) -> str:
    inside = "".join(items)
    if not inside:
        return ""
    return (
        f'<details class="panel"><summary>{title}</summary><ul>{inside}</ul>'
        f"{_more(total)}</details>"
    )


def _options(values: Iterable[str]) -> str:
    """Return options of a choice; the values are words of ours."""
    return "".join(f'<option value="{value}">{value}</option>' for value in values)
