"""Files of a run, which works in its state: they are named from where it was started."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from reconciler.cli.connection import Connection
from reconciler.cli.run.command import _absolute_connection


def test_every_file_of_a_connection_is_named_from_where_a_run_was_started() -> None:
    files: dict[str, Any] = {
        each.name: Path(each.name) for each in fields(Connection) if "Path" in str(each.type)
    }

    made = _absolute_connection(Connection("sqlite:id.db", **files))

    assert len(files) == 5
    assert {name: getattr(made, name) for name in files} == {
        name: Path.cwd() / name for name in files
    }
    assert made.service == f"sqlite:{Path.cwd()}/id.db"
