"""Verify finds what was not written by the service; rebuilding gives what is there."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.eventstore.errors import StoreDamagedError, StoreError
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.sqlite import SqliteEventStore, SqliteReadOnlyStore
from reconciler.service.projections.maintenance import rebuild, rebuild_damaged, verify
from tests.examples import JWT, Clock
from tests.unit.service.asking import Asking


def a_history(ask: Asking) -> None:
    """Write one of every event."""
    app, idp = ask.an_app()["appId"], ask.an_idp(context='{"tree":"a"}')["idpId"]
    in_project = {"projectId": ask.project, "appId": app}
    action = ask.an_action()["id"]
    ask("UpdateApp", **in_project, name="other")
    ask("UpdateOIDCAppConfig", **in_project, devMode=True)
    ask("RegenerateOIDCClientSecret", **in_project)
    ask("UpdateOrgIDP", idpId=idp, name="other")
    ask("UpdateOrgIDPJWTConfig", idpId=idp, **{**JWT, "headerName": ""}, context='{"tree":"b"}')
    ask("UpdateAction", id=action, name="other", script="x")
    ask("RecordContext", id=action, context='{"tree":"b"}')
    other = ask("AddOrg", name="globex")["id"]
    ask("DeleteAction", id=ask.an_action("gone", organization=other)["id"])
    ask("RemoveApp", projectId=ask.project, appId=ask.an_app("gone")["appId"])
    ask("RemoveOrgIDP", idpId=ask.an_idp("gone")["idpId"])


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store with one of every event in it, for copies."""
    folder = tmp_path_factory.mktemp("made")
    with closing(open_sqlite(folder / "identity.db", create=True, now=Clock())) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        a_history(ask)
    return folder


@pytest.fixture
def path(made_once: Path, tmp_path: Path) -> Path:
    """Return the path of a store with one of every event in it."""
    shutil.copytree(made_once, tmp_path / "store")
    return tmp_path / "store" / "identity.db"


def test_a_sound_store_has_no_findings_and_is_rebuilt_as_it_was(path: Path) -> None:
    """Row for row, and reads answer what they did."""
    with closing(open_sqlite(path)) as service:
        ask = Asking(service, Clock())
        ask.organization = ask("ListOrgs")["result"][0]["id"]
        with service.store.snapshot() as view:
            rows = view.all_objects()
        objects = ask.objects()
        assert verify(service.store) == []

        assert rebuild(service.store) == len(rows) == 6

        with service.store.snapshot() as view:
            assert view.all_objects() == rows
        assert ask.objects() == objects
        assert verify(service.store) == []


TAMPERED = {
    "a payload": "UPDATE events SET payload = replace(payload, 'greet', 'hello')",
    "a context that is none": "UPDATE events SET context = '[]' WHERE position = 3",
    "a context": "UPDATE events SET context = '{\"tree\":\"c\"}' WHERE context <> ''",
    "a writer": "UPDATE events SET writer = 'somebody' WHERE position = 3",
    "a stream": "UPDATE events SET stream = '1' WHERE position = 6",
    "a type": "UPDATE events SET type = 'application.removed' WHERE position = 6",
    "an unknown type": "UPDATE events SET type = 'application.painted' WHERE position = 6",
    "a time": "UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 6",
    "a sequence": "UPDATE events SET sequence = sequence + 100 WHERE position = 6",
    "an owner": "UPDATE events SET organization = (SELECT max(organization) FROM heads)"
    " WHERE position = 4",
    "a version": "UPDATE events SET version = 7 WHERE version = 2 AND stream ="
    " (SELECT stream FROM events WHERE position = 4)",
    "an event that is gone from the middle": "DELETE FROM events WHERE position = 5",
    "the last event gone": "DELETE FROM events WHERE position = (SELECT max(position) FROM events)",
    "all events gone": "DELETE FROM events",
    "a hash": "UPDATE events SET hash = zeroblob(32) WHERE position = 3",
    "a head": "UPDATE heads SET events = events + 1",
    "a head that is gone": "DELETE FROM heads",
    "an object": "UPDATE objects SET spec = '{}' WHERE kind = 'Action'",
    "a secret's hash": "UPDATE objects SET secret_hash = 'x' WHERE client_id <> ''",
    "an object that is gone": "DELETE FROM objects WHERE kind = 'Action'",
    "an object from nowhere": "INSERT INTO objects SELECT '1', kind, organization, parent, 'x',"
    " 'x',"
    " spec, '', '', version, sequence, created, changed_by, context, marks FROM objects"
    " WHERE kind = 'Action'",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
def test_what_was_changed_behind_the_services_back_is_found(path: Path, statement: str) -> None:
    """SQLite itself sees nothing wrong with any of these."""
    with closing(sqlite3.connect(path)) as connection:
        changed = connection.execute(statement).rowcount
        connection.commit()
    assert changed > 0

    with closing(SqliteReadOnlyStore(path)) as store:
        assert verify(store) != []


def test_objects_that_were_tampered_with_are_mended_by_a_rebuild(path: Path) -> None:
    """The log is the truth; what is derived from it can be made anew."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE objects SET spec = '{}', name = 'x' WHERE kind = 'Action'")
        connection.execute("DELETE FROM objects WHERE kind = 'IdpJwtConfig'")
        connection.commit()

    with closing(SqliteEventStore(path, Clock())) as store:
        assert len(verify(store)) == 2
        rebuild(store)
        assert verify(store) == []


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
def test_only_a_damaged_log_keeps_objects_from_being_rebuilt(path: Path, statement: str) -> None:
    """Asked to use it all the same, a rebuild tells each object that is no longer what it was."""
    is_in_log = " objects " not in statement
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()

    with closing(SqliteEventStore(path, Clock())) as store:
        before = rows_of(store)
        if is_in_log:
            with pytest.raises(StoreDamagedError) as caught:
                rebuild(store)
            assert caught.value.findings
            assert rows_of(store) == before
        done = rebuild_damaged(store)
        now = rows_of(store)

        assert bool(done.findings) is is_in_log
        assert done.objects == len(now)
        changed = {each for each in before.keys() | now.keys() if before.get(each) != now.get(each)}
        told = {each.split("(id ")[1].split(")")[0] for each in done.lost}
        assert changed <= told
        assert bool(verify(store)) is is_in_log


def rows_of(store: SqliteEventStore) -> dict[str, object]:
    with store.snapshot() as view:
        return {row.id: row for row in view.all_objects()}


MISTYPED = {
    "a number for a hash": "UPDATE events SET previous = 7 WHERE position = 3",
    "a text for a sequence": "UPDATE events SET sequence = 'x' WHERE position = 3",
    "nothing for a sequence": "UPDATE events SET sequence = NULL WHERE position = 3",
    "a number for a payload": "UPDATE events SET payload = 7 WHERE position = 3",
    "nothing for a stream": "UPDATE events SET stream = NULL WHERE position = 3",
}


@pytest.mark.parametrize("statement", MISTYPED.values(), ids=MISTYPED.keys())
def test_a_row_whose_values_are_of_other_types_is_a_finding(path: Path, statement: str) -> None:
    """A damaged byte can make a number, or nothing at all, of what was a text."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'events'"
        connection.executemany(changed, [(" NOT NULL", ""), (") STRICT", ")")])
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()

    with closing(SqliteReadOnlyStore(path)) as store:
        assert verify(store) != []


def test_a_log_that_goes_back_has_an_end(path: Path) -> None:
    """Where pages of the file have changed places, what follows a position can lie before it."""
    with closing(SqliteReadOnlyStore(path)) as store, store.snapshot() as view:
        first = view.read_all(limit=3)
    with closing(SqliteReadOnlyStore(path)) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Snapshot, "read_all", lambda *_, **__: first)

        findings = verify(store)

    assert [found for found in findings if "the log goes back" in found]


def seeds(*, quick: int, slow: int) -> list[Any]:
    """Return seeds, of which the later ones are tried in full runs only."""
    rest = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, quick + slow))
    return [*range(quick), *rest]


READ = "SELECT COLUMN, position FROM events"
WRITE = "UPDATE events SET COLUMN = ? WHERE position = ?"
COLUMNS = ["payload", "context", "writer", "type", "hash", "previous"]


@pytest.mark.parametrize("seed", seeds(quick=30, slow=120))
def test_a_flipped_bit_in_an_event_is_found(path: Path, seed: int) -> None:
    """Wherever it is in what an event says."""
    dice = random.Random(seed)
    column = dice.choice(COLUMNS)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(READ.replace("COLUMN", column)).fetchall()
        value, position = dice.choice([row for row in rows if row[0]])
        connection.execute(WRITE.replace("COLUMN", column), (flipped(dice, value), position))
        connection.commit()

    with closing(SqliteEventStore(path, Clock())) as store:
        assert verify(store) != []
        with pytest.raises(StoreDamagedError):
            rebuild(store)
        assert rebuild_damaged(store).findings


def flipped(dice: random.Random, value: Any) -> Any:
    """Return a value with one of its bits the other way round, of the low ones in text."""
    held = bytearray(value if isinstance(value, bytes) else value.encode())
    place = dice.randrange(len(held))
    held[place] ^= 1 << dice.randrange(8 if isinstance(value, bytes) else 4)
    return bytes(held) if isinstance(value, bytes) else held.decode("utf-8", "replace")


@pytest.mark.parametrize("seed", seeds(quick=20, slow=40))
def test_a_flipped_bit_in_the_file_is_never_served_silently(path: Path, seed: int) -> None:
    """Opening refuses it, or verify finds it, or nothing that is read has changed."""
    dice = random.Random(seed)
    held = bytearray(path.read_bytes())
    with closing(SqliteReadOnlyStore(path)) as store:
        wanted = everything(store)
    place = dice.randrange(len(held))
    held[place] ^= 1 << dice.randrange(8)
    path.write_bytes(held)

    assert what_is_seen(path) in (None, wanted)


def what_is_seen(path: Path) -> tuple[object, ...] | None:
    """Return what a store holds; None where it says itself that it is not sound."""
    try:
        with closing(SqliteReadOnlyStore(path)) as store:
            return None if verify(store) else everything(store)
    except StoreError:
        return None


def everything(store: SqliteReadOnlyStore) -> tuple[object, ...]:
    with store.snapshot() as view:
        return (tuple(view.read_all()), tuple(view.heads()), tuple(view.all_objects()))
