"""The frame and the parts of every page in HTML: one look, and foreign text that stays text.

A page loads nothing and sends nothing. Foreign text is escaped, and stands in no attribute but the
address of a link or the value of a field of a form, where it is escaped, too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from reconciler import __version__
from reconciler.report.visible import shortened, visible

LINE = 4_000
REFRESH_SECONDS = 30
STILL = "?still=1"  # any search makes a page stay as it is


@cache
def style() -> str:
    """Return the style of every page."""
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def hash_of(inside: str) -> str:
    """Return the hash by which a policy names a style or a script."""
    return f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"


def served_policy() -> str:
    """Return the content security policy of pages that are served: no script at all.

    It is a header, because a page cannot forbid within itself to be framed.
    """
    return (
        f"default-src 'none'; style-src {hash_of(style())}; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )


def page(title: str, eyebrow: str, heading: str, body: str, *, refresh: bool = False) -> str:
    """Return a page. ``heading`` and ``body`` are HTML; the others are words of ours."""
    again = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">\n' if refresh else ""
    stop = f". {link(STILL, 'Stop loading this page again')}" if refresh else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="referrer" content="no-referrer">\n{again}'
        f"<title>{escape(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n"
        '<a class="skip-to" href="#main">Skip to the content</a>\n<main id="main">\n'
        f'<header>\n<p class="eyebrow">{eyebrow}</p>\n<h1>{heading}</h1>\n</header>\n{body}\n'
        f'<footer class="plain">reconciler {__version__}{stop}</footer>\n'
        "</main>\n</body>\n</html>\n"
    )


def words(text: str) -> str:
    """Return foreign text as HTML: nothing hidden, no markup obeyed, never too long."""
    return escape(shortened(visible(text), LINE))


def shown_text(text: str) -> str:
    """Return foreign text in an element of its own; its writing direction stays inside."""
    return f"<code>{words(text)}</code>"


def name_of(text: str) -> str:
    """Return a name that a user chose, in its own element."""
    return f'<bdi class="name">{words(text)}</bdi>'


def link(address: str, inside: str, *, is_here: bool = False) -> str:
    """Return a link; ``inside`` is HTML."""
    here = ' aria-current="page"' if is_here else ""
    return f'<a href="{escape(address)}"{here}>{inside}</a>'


def time(text: str) -> str:
    """Return a time of RFC 3339 in UTC, to the second for a reader and whole for a program."""
    if not text:
        return ""
    seconds = text.partition(".")[0].removesuffix("Z")
    return f'<time datetime="{escape(text)}">{escape(seconds.replace("T", " "))} UTC</time>'


def navigation(label: str, entries: Iterable[tuple[str, str, bool]]) -> str:
    """Return links to other pages: the address of each, its words, whether it is this page."""
    items = "".join(
        f"<li>{link(address, escape(text), is_here=is_here)}</li>"
        for address, text, is_here in entries
    )
    return f'<nav aria-label="{escape(label)}"><ul class="tabs">{items}</ul></nav>'


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]], none: str) -> str:
    """Return a table of cells in HTML, the first of each row being its name; or that it has none.

    On a phone a row becomes a card: each cell then has the head of its column before it.
    """
    names = [*heads]
    lines = []
    for row in rows:
        first, *others = row
        cells = "".join(
            f'<td role="cell" data-head="{escape(head)}">{cell}</td>'
            for head, cell in zip(names[1:], others, strict=True)
        )
        lines.append(f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{cells}</tr>')
    if not lines:
        return f'<p class="plain">{escape(none)}</p>'
    columns = "".join(f'<th scope="col" role="columnheader">{escape(name)}</th>' for name in names)
    return (
        f'<table class="list" role="table"><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{columns}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(lines)}</tbody></table>'
    )


def facts(values: Mapping[str, str]) -> str:
    """Return facts by their names, as HTML; those without a value are left out."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in values.items()
                   if value)  # fmt: skip
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def panel(look: str, title: str, inside: str) -> str:
    """Return a part of a page with a heading of its own; ``inside`` is HTML."""
    return f'<section class="panel {look}"><h2>{escape(title)}</h2>{inside}</section>'


def search(values: Mapping[str, str], choices: Mapping[str, Mapping[str, str]]) -> str:
    """Return a form that filters the page: a text, and choices by the names of their fields.

    The words of each choice are by its value; the empty value means any.
    """
    text = escape(values.get("text", ""))
    fields = [
        '<input type="search" name="text" aria-label="Text" placeholder="Filter by name"',
        f' autocomplete="off" spellcheck="false" value="{text}">',
    ]
    for name, options in choices.items():
        chosen = values.get(name, "")
        inside = "".join(
            f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
            f"{escape(shown)}</option>"
            for value, shown in options.items()
        )
        fields.append(
            f'<select name="{escape(name)}" aria-label="{escape(name.capitalize())}">{inside}'
            "</select>"
        )
    inside = "".join(fields)
    return (
        f'<form class="bar" method="get" role="search" aria-label="Filter">{inside}'
        '<button type="submit">Filter</button></form>'
    )


def onwards(query: Mapping[str, str], following: str) -> str:
    """Return links to the first and to the next page of a list, as far as there are any."""
    entries = []
    kept = {name: value for name, value in query.items() if name != "cursor" and value}
    if query.get("cursor"):
        entries.append((f"?{urlencode(kept)}", "First page", False))
    if following:
        entries.append((f"?{urlencode({**kept, 'cursor': following})}", "Next page", False))
    return navigation("Pages", entries) if entries else ""
