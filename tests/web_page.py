"""A page in a real browser, from an origin of its own: what a script on it does, and is told."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

from tests.node_program import WEB

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-proxy-server",
)
ANSWER_WITHIN = 90.0


class _Page(SimpleHTTPRequestHandler):
    """Serves the page, its job and its descriptors, and takes its result."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, answers: Mapping[str, bytes], told: Queue[Any]) -> None:
        self._answers = answers
        self._told = told
        super().__init__(*arguments, directory=str(WEB))

    def handle_one_request(self) -> None:
        """Take a request, or the end of a browser that is killed while it keeps a connection."""
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer what was prepared, or a file."""
        if self.path in self._answers:
            self._respond(self._answers[self.path])
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """Take the result."""
        self._told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._respond(b"")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _respond(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/octet-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def told_by_browser(job: Mapping[str, Any], descriptors: Path) -> Any:
    """Return what the page in ``tests/web`` reports of its job."""
    told: Queue[Any] = Queue()
    answers = {"/job": json.dumps(job).encode(), "/descriptors": descriptors.read_bytes()}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Page, answers=answers, told=told)) as pages:
        pages.daemon_threads = True
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        try:
            with _browser(f"http://127.0.0.1:{pages.server_address[1]}/index.html"):
                return told.get(timeout=ANSWER_WITHIN)
        finally:
            pages.shutdown()


@contextmanager
def _browser(address: str) -> Iterator[None]:
    """Open an address in a browser that knows nothing and ends with the block."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert program is not None, f"install a browser: one of {', '.join(BROWSERS)}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", address],
            env={**os.environ, "HOME": profile},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
