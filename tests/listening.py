"""An ASGI application on a port of this machine, in a thread, for as long as a test takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

START_WITHIN = 20.0


@contextmanager
def listening(
    app: ASGIApp, certificate: Path | None = None, key: Path | None = None
) -> Iterator[str]:
    """Serve an application; yield its address."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_level="critical",
        lifespan="off",
        ws="none",
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with config.bind_socket() as sock:
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        deadline = time.monotonic() + START_WITHIN
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        yield f"http{'s' if certificate else ''}://127.0.0.1:{sock.getsockname()[1]}"
        server.should_exit = True
        thread.join(START_WITHIN)
