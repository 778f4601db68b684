"""What must hold of a store, whatever happened."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from reconciler.service.build import open_sqlite
from reconciler.service.eventstore.port import EventStore
from reconciler.service.projections.maintenance import verify
from tests.faults.catalogue import must

OPENS_WITHIN = 5.0


def check_store(path: Path) -> None:
    """Check that a SQLite store opens soon, is sound, and holds nothing twice (I2, I4, I5, I9)."""
    began = time.monotonic()
    with closing(open_sqlite(path, read_only=True)) as service:
        must(time.monotonic() - began < OPENS_WITHIN, "I9", "opening took too long")
        check_events(service.store)
    with closing(sqlite3.connect(path)) as raw:
        must(raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "I9", path)


def check_events(store: EventStore) -> None:
    """Check every chain and object against the log, and that nothing is there twice."""
    findings = verify(store)
    must(not findings, "I5", findings)
    with store.snapshot() as view:
        events = view.read_all(after=0, limit=1_000_000)
    living = Counter(_living(events))
    must(not [name for name, count in living.items() if count > 1], "I2", living)


def _living(events: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    """Yield owner, kind and name of every object that is there at the end of the log."""
    named: dict[str, tuple[Any, ...]] = {}
    for event in events:
        kind, _, what = event.type.partition(".")
        if what == "removed":
            named.pop(event.stream, None)
        payload: Mapping[str, Any] = json.loads(event.payload)
        if "name" in payload:
            owner = payload.get("project_id", event.organization)
            named[event.stream] = owner, kind, str(payload["name"]).casefold()
    return named.values()
