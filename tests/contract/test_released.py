"""Files in the forms of the release: a change of one needs a new version of its form.

Until 0.1.0 is tagged they are made again with ``python -m tests.contract.test_released``. From
then on a file here is never changed: a later form gets a file of its own.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from reconciler.apply.journal import Intent, Journal, left_open
from reconciler.plan.planfile import read_plan_file
from reconciler.plan.snapshot import read_snapshot
from reconciler.service.eventstore.sqlite_tables import WORDS
from reconciler.service.eventstore.tables import SCHEMA_VERSION, TABLES, script
from tests.builders import WEB, declared
from tests.rows import each_row
from tests.unit.plan import test_planfile, test_snapshot

RELEASED = Path(__file__).parent / "released"
INTENTS = (
    Intent("secret", "key-1", WEB),
    Intent("inactive", "key-2", WEB, spec=declared(WEB).spec),
    Intent("rename", "key-3", WEB, "7", "client-7"),
)


def journal() -> bytes:
    """Return a journal with open intents."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        with Journal(path) as opened:
            opened.begin(INTENTS)
        return path.read_bytes()


def contents() -> Mapping[str, bytes]:
    """Return what this version writes, by the names of the files."""
    return {
        "plan.json": test_planfile.CONTENT,
        "snapshot.json": test_snapshot.CONTENT,
        "journal.jsonl": journal(),
        f"store-{SCHEMA_VERSION}.sql": script(TABLES, WORDS).encode(),
    }


@each_row("name", contents())
def test_each_file_is_written_as_the_release_writes_it(name: str) -> None:
    """Another form would have the same version, and the release could not tell it apart."""
    assert (RELEASED / name).read_bytes() == contents()[name], (
        f"{name} has another form: docs/releases.md says what that asks for"
    )


def test_files_of_the_release_are_read() -> None:
    """A file lives longer than the program that wrote it."""
    plan = read_plan_file((RELEASED / "plan.json").read_bytes())

    assert plan.tool_version == test_planfile.FILE.tool_version
    assert read_snapshot((RELEASED / "snapshot.json").read_bytes()) == test_snapshot.FILE
    assert left_open(RELEASED / "journal.jsonl") == INTENTS


def test_the_tables_of_the_release_are_those_of_this_schema() -> None:
    """A table or a column more needs a higher schema, and an upgrade of the release's stores."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            (RELEASED / f"store-{SCHEMA_VERSION}.sql").read_text(encoding="utf-8")
        )
        for table in TABLES:
            rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table.name,))
            assert tuple(name for (name,) in rows) == table.columns


if __name__ == "__main__":
    for name, content in contents().items():
        (RELEASED / name).write_bytes(content)
