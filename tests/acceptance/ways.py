"""Each way to a service of ours: embedded or served, on SQLite or on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.direct import Direct, DirectDatabase
from tests.effort import IS_USUAL
from tests.postgres_server import PostgresServer
from tests.program import Run
from tests.served import a_token, serving

KEY = {"RECONCILER_SEAL_KEY_FILE": "seal-key", "RECONCILER_SECRETS_TO": "file:kept"}
WAYS = ("embedded", "database", "served", "served database")
# Between them, two ways have both stores, an embedded service and a served one.
TWO_WAYS = ("embedded", "served database")
# What decides most cases of an undo was read from the service, and is the same on any way. So a
# usual run tries them on one way and the others on two; `make laws` tries them on two and on all.
ONE_WAY = TWO_WAYS[:1] if IS_USUAL else TWO_WAYS
on_two_ways = pytest.mark.parametrize("ours", TWO_WAYS if IS_USUAL else WAYS, indirect=True)


def pairs(values: Sequence[str], *on_both: str) -> list[tuple[str, str]]:
    """Return pairs of a way and a value: each value on one way, and some of them on both."""
    first, second = TWO_WAYS
    others = on_both if IS_USUAL else values
    return [*((first, value) for value in values), *((second, value) for value in others)]


class Way(NamedTuple):
    """A way to a service.

    Attributes:
        run: Runs the program, with a token that may do everything and a receiver of secrets.
        direct: Writes to the store behind the program's back.
        known: Variables that ``run`` adds to the environment.
    """

    run: Run
    direct: Direct
    known: dict[str, str]


@contextmanager
def a_way(
    kind: str, run: Run, folder: Path, postgres: Callable[[], PostgresServer]
) -> Iterator[Way]:
    """Yield a way of ``WAYS`` to an empty store.

    Args:
        kind: Which way.
        run: Runs the program in the folder.
        folder: Where secrets, the key and the store of SQLite are.
        postgres: Returns the server of databases; only asked where one is needed.
    """
    key, store = folder / "seal-key", folder / ".reconciler" / "identity.db"
    with ExitStack() as stack:
        if kind.endswith("database"):
            service = stack.enter_context(postgres().empty_store())
            direct: Direct = DirectDatabase(service, key)
        else:
            service, direct = f"sqlite:{store}", Direct(store)
        known = {"RECONCILER_SERVICE": service, **KEY}
        if kind.startswith("served"):
            server = stack.enter_context(serving(folder, service, "--seal-key-file", str(key)))
            known = {
                "RECONCILER_SERVICE": server.address,
                "RECONCILER_TOKEN": a_token(run, server, "--name", "root", "--role", "admin"),
                "RECONCILER_SECRETS_TO": KEY["RECONCILER_SECRETS_TO"],
            }
        yield Way(partial(run, **known), direct, known)
