"""A service that answers as a test says, and calls to it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from reconciler.resources.call import Call
from reconciler.service_client.http_wire import Limits
from reconciler.service_client.wire import Answer, WireRefusal
from tests.http_clients import http_wire
from tests.listening import listening

CANARY = "rct_canary-that-must-not-be-seen"


CONTEXT = {"tree": "default"}


LOOK = Call("GetServiceInfo")


MAKE = Call("CreateAction", {"name": "a", "script": "s"}, "1")


BATCH = Call("WriteBatch", {"orders": []})


SHORT = Limits(connect=1, silence=0.3, one_try=0.6, total=1.5, size=100_000)


# Services that are strange.


class Strange:
    """An application that answers as it is told and counts what it is asked."""

    def __init__(self, *answers: tuple[int, Mapping[str, str], bytes]) -> None:
        self._answers = answers
        self.asked: list[tuple[float, str]] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        import asyncio

        number = len(self.asked)
        self.asked.append((time.monotonic(), f"{scope['method']} {scope['path']}"))
        self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        status, headers, body = self._answers[min(number, len(self._answers) - 1)]
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})


JSON = {"content-type": "application/json"}


FINE = (200, JSON, b'{"instance": "1", "product": "reconciler"}')


def asked_of(strange: Strange, *calls: Call, limits: Limits = SHORT) -> list[Answer | WireRefusal]:
    """Return what a strange service answers."""
    with listening(strange) as address, http_wire(address, CANARY, limits) as wire:
        return list(wire.send(calls))
