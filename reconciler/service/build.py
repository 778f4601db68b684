"""Puts the service together over a store: the only module that knows all the others."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from reconciler.resources.installation import how_to_install
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreError, StoreUnusableError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.dispatch import Dispatcher
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request
from reconciler.service.operations.runtime import (
    MAX_KEEP_OWED,
    Identifiers,
    LeaseClock,
    Runtime,
    Seals,
)

SEAL_KEY_SUFFIX = ".seal-key"
SEAL_KEY = "seal_key"  # under which a store keeps the fingerprint of its key


def microseconds() -> int:
    """Return the time, in microseconds since the epoch."""
    return time.time_ns() // 1000


def since_boot() -> int:
    """Return microseconds since the machine began, its sleep included where that is known."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


class IdentityService:
    """The identity service over one store, called in process. It is thread-safe.

    Attributes:
        call_many: Carries out calls; see ``Engine.run``.
        call_until_refused: Carries out writes in their order; see ``Engine.write_until_refused``.
        hold_seal_key: Loads the sealing key at once, not when it is first needed. A SQLite store
            keeps its fingerprint from then on. A missing file is made, now or, where that fails,
            when there is a secret to seal. It raises ``StoreError`` if the key cannot be read, or
            is not the one of this store.
    """

    def __init__(
        self,
        store: EventStore,
        seals: Seals,
        now: Callable[[], int],
        keep_owed: int = MAX_KEEP_OWED,
        hold_key: Callable[[], None] = lambda: None,
        steady: Callable[[], int] | None = None,
    ) -> None:
        """Serve a store; ``keep_owed`` is how long secrets wait for delivery, in microseconds.

        ``hold_key`` loads the sealing key where that is not done by opening the store. ``steady``
        is a clock that cannot be set, in microseconds since any time; by default the machine's,
        or ``now`` if that is not the time of the machine.
        """
        self.store = store
        self.hold_seal_key = hold_key
        self.now = now
        # Ids need not be hard to guess. Bits of the system would let go of the interpreter for each
        # id, and another thread take it.
        identifiers = Identifiers(now, random.getrandbits)
        lease_time = LeaseClock(now, steady or (since_boot if now is microseconds else now))
        runtime = Runtime(now, identifiers, os.urandom, seals, lease_time, keep_owed)
        engine = Engine(store, runtime)
        self.call_many, self.call_until_refused = engine.run, engine.write_until_refused
        self.dispatcher = Dispatcher(store, engine, now)

    def call(self, request: Request) -> Answer:
        """Carry out one call.

        Raises:
            Refusal: the service says no.
            StoreError: the store failed; nothing was written.
        """
        (answer,) = self.call_many((request,))
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()


def open_sqlite(
    path: Path,
    *,
    seal_key_file: Path | None = None,
    create: bool = False,
    read_only: bool = False,
    keep_owed: int = MAX_KEEP_OWED,
    now: Callable[[], int] = microseconds,
) -> IdentityService:
    """Return a service over a SQLite file.

    ``create`` makes the file where there is none; ``read_only`` makes and changes nothing.
    ``keep_owed`` is in microseconds. The key that seals secrets is in a file beside it unless
    another is named.

    Raises:
        StoreError: the file is no sound store, or cannot be used so.
    """
    from reconciler.service.eventstore.sqlite import SqliteEventStore, SqliteReadOnlyStore
    from reconciler.service.eventstore.sqlite_files import create as create_file
    from reconciler.service.seal import KeyFile

    seals = KeyFile(seal_key_file or seal_key_beside(path))
    if read_only:
        return IdentityService(SqliteReadOnlyStore(path), seals, now)
    if create:
        create_file(path)
    store = SqliteEventStore(path, now)

    def hold_key() -> None:
        with store.snapshot() as view:
            known = view.meta(SEAL_KEY)
        held = seals.hold(known)
        if held != known:
            with suppress(StoreError):  # a full disk: reads work, and a later start keeps it
                store.bind(SEAL_KEY, held)

    return IdentityService(store, seals, now, keep_owed, hold_key)


def seal_key_beside(path: Path) -> Path:
    """Return the file of the key that seals secrets of a store in a file."""
    return path.with_name(path.name + SEAL_KEY_SUFFIX)


def open_postgres(
    address: str,
    *,
    seal_key_file: Path | None = None,
    create: bool = False,
    read_only: bool = False,
    keep_owed: int = MAX_KEEP_OWED,
    now: Callable[[], int] = microseconds,
) -> IdentityService:
    """Return a service over a PostgreSQL database; see ``open_sqlite``.

    Every server of a database is given the same key file. Without one nothing can be sealed, so no
    application with a secret can be made under an idempotency key or with custody.

    Raises:
        StoreMissingError: the database holds no store, and none was to be made.
        StoreError: the database cannot be used so, or the key is not the one of this database.
    """
    from reconciler.service.seal import NoKey, shared_key

    postgres = _postgres()
    if read_only:
        store = postgres.PostgresReadOnlyStore(address)
        return IdentityService(store, NoKey(), now)
    if create:
        postgres.create(address)
    store = postgres.PostgresEventStore(address, now)
    if seal_key_file is None:
        return IdentityService(store, NoKey(), now)
    try:
        with store.snapshot() as view:
            known = view.meta(SEAL_KEY)
        key = shared_key(seal_key_file, known, lambda made: str(store.bind(SEAL_KEY, made)))
    except BaseException:
        store.close()
        raise
    return IdentityService(store, key, now, keep_owed)


def postgres_holds_store(address: str) -> bool:
    """Return whether a PostgreSQL database holds a store of ours. Nothing is changed.

    Raises:
        StoreError: it cannot be looked at, or holds something else under our names.
    """
    return bool(_postgres().exists(address))


def _postgres() -> ModuleType:
    """Return the store's module, which needs a driver that is an extra."""
    try:
        from reconciler.service.eventstore import postgres
    except ImportError as error:
        raise StoreUnusableError(
            "a store in PostgreSQL needs the extra postgres, which is not installed",
            how_to_install("postgres"),
        ) from error
    return postgres
