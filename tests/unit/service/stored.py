"""Store files with something in them, and ways to spoil one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from reconciler.service.build import open_sqlite
from tests.examples import Clock
from tests.unit.service.asking import Asking


def fill(path: Path, actions: int = 20) -> None:
    """Make a store with something in it."""
    with closing(open_sqlite(path, create=True, now=Clock())) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        for number in range(actions):
            ask.an_action(f"a{number}", script="x" * 500)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {found.name: found.read_bytes() for found in folder.iterdir() if found.is_file()}


def change(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda held: held[:offset] + value + held[offset + len(value) :]


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "is not a database"),
    "a text": (lambda _: b"apiVersion: reconciler/v1\n" * 50, "is not a database"),
    "only the magic": (lambda held: held[:16], "is cut short"),
    "half of it": (lambda held: held[: len(held) // 2], "is cut short"),
    "less its last byte": (lambda held: held[:-1], "is cut short"),
    "another program's": (change(68, b"\0\0\0\1"), "is a database of another program"),
    "newer": (change(60, b"\0\0\0\2"), "was made by a newer version"),
    "of no version": (change(60, b"\0\0\0\0"), "has schema 0"),
}
