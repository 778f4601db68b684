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
    from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave_on_signals() -> None:
    """Let a signal end the process at once, with 128 and its number."""
    handle_with(_leave)


def handle_with(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Handle the signals from now on, but for those that are ignored; return the old handlers.

    A shell starts what runs in its background with SIGINT ignored, and ``nohup`` ignores SIGHUP.
    Both stay so.
    """
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


def _leave(
    number: int, frame: FrameType | None, leave: Callable[[int], NoReturn] = os._exit
) -> NoReturn:
    # Bound as a default, because a module's names are gone while the interpreter ends.
    leave(128 + number)
