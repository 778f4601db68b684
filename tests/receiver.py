"""A receiver of notices: a server that verifies each with ``standardwebhooks``, or misbehaves."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

KEY = f"whsec_{base64.b64encode(b'k' * 32).decode()}"
WITHIN = 30.0
Answer = Callable[["Received", BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Received:
    """One try of a notice that was verified."""

    path: str
    headers: dict[str, str]
    body: str
    number: int

    @property
    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        return str(self.fields["type"])

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


def accept(_: Received, handler: BaseHTTPRequestHandler) -> None:
    answer(handler, 204)


def answer(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("content-length", "0")
    handler.end_headers()


@dataclass
class Receiver:
    """What came, in order; ``answers`` says what is answered to a try."""

    address: str = ""
    port: int = 0
    answers: Answer = accept
    tries: list[Received] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [each.type for each in self.tries]

    def until(self, is_so: Callable[[Receiver], bool]) -> None:
        """Wait until what came is so."""
        deadline = time.monotonic() + WITHIN
        while not is_so(self):
            assert time.monotonic() < deadline, (self.types, self.problems)
            time.sleep(0.02)
        assert self.problems == []


@contextmanager
def a_receiver(
    answers: Answer = accept, certificate: tuple[Path, Path] | None = None, port: int = 0
) -> Iterator[Receiver]:
    """Receive notices on a loopback address as long as the block runs."""
    made = Receiver(answers=answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                Webhook(KEY).verify(body, headers)
            except (WebhookVerificationError, ValueError) as problem:
                made.problems.append(repr(problem))
            received = Received(self.path, headers, body, len(made.tries))
            made.tries.append(received)
            made.answers(received, self)

        def do_GET(self) -> None:
            made.problems.append("a redirect was followed")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    made.port = int(server.server_address[1])
    made.address = f"{scheme}://127.0.0.1:{made.port}/hooks/T0PSECRET?k=PARAM"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def a_key_file(folder: Path) -> Path:
    file = folder / "notices.key"
    file.write_text(f"{KEY}\n", encoding="ascii")
    file.chmod(0o600)
    return file
