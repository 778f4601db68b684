"""A stand-in of a ZITADEL for the command line, in each generation that is told apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from tests.listening import listening
from tests.zitadel.stand_in import IAM, FakeZitadel


class ServeZitadel(Protocol):
    """Serves a stand-in of the generation that a test runs for."""

    def __call__(
        self, **more: Any
    ) -> AbstractContextManager[tuple[FakeZitadel, dict[str, str]]]: ...


@contextmanager
def a_zitadel(**more: Any) -> Iterator[tuple[FakeZitadel, dict[str, str]]]:
    """Serve a stand-in with the project shop; yield the environment that names it."""
    fake = FakeZitadel(**more)
    fake.put("projects", name="shop")
    fake.things.catch_up(float("inf"))
    with listening(fake.app()) as address:
        yield fake, {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}
