"""An interruption ends a request, wherever in the libraries below it was raised."""

from __future__ import annotations

import signal

import anyio
import httpx
import pytest

from reconciler.errors import InterruptedRunError
from reconciler.resources.call import Call
from tests.http_clients import http_wire


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), InterruptedRunError(signal.SIGTERM)])
def test_an_interruption_while_connecting_is_raised_as_itself(
    interruption: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library connects in a task group, which puts what it raises into a group."""

    async def connect(*_: object) -> None:
        async with anyio.create_task_group(), anyio.create_task_group():
            raise interruption

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", connect)
    with http_wire("http://127.0.0.1:9", "token") as wire, pytest.raises(type(interruption)) as at:
        wire.send([Call("GetServiceInfo")])

    assert at.value is interruption
