"""Notices of a run, to a real receiver that verifies each one."""

from __future__ import annotations

import signal
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action
from tests.acceptance.test_run import WITHIN, Loop, embedded, following, loop
from tests.certificates import a_certificate
from tests.receiver import Received, a_key_file, a_receiver, answer

__all__ = ["embedded", "loop"]  # fixtures


def noticed(loop: Loop, address: str) -> Loop:
    """Return a loop whose notices go to an address."""
    key = ("--notify-key-file", str(a_key_file(loop.folder)))
    return replace(loop, more=(*loop.more, "--notify", address, *key))


def test_each_change_of_state_is_said_once(embedded: Loop) -> None:
    """In order, signed, over several processes with one --state; no address is in the log."""
    with a_receiver() as receiver:
        loop = noticed(embedded, receiver.address)
        first = loop.repository.head
        done = [loop.once("apply"), loop.once("apply"), loop.once("apply")]
        assert receiver.types == ["run.began"], [each.all for each in done]

        second = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
        done += [loop.once("observe"), loop.once("apply")]
        loop.direct.change("greet", timeout="1s")
        done += [loop.once("observe"), loop.once("observe"), loop.once("heal"), loop.once("heal")]
        loop.push({"manifests/greet.yaml": "no: manifest"})
        done += [loop.once("apply"), loop.once("apply")]

    assert receiver.problems == []
    assert receiver.types == [
        "run.began",
        "pending.began",
        "commit.applied",
        "drifted.began",
        "drifted.ended",
        "pending.began",
        "invalid.began",
    ]
    assert len({each.id for each in receiver.tries}) == len(receiver.tries)
    data = [each.fields["data"] for each in receiver.tries]
    assert (data[0]["commit_seen"], data[0]["commit_applied"]) == (first, first)
    assert (data[1]["commit_seen"], data[1]["commit_applied"]) == (second, first)
    assert (data[3]["conditions_before"], data[3]["conditions"]) == ([], ["drifted"])
    assert data[-1]["do"].startswith("Run reconciler validate")
    said = "".join(each.all for each in done)
    assert "T0PSECRET" not in said
    assert "PARAM" not in said


def test_a_receiver_that_is_down_is_told_at_the_next_start(embedded: Loop) -> None:
    """A run ends in bounded time, says what was not sent, and the next one sends it."""
    with a_receiver() as gone:
        loop = noticed(embedded, gone.address)
    first = loop.once("apply")

    assert first.code == 0, first.all
    assert "notice run.began to 127.0.0.1 failed and is tried again: the connection failed" in (
        first.err
    )
    assert "1 notice(s) to 127.0.0.1 were not sent" in first.err
    with a_receiver(port=gone.port) as receiver:
        assert loop.once("apply").code == 0
        assert loop.once("apply").code == 0
    assert receiver.types == ["run.began"]


def test_a_try_has_a_new_time_and_the_same_id_and_order_is_kept(embedded: Loop) -> None:
    def fail_twice(received: Received, handler: BaseHTTPRequestHandler) -> None:
        answer(handler, 500 if received.number < 2 else 200)

    with a_receiver(fail_twice) as receiver:
        follows = following(noticed(embedded, receiver.address), "apply", "--interval", "1s")
        follows.until(lambda state: state["commit_applied"])
        embedded.push({"manifests/greet.yaml": "no: manifest"})
        receiver.until(lambda it: it.types[-1:] == ["invalid.began"])
        metrics = follows.get("/metrics").text
        follows.process.send_signal(signal.SIGTERM)
        follows.process.wait(WITHIN)

    first = receiver.tries[:3]
    assert len({each.id for each in first}) == 1
    assert len({each.body for each in first}) == 1
    assert len({each.headers["webhook-timestamp"] for each in first}) > 1
    assert receiver.types == [*["run.began"] * 3, "pending.began", "invalid.began"]
    assert "reconciler_run_notices_failed_total 0" in metrics
    assert "reconciler_run_notices_sent_total" in metrics


def slow(_: Received, handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    try:
        while True:
            handler.wfile.write(b"x-more: " + b"x" * 50 + b"\r\n")
    except OSError:
        pass


def huge(_: Received, handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
    try:
        while True:
            handler.wfile.write(b"x" * 65536)
    except OSError:
        pass


def test_the_content_of_an_answer_is_not_read(embedded: Loop) -> None:
    with a_receiver(huge) as receiver:
        done = noticed(embedded, receiver.address).once("apply")

    assert done.code == 0, done.all
    assert receiver.types == ["run.began"]
    assert "notice" not in done.err


def test_headers_without_an_end_are_a_failure(embedded: Loop) -> None:
    with a_receiver(slow) as receiver:
        done = noticed(embedded, receiver.address).once("apply")

    assert done.code == 0, done.all
    assert {*receiver.types} == {"run.began"}
    assert "1 notice(s) to 127.0.0.1 were not sent" in done.err


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(embedded: Loop, status: int) -> None:
    with a_receiver() as other:

        def redirect(_: Received, handler: BaseHTTPRequestHandler) -> None:
            answer(handler, status, location=other.address)

        with a_receiver(redirect) as receiver:
            done = noticed(embedded, receiver.address).once("apply")

    assert f"HTTP status {status}" in done.err
    assert other.tries == []
    assert receiver.problems == other.problems == []


def test_a_receiver_that_is_gone_is_not_asked_again(embedded: Loop) -> None:
    with a_receiver(lambda _, handler: answer(handler, 410)) as receiver:
        done = noticed(embedded, receiver.address).once("apply")

    assert receiver.types == ["run.began"]
    assert "notice run.began to 127.0.0.1 is given up: HTTP status 410" in done.err


def test_a_receiver_needs_a_certificate_that_counts(embedded: Loop, tmp_path: Path) -> None:
    """SSL_CERT_FILE names its authority, as for the service."""
    pair = a_certificate(tmp_path)
    with a_receiver(certificate=pair) as receiver:
        loop = noticed(embedded, receiver.address)
        refused = loop.once("apply")
        assert receiver.tries == []
        taken = loop.once("apply", SSL_CERT_FILE=str(pair[0]))

    assert "no encrypted connection could be made" in refused.err
    assert taken.code == 0, taken.all
    assert receiver.types == ["run.began"]


def test_a_signal_ends_a_run_whose_receiver_hangs(embedded: Loop) -> None:
    """What is queued is tried for a bounded time; rounds went on meanwhile."""

    def hang(_: Received, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(1)

    with a_receiver(hang) as receiver:
        follows = following(noticed(embedded, receiver.address), "apply", "--interval", "1s")
        receiver.until(lambda it: bool(it.tries))
        commit = embedded.push({"manifests/greet.yaml": an_action(timeout="5s")})
        follows.until(lambda state: state["commit_applied"] == commit)
        follows.until(lambda _: "reconciler_run_notices_waiting 2" in follows.get("/metrics").text)
        follows.process.send_signal(signal.SIGTERM)
        assert follows.process.wait(WITHIN) == 128 + signal.SIGTERM

    assert "notice(s) to 127.0.0.1 were not sent" in follows.log.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://hooks.example.com/T0PSECRET", "http would send the notices unencrypted"),
        ("https://user:T0PSECRET@hooks.example.com/", "it holds a user or a password"),
        ("https://hooks.example.com:99999/T0PSECRET", "it cannot be read"),
        ("https://hooks.example.com/T0P SECRET", "it cannot be read"),
        ("file:///T0PSECRET", "it cannot be read"),
        ("T0PSECRET", "it cannot be read"),
    ],
)
def test_an_address_that_is_refused_is_not_shown(
    embedded: Loop, address: str, problem: str
) -> None:
    refused = noticed(embedded, address).once("apply")

    assert refused.code == 1, refused.all
    assert problem in refused.err
    assert "SECRET" not in refused.all


def test_a_key_is_private_and_long_enough(embedded: Loop) -> None:
    loop = noticed(embedded, "https://hooks.example.com/")
    file = loop.folder / "notices.key"
    file.chmod(0o644)
    assert "can be read by others" in loop.once("apply").err
    file.chmod(0o600)
    file.write_text("whsec_c2hvcnQ=", encoding="ascii")
    refused = loop.once("apply")
    assert "holds no key of notices" in refused.err
    assert "c2hvcnQ" not in refused.all


def test_an_address_and_a_key_go_together(run: Run, embedded: Loop) -> None:
    alone = replace(embedded, more=("--notify", "https://hooks.example.com/"))

    assert "notices need an address and a key" in alone.once("apply").err


@pytest.mark.parametrize("loop", ["served"], indirect=True)
def test_of_two_runs_the_one_that_leads_sends(loop: Loop) -> None:
    """The one that takes over after a kill begins with what holds then."""
    with a_receiver() as receiver:
        both = noticed(loop, receiver.address)
        first = following(both, "apply", "--interval", "60m")
        first.until(lambda state: state["commit_applied"])
        receiver.until(lambda it: it.types == ["run.began"])
        loop.push({"manifests/greet.yaml": "no: manifest"})
        assert both.once("apply", state="other").code == 6
        assert receiver.types == ["run.began"]

        first.process.send_signal(signal.SIGKILL)
        first.process.wait(WITHIN)
        both.once("apply", state="other")

    assert receiver.problems == []
    assert receiver.types == ["run.began", "run.began"]
    assert receiver.tries[1].fields["data"]["conditions"] == ["pending", "invalid"]


def test_a_pause_and_its_end_are_said(embedded: Loop) -> None:
    with a_receiver() as receiver:
        noticing = noticed(embedded, receiver.address)
        assert noticing.once("apply").code == 0
        paused = noticing.run(
            "pause", "--service", noticing.service, "--reason", "hunter2", "--organization", "acme"
        )
        assert paused.code == 0, paused.all
        noticing.once("apply")
        resumed = noticing.run("resume", "--service", noticing.service, "--organization", "acme")
        assert resumed.code == 0, resumed.all
        noticing.once("apply")

    assert receiver.problems == []
    assert receiver.types == ["run.began", "paused.began", "paused.ended"]
    assert "hunter2" not in "".join(each.body for each in receiver.tries)
