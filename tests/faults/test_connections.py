"""Too many connections, and silent ones: bounded, logged, and others are not kept out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from reconciler.service.transport.limits import Limits
from reconciler.service.transport.room import RESERVED, fitted
from reconciler.service.transport.splice import REFUSED
from tests import h2
from tests.acceptance.test_remote import Served, a_free_port

FILES = 320
LIMITS = fitted(Limits(), FILES)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run a server that may have few files open, and even fewer until it asks for more."""
    folder = tmp_path_factory.mktemp("few")
    command = f'ulimit -Sn {FILES - 64}; ulimit -Hn {FILES}; exec "$@"'
    server = Served(folder, "sqlite:identity.db", a_free_port(), before=("sh", "-c", command, "sh"))
    server.start()
    yield server
    server.stop()
    assert "Traceback" not in log_of(server)


def log_of(server: Served) -> str:
    return (server.folder / "serve.log").read_text(encoding="utf-8")


def open_files(server: Served) -> int:
    assert server.process is not None
    return sum(1 for _ in Path(f"/proc/{server.process.pid}/fd").iterdir())


def connected(server: Served, say: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    made.sendall(say)
    return made


def test_a_server_raises_its_limit_of_files_and_says_what_it_has(served: Served) -> None:
    """Its limits of connections follow from it."""
    said = (
        f"open files: at most {FILES}; connections: at most {LIMITS.connections}, "
        f"{LIMITS.http2_connections} of them over HTTP/2"
    )

    deadline = time.monotonic() + 5
    while said not in log_of(served) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert said in log_of(served)


def test_silent_connections_keep_nobody_out(served: Served) -> None:
    """There are more of them than the server has files; one that asks is answered all the same."""
    before = log_of(served).count("connections refused")
    with ExitStack() as opened:
        for _ in range(FILES):
            opened.enter_context(closing(connected(served)))
        assert open_files(served) < FILES
        time.sleep(1.1)  # younger ones are left alone
        assert httpx.get(f"{served.address}/healthz").status_code == 200
    lines = log_of(served).count("connections refused") - before

    assert 1 <= lines <= 3


def test_idle_connections_over_http_2_keep_nobody_out(served: Served) -> None:
    """One too many is sent away while all are new; later the one that is idle for longest is."""
    with ExitStack() as opened:
        hello = h2.PREFACE + h2.frame(h2.SETTINGS)
        many = [
            opened.enter_context(closing(connected(served, hello)))
            for _ in range(LIMITS.http2_connections)
        ]
        for made in many:
            assert made.recv(9)  # its place is taken
        refused = opened.enter_context(closing(connected(served, hello)))
        assert refused.recv(1024) == REFUSED
        time.sleep(1.1)  # younger ones are left alone
        with h2.connected(served.port) as later:
            assert later.settings()
        assert any(_is_over(made) for made in many)
        assert open_files(served) < FILES


def _is_over(made: socket.socket) -> bool:
    """Return whether the other side has hung up."""
    made.settimeout(0.2)
    try:
        while made.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("files", [64, 256, 300, 512, 1024, 4096, 1_000_000])
def test_limits_fit_the_files_a_process_may_open(files: int) -> None:
    """Three for a connection over HTTP/2; and some are kept for the store."""
    limits = fitted(Limits(), files)

    assert limits.http2_connections >= 1
    assert limits.connections > limits.http2_connections
    assert limits.connections + 2 * limits.http2_connections + RESERVED <= max(files, RESERVED + 16)
    if files >= 4096:
        assert limits == Limits()
