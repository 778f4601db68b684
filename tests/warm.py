"""Processes of the program that need not load it: copies of one that has.

A run spends half a second of processor on loading modules, a server more than one, and the tests
make thousands of runs. So one process loads them once, and copies itself (``fork``) for each run;
another one does so for servers, with what only they need. A copy is a process of its own, with its
own folder, environment, streams and exit. What a start itself does is tested with fresh
interpreters.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, Self

from reconciler import __main__ as entry
from reconciler.kinds.fields import KINDS
from reconciler.manifests.text import readable_part
from reconciler.resources import process
from reconciler.service.operations.table import load_models
from reconciler.validation.schema import accepts
from tests.shared import made_once, shared_folder
from tests.warm_client import ask, number, tell

ROOT = Path(__file__).parents[1]
_MAX_REQUEST = 1 << 20
SECONDS = 120.0  # a run that takes longer hangs
_STREAMS = ((0, "r"), (1, "w"), (2, "w"))
# What the program, or a library, loads at its first need.
_LIBRARIES = (
    *("anyio._backends._asyncio", "encodings.ascii", "encodings.idna", "httpcore", "jsonschema"),
    *("jinja2", "jsonschema_rs", "orjson", "pwd", "pyrage", "quickjs", "sqlite3", "yaml"),
)
_TRANSPORT = "reconciler.service.transport"
_STARTS = "reconciler.__main__"  # importing it runs the program
_READ_AT_START = ("PYTHON", "LANG", "LC_")
_STARTED: list[subprocess.Popen[bytes]] = []  # they end with the run of the tests


def can_be_warm(changed: Mapping[str, str]) -> bool:
    """Return whether a run is the same in a copy: an interpreter reads some variables once."""
    return not any(name.startswith(_READ_AT_START) for name in changed)


class Copy:
    """A copy that runs: as much of ``subprocess.Popen`` as the tests use of a process.

    The arguments are those of the program or, as for an interpreter, a script and its own.
    It reads ``stdin`` to its end. ``stdout`` and ``stderr`` are file descriptors; what has none is
    kept in memory, for ``communicate``.

    Attributes:
        pid: The id of its process.
        returncode: The exit code, or minus a signal; None as long as no end was seen.
        peak: The most memory that it had, in bytes; 0 as long as no end was seen.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        stdin: str = "",
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self.returncode: int | None = None
        self.peak = 0
        self._call = socket.socket(socket.AF_UNIX)
        self._call.settimeout(SECONDS)
        self._call.connect(warm_address(is_server="serve" in arguments))
        given, *self._kept = (os.memfd_create("stream") for _ in _STREAMS)
        os.write(given, stdin.encode())
        os.lseek(given, 0, os.SEEK_SET)
        out, err = self._kept
        streams = (given, out if stdout is None else stdout, err if stderr is None else stderr)
        ask(self._call, arguments, folder, environment, streams)
        os.close(given)
        self.pid = number(self._call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; return what it wrote to stdout and stderr, where these were kept.

        Raises:
            subprocess.TimeoutExpired: it runs after so many seconds.
        """
        self.wait(timeout)
        out, err = self._said
        return out, err

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return the exit code, or minus a signal.

        Raises:
            subprocess.TimeoutExpired: it runs after so many seconds.
        """
        if self.returncode is None:
            ready, _, _ = select.select([self._call], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("reconciler", timeout or 0.0)
            self.returncode = number(self._call)
            self.peak = number(self._call) << 10
            self._call.close()
            self._said = [_text(stream) for stream in self._kept]
        return self.returncode

    def send_signal(self, sent: int) -> None:
        """Send a signal to it, unless it has ended."""
        with suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, sent)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _text(stream: int) -> str:
    with os.fdopen(stream, "rb") as file:
        file.seek(0)
        return file.read().decode()


@cache
def warm_address(*, is_server: bool) -> str:
    """Return where the process that is copied is asked; the first of a run to ask starts it."""
    kind = ["serve"] if is_server else []
    folder = made_once("-".join(["warm", *kind]), partial(_start, kind))
    return f"{folder}/calls"


def _start(kind: Sequence[str], folder: Path) -> None:
    _, run = shared_folder()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", f"{folder}/calls", str(run), *kind],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    _STARTED.append(process)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"


def main(address: str, run: int, *, is_server: bool) -> NoReturn:
    """Load the program, and make copies of it until the process that runs the tests has ended."""
    _load((_STARTS,) if is_server else (_STARTS, _TRANSPORT))
    _build()
    gc.collect()
    gc.freeze()
    with closing(socket.socket(socket.AF_UNIX)) as calls:
        calls.bind(address)
        calls.listen(64)
        os.write(1, b"ready\n")
        _Keeper(calls, os.pidfd_open(run)).run()
    os._exit(0)  # what is measured of it could be written too late


class _Keeper:
    """Makes copies, and tells who asked for one its process id, exit code and peak memory in KiB.

    Many can run at the same time.
    """

    def __init__(self, calls: socket.socket, end: int) -> None:
        """Make copies for who connects to ``calls``, until ``end`` can be read."""
        self._calls = calls
        self._end = end
        self._running: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor of the process
        self._events = select.poll()
        for waited in (calls.fileno(), end):
            self._events.register(waited, select.POLLIN)

    def run(self) -> None:
        """Make copies until the end."""
        while True:
            for ready, _ in self._events.poll():
                if ready == self._end:
                    return
                if ready == self._calls.fileno():
                    self._copy(self._calls.accept()[0])
                else:
                    self._ended(ready)

    def _copy(self, call: socket.socket) -> None:
        asked, streams, _, _ = socket.recv_fds(call, _MAX_REQUEST, len(_STREAMS))
        copy = os.fork()
        if copy == 0:
            for open_here in (self._calls, call, *(other for _, other in self._running.values())):
                open_here.close()
            for descriptor in (self._end, *self._running):
                os.close(descriptor)
            _run(json.loads(asked), streams)
        for stream in streams:
            os.close(stream)
        descriptor = os.pidfd_open(copy)
        self._running[descriptor] = copy, call
        self._events.register(descriptor, select.POLLIN)
        self._tell(call, copy)

    def _ended(self, descriptor: int) -> None:
        self._events.unregister(descriptor)
        os.close(descriptor)
        copy, call = self._running.pop(descriptor)
        _, status, usage = os.wait4(copy, 0)
        self._tell(call, os.waitstatus_to_exitcode(status), usage.ru_maxrss)
        call.close()

    @staticmethod
    def _tell(call: socket.socket, *values: int) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked does not wait for it
            for value in values:
                tell(call, value)


def _load(unloaded: tuple[str, ...]) -> None:
    import reconciler

    for found in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not found.name.startswith(unloaded):
            importlib.import_module(found.name)
    for name in _LIBRARIES:
        importlib.import_module(name)


def _build() -> None:
    """Make what comes from the package alone: compiled schemas and patterns, models of requests."""
    for kind in KINDS:
        accepts(kind, {})
    readable_part("")
    load_models()


def _run(asked: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Become the program: all that a start would have set is set."""
    for at, stream in enumerate(streams):
        os.dup2(stream, at)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(at, mode, encoding="utf-8", closefd=False) for at, mode in _STREAMS
    )
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if process.VARIABLE in os.environ:
        importlib.reload(process)  # it reads it when it is loaded
    try:
        _begin(asked["arguments"])
    except SystemExit as leaving:
        _exit(leaving.code)
    _exit(0)


def _begin(arguments: list[str]) -> None:
    if arguments and arguments[0].endswith(".py"):
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        sys.argv = ["reconciler", *arguments]
        entry.main()


def _exit(code: object) -> NoReturn:
    """Leave as an interpreter does; only its modules are not taken apart, which takes longest."""
    vars(threading)["_shutdown"]()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), is_server="serve" in sys.argv[3:])
