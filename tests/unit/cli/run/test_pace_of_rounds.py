"""The waiting between two rounds: it ends early for a trigger, and at once for the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from reconciler.cli.run import command
from reconciler.cli.run.command import _Signals
from reconciler.cli.signals import SIGNALS

LONG = 60.0  # seconds that no test waits for


@pytest.fixture
def signals() -> Iterator[_Signals]:
    """Return the signals of a run, also where this process ignores some."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    with _Signals() as made:
        yield made
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_trigger_ends_the_waiting(signals: _Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise this would last a minute."""
    monkeypatch.setattr(command, "TRIGGER_SECONDS", 0.05)
    begun = time.monotonic()
    threading.Timer(0.1, signals.wake).start()

    signals.wait_for_round(begun, LONG)

    assert time.monotonic() >= begun + 0.1
    assert signals.stops() == 0


def test_rounds_that_are_asked_for_are_apart(
    signals: _Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "TRIGGER_SECONDS", 0.3)
    begun = time.monotonic()
    for _ in range(10_000):  # more than the pipe has room for is no harm
        signals.wake()

    signals.wait_for_round(begun, LONG)

    assert time.monotonic() >= begun + 0.3


def test_the_first_signal_ends_the_waiting_and_the_second_the_run(signals: _Signals) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    signals.wait_for_round(time.monotonic(), LONG)
    assert signals.stops() == signal.SIGTERM

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signals._hear


def test_a_signal_that_interrupts_no_waiting_ends_it_all_the_same(signals: _Signals) -> None:
    """One that comes just before the system waits, here in another thread, interrupts nothing."""
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        is_ended = signals.wait(5)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    assert is_ended
    assert signals.stops() == signal.SIGTERM


def test_a_hangup_asks_for_a_round_alone(signals: _Signals) -> None:
    os.kill(os.getpid(), signal.SIGHUP)

    assert signals.wait(LONG)
    assert signals.stops() == 0
