"""What the jobs are measured against, each a whole process: ``python yardsticks.py NAME ...``."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path


def safe_load(folder: str) -> None:
    """Load every file of a folder with ``yaml.CSafeLoader`` and do nothing with it."""
    import yaml

    for parent, _, names in os.walk(folder):
        for name in names:
            with Path(parent, name).open("rb") as file:
                for _document in yaml.load_all(file, Loader=yaml.CSafeLoader):
                    pass


def single_commits(path: str, count: str) -> None:
    """Commit so many rows one by one, each fully synced."""
    Path(path).unlink(missing_ok=True)
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = FULL")
    store.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT)")
    for _ in range(int(count)):
        store.execute("INSERT INTO rows (content) VALUES (?)", ("x" * 400,))
    store.close()


def import_click() -> None:
    """Start an interpreter and import click."""
    import click

    click.get_current_context(silent=True)


if __name__ == "__main__":
    {"safe-load": safe_load, "single-commits": single_commits, "import-click": import_click}[
        sys.argv[1]
    ](*sys.argv[2:])
