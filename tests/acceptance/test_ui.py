"""The pages of ``serve`` for people, over sockets and in a real browser."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from html import unescape
from typing import Any

import httpx
import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import EMBEDDED, revoke_token
from reconciler.service.operations.request import Request
from tests.devtools import Page, open_page
from tests.examples import SCRIPT
from tests.hostile import HTML
from tests.rows import each_row
from tests.running import Server, running_server

MANY = 10_000
PAGE = 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with open_page() as page:
        yield page


def basic(token: str, name: str = "ana") -> dict[str, str]:
    return {"authorization": f"Basic {b64encode(f'{name}:{token}'.encode()).decode()}"}


def get(server: Server, path: str, by: str = "viewer", **headers: str) -> httpx.Response:
    given = {**basic(server.token(by)), **headers}
    return httpx.get(f"{server.address}{path}", headers=given, timeout=60)


def direct(
    server: Server,
    operation: str,
    fields: dict[str, Any],
    organization: str = "",
    context: str = "",
    verified: str = "",
) -> dict[str, Any]:
    """Call an operation on the store of a server, and not over its port."""
    caller = replace(EMBEDDED, verified=verified)
    with closing(open_sqlite(server.store)) as service:
        request = Request(
            operation, fields, caller=caller, organization=organization, context=context
        )
        return service.call(request)


def an_action(server: Server, organization: str, name: str, context: str = "") -> str:
    """Make an action; return its id."""
    fields = {"name": name, "script": SCRIPT}
    return str(direct(server, "CreateAction", fields, organization, context)["id"])


def seen(browser: Page, server: Server, path: str, by: str = "viewer") -> str:
    """Return the text of a page as somebody reads it."""
    browser.send_with_all(basic(server.token(by)))
    browser.open(f"{server.address}{path}")
    return str(browser.run("document.body.innerText"))


def test_a_page_needs_a_token_and_asks_for_it(server: Server) -> None:
    answer = httpx.get(f"{server.address}/ui")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="reconciler", charset="UTF-8"'
    assert "<h1>Sign in</h1>" in answer.text
    assert "acme" not in answer.text


@each_row(
    "given",
    [
        {"authorization": "Basic !"},
        {"authorization": "Basic"},
        {"authorization": f"Basic {b64encode(b'no colon').decode()}"},
        {"authorization": f"Basic {b64encode(bytes([58, 255])).decode()}"},
        {"authorization": f"Basic {b64encode(b'x' * 4000).decode()}"},
        basic("not a token"),
        basic("a\r\nx-service-orgid: 1"),
    ],
)
def test_what_is_no_valid_token_is_refused(server: Server, given: dict[str, str]) -> None:
    answer = httpx.get(f"{server.address}/ui", headers=given)

    assert answer.status_code == 401


def test_a_bearer_token_is_no_password_and_a_password_no_bearer_token(server: Server) -> None:
    """A browser that has signed in can make no call of the API, whoever sends it there."""
    assert httpx.get(f"{server.address}/ui", headers=server.bearer()).status_code == 401
    for path in ("/reconciler/v1/heads", "/management/v1/iam", "/reconciler/v1/tokens"):
        answer = get(server, path, "admin")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer ")


@each_row("verb", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_pages_are_only_read(server: Server, verb: str) -> None:
    answer = httpx.request(verb, f"{server.address}/ui", headers=basic(server.token("admin")))

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_page_runs_nothing_and_is_framed_and_kept_by_nobody(server: Server) -> None:
    for path in ("/ui", f"/ui/organizations/{server.known.organization}", "/ui/nowhere"):
        answer = get(server, path)
        policy = answer.headers["content-security-policy"]

        assert re.fullmatch(
            r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; base-uri 'none'; "
            r"form-action 'self'; frame-ancestors 'none'",
            policy,
        )
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
        assert "<script" not in answer.text


def test_each_tenant_sees_its_own_organizations(server: Server, browser: Page) -> None:
    """Another tenant's organization and its objects are as if they were not there."""
    mine, other = server.known.organization, server.known.other_organization
    hidden = an_action(server, other, "hidden")

    assert "acme" in seen(browser, server, "/ui")
    assert "other" not in get(server, "/ui").text
    assert "other" in seen(browser, server, "/ui", "stranger")
    assert "acme" not in get(server, "/ui", "stranger").text
    for path in (
        f"/ui/organizations/{other}",
        f"/ui/organizations/{other}/changes",
        f"/ui/organizations/{other}/owed",
        f"/ui/objects/{hidden}",
    ):
        missing = re.sub(r"\d{8,}", "1", path)
        theirs, none = get(server, path), get(server, missing)
        assert (theirs.status_code, theirs.text) == (404, none.text), path
        assert get(server, path, "stranger").status_code == 200
    assert get(server, f"/ui/organizations/{mine}").status_code == 200


def test_only_an_admin_sees_tokens_and_never_more_than_names(server: Server) -> None:
    shown = get(server, "/ui/tokens", "admin")

    assert get(server, "/ui/tokens").status_code == 403
    assert "/ui/tokens" not in get(server, "/ui").text
    assert "/ui/tokens" in get(server, "/ui", "admin").text
    assert all(f">{name}<" in shown.text for name in server.known.tokens)
    assert not any(token in shown.text for token in server.known.tokens.values())


def test_an_expired_and_a_revoked_token_end_what_is_seen(server: Server, browser: Page) -> None:
    """A page that refreshes itself is refused with the next look."""
    for name, change in (("short", "expires_at"), ("gone", "")):
        with closing(open_sqlite(server.store)) as service, service.store.snapshot() as view:
            row = next(each for each in view.tokens() if each.name == "viewer")
        _put_token(server, row._replace(name=name))
        assert "acme" in seen(browser, server, "/ui", name)
        if change:
            with closing(sqlite3.connect(server.store)) as connection, connection:
                connection.execute("UPDATE tokens SET expires_at = 1 WHERE name = ?", (name,))
        else:
            with closing(open_sqlite(server.store)) as service:
                revoke_token(service.store, name, int(time.time() * 1e6))

        answer = get(server, "/ui", name)
        assert answer.status_code == 401
        assert ("expired" if change else "revoked") in answer.text
        assert "acme" not in answer.text


def _put_token(server: Server, row: Any) -> None:
    from secrets import token_bytes

    from reconciler.service.operations.callers import make_token

    with closing(open_sqlite(server.store)) as service:
        token = make_token(service.store, row._replace(sha256=b""), token_bytes)
    assert token is not None
    server.known.tokens[row.name] = token.reveal()


def test_every_name_is_text_and_nothing_else(server: Server, browser: Page) -> None:
    """Whoever can write a name, a reason or a context is not obeyed by who reads it."""
    name = "<img src=x onerror=alert(1)>"
    organization = direct(server, "AddOrg", {"name": name})["id"]
    for number, text in enumerate(HTML):
        context = json.dumps({"tree": text, "revision": text, "run": text, "reason": text})
        made = an_action(server, organization, f"{text} {number}", context)
        fields = {"id": made, "name": f"{text} {number}", "script": SCRIPT, "timeout": "3s"}
        verified = json.dumps({"repository": text, text: "a key"})
        direct(server, "UpdateAction", fields, context=context, verified=verified)
    paused = {"organization": name, "tree": HTML[0], "reason": HTML[3], "seconds": 60}
    direct(server, "PauseTree", paused)
    for path in (
        "/ui",
        "/ui?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        f"/ui/organizations/{organization}",
        f"/ui/organizations/{organization}?text=%22%3E%3Csvg%20onload=alert(1)%3E",
        f"/ui/organizations/{organization}/changes",
        f"/ui/objects/{made}",
    ):
        text = seen(browser, server, path, "admin")
        assert browser.run("document.documentElement.dataset.pwned") is None
        assert browser.run("document.querySelectorAll('script,img,svg,iframe,b').length") == 0
        assert browser.run("[...document.links].every(a => a.origin === location.origin)")
        assert browser.run(
            "[...document.querySelectorAll('*')].every(e => "
            "[...e.attributes].every(a => !a.name.startsWith('on') && a.name !== 'style'))"
        )
        assert "text=" in path or any(each in text for each in (name, HTML[-1])), path


def test_ten_thousand_objects_are_shown_in_pages(server: Server, browser: Page) -> None:
    """Every one is on exactly one page, and what is searched for is found behind the first."""
    organization = direct(server, "AddOrg", {"name": "large"})["id"]
    server.put_actions(organization, MANY, 10**17)
    here = f"/ui/organizations/{organization}"
    path, found, pages = here, [], 0
    while path:
        text = get(server, path, "admin").text
        assert len(text) < 200_000
        found += re.findall(r'href="/ui/objects/([0-9]+)"', text)
        onward = re.search(r'href="([^"]*)">Next page<', text)
        path, pages = here + unescape(onward[1]) if onward else "", pages + 1

    assert len(found) == len(set(found)) == MANY + 1
    assert pages == MANY // PAGE + 1
    last = 10**17 + MANY - 1
    assert f"{last:099d}action" in seen(browser, server, f"{here}?text={last}", "admin")
    assert get(server, f"{here}?kind=Project", "admin").text.count("/ui/objects/") == 0
    assert get(server, f"{here}?state=INACTIVE", "admin").text.count("/ui/objects/") == 0
    assert "refresh" not in get(server, f"{here}?text={last}", "admin").text


def test_a_history_says_who_gave_which_field_another_value(server: Server, browser: Page) -> None:
    action = an_action(server, server.known.organization, "told", '{"tree":"shop"}')
    for number in range(PAGE + 20):
        fields = {"id": action, "name": "told", "script": SCRIPT, "timeout": f"{number % 20}s"}
        direct(server, "UpdateAction", fields, context='{"tree":"shop","revision":"c0ffee"}')
    text = seen(browser, server, f"/ui/objects/{action}")

    assert "\u2212\u00a018s" not in text, "signs are drawn by the style, not in the text"
    assert browser.run("document.querySelector('tbody tr .n').textContent") == "19s"
    assert browser.run("document.querySelector('tbody tr .o').textContent") == "18s"
    assert "revision c0ffee" in text
    assert browser.run("document.querySelectorAll('tbody tr').length") == PAGE
    assert "21 older events: reconciler history shows them." in text


def test_what_was_verified_of_a_writer_stands_beside_its_name(server: Server) -> None:
    """What it claims stands elsewhere, also where it claims that something was verified."""
    acme, run = server.known.organization, "019ab0000000" + "0" * 20
    context = json.dumps({"tree": "shop", "run": run, "repository": "evil/claims"})
    action = an_action(server, acme, "proven", context)
    fields = {"id": action, "name": "proven", "script": SCRIPT, "timeout": "3s"}
    verified = json.dumps({"rule": "ci", "repository": "acme/identity"})
    direct(server, "UpdateAction", fields, context=context, verified=verified)
    for path in (f"/ui/objects/{action}", f"/ui/organizations/{acme}/changes"):
        rows = get(server, path).text.split("<tr ")
        updated, created = [row for row in rows if run in row]

        assert "<li>verified repository <bdi>acme/identity</bdi></li>" in updated, path
        assert "<li>verified rule <bdi>ci</bdi></li>" in updated
        assert "verified" not in created
        for row in (updated, created):
            assert f"<li>run <bdi>{run}</bdi></li>" in row
            assert "evil/claims" not in row


def test_changes_are_newest_first_and_go_on(server: Server) -> None:
    organization = direct(server, "AddOrg", {"name": "busy"})["id"]
    for number in range(PAGE + 5):
        an_action(server, organization, f"a{number}")
    here = f"/ui/organizations/{organization}/changes"
    first = get(server, here, "admin").text
    onward = re.search(r'href="([^"]*)">Next page<', first)
    assert onward is not None
    second = get(server, here + unescape(onward[1]), "admin").text
    names = [re.findall(r'<bdi class="name">([^<]+)</bdi></a>', each) for each in (first, second)]

    assert names[0] + names[1] == [*(f"a{n}" for n in reversed(range(PAGE + 5))), "busy"]
    assert ('http-equiv="refresh"' in first, 'http-equiv="refresh"' in second) == (True, False)


def test_a_page_fits_a_phone_and_is_walked_with_the_keyboard(server: Server, browser: Page) -> None:
    """Nothing is wider than a phone; each cell says its column; a table is one to a reader."""
    here = f"/ui/organizations/{server.known.organization}"
    for path in ("/ui", here, f"{here}/changes", f"{here}/owed", "/ui/tokens"):
        seen(browser, server, path, "admin")
        browser.resize(390, 844)
        assert browser.run("document.documentElement.scrollWidth") <= 390, path
        assert browser.run("document.querySelectorAll('h1').length") == 1
        assert browser.run(
            "[...document.querySelectorAll('a,button,input,select')].every(e => e.tabIndex === 0)"
        )
        assert browser.run("[...document.querySelectorAll('input,select')].every(e => e.ariaLabel)")
        assert browser.run("document.querySelector('a').getAttribute('href')") == "#main"
        browser.resize(1080, 840)


def test_every_link_leads_to_a_page(server: Server) -> None:
    """Of flows and roles, whose ids have signs in them, and of what was removed, as well."""
    acme, project = server.known.organization, server.known.project
    action, removed = an_action(server, acme, "linked"), an_action(server, acme, "removed")
    flow = {"flowType": "3", "triggerType": "2", "actionIds": [action]}
    direct(server, "SetTriggerActions", flow, acme)
    role = {"projectId": project, "roleKey": "<b>/?#", "displayName": "d", "group": "g"}
    direct(server, "AddProjectRole", role, acme)
    direct(server, "DeleteAction", {"id": removed})
    seen, left = set[str](), [f"/ui/organizations/{acme}", f"/ui/organizations/{acme}/changes"]
    while left:
        path = left.pop()
        answer = get(server, path)
        assert answer.status_code == 200, path
        seen.add(path)
        found = {unescape(each) for each in re.findall(r'href="(/[^"]+)"', answer.text)}
        left = [*{*left, *found} - seen]

    assert f"/ui/objects/{removed}" in seen
    assert "/ui" in seen
    assert any(re.fullmatch(rf"/ui/objects/{acme}-3", each) for each in seen), "the flow"
