"""A server of the program as anybody runs it, over a store that was furnished beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from reconciler.service.build import IdentityService, open_postgres, open_sqlite
from tests.postgres_server import a_server
from tests.running import Known, furnish
from tests.served import FRESH, Served, serving

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"


class Store(NamedTuple):
    """A store, and how the program is told of it."""

    service: str
    more: tuple[str, ...]
    known: Known


@contextmanager
def sqlite_store(folder: Path) -> Iterator[Store]:
    """Make a store in a file; every commit is synced."""
    folder.mkdir()
    with closing(open_sqlite(folder / "identity.db", create=True)) as opened:
        known = furnish(opened)
    yield Store(f"sqlite:{folder / 'identity.db'}", (), known)


@contextmanager
def postgres_store(folder: Path) -> Iterator[Store]:
    """Start a PostgreSQL of its own, and make a store in it; every commit is synced."""
    folder.mkdir()
    key = folder / "seal-key"
    with a_server() as database:
        with closing(_opened(database.address(), key)) as opened:
            known = furnish(opened)
        yield Store(database.address(), ("--seal-key-file", str(key)), known)


def _opened(address: str, key: Path) -> IdentityService:
    return open_postgres(address, seal_key_file=key, create=True)


STORES = {SQLITE: sqlite_store, POSTGRESQL: postgres_store}


@contextmanager
def served(store: Store, folder: Path, *more: str) -> Iterator[Served]:
    """Serve a store from a folder."""
    with serving(folder, store.service, *store.more, *more, before=FRESH) as server:
        yield server
