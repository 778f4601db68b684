"""Leaving the process on SIGINT, SIGTERM or SIGHUP: the first thing that the program sets up.

Until then Python has its own handler, and a traceback of its own. So this module and its caller
import only what the interpreter has loaded already, and ``signal``.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # that of typing takes as long to load as all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave_on_signals() -> None:
    """Let a signal end the process at once, with 128 and its number."""
    handle_with(_leave)


def handle_with(handler: Callable[[int, FrameType | None], None]) -> None:
    """Handle the signals from now on, but for those that are ignored."""
    for number in heeded():
        signal.signal(number, handler)


def heeded() -> list[signal.Signals]:
    """Return the signals that end a run, without those that are ignored.

    A shell starts what runs in its background with SIGINT ignored, and ``nohup`` ignores SIGHUP.
    Both stay so.
    """
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _leave(
    number: int, frame: FrameType | None, leave: Callable[[int], NoReturn] = os._exit
) -> NoReturn:
    # Bound as a default, because a module's names are gone while the interpreter ends.
    leave(128 + number)
