"""The page of ``run``: every state of it, whoever looks, and in a real browser."""

from __future__ import annotations

import re
import signal
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from reconciler.cli.run.memory import Purpose
from reconciler.cli.run.page import ROWS, StatusPage
from reconciler.cli.run.status import Happened, Status
from reconciler.continuous.decision import Condition, Hold
from reconciler.continuous.heal import Left
from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.report.page import served_policy
from reconciler.resources.ref import Kind
from reconciler.state import Applied, Pause
from tests.acceptance.conftest import Run
from tests.acceptance.test_run import WITHIN, Loop, embedded, following
from tests.builders import a_ref
from tests.certificates import a_certificate
from tests.devtools import Page, open_page
from tests.hostile import HTML, hostile_plan
from tests.plain_http import NO_TRUST
from tests.rows import each_row
from tests.run_states import APPLIED, BY_ANA, IN_STEP, all_states

STATES = all_states()
MANY = 10_000
__all__ = ["embedded"]  # a fixture


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with open_page("about:blank", "--host-resolver-rules=MAP rebound.example 127.0.0.1") as page:
        yield page


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, *arguments: Any, content: str) -> None:
        self._content = content.encode()
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer the page with its policy."""
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-security-policy", served_policy())
        self.end_headers()
        self.wfile.write(self._content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(content: str) -> Iterator[str]:
    handler = partial(_Handler, content=content)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True  # the browser keeps its connections
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def drawn(status: Status, commit_url: str = "", **query: str) -> str:
    return StatusPage(commit_url).draw(status, query)


def text_of(browser: Page, content: str) -> str:
    with served(content) as address:
        browser.open(address)
        return str(browser.run("document.body.textContent"))


SAID: Mapping[str, tuple[str, ...]] = {
    "starting": ("starting", "none"),
    "in-step": ("in step", "1 to 5 of 5", APPLIED[:12], "by ci"),
    "pending": ("pending", "1 to 6 of 6", "console", "keysEndpoint"),
    "differing": ("differing", "on record as applied", "the same variables", "console"),
    "drifted": ("drifted", "By ana since 2027-01-15 07:52:11 UTC", "timeout", "removed"),
    "blocked": ("blocked", "GUARD-MANY-DELETES", "--allow-deletes"),
    "contested": ("contested", "healed three times within an hour"),
    "owed": ("owed", "storefront"),
    "paused": ("paused", "The partner is under attack", "2027-01-15 12:00:00 UTC"),
    "invalid": ("invalid", "manifests/greet.yaml:8:12", "Fix the manifests and push."),
    "unsigned": ("unsigned", "--signed-by"),
    "rewritten": ("rewritten", "--accept"),
    "untrusted": ("untrusted", "--trust-commit"),
    "unknown": ("unknown", "--applied COMMIT"),
    "failing": ("failing", "did not answer within 60 s"),
    "watching": ("watching", "Another run leads this tree"),
}


@pytest.mark.parametrize("name", sorted(STATES))
def test_each_state_says_what_is_so_and_what_to_do(browser: Page, name: str) -> None:
    """On a phone as well, where nothing is wider than the window."""
    text = text_of(browser, drawn(STATES[name]))
    missing = [said for said in SAID[name] if said not in text]

    assert missing == [], text
    browser.resize(390, 844)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    browser.resize(1080, 840)


def test_a_page_that_is_read_can_be_kept_as_it_is(browser: Page) -> None:
    """A page that loads again takes its reader's place away, which a screen reader must stop."""
    with served(drawn(IN_STEP)) as address:
        browser.open(address)
        link = browser.run("[...document.links].find(a => a.textContent.startsWith('Stop')).search")

    assert link == "?still=1"
    assert 'http-equiv="refresh"' not in drawn(IN_STEP, still="1")


def test_links_lead_to_commits(browser: Page) -> None:
    content = drawn(IN_STEP, "https://git.example.com/identity/commit/{commit}")

    assert content.count(f'href="https://git.example.com/identity/commit/{APPLIED}"') == 2
    assert "commit/" not in drawn(IN_STEP)


@each_row(
    ("query", "count"),
    [
        ({}, 6),
        ({"state": "drifted"}, 3),
        ({"state": "in step"}, 2),
        ({"state": "contested"}, 0),
        ({"kind": "Action"}, 1),
        ({"organization": "acme"}, 6),
        ({"organization": "globex"}, 0),
        ({"text": "STOREFRONT"}, 1),
        ({"text": "greet", "state": "drifted"}, 1),
        ({"cursor": "5"}, 1),
        ({"cursor": "-1"}, 6),
        ({"cursor": "99999999"}, 0),
    ],
)
def test_objects_are_searched_and_filtered(query: dict[str, str], count: int) -> None:
    content = drawn(replace(STATES["drifted"], drift=_with_unmanaged()), **query)

    assert len(re.findall(r'id="c\d+"', content)) == count
    assert ('http-equiv="refresh"' in content) == (not query)


def _with_unmanaged() -> Drift:
    drift = STATES["drifted"].drift
    assert drift is not None
    return replace(drift, unmanaged=(a_ref(Kind.ACTION_FLOW, "COMPLEMENT_TOKEN"),))


def test_ten_thousand_objects_are_shown_in_pages() -> None:
    refs = tuple(a_ref(Kind.ACTION, f"a{number:05}") for number in range(MANY))
    plan = IN_STEP.plan
    assert plan is not None
    page = StatusPage()
    status = replace(IN_STEP, plan=replace(plan, in_step=refs))
    path, found, pages = "?", list[str](), 0
    while path:
        query = dict(each.split("=") for each in path[1:].split("&") if each)
        content = page.draw(status, query)
        assert len(content) < 200_000
        found += re.findall(r">acme/(a\d+)<", content)
        onward = re.search(r'href="([^"]*)">Next page<', content)
        path, pages = unescape(onward[1]) if onward else "", pages + 1

    assert found == [ref.name for ref in refs]
    assert pages == MANY // ROWS


def test_nothing_that_others_wrote_is_obeyed(browser: Page) -> None:
    """Names, values, reasons, findings, addresses: all of it is text."""
    for text in HTML:
        cause = BY_ANA._replace(by=text, at=text, tree=text)
        ref = a_ref(Kind.ACTION, text, organization=text)
        fields = (FieldChange("script", text, f"{text}\n{text}"),)
        status = replace(
            IN_STEP,
            purpose=Purpose(text, text, text, text, ""),
            tree=text,
            plan=hostile_plan([text]),
            drift=Drift((DriftedObject(ref, text, cause, fields),), (ref,), (ref,)),
            holds=(Hold(Condition.BLOCKED, text, text),),
            left=(Left(ref, text, text),),
            pause=Pause(text, text, text, text, text),
            record=Applied(text, text, text, text),
            failures=(text,),
            timeline=(Happened(0, text),),
        )
        query = dict.fromkeys(("text", "kind", "organization", "state"), "")
        text_of(browser, drawn(status, **query))
        assert browser.run("document.documentElement.dataset.pwned") is None, text
        assert browser.run("document.querySelectorAll('script,img,iframe,b,main main').length") == 0
        assert browser.run(
            "[...document.querySelectorAll('*')].every(e => "
            "[...e.attributes].every(a => !a.name.startsWith('on') && a.name !== 'style'))"
        ), text
        assert browser.run("[...document.links].every(a => a.origin === location.origin)"), text


def test_a_run_shows_its_page_to_its_own_machine_alone(embedded: Loop, browser: Page) -> None:
    """A page of another site, whose name leads to this machine, gets nothing (DNS rebinding)."""
    follows = following(embedded, "observe", "--interval", "60m")
    follows.until(lambda state: state["commit_seen"])
    browser.open(follows.address)
    assert "pending" in browser.run("document.body.innerText")
    port = follows.address.rpartition(":")[2]
    browser.open(f"http://rebound.example:{port}/")
    refused = browser.run("document.body.innerText")

    assert "on this machine only" in refused
    assert "pending" not in refused
    for name in ("forwarded", "x-forwarded-for", "via", "x-real-ip"):
        assert follows.get("/", **{name: "10.0.0.1"}).status_code == 403
    assert follows.get("/", host="rebound.example").status_code == 403
    assert httpx.post(f"{follows.address}/", verify=NO_TRUST).status_code == 405
    policy = follows.get("/").headers
    assert policy["content-security-policy"] == served_policy()
    assert policy["x-frame-options"] == "DENY"
    follows.process.send_signal(signal.SIGTERM)
    follows.process.wait(WITHIN)


def test_a_token_opens_the_page_to_others_over_tls(embedded: Loop, tmp_path: Path) -> None:
    certificate, key = a_certificate(tmp_path)
    token = tmp_path / "page-token"
    token.write_text("look-at-it", encoding="ascii")
    token.chmod(0o600)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    more = ("--interval", "60m", "--page-token-file", str(token), *tls)
    follows = following(embedded, "observe", *more)
    assert follows.address.startswith("https://")
    url = f"{follows.address}/"

    def asked(path: str = "", **headers: str) -> httpx.Response:
        return httpx.get(url + path, headers=headers, verify=_trusting(certificate))

    def basic(password: str) -> str:
        return f"Basic {b64encode(f'ana:{password}'.encode()).decode()}"

    for path in ("", "status.json"):
        refused = asked(path)
        assert (refused.status_code, refused.headers["www-authenticate"][:5]) == (401, "Basic")
        assert asked(path, authorization=basic("guess")).status_code == 401
        assert asked(path, authorization="Bearer look-at-it").status_code == 401
        seen = asked(path, authorization=basic("look-at-it"), host="run.example.com")
        assert seen.status_code == 200
    follows.process.send_signal(signal.SIGTERM)
    follows.process.wait(WITHIN)


def test_a_renewed_certificate_of_the_page_is_read_at_a_hangup(
    embedded: Loop, tmp_path: Path
) -> None:
    """New connections get it; a bad file changes nothing, and the log says so."""
    certificate, key = a_certificate(tmp_path)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    follows = following(embedded, "observe", "--interval", "60m", *tls)
    place = urlsplit(follows.address)

    def presented() -> str:
        return ssl.get_server_certificate((str(place.hostname), place.port or 0), timeout=WITHIN)

    def hang_up(words: str) -> None:
        follows.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + WITHIN
        while words not in follows.log.read_text(encoding="utf-8"):
            assert time.monotonic() < deadline, follows.log.read_text(encoding="utf-8")
            time.sleep(0.05)

    first = presented()
    a_certificate(tmp_path)
    hang_up("was read again")
    second = presented()
    assert second == certificate.read_text(encoding="ascii") != first

    key.write_text("nonsense", encoding="ascii")
    hang_up("stays as it is: cannot use the certificate")
    assert presented() == second
    follows.process.send_signal(signal.SIGTERM)
    assert follows.process.wait(WITHIN) == 128 + signal.SIGTERM


def _trusting(certificate: Path) -> Any:
    return ssl.create_default_context(cafile=certificate)


@each_row(
    ("options", "said"),
    [
        (("--listen", "0.0.0.0:0", "--page-token-file", "t"), "would not be encrypted"),
        (("--tls-cert", "c"), "a certificate and its key go together"),
        (("--commit-url", "https://git.example.com/"), "is not the address of a commit"),
        (("--commit-url", "javascript:alert('{commit}')"), "is not the address of a commit"),
    ],
)
def test_a_page_is_shown_to_nobody_by_mistake(
    run: Run, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "t").write_text("look-at-it", encoding="ascii")
    (tmp_path / "t").chmod(0o600)
    given = ("--repository", str(tmp_path), "--service", f"sqlite:{tmp_path}/id.db")
    ended = run("run", *given, "--state", str(tmp_path / "state"), *options)

    assert ended.code == 1, ended.all
    assert said in ended.err
