"""Starting the child process of ``child``, and asking it. The only module here that starts one.

The child gets no variable of the environment, so no token, but those by which a shared Python is
found. It imports from the folders of this package and of its libraries only, whatever the working
folder holds.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

from reconciler.policy.child import MEMORY, OUT_OF_MEMORY
from reconciler.resources.process import loader_variables

_START = "import sys; sys.path += sys.argv[1:]; from reconciler.policy.child import main; main()"
_LIBRARIES = ("cel_expr_python", "google.protobuf")
_SIGNALS = {each.value: each.name for each in signal.Signals}
_LONGEST = 64 * 1024 * 1024  # bytes of an answer

# Isolated, without site-packages and their start-up files, and without a trace on disk.
_OPTIONS = ("-I", "-S", "-B", "-X", "utf8", "-c", _START)


class ChildEndedError(Exception):
    """The child process ended, or was ended, before its answer.

    Attributes:
        at: Number of the rule at which it was; None before the first.
    """

    def __init__(self, why: str, at: int | None) -> None:
        super().__init__(why)
        self.at = at


class Child:
    """A running child process. Its requests are answered one after another."""

    def __init__(self) -> None:
        """Start the process; do not wait for it.

        Raises:
            OSError: the process cannot be started.
        """
        # No shell; the words are our own.
        self._process = subprocess.Popen(
            [sys.executable or "", *_OPTIONS, *_folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=loader_variables(),
            start_new_session=True,  # Ctrl-C is for the parent, which ends the child
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self._is_late = False

    def send(self, do: str, seconds: int, **request: Any) -> None:
        """Send a request, or end the process if it does not read it within that time.

        The answer is that of the next ``receive``; the process has limits of its own until then.
        """
        line = json.dumps({"do": do, "seconds": seconds, **request}).encode() + b"\n"
        with self._limit(seconds), suppress(OSError, ValueError):  # closed: there is no answer
            self._requests.write(line)
            self._requests.flush()

    def receive(self, seconds: int) -> Any:
        """Return the answer to the request that was sent.

        Raises:
            ChildEndedError: the process ended, or gave no answer within that time from now.
        """
        at = None
        try:
            with self._limit(seconds):
                while "done" not in (answer := json.loads(self._answers.readline(_LONGEST))):
                    at = answer["at"]
        except (OSError, ValueError, TypeError, KeyError):  # nothing, or half an answer
            self.end()
            why = f"took more than {seconds} s" if self._is_late else self._why()
            raise ChildEndedError(why, at) from None
        return answer["done"]

    def ask_each(
        self, do: str, seconds: int, requests: Iterable[Mapping[str, Any]]
    ) -> Iterator[Any]:
        """Yield the answer to each request; the next one is made while the child works on it.

        Raises:
            ChildEndedError: as ``receive``.
        """
        waiting = iter(requests)
        request = next(waiting, None)
        while request is not None:
            self.send(do, seconds, **request)
            request = next(waiting, None)
            yield self.receive(seconds)

    @contextmanager
    def _limit(self, seconds: int) -> Iterator[None]:
        """End the process if the block takes longer."""
        timer = threading.Timer(seconds, self._end_late)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # manifests are read ahead only where there is no other thread

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def end(self) -> None:
        """End the process, whatever it does."""
        with suppress(OSError), self._process:  # what was not sent yet has no reader
            self._process.kill()

    def _why(self) -> str:
        code = self._process.wait()
        if code == OUT_OF_MEMORY:
            return f"used more than {MEMORY >> 30} GiB of memory"
        if code == -signal.SIGXCPU:
            return "used more than its time on the processor"
        if code < 0:
            return f"was ended by {_SIGNALS.get(-code, -code)}, as when memory is short"
        return f"ended with exit code {code}"


def _folders() -> list[str]:
    """Return the folders of this package and of the libraries that the child imports."""
    found = [Path(__file__).parents[2]]
    for library in _LIBRARIES:
        spec = find_spec(library)
        places = (spec and spec.submodule_search_locations) or ()
        found += [Path(place).parents[library.count(".")] for place in places]
    return [*dict.fromkeys(map(str, found))]
