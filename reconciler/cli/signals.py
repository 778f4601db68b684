"""Leaving the process on SIGINT or SIGTERM: the first thing that the program sets up.

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

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def leave_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process at once, with 130 or 143."""
    handle_with(_leave)


def handle_with(handler: Callable[[int, FrameType | None], None]) -> None:
    """Handle SIGINT and SIGTERM from now on, unless they are ignored."""
    for number in SIGNALS:
        # A shell starts what runs in its background with SIGINT ignored, and it stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(
    number: int, frame: FrameType | None, leave: Callable[[int], NoReturn] = os._exit
) -> NoReturn:
    # Bound as a default, because a module's names are gone while the interpreter ends.
    leave(128 + number)
