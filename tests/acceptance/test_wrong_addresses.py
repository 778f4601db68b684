"""A wrong address is told at once and truly; what may pass is tried again, and that is shown."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from reconciler.service_client.http_wire import Limits
from tests.acceptance.conftest import Run, write
from tests.certificates import DAY, a_certificate
from tests.faults.http_client.strange import JSON, Strange
from tests.listening import listening
from tests.rows import each_row
from tests.terminal import on_terminal
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, FakeZitadel

TOKEN = {"RECONCILER_TOKEN": "rct_canary-that-must-not-be-seen"}
HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = b"<!doctype html><title>Welcome</title>"
MOST_REQUESTS = 8
"""Without a retry: to learn the kind of service, and what a ZITADEL's user sees."""


def wrong(address: str, problem: str, remedy: str) -> re.Pattern[str]:
    """Return the pattern of the error of an address, and of what to do."""
    return re.compile(f"Error: {problem.format(re.escape(address))}\n  {remedy}")


@each_row(
    ("status", "headers", "problem", "remedy"),
    [
        *(
            (status, HTML,
             f"{{}} is not an identity service: it answered with a web page .HTTP status {status}.",
             "Correct the address in --service.")
            for status in (200, 400, 401, 403, 404, 405)
        ),
        (413, HTML,
         "a proxy before {} takes no request as large as this one .HTTP status 413.",
         "Let it take bodies of 1 MiB"),
        (200, {"content-type": "text/plain"},
         "the service answered with something that is not JSON", "Check the address in --service"),
        (200, JSON, "the service's answer cannot be read: it .*", "Check the address in --service"),
        (404, {"content-type": "text/plain"},
         "the address does not know a call of an identity service .HTTP status 404.",
         "Check the address in --service"),
        (204, {}, "the service answered with status 204, .*", "Check the address in --service"),
        (302, {"location": "https://ben:pw@id.example.com/reconciler/v1/service?next=secret#top"},
         "{} redirects to https://id.example.com/reconciler/v1/service, and redirects are .*",
         "If the service is there, write --service https://id.example.com. "),
        (307, {"location": "/login?to=secret"},
         "{0} redirects to {0}/login, and redirects are not followed",
         "If the service is there, write the address it has now. "),
        (301, {"location": "http://[::1"},
         "{} redirects to another address that cannot be read, .*", "If the service is there"),
        (308, {}, "{} redirects to .*", "It leads back to itself. Correct the address"),
        (302, {"location": "?"}, "{} redirects to .*", "It leads back to itself."),
    ],
)  # fmt: skip
def test_what_is_no_identity_service_is_told_as_what_it_is(
    run: Run, small: Path, status: int, headers: Mapping[str, str], problem: str, remedy: str
) -> None:
    """After a few requests: to run the command again would not help."""
    strange = Strange((status, headers, b"" if status in {204, 302} else PAGE))
    with listening(strange) as address:
        for command in (["plan"], ["apply", "--auto-approve", "--secrets-to", "file:kept"]):
            told = run(*command, "--service", address, **TOKEN)

            assert told.code in {1, 7}
            assert wrong(address, problem, remedy).search(told.err), told.err
            assert "un the command again" not in told.err
            assert "secret#" not in told.all
            assert "canary" not in told.all
            assert len(strange.asked) <= MOST_REQUESTS
            strange.asked.clear()


@each_row(
    ("made", "word", "remedy"),
    [
        ({"begins": -3 * DAY, "ends": -DAY}, "has expired", "Renew it on the server."),
        ({"begins": DAY, "ends": 3 * DAY}, "is not valid yet", "Set this machine's clock."),
        ({"host": "id.example.com"}, "is for another name than 127.0.0.1",
         "Write the name that it is for in --service"),
        ({}, "is of an unknown authority", "Install the certificate authority"),
        ({"is_signed": True}, "is of an unknown authority",
         "Install the certificate authority .* let the server send its intermediate"),
    ],
)  # fmt: skip
def test_a_certificate_that_is_refused_says_why_in_its_own_word(
    run: Run,
    small: Path,
    tmp_path: Path,
    made: dict[str, Any],
    word: str,
    remedy: str,
) -> None:
    """The token is not sent, and nothing is tried again."""
    certificate, key = a_certificate(tmp_path, **made)
    trust = {} if "authority" in word else {"SSL_CERT_FILE": str(certificate)}
    strange = Strange((200, JSON, b"{}"))
    with listening(strange, certificate, key) as address:
        told = run("plan", "--service", address, **TOKEN, **trust)

        assert told.code == 1
        assert wrong(address, f"the certificate of {{}} {word}", remedy).search(told.err), told.err
    assert strange.asked == []


def test_http_where_the_server_speaks_tls_and_the_other_way_round_is_told(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """To run the command again would not help."""
    strange = Strange((200, JSON, b"{}"))
    with listening(strange, *a_certificate(tmp_path)) as tls, listening(strange) as plain:
        for address, problem in (
            (tls.replace("https:", "http:"), "the service did not answer .the connection failed."),
            (plain.replace("http:", "https:"), "{} cannot be reached .no encrypted connection .*"),
        ):
            told = run("plan", "--service", address, **TOKEN)

            assert told.code == 1
            remedy = r"Check the address in --service \(http or https\)"
            assert wrong(address, problem, remedy).search(told.err), told.err
    assert strange.asked == []


@contextmanager
def swallowing_packets() -> Iterator[str]:
    """Yield an address where no connection is ever made: Linux drops them, the queue is full."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"], ["doctor"]])
def test_an_address_that_swallows_packets_is_tried_once(
    run: Run, small: Path, command: list[str]
) -> None:
    """Nobody waits 15 s to learn of a wrong digit: one try, of 1.5 s at most."""
    with swallowing_packets() as address:
        told = run(*command, "--service", address, "--verbose", **TOKEN)

    tries = re.findall(r"^GET .*: no answer, (\d+) ms$", told.err, re.MULTILINE)
    assert told.code == 1, told.all
    assert len(tries) == 1, told.err
    assert int(tries[0]) < 1000 * Limits().connect
    assert f"{address} cannot be reached (it took too long)" in told.all
    assert "Check the address in --service, the network and any firewall" in told.all


def test_a_service_that_fails_for_a_moment_is_asked_again_and_each_time_is_shown(
    tmp_path: Path, small: Path
) -> None:
    """On a terminal; a log has nothing of it, nor with --quiet."""
    failing = [(status, HTML, PAGE) for status in (502, 503, 504)]
    ended = (302, {"location": "/elsewhere"}, b"")
    for quiet in ([], ["--quiet"]):
        strange = Strange(*failing, ended)
        with listening(strange) as address:
            told = on_terminal(tmp_path, "plan", "--service", address, *quiet, **TOKEN)

        shown = re.findall(
            r"^Trying again in \d\.\d s: the service failed: HTTP status (50\d)\.$",
            told.out,
            re.MULTILINE,
        )
        assert shown == ([] if quiet else ["502", "503", "504"]), told.out
        assert len(strange.asked) == 4


def test_no_retry_is_told_to_a_log(run: Run, small: Path) -> None:
    strange = Strange((502, HTML, PAGE), (302, {"location": "/elsewhere"}, b""))
    with listening(strange) as address:
        told = run("plan", "--service", address, **TOKEN)

    assert "again" not in told.err
    assert len(strange.asked) == 2


@pytest.mark.parametrize("version", [NEWEST, OLDER])
def test_behind_a_filter_that_answers_with_pages_a_zitadel_is_still_known(
    run: Run, small: Path, version: str
) -> None:
    """A proxy that lets only the calls of a ZITADEL through answers all others with a page."""
    fake = FakeZitadel(version=version)
    zitadel = fake.app()

    async def filtered(scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["path"].startswith("/reconciler/")
        await (Strange((404, HTML, PAGE)) if is_ours else zitadel)(scope, receive, send)

    with listening(filtered) as address:
        planned = run("plan", "--format", "json", "--service", address, RECONCILER_TOKEN=IAM)

    assert planned.code == 0, planned.all
    assert planned.json["summary"]["create"] > 0


def test_who_signs_in_with_a_key_file_is_told_the_same(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Before the first call a token is asked for, at the same address."""
    key = json.dumps({"userId": "7", "keyId": "9", "key": "secret"})
    write(tmp_path / "key.json", key).chmod(0o600)
    certificate, private = a_certificate(tmp_path, begins=-3 * DAY, ends=-DAY)
    trust = {"SSL_CERT_FILE": str(certificate)}
    page, away = (200, HTML, PAGE), (302, {"location": "/sign-in"}, b"")
    for answer, tls, problem in (
        (page, (), "{} is not an identity service: it answered with a web page"),
        (away, (), "{0} redirects to {0}/sign-in"),
        (page, (certificate, private), "the certificate of {} has expired"),
    ):
        strange = Strange(answer)
        with listening(strange, *tls) as address:
            told = run("plan", "--service", address, "--key-file", "key.json", **trust)

        assert told.code == 1, told.all
        assert f"Error: {problem.format(address)}" in told.err
        assert "un the command again" not in told.err
        assert len(strange.asked) <= 1
