"""What a signal raises comes through, whatever the program is in the middle of."""

from __future__ import annotations

import asyncio
import signal

import click
import pytest

from reconciler.cli import main
from reconciler.errors import InterruptedRunError


def test_an_event_loop_does_not_swallow_an_interruption() -> None:
    """A handler runs wherever the loop is: there, any other exception is logged and lost."""

    async def work() -> None:
        asyncio.get_running_loop().call_soon(interrupt)
        await asyncio.sleep(5)

    def interrupt() -> None:
        raise InterruptedRunError(signal.SIGTERM)

    with pytest.raises(InterruptedRunError):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        pytest.param(InterruptedRunError(signal.SIGTERM), 143, id="SIGTERM"),
        pytest.param(InterruptedRunError(signal.SIGINT), 130, id="SIGINT"),
        pytest.param(KeyboardInterrupt(), 130, id="Python's own"),
        pytest.param(click.Abort(), 130, id="click's own"),
    ],
)
def test_the_exit_code_names_the_signal(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Click turns what it catches into a word of its own."""

    @click.command()
    def interrupted() -> None:
        raise raised

    monkeypatch.setattr(main, "cli", interrupted)

    assert main.run([]) == code
