"""What a run answers on its address, to whom."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reconciler.cli.run.listening import Pages
from reconciler.cli.run.memory import Purpose
from reconciler.cli.run.status import Status
from reconciler.continuous.decision import Condition
from reconciler.resources.secret import Secret
from tests.rows import each_row

PURPOSE = Purpose("/srv/a.git", "refs/heads/main", "sqlite:/srv/id.db", "", "")
READY = Status(PURPOSE, rounds=1, conditions=(Condition.PAUSED,))


def asked(
    pages: Pages, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[bytes, bytes]]:
    """Return status, content and headers of an answer."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = {"host": "127.0.0.1:8380", **headers}
    scope = {
        "method": method,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in given.items()
        ],
    }
    asyncio.run(pages(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], dict(sent[0]["headers"])


def pages(status: Status = READY, *, bearer: str = "", is_loopback: bool = True) -> Pages:
    secret = Secret(bearer) if bearer else None
    return Pages(lambda: status, lambda: None, secret, is_loopback)


@each_row(
    ("host", "status"),
    [
        ("127.0.0.1:8380", 200),
        ("localhost", 200),
        ("localhost:8380", 200),
        ("[::1]:8380", 200),
        ("[::1]", 200),
        ("evil.example.com", 403),
        ("evil.example.com:8380", 403),
        ("127.0.0.1.evil.example.com", 403),
        ("localhost.evil.example.com:8380", 403),
        ("10.0.0.1:8380", 403),
        ("", 403),
    ],
)
def test_the_state_answers_to_a_loopback_host_alone(host: str, status: int) -> None:
    """A page of another site may make its own name resolve to this machine."""
    assert asked(pages(), "/status.json", host=host)[0] == status


@each_row("header", ["forwarded", "x_forwarded_for", "x_forwarded_host", "x_forwarded_proto"])
def test_a_forwarded_request_gets_no_state(header: str) -> None:
    assert asked(pages(), "/status.json", **{header: "x"})[0] == 403
    assert asked(pages(), "/healthz", **{header: "x"})[0] == 200


def test_on_another_address_there_is_no_state() -> None:
    """Probes and figures name no object."""
    elsewhere = pages(is_loopback=False)

    assert asked(elsewhere, "/status.json")[0] == 404
    for path in ("/healthz", "/readyz", "/metrics"):
        assert asked(elsewhere, path, host="10.0.0.1:8380")[0] == 200


def test_a_run_is_ready_once_a_round_did_all_of_its_work() -> None:
    assert asked(pages(Status(PURPOSE)), "/readyz")[0] == 503
    assert asked(pages(READY), "/readyz")[0] == 200
    failing = Status(PURPOSE, rounds=2, failures=("git failed",))
    assert asked(pages(failing), "/readyz")[0] == 503
    assert asked(pages(failing), "/healthz")[0] == 200


def test_a_run_that_ends_no_round_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Status(PURPOSE, rounds=1, round_at=1000)
    monkeypatch.setattr("time.time", lambda: 1000.0 + 3601)

    assert asked(pages(late), "/healthz")[0] == 503


def test_every_condition_is_a_figure() -> None:
    _, content, _ = asked(pages(), "/metrics")
    lines = content.decode().splitlines()

    assert 'reconciler_run_condition{condition="paused"} 1' in lines
    assert len([line for line in lines if line.endswith("} 0")]) == len(Condition) - 1


def test_no_answer_is_kept_or_sniffed() -> None:
    for path in ("/status.json", "/nowhere", "/trigger"):
        headers = asked(pages(), path)[2]
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"x-content-type-options"] == b"nosniff"


def test_a_trigger_needs_its_token_by_post() -> None:
    open_to = pages(bearer="let-me-in")

    assert asked(pages(), "/trigger", "POST")[0] == 404
    assert asked(open_to, "/trigger", authorization="Bearer let-me-in")[0] == 405
    assert asked(open_to, "/trigger", "POST")[0] == 401
    assert asked(open_to, "/trigger", "POST", authorization="let-me-in")[0] == 401
    assert asked(open_to, "/trigger", "POST", authorization="Bearer let-me-in ")[0] == 401
    assert asked(open_to, "/trigger", "POST", authorization="Bearer let-me-in")[0] == 202
