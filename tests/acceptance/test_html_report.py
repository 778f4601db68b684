"""The page of a plan in a real browser: it filters, and obeys nothing that others wrote in it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Plan
from reconciler.resources.ref import Kind
from tests.acceptance.conftest import Run, an_application, write
from tests.builders import (
    GREET,
    NONE,
    PARTNER,
    WEB,
    a_jwt_config,
    a_ref,
    an_action,
    declared,
    held,
    plan_of,
)
from tests.builders import an_application as said
from tests.devtools import Page, open_page
from tests.drawings import plan_as_html
from tests.hostile import PAYLOADS, hostile_plan

PAGE = "/plan.html"
BEACON = "/beacon"


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, *arguments: Any, page: bytes, asked: list[str]) -> None:
        self._page, self._asked = page, asked
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer the page, and take note of whatever else is asked for."""
        self._asked.append(self.path)
        self.send_response(200 if self.path == PAGE else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        if self.path == PAGE:
            self.wfile.write(self._page)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page.

    Attributes:
        dom: The document after its scripts have run.
        asked: What was asked of the server, the page itself and its icon left out.
    """

    dom: str
    asked: list[str]

    @property
    def cards(self) -> list[str]:
        return re.findall(r'<details class="c[ a-z]*"[^>]*>', self.dom)

    @property
    def shown(self) -> int:
        return sum(" hidden" not in card for card in self.cards)


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """Start a browser: that takes ten times as long as a page.

    Each page comes from a port of its own, so it is of an origin that the browser does not know.
    """
    with open_page() as page:
        yield page


def seen_in(browser: Page, page: str, fragment: str = "") -> Seen:
    """Open a page, and return what became of it."""
    asked: list[str] = []
    handler = partial(_Handler, page=page.encode(), asked=asked)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True  # the browser keeps its connections
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}{PAGE}{fragment}")
        dom = browser.run("document.documentElement.outerHTML")
        server.shutdown()
    return Seen(dom, [path for path in asked if path not in {PAGE, "/favicon.ico"}])


def a_real_plan() -> Plan:
    """Return a plan with a change of most kinds."""
    return plan_of(
        [
            declared(WEB, said(authMethodType=NONE, devMode=True)),
            declared(a_ref(name="console")),
            declared(PARTNER, a_jwt_config(keysEndpoint="https://new.example.com/keys")),
            declared(GREET, an_action(timeout="1s")),
        ],
        [held(WEB), held(PARTNER), held(GREET, trees=()), held(a_ref(Kind.ACTION, "by-hand"))],
    )


@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("", 4),
        ("#text=storefront", 1),
        ("#text=STOREFRONT%20devmode", 1),
        ("#text=new.example.com", 1),
        ("#text=nowhere", 0),
        ("#kind=OidcApplication", 2),
        ("#change=create", 1),
        ("#change=adopt", 1),
        ("#risk=*", 2),
        ("#risk=dev-mode-on", 1),
        ("#kind=OidcApplication&risk=*", 1),
        ("#kind=%3Cscript%3E", 4),
        ("#c2", 4),
    ],
)
def test_a_link_filters_the_page_as_its_controls_do(
    browser: Page, fragment: str, shown: int
) -> None:
    """A reviewer sends the part that matters to somebody else."""
    seen = seen_in(browser, plan_as_html(a_real_plan(), "sqlite:x.db"), fragment)

    assert (len(seen.cards), seen.shown) == (4, shown)
    said_so = f"{shown} shown" if shown == 4 else f"{shown} of 4 shown"
    assert f">{said_so}</output>" in seen.dom


HOSTILE = (
    *PAYLOADS,
    f'<img src="{BEACON}" onerror="document.documentElement.dataset.pwned=1">',
    f'"><script src="{BEACON}"></script>',
    f"</style><style>@import '{BEACON}';</style>",
    f"<link rel=stylesheet href={BEACON}>",
    f"<iframe src={BEACON}></iframe>",
    "<script>alert(1);document.documentElement.dataset.pwned=1</script>",
    "</script><script>document.documentElement.dataset.pwned=1</script>",
)


def test_a_hostile_pull_request_has_no_effect_on_the_page(browser: Page) -> None:
    """No script of it runs, nothing is loaded, no dialog stops the reader, and the filter works."""
    plan = hostile_plan(HOSTILE)
    text = plan_as_html(plan, "sqlite:x.db")

    seen = seen_in(browser, text, "#risk=client-id-lost")

    assert "pwned" not in re.sub(r"<code.*?</code>|<td.*?</td>|<bdi.*?</bdi>", "", seen.dom)
    assert not re.search(r"<html[^>]*pwned", seen.dom)
    assert seen.asked == []
    assert len(seen.cards) == len(plan.changes)
    assert seen.shown == len(plan.changes) // 6


def test_even_markup_that_got_in_would_do_nothing(browser: Page) -> None:
    """The second line of defence, tried with what the first would never let by: the policy."""
    inside = (
        "<script>document.documentElement.dataset.pwned='script'</script>"
        f"<img src='{BEACON}'><script src='{BEACON}'></script><link rel=stylesheet href='{BEACON}'>"
        f"<iframe src='{BEACON}'></iframe><object data='{BEACON}'></object>"
        "<body onload=\"document.documentElement.dataset.pwned='handler'\">"
        f"<style>body {{ background: url('{BEACON}') }}</style><base href='https://evil.example'>"
    )
    page = plan_as_html(a_real_plan(), "sqlite:x.db").replace("<main>", f"<main>{inside}", 1)

    seen = seen_in(browser, page)

    assert '<html lang="en">' in seen.dom
    assert seen.asked == []
    assert seen.shown == 4


def test_the_command_writes_the_page_a_reviewer_opens(browser: Page, run: Run, small: Any) -> None:
    """One file on stdout, whole, and nothing beside it."""
    evil = "</title><script>document.title='x'</script>"
    write(small / "evil.yaml", an_application(evil, redirectUris=["https://x.example.com/cb"]))
    ran = run("plan", "--format", "html")

    seen = seen_in(browser, ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert "<title>Plan: 7 to create, 0 to update, 0 to delete.</title>" in seen.dom
    assert seen.shown == 7


def test_a_page_from_a_file_copies_its_digest_and_unfolds_what_is_sought(
    browser: Page, tmp_path: Path
) -> None:
    """A reviewer downloads the page from a job and opens it; its policy stays in force."""
    actions = [declared(a_ref(Kind.ACTION, f"n{at}"), an_action()) for at in range(55)]
    plan = plan_of(actions, [])
    file = tmp_path / "plan.html"
    file.write_text(plan_as_html(plan, "sqlite:x.db"), encoding="utf-8")

    browser.open(file.as_uri())
    browser.run("addEventListener('copy', () => { window.copied = String(getSelection()); })")
    browser.run("document.getElementById('copy').click()")
    copied = browser.run("[window.copied, document.getElementById('copy').textContent]")
    folded = browser.run("document.getElementById('more').open")
    browser.run("location.hash = '#text=n54'")
    browser.run("dispatchEvent(new HashChangeEvent('hashchange'))")
    sought = browser.run("document.getElementById('more').open")
    seen = browser.run("document.querySelectorAll('#changes .c:not([hidden])').length")

    assert copied == [plan_digest(plan), "Copied"]
    assert (folded, sought, seen) == (False, True, 1)


def test_the_reports_of_the_command_say_when_and_from_which_commit(run: Run, small: Any) -> None:
    """From the plan and from its file alike; the JSON and the digest do not depend on it."""
    commit = "c" * 40
    docs = ("--docs", "https://docs.example.com/reconciler")
    html = run("plan", "--format", "html", "--out", "plan.json", *docs, GITHUB_SHA=commit).out
    markdown = run("show", "plan.json", "--format", "markdown", *docs).out
    refused = run("show", "plan.json", "--docs", "javascript:alert(1)")

    made = re.search(r"<dt>Made</dt><dd><code>(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)</code>", html)
    assert made
    assert f"<dt>Commit</dt><dd><code>{commit}</code>" in html
    assert f"\n- Made `{made[1]}`, commit `{commit}`\n" in markdown
    assert "reconciler apply --digest sha256:" in html[-9000:]
    assert markdown.endswith("\n```\n")
    assert (refused.code, "is not an address for links" in refused.err) == (1, True)
