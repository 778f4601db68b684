"""Processes of the tests that take orders, a line of JSON each, and answer each with another."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from typing import Any, Self

from tests.program import ROOT

PATIENCE = 60.0


class Worker:
    """A process that runs a module, and takes one order at a time."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def tell(self, order: object) -> None:
        """Give an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def has_answered(self, within: float) -> bool:
        """Wait for the answer; return whether it has come."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], within)[0])

    def answer(self) -> Any:
        """Return the answer to the order."""
        assert self.has_answered(PATIENCE), "no answer"
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process ended; what it said is above"
        return json.loads(line)


def say(answer: object) -> None:
    """Answer an order, as the process that took it."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
