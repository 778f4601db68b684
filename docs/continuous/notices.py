"""Receive notices of `reconciler run`, verify them, and forward them to a chat and a pager.

Usage: python3 notices.py PORT, with these environment variables:

NOTICES_KEY_FILE  the file of --notify-key-file
CHAT_URL          an incoming webhook that takes {"text": ...}, as Slack and Mattermost do
PAGER_URL         an address that takes events as PagerDuty does; PAGER_KEY is its routing key
"""

import json
import os
import re
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

LARGEST = 65536  # bytes
NEEDS_A_PERSON = {
    "failing",
    "blocked",
    "invalid",
    "rewritten",
    "unsigned",
    "untrusted",
    "unknown",
    "contested",
}


def post(url: str, fields: object) -> None:
    """Post JSON; an answer that is no success is an error."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=10):
        pass


def plain(name: str | None) -> str:
    """Return a name without characters that a chat takes for markup."""
    return re.sub(r"[^\w./: -]", "?", name or "-")[:200]


def forward(notice: dict) -> None:
    """Forward one notice."""
    data = notice["data"]
    of = f"{plain(data['environment'])}/{plain(data['tree'])}"
    text = f"{of}: {notice['type']}. {data['means']} Do: {data['do']}"
    if chat := os.environ.get("CHAT_URL"):
        post(chat, {"text": text})
    if pager := os.environ.get("PAGER_URL"):
        # The alarm follows what holds now, so that a notice that comes twice does no harm.
        is_on = bool(NEEDS_A_PERSON & {*data["conditions"]})
        event = {
            "routing_key": os.environ["PAGER_KEY"],
            "event_action": "trigger" if is_on else "resolve",
            "dedup_key": f"reconciler/{data['service']}/{of}",
            "payload": {"summary": text, "source": data["service"], "severity": "error"},
        }
        post(pager, event)


class Handler(BaseHTTPRequestHandler):
    """Answer 204 once a notice was forwarded; any other status makes `run` try again."""

    timeout = 10  # seconds without a byte

    def do_POST(self) -> None:
        """Verify and forward one notice."""
        self.send_response(self.status())
        self.send_header("content-length", "0")
        self.end_headers()

    def status(self) -> int:
        """Return the status to answer with."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return 400
        key = Path(os.environ["NOTICES_KEY_FILE"]).read_text(encoding="ascii").strip()
        try:
            notice = Webhook(key).verify(self.rfile.read(int(length)), dict(self.headers))
        except (WebhookVerificationError, ValueError):
            return 401
        try:
            forward(notice)
        except OSError as failure:
            self.log_error("not forwarded: %s", failure)
            return 502
        return 204


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
