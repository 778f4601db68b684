"""The lock of a run on its organizations, by a clock that nothing sets."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from reconciler.cli import clients
from reconciler.cli.clients import locked
from reconciler.errors import LockHeldError


class Held:
    """A service whose lock somebody gives back after so many tries; None is never."""

    def __init__(self, tries: int | None = None) -> None:
        self.left = tries
        self.log: list[str] = []

    def acquire(self, organizations: Any) -> None:
        self.log.append("acquire")
        if self.left == 0:
            return
        self.left = None if self.left is None else self.left - 1
        raise LockHeldError("acme is locked by\x1b[2J somebody", remedy="Wait.")

    def release(self) -> None:
        self.log.append("release")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon."""
    monkeypatch.setattr(clients, "RETRY_SECONDS", 0.01)


def wait_for(client: Any, timeout: float) -> None:
    with locked(client, ["acme"], timeout):
        client.log.append("work")


def test_a_lock_that_is_held_is_not_waited_for_unasked() -> None:
    """The default is to say who holds it, and to go."""
    client = Held()

    with pytest.raises(LockHeldError):
        wait_for(client, 0)

    assert client.log == ["acquire"]


def test_a_lock_is_waited_for_and_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Who waits is told once for whom; what that is called cannot command the terminal."""
    client = Held(tries=3)

    wait_for(client, 60)

    assert client.log == [*["acquire"] * 4, "work", "release"]
    assert (
        capsys.readouterr().err == "Waiting, at most 60 s: acme is locked by\\u{1b}[2J somebody.\n"
    )


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "on"])
def test_a_clock_that_is_set_changes_nothing_about_the_waiting(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """Set back, the command would hang for an hour; set on, it would give up at once."""
    hours = itertools.accumulate(itertools.repeat(step), initial=time.time())
    monkeypatch.setattr(time, "time", lambda: next(hours))
    client = Held(tries=100)
    began = time.monotonic()

    with pytest.raises(LockHeldError):
        wait_for(client, 0.1)

    assert 0.1 <= time.monotonic() - began < 10
    assert len(client.log) > 1


def test_the_lock_is_given_back_whatever_happens() -> None:
    """A command that fails does not keep the next one out."""
    client: Any = Held(tries=0)

    with pytest.raises(ZeroDivisionError), locked(client, ["acme"], 0):
        raise ZeroDivisionError

    assert client.log == ["acquire", "release"]
