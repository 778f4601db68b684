"""The table of notices is complete, and the receiver of the docs does what they say."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from reconciler.continuous.notices import APPLIED, BEGAN, WORDS
from tests.plain_http import NO_TRUST
from tests.program import ROOT
from tests.receiver import KEY, WITHIN, a_key_file

DOCS = ROOT / "docs"
RECEIVER = DOCS / "continuous" / "notices.py"


def test_the_table_has_every_notice_in_the_words_of_the_notices() -> None:
    text = (DOCS / "continuous.md").read_text(encoding="utf-8")

    for condition, (means, do) in WORDS.items():
        assert f"| `{condition}.began` | {means} | {do} |" in text
    for each in (BEGAN, APPLIED.type):
        assert f"| `{each}` |" in text, each


@contextmanager
def forwarded() -> Iterator[tuple[str, list[Any]]]:
    """Take what a recipe forwards: its path and fields."""
    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fields = json.loads(self.rfile.read(int(self.headers["content-length"])))
            taken.append((self.path, fields))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def a_notice(*conditions: str, tree: str = "default") -> str:
    data = {
        "tree": tree,
        "environment": None,
        "service": "https://id.example.com",
        "conditions": conditions,
        "means": "It means this.",
        "do": "Do that.",
    }
    return json.dumps({"type": "blocked.began", "timestamp": "now", "data": data})


def sent(address: str, body: str, key: str = KEY) -> int:
    """Send a notice; return the status, once the receiver listens."""
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(key).sign("msg_1", now, body),
    }
    deadline = time.monotonic() + WITHIN
    while True:
        try:
            return httpx.post(address, content=body, headers=headers, verify=NO_TRUST).status_code
        except httpx.ConnectError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def port() -> int:
    """Return a port that nothing listens on."""
    with closing(HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).socket) as free:
        return int(free.getsockname()[1])


def test_the_receiver_verifies_and_forwards(tmp_path: Path, port: int) -> None:
    """To the chat as a line without markup, to the pager as an alarm that goes on and off."""
    with forwarded() as (address, taken):
        known = {
            "NOTICES_KEY_FILE": str(a_key_file(tmp_path)),
            "CHAT_URL": f"{address}/chat",
            "PAGER_URL": f"{address}/pager",
            "PAGER_KEY": "routing",
        }
        process = Popen([sys.executable, str(RECEIVER), str(port)], env=known)
        try:
            own = f"http://127.0.0.1:{port}/"
            assert sent(own, a_notice(), f"whsec_{'A' * 44}") == 401
            assert taken == []
            assert sent(own, a_notice("pending", "blocked", tree="<!channel> [x](y)")) == 204
            assert sent(own, a_notice("drifted")) == 204
        finally:
            process.terminate()
            process.wait()
        assert sent_down(tmp_path, port) == 502

    text = "-/??channel? ?x??y?: blocked.began. It means this. Do: Do that."
    assert taken[0] == ("/chat", {"text": text})
    events = [fields for path, fields in taken if path == "/pager"]
    assert [each["event_action"] for each in events] == ["trigger", "resolve"]
    assert events[0]["payload"]["summary"] == text


def sent_down(folder: Path, port: int) -> int:
    """Return the status where the chat is down: ``run`` has to try again."""
    known = {"NOTICES_KEY_FILE": str(a_key_file(folder)), "CHAT_URL": "http://127.0.0.1:9/"}
    process = Popen([sys.executable, str(RECEIVER), str(port)], env=known)
    try:
        return sent(f"http://127.0.0.1:{port}/", a_notice())
    finally:
        process.terminate()
        process.wait()
