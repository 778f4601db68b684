"""The signals that end a server: the first lets it finish, the second does not wait."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from threading import Timer

AT_ONCE_SECONDS = 1.0  # after the second signal; nothing that was acknowledged can be lost


def on_signals(stop: Callable[[], None]) -> None:
    """End a server by the signals that end a process; a second one ends the process itself."""
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def hear(number: int) -> None:
        stop()
        if heard:
            leaving = Timer(AT_ONCE_SECONDS, os._exit, (128 + number,))
            leaving.daemon = True
            leaving.start()
        heard.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)
