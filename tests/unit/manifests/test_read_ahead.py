"""What a child process reads ahead is what would have been read here, whatever becomes of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from reconciler.manifests import read_ahead
from reconciler.manifests.manifest import Root, SourceFile
from reconciler.manifests.read_ahead import read_all
from tests.rows import each_row

ROOT = Path(__file__).parents[3]
_read = read_ahead._read
TEXTS = (
    "kind: Project\nmetadata: {name: portal}\n",
    "a: 1\n---\n# nothing\n---\nb: [x, 0x10, 1.5, true, ~]\n",
    "a: &x 1\n",  # only its trace can tell what is wrong
    "'no': \"\\u00e9\\ud83d\"\n",
    "",
    "a: 1\n---\nb: {c: [[], {}]}\n...\n",
    "number: " + "9" * 60 + "\n",
)


def files(texts: Sequence[str] = TEXTS) -> list[SourceFile]:
    return [SourceFile(f"{n}.yaml", text, Root("."), ()) for n, text in enumerate(texts)]


def read_here(texts: Sequence[str] = TEXTS) -> list[Any]:
    return [file.read() for file in files(texts)]


def read_with_child(texts: Sequence[str] = TEXTS) -> list[Any]:
    return [*read_all(files(texts))]


@pytest.fixture(autouse=True)
def a_child_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MIN_CHARACTERS", 0)
    monkeypatch.setattr(read_ahead, "_has_free_core", lambda: True)


def children() -> list[int]:
    return [child.pid or 0 for child in multiprocessing.active_children()]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of files, as they are read in this process."""
    names: list[str] = []
    read = SourceFile.read

    def noting(file: SourceFile) -> Any:
        names.append(file.name)
        return read(file)

    monkeypatch.setattr(SourceFile, "read", noting)
    return names


def test_a_child_reads_the_same(noted: list[str]) -> None:
    read = read_with_child()
    assert 0 < len(noted) < len(TEXTS), "the child read the others"
    assert read == read_here()


def _ends(files: Sequence[SourceFile], receiving: Connection, sending: Connection) -> None:
    os._exit(1)


def _sends_half(files: Sequence[SourceFile], receiving: Connection, sending: Connection) -> None:
    os.write(sending.fileno(), b"\0\0\1\0 and no more")
    os._exit(0)


def _takes_long(files: Sequence[SourceFile], receiving: Connection, sending: Connection) -> None:
    time.sleep(3600)


@each_row("becomes", [_ends, _sends_half])
def test_what_a_child_does_not_send_is_read_here(
    becomes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(read_ahead, "_read", becomes)
        assert read_with_child() == read_here()


def test_without_a_child_all_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    assert read_with_child() == read_here()


def test_a_child_ends_with_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_read", _takes_long)
    traces = read_all(files())
    next(traces)
    (child,) = children()
    traces.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_signal_while_a_child_is_started_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is held back until the child has been started."""
    monkeypatch.setattr(read_ahead, "_read", _takes_long)
    start = multiprocessing.Process.start

    def interrupted(child: multiprocessing.Process) -> None:
        start(child)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(multiprocessing.get_context("fork").Process, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(read_all(files()))
    assert not children()


# Dies as if for want of memory, while its child has more to send than fits into a pipe.
A_PARENT = """
import os, signal
from reconciler.manifests import read_ahead
from reconciler.manifests.manifest import Root, SourceFile
read_ahead.MIN_CHARACTERS, read_ahead._has_free_core = 0, lambda: True
files = [SourceFile(name, "a: " + "x" * 60_000, Root("."), ()) for name in "abcdefgh"]
for _ in read_ahead.read_all(files):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    """Until then it keeps the output open, for whose end a job of CI waits."""
    subprocess.run(
        [sys.executable, "-c", A_PARENT], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=False
    )


def _reads_once_signalled(
    files: Sequence[SourceFile], receiving: Connection, sending: Connection
) -> None:
    while signal.SIGTERM not in signal.sigpending():
        time.sleep(0.01)
    _read(files, receiving, sending)


def test_a_child_leaves_signals_to_its_parent(
    noted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "_read", _reads_once_signalled)
    traces = read_all(files())
    first = next(traces)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(children()[0], number)
    read = [first, *traces]
    assert len(noted) < len(TEXTS), "the child went on"
    assert read == read_here()
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


@each_row(
    ("sizes", "later"),
    [
        ((), 0),
        ((10,), 0),
        ((10, 10), 1),
        ((1, 1, 1, 9), 1),
        ((9, 1, 1, 1), 3),
        ((5,) * 10, 5),
    ],
)
def test_a_child_reads_half_of_the_text(sizes: tuple[int, ...], later: int) -> None:
    given = files(["x" * size for size in sizes])
    assert [*read_ahead._later(given)] == given[len(given) - later :]


def test_a_small_tree_is_worth_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MIN_CHARACTERS", 1024)
    next(read_all(files()))
    assert not children()


def test_a_fork_needs_a_second_core_and_no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert read_ahead._has_free_core()
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not read_ahead._has_free_core()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    assert not read_ahead._has_free_core()
