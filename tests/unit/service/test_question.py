"""A question to the store is asked once at a time, and nobody waits for it for long."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from reconciler.service.transport.question import Question


def test_all_who_ask_at_once_share_one_answer() -> None:
    """However many look at a page, one thread asks."""
    asked: list[int] = []
    go = Event()

    def ask() -> bool:
        asked.append(1)
        return go.wait(5)

    async def many() -> list[bool | None]:
        question = Question(ask, 5)
        waiting = [asyncio.ensure_future(question.answer()) for _ in range(20)]
        await asyncio.sleep(0)
        go.set()
        told = await asyncio.gather(*waiting)
        question.close()
        return told

    assert asyncio.run(many()) == [True] * 20
    assert len(asked) == 1


def test_a_silent_store_gives_no_answer_and_is_not_asked_again_meanwhile() -> None:
    """The answer that comes in the end is that of the next who asks."""
    asked: list[int] = []
    go = Event()

    def ask() -> bool:
        asked.append(1)
        return go.wait(5)

    async def twice() -> list[bool | None]:
        question = Question(ask, 0.01)
        told = [await question.answer(), await question.answer()]
        go.set()
        question.close()
        return told

    assert asyncio.run(twice()) == [None, None]
    assert len(asked) == 1


def test_a_failure_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """It stands in the log, and never on a page."""

    def ask() -> bool:
        raise ValueError("a defect")

    async def once() -> bool | None:
        return await Question(ask, 5).answer()

    assert asyncio.run(once()) is None
    assert "a question to the store failed" in caplog.text
