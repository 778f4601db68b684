"""The page of a plan, tag by tag: what others wrote is text in it, and nothing but text."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import warning
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Delete, Plan, Update
from reconciler.plan.risk import MEANINGS
from reconciler.report.html import LIMIT
from reconciler.report.plan_document import About
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind
from tests.builders import (
    GREET,
    NONE,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.drawings import plan_as_html
from tests.effort import cases
from tests.hostile import HTML, MARK, PAYLOADS, hostile_findings, hostile_plan, marked, payloads
from tests.rows import each_row

VOID = {"meta", "input", "col"}
KINDS = "|".join(kind.value for kind in Kind)
NAMES = "|".join(MEANINGS)
CLASS_NAMES = (
    "eyebrow|meter|create|update|adopt|delete|facts|panel|blocked|risky|code|place|remedy|classes|"
    "tag|stop|severe|risk|error|warning|note|next|command|bar|c|sign|kind|name|id|body|notes|f|d|numbered|c-no|no|o|n|s|e|skip|same|plain|cut"
)
# What each attribute may hold, in whichever element: words and numbers of ours.
ATTRIBUTES = {
    "class": rf"(?:{CLASS_NAMES})(?: (?:{CLASS_NAMES}))*",
    "id": r"c\d+|bar|text|change|kind|risk|open|close|count|changes|digest|copy|more",
    "data-c": "create|update|adopt|delete",
    "data-k": KINDS,
    "data-r": rf"(?:(?:{NAMES})(?: (?:{NAMES}))*)?",
    "href": rf"#c\d+|#risk=(?:{NAMES})|https://docs\.example\.com/guards\.md#(?:{NAMES})",
    "rel": "noreferrer",
    "value": rf"|\*|create|update|adopt|delete|{KINDS}|{NAMES}",
    "colspan": "2|4",
    "open": "",
    "hidden": "",
    "x": r"\d+\.\d\d", "y": "0", "width": r"\d+\.\d\d", "height": "1",
    "viewbox": "0 0 100 1", "preserveaspectratio": "none", "role": "img|search",
    "aria-label": r"\d+ to create.*|Filter the changes|Text|Change|Kind|Risk|Changes",
    "aria-live": "polite", "type": "search|button", "placeholder": r"Filter by any text \( / \)",
    "autocomplete": "off", "spellcheck": "false", "lang": "en", "charset": "utf-8",
    "name": "viewport|color-scheme|referrer", "http-equiv": "Content-Security-Policy",
    "content": r"width=device-width, initial-scale=1|light dark|no-referrer|default-src 'none'; .*",
}  # fmt: skip


class Reading(HTMLParser):
    """Reads a page and refuses what is not ours."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.path: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.path.append(tag)
        for name, value in attrs:
            assert re.fullmatch(ATTRIBUTES[name], value or ""), (tag, name, value)

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.path[-1] if self.path else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(page: str) -> Reading:
    reading = Reading()
    reading.feed(page)
    reading.close()
    assert reading.path == []
    return reading


def check_only_ours(page: str) -> Reading:
    """Assert that others have written neither an element nor an attribute nor a comment."""
    reading = read(page)
    for tag in ("script", "style", "main", "h1", "form", "title"):
        assert reading.tags.count(tag) == 1, tag
    assert set(reading.tags) <= {
        "html", "head", "meta", "title", "style", "body", "main", "header", "p", "h1", "h2", "h3",
        "svg", "rect", "dl", "dt", "dd", "code", "section", "ul", "li", "span", "bdi", "a", "small",
        "details", "summary", "form", "input", "select", "option", "button", "output", "table",
        "colgroup", "col", "tbody", "tr", "td", "b", "script", "div",
    }  # fmt: skip
    return reading


RISKY = a_plan(
    Create(declared(a_ref(name="new"), an_application(clockSkew="1s"))),
    Update(declared(WEB, an_application(authMethodType=NONE)), held(WEB)),
    Update(
        declared(GREET, an_action(script="a\nb\nc\n")), held(GREET, an_action(script="a\nx\nc\n"))
    ),
    Delete(held(a_ref(name="old"))),
)


@pytest.mark.parametrize("payload", payloads(*HTML))
def test_what_others_wrote_is_text_and_nothing_else(payload: str) -> None:
    """In a box of its own, so that no letter of it turns the words around it."""
    page = plan_as_html(hostile_plan([payload]), marked(payload), hostile_findings(marked(payload)))

    reading = check_only_ours(page)
    marks = {tag for tag, text in reading.texts if MARK in text}
    assert marks <= {"code", "td", "bdi"}
    assert visible(marked(payload)) in "".join(text for _, text in reading.texts)
    assert visible(page.replace("\n", "")) == page.replace("\n", "")


CHARACTERS = st.one_of(
    st.characters(), st.sampled_from("<>&\"'=/`!-[]\r\n\t \u202e"), st.sampled_from(PAYLOADS)
)


@pytest.mark.slow
@settings(max_examples=cases(50), deadline=None)
@given(texts=st.lists(st.lists(CHARACTERS, max_size=10).map("".join), min_size=1, max_size=2))
def test_no_text_at_all_becomes_markup(texts: list[str]) -> None:
    """What nobody thought of is drawn by chance."""
    check_only_ours(plan_as_html(hostile_plan(texts), texts[0], hostile_findings(texts[0])))


def test_the_policy_lets_only_the_page_s_own_style_and_script_count() -> None:
    """Their hashes, no connection, no form, no base."""
    page = plan_as_html(RISKY, "sqlite:x.db")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    hashes = [
        b64encode(
            sha256(re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[0].encode()).digest()
        )
        for tag in ("style", "script")
    ]

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0].decode()}'; "
        f"script-src 'sha256-{hashes[1].decode()}'; base-uri 'none'; form-action 'none'"
    )


@each_row("outside", ["//", "http:", "url(", "@import", "src=", "style=", "on"])
def test_the_page_refers_to_nothing_outside_of_it(outside: str) -> None:
    """It reads the same in ten years, on a machine without a network."""
    page = plan_as_html(a_plan(), "sqlite:x.db")
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    text = "".join(re.findall(r"<[^>]*>", markup)) if outside == "on" else page
    found = re.findall(r"\son[a-z]+=" if outside == "on" else re.escape(outside), text)

    assert found == []


def test_blocked_changes_come_first_then_the_most_dangerous() -> None:
    """The order in which a reviewer should read."""
    page = plan_as_html(RISKY, "sqlite:x.db")

    card = r'<details class="c[ a-z]*" id="c\d" data-c="(\w+)" data-k="\w+" data-r="(.*?)"'
    assert re.findall(card, page) == [
        ("delete", "client-id-lost"),
        ("update", "credential-weaker"),
        ("update", "script-changed"),
        ("create", ""),
    ]  # fmt: skip
    assert page.index("Risks: look at these first") < page.index('id="changes"')
    assert plan_digest(RISKY) in page


def test_a_script_is_shown_line_by_line_on_two_sides() -> None:
    """The line that changed, between those that did not, with their numbers."""
    page = plan_as_html(RISKY, "sqlite:x.db")

    assert (
        '<tr class="same"><td class="no">1</td><td class="s">a</td>'
        '<td class="no">1</td><td class="s">a</td></tr>'
        '<tr><td class="no">2</td><td class="o">x</td>'
        '<td class="no">2</td><td class="n">b</td></tr>'
        '<tr class="same"><td class="no">3</td><td class="s">c</td>'
        '<td class="no">3</td><td class="s">c</td></tr></tbody>'
    ) in page


def test_the_page_reads_without_its_script() -> None:
    """What folds is a fold of HTML, and the filter hides where nothing would happen."""
    page = plan_as_html(RISKY, "sqlite:x.db")

    assert page.count("<details") == page.count("</details>") >= 4
    assert 'id="bar" role="search" aria-label="Filter the changes" hidden>' in page


def test_no_changes_is_said_as_plainly_as_changes_are() -> None:
    """There is nothing to filter, and no meter."""
    page = plan_as_html(a_plan(), "sqlite:x.db")

    check_only_ours(page)
    assert "<h1>No changes. The service holds what the manifests declare</h1>" in page
    assert "<svg" not in page


def test_the_top_says_of_what_and_the_end_what_next() -> None:
    """Service, tree, commit and date first; then the digest, to be copied."""
    about = About("2026-11-22T00:31:07Z", "c" * 40, "https://docs.example.com/")
    page = plan_as_html(RISKY, "sqlite:x.db", about=about)

    check_only_ours(page)
    facts = page[page.index('<dl class="facts">') : page.index("</dl>")]
    for fact in (
        *("<dt>Service</dt><dd><code>sqlite:x.db</code>", "<dt>Tree</dt><dd><code>default</code>"),
        "<dt>Made</dt><dd><code>2026-11-22T00:31:07Z</code>",
        f"<dt>Commit</dt><dd><code>{'c' * 40}</code>",
        f'<code id="digest">{plan_digest(RISKY)}</code>',
    ):
        assert fact in facts
    assert f"reconciler apply --digest {plan_digest(RISKY)}</code>" in page[-8000:]
    assert 'href="https://docs.example.com/guards.md#client-id-lost"' in page
    assert MEANINGS["client-id-lost"] in page


def test_creates_above_fifty_stand_in_a_fold_of_their_own() -> None:
    """The rest of the plan is on the first screens."""
    creates = [Create(declared(a_ref(Kind.ACTION, f"n{at}"), an_action())) for at in range(53)]
    page = plan_as_html(a_plan(*creates, Delete(held(WEB))), "sqlite:x.db")
    short = plan_as_html(a_plan(*creates[:50]), "sqlite:x.db")

    check_only_ours(page)
    before, _, fold = page.partition('<details id="more">')
    assert before.count('<details class="c') == 51
    assert fold.count('<details class="c') == 3
    assert fold.startswith("\n<summary>3 more creates without a risk</summary>")
    assert '<details id="more">' not in short


def many(count: int) -> Plan:
    return a_plan(
        *(
            Update(declared(ref, an_action(script="x")), held(ref))
            for ref in (a_ref(Kind.ACTION, f"n{at}") for at in range(count))
        )
    )


@pytest.mark.slow
def test_ten_thousand_changes_fit_on_a_page() -> None:
    """Every one of them is there to be found."""
    page = plan_as_html(many(10_000), "sqlite:x.db")

    assert page.count('<details class="c') == 10_000
    assert "are not on this page" not in page
    assert len(page) < 15_000_000


def test_more_changes_than_fit_are_cut_with_their_count_above_the_fold() -> None:
    """A page that a browser cannot open shows nothing at all."""
    page = plan_as_html(many(2_000), "sqlite:x.db", limit=LIMIT // 10)

    shown = page.count('<details class="c')
    assert shown < 2_000
    assert f"<b>{2_000 - shown} of 2000 changes are not on this page</b>" in page
    assert page.index("are not on this page") < page.index('id="changes"')
    assert len(page.encode()) < 2_000_000


def test_findings_above_five_hundred_are_counted() -> None:
    """A list that ends without a word looks whole."""
    found = [warning("CODE", f"summary {at}", "Do that.") for at in range(502)]
    page = plan_as_html(a_plan(), "sqlite:x.db", found)

    assert page.count('<li class="warning">') == 500
    assert "2 more are not listed here." in page


def test_the_same_plan_gives_the_same_page() -> None:
    """Two pages can be compared."""
    assert plan_as_html(RISKY, "sqlite:x") == plan_as_html(RISKY, "sqlite:x")
