"""The page of a plan in a real browser: it filters, and obeys nothing that others wrote in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from reconciler.plan.model import Plan
from reconciler.report.html import plan_as_html
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
from tests.hostile import PAYLOADS, hostile_plan
from tests.web_page import BROWSERS, FLAGS

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
        return re.findall(r'<details class="c"[^>]*>', self.dom)

    @property
    def shown(self) -> int:
        return sum(" hidden" not in card for card in self.cards)


def in_browser(page: str, fragment: str = "") -> Seen:
    """Open a page in a browser that knows nothing, and return what became of it."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert program is not None, f"install a browser: one of {', '.join(BROWSERS)}"
    asked: list[str] = []
    handler = partial(_Handler, page=page.encode(), asked=asked)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}{PAGE}{fragment}"
        done = subprocess.run(
            [program, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", address],
            env={**os.environ, "HOME": profile},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        server.shutdown()
    return Seen(done.stdout, [path for path in asked if path not in {PAGE, "/favicon.ico"}])


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
def test_a_link_filters_the_page_as_its_controls_do(fragment: str, shown: int) -> None:
    """A reviewer sends the part that matters to somebody else."""
    seen = in_browser(plan_as_html(a_real_plan(), "sqlite:x.db"), fragment)

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


def test_a_hostile_pull_request_has_no_effect_on_the_page() -> None:
    """No script of it runs, nothing is loaded, no dialog stops the reader, and the filter works."""
    plan = hostile_plan(HOSTILE)
    text = plan_as_html(plan, "sqlite:x.db")

    seen = in_browser(text, "#risk=client-id-lost")

    assert "pwned" not in re.sub(r"<code.*?</code>|<td.*?</td>|<bdi.*?</bdi>", "", seen.dom)
    assert not re.search(r"<html[^>]*pwned", seen.dom)
    assert seen.asked == []
    assert len(seen.cards) == len(plan.changes)
    assert seen.shown == len(plan.changes) // 6


def test_even_markup_that_got_in_would_do_nothing() -> None:
    """The second line of defence, tried with what the first would never let by: the policy."""
    inside = (
        "<script>document.documentElement.dataset.pwned='script'</script>"
        f"<img src='{BEACON}'><script src='{BEACON}'></script><link rel=stylesheet href='{BEACON}'>"
        f"<iframe src='{BEACON}'></iframe><object data='{BEACON}'></object>"
        "<body onload=\"document.documentElement.dataset.pwned='handler'\">"
        f"<style>body {{ background: url('{BEACON}') }}</style><base href='https://evil.example'>"
    )
    page = plan_as_html(a_real_plan(), "sqlite:x.db").replace("<main>", f"<main>{inside}", 1)

    seen = in_browser(page)

    assert '<html lang="en">' in seen.dom
    assert seen.asked == []
    assert seen.shown == 4


def test_the_command_writes_the_page_a_reviewer_opens(run: Run, small: Any) -> None:
    """One file on stdout, whole, and nothing beside it."""
    evil = "</title><script>document.title='x'</script>"
    write(small / "evil.yaml", an_application(evil, redirectUris=["https://x.example.com/cb"]))
    ran = run("plan", "--format", "html")

    seen = in_browser(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert "<title>Plan: 7 to create, 0 to update, 0 to delete.</title>" in seen.dom
    assert seen.shown == 7
