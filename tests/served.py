"""A server of the program on a port of its own, which it keeps when it is killed and started."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.plain_http import NO_TRUST
from tests.program import Run, environment
from tests.running import start_server
from tests.warm import Copy

FRESH = ("env",)  # a command that runs a server in an interpreter of its own


@dataclass
class Served:
    """A server of the program over some store, on a port that survives it.

    Attributes:
        before: A command that runs it in an interpreter of its own, such as a tracer.
        environment: Variables in addition to those of every run.
    """

    folder: Path
    service: str
    port: int
    more: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | Copy | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.spawn()
        self.wait()

    def spawn(self) -> None:
        log = self.folder / "serve.log"
        arguments = ("--listen", f"127.0.0.1:{self.port}", *self.more)
        if not self.before:
            self.process = start_server(
                self.folder, log, self.service, *arguments, **self.environment
            )
            return
        program = (sys.executable, "-m", "reconciler", "serve", "--service", self.service)
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*self.before, *program, *arguments],
                cwd=self.folder,
                env=environment(**self.environment),
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )

    def wait(self) -> None:
        """Wait until calls are answered."""
        assert self.process is not None
        deadline = time.monotonic() + 30
        while True:
            try:
                ready = httpx.get(f"{self.address}/readyz", verify=NO_TRUST)
            except httpx.TransportError:
                assert self.process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                assert ready.status_code == 200
                return

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(30)


def a_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(
    folder: Path, service: str, *more: str, before: tuple[str, ...] = ()
) -> Iterator[Served]:
    served = Served(folder, service, a_free_port(), more, before)
    served.start()
    try:
        yield served
    finally:
        served.stop()


def a_token(run: Run, served: Served, *arguments: str) -> str:
    made = run("token", "create", "--service", served.service, *arguments)
    assert made.code == 0, made.all
    return made.out.strip()
