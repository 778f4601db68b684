"""Applications that are called without a server, which gives each request its connection."""

from __future__ import annotations

from typing import Any

from reconciler.service.transport.http_messages import CONNECTION


class Line:
    """A connection of one request, whose caller stays."""

    address = ""
    is_shared = False

    def has_left(self) -> bool:
        return False

    def drop(self) -> None: ...

    def judged(self, *, is_known: bool) -> None: ...


def connected(app: Any) -> Any:
    """Return an application that gives each request a connection, as a server does."""

    async def called(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "extensions": {CONNECTION: Line()}}, receive, send)

    return called
