"""A question to the store that pages ask, apart from the threads that carry out calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

LOG = logging.getLogger("reconciler.service")


class Question:
    """A question that is asked once at a time: all who ask meanwhile get the same answer."""

    def __init__(self, ask: Callable[[], bool | None], seconds: float) -> None:
        """Take what asks the store, on a thread; None means that the store gives no answer.

        ``seconds`` is how long anybody waits for an answer.
        """
        self._ask = ask
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, "question")
        self._asked: asyncio.Future[bool | None] | None = None

    async def answer(self) -> bool | None:
        """Return the answer, or None if it does not come in time. Nothing is raised."""
        try:
            if self._asked is None or self._asked.done():
                loop = asyncio.get_running_loop()
                self._asked = loop.run_in_executor(self._thread, self._ask)
            return await asyncio.wait_for(asyncio.shield(self._asked), self._seconds)
        except TimeoutError:
            return None
        except Exception:  # a page is answered all the same
            LOG.exception("a question to the store failed")
            return None

    def close(self) -> None:
        """Ask nothing more; a question that is under way is not waited for."""
        self._thread.shutdown(wait=False)
