"""Leaving on a signal: at once, with the exit code of the signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import NoReturn

import pytest

from reconciler.cli import signals
from reconciler.cli.signals import SIGNALS, handle_with, leave_on_signals


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Begin as in the foreground of a shell, and leave the handlers as they were."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class LeftError(Exception):
    """The process would have ended, with this code."""


def leave(code: int) -> NoReturn:
    raise LeftError(code)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_process_with_its_code(number: signal.Signals, code: int) -> None:
    with pytest.raises(LeftError) as left:
        signals._leave(number, None, leave)

    assert left.value.args == (code,)


def test_every_signal_that_ends_a_run_is_handled() -> None:
    leave_on_signals()

    assert {signal.getsignal(number) for number in SIGNALS} == {signals._leave}


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """A shell starts what runs in its background without SIGINT, and nohup without SIGHUP."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    handle_with(lambda *_: None)

    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
