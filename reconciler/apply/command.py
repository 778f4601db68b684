"""Commands of the operator that take secrets: started without a shell, stopped with the run.

A command comes from a flag or the environment only, never from anything that is read from a tree.
A secret reaches it on its standard input; its environment has no credential of ours.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from reconciler.apply.sink import Stops
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.call import JsonObject

SECONDS = 60.0
# A command in the midst of a batch gets this long to end once the run is asked to stop; then it
# gets SIGTERM, and after some more time SIGKILL.
GRACE_SECONDS = 10.0
TERMINATED_SECONDS = 5.0
POLL_SECONDS = 0.1
ANSWER_BYTES = 4096
OURS = ("RECONCILER_TOKEN", "RECONCILER_ID_TOKEN")

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class Exchange:
    """The result of giving lines to a command.

    Attributes:
        given: How many lines were written completely; always the first ones.
        answers: The JSON objects that it answered, by their ``client_id``.
        failure: How it failed, in words; empty if it ended with exit code 0.
    """

    given: int = 0
    answers: Mapping[str, JsonObject] = field(default_factory=dict)
    failure: str = ""


class Command:
    """A command line, the environment it is started with, and how many may run at once."""

    def __init__(self, line: str, environment: Mapping[str, str], parallel: int) -> None:
        """Take a command line.

        Raises:
            UsageError: it cannot be split into words, or is empty.
        """
        self.parallel = parallel
        self._environment = {name: environment[name] for name in environment if name not in OURS}
        try:
            self._words = shlex.split(line)
        except ValueError as failure:
            raise UsageError(
                f"the command of exec: cannot be read: {failure}",
                remedy="Close every quote: --secrets-to 'exec:vault-put --field client_secret'.",
            ) from None
        if not self._words:
            raise UsageError("exec: needs a command", remedy="Write --secrets-to exec:COMMAND.")

    @property
    def name(self) -> str:
        """Return the program."""
        return self._words[0]

    def find(self) -> None:
        """Find the program.

        Raises:
            LocalFileError: it is not there.
        """
        if shutil.which(self.name) is None:
            raise LocalFileError(
                f"the program {self.name}, which is to take secrets, was not found",
                remedy="Install it, or name it by its path in --secrets-to exec:COMMAND.",
            )

    def feed(self, content: bytes, about: Mapping[str, str], abort: threading.Event) -> str:
        """Run the command with this on its standard input; return how it failed, or nothing.

        Its output is not shown: it could hold the secret.
        """
        try:
            process = subprocess.Popen(
                self._words,
                env={**self._environment, **about},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as failure:
            return type(failure).__name__
        with _ended(process):
            return _fed(process, content, abort)

    def exchange(
        self, verb: str, lines: Sequence[str], stops: Stops, abort: threading.Event
    ) -> Exchange:
        """Run the command with a verb, give it lines, and read what it answers.

        It has a process group of its own, so that Ctrl-C in a terminal does not reach it.
        """
        try:
            process = subprocess.Popen(
                [*self._words, verb],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except OSError as failure:
            return Exchange(failure=type(failure).__name__)
        with _ended(process):
            return _Talk(process, [line.encode() + b"\n" for line in lines], stops, abort).run()

    def several_at_once(
        self, work: Callable[[Item, threading.Event], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Work on items, ``parallel`` at a time. An exception, such as a signal, aborts all."""
        abort = threading.Event()

        def aborting(item: Item) -> Result:
            try:
                return work(item, abort)
            except BaseException:
                abort.set()
                raise

        # A second signal is raised here, in the main thread, while it waits for the others.
        with ThreadPoolExecutor(self.parallel) as pool:
            try:
                return list(pool.map(aborting, items))
            except BaseException:
                abort.set()
                raise


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the process if it still runs at the end, and wait for it."""
    with process:
        try:
            yield
        finally:
            process.kill()


def _fed(process: subprocess.Popen[bytes], content: bytes, abort: threading.Event) -> str:
    deadline = time.monotonic() + SECONDS
    given: bytes | None = content
    while time.monotonic() < deadline:
        try:
            process.communicate(given, timeout=POLL_SECONDS)
        except subprocess.TimeoutExpired:
            given = None
            if abort.is_set():
                return "interrupted"
            continue
        return f"exit code {process.returncode}" if process.returncode else ""
    return f"not done within {SECONDS:.0f} s"


@dataclass(slots=True, repr=False)  # its lines hold secrets, which no traceback is to show
class _Talk:
    """Gives lines to a process and reads its answers at the same time, so that neither waits."""

    process: subprocess.Popen[bytes]
    lines: Sequence[bytes]
    stops: Stops
    abort: threading.Event
    read: bytearray = field(default_factory=bytearray)
    given: int = 0
    rest: memoryview = field(default_factory=lambda: memoryview(b""))  # of the line being given
    stopped_at: float = 0.0  # when the run was asked to stop; 0 before that
    is_terminated: bool = False

    def run(self) -> Exchange:
        """Talk until the process closes its output, or has to be ended."""
        failure = self._talk() or self._ending()
        found = [_answer(line) for line in bytes(self.read).splitlines()]
        return Exchange(self.given, {str(one["client_id"]): one for one in found if one}, failure)

    def _talk(self) -> str:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise AssertionError("both are pipes")
        with selectors.DefaultSelector() as selector:
            for stream, event in ((stdin, selectors.EVENT_WRITE), (stdout, selectors.EVENT_READ)):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, event)
            moved = time.monotonic()
            while True:
                events = selector.select(POLL_SECONDS)
                for key, _ in events:
                    if key.fileobj is stdout and not self._receive(stdout.fileno()):
                        return ""
                    if key.fileobj is stdin and not self._send(stdin.fileno()):
                        selector.unregister(stdin)
                        stdin.close()
                moved = time.monotonic() if events else moved
                if failure := self._overdue(moved):
                    return failure

    def _send(self, descriptor: int) -> bool:
        """Write what fits; return whether there is more to write."""
        if not self.rest:
            if self.given == len(self.lines) or self._is_stopping():
                return False
            self.rest = memoryview(self.lines[self.given])
        try:
            self.rest = self.rest[os.write(descriptor, self.rest) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self.given += not self.rest
        return True

    def _receive(self, descriptor: int) -> bool:
        """Read what is there; return whether more may come."""
        content = os.read(descriptor, 65536)
        self.read += content
        return bool(content)

    def _is_stopping(self) -> bool:
        if not self.stopped_at and self.stops():
            self.stopped_at = time.monotonic()
        return bool(self.stopped_at)

    def _overdue(self, moved: float) -> str:
        """Return why the process has to be ended now, or nothing."""
        now = time.monotonic()
        if self.abort.is_set():
            return "interrupted"
        if self._is_stopping() and now - self.stopped_at > GRACE_SECONDS:
            if not self.is_terminated:
                self.process.terminate()
                self.is_terminated = True
            elif now - self.stopped_at > GRACE_SECONDS + TERMINATED_SECONDS:
                return "interrupted"
        if len(self.read) > ANSWER_BYTES * (len(self.lines) + 1):
            return "its answer is too large"
        return f"no answer within {SECONDS:.0f} s" if now - moved > SECONDS else ""

    def _ending(self) -> str:
        try:
            code = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return f"not done within {SECONDS:.0f} s"
        return f"exit code {code}" if code else ""


def _answer(line: bytes) -> JsonObject | None:
    """Return the answer about a client id; None for any other line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_answer = isinstance(found, dict) and isinstance(found.get("client_id"), str)
    return found if is_answer else None
