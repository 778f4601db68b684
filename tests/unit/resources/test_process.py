"""The garbage collector is left as it was found; crashpoints end the process at one visit."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest

from reconciler.resources import process
from reconciler.resources.process import collect_seldom, collector_paused


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave the collector to the other tests as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.enable()


def test_the_collector_pauses_while_values_are_made_and_leaves_them_alone() -> None:
    frozen = gc.get_freeze_count()

    with collector_paused():
        assert not gc.isenabled()

    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen


def test_a_pause_within_a_pause_does_not_end_it() -> None:
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()


def test_a_failure_ends_the_pause() -> None:
    with pytest.raises(OSError, match="x"), collector_paused():
        raise OSError("x")

    assert gc.isenabled()


def test_a_server_collects_seldom() -> None:
    collect_seldom()

    assert gc.get_threshold()[0] == 50_000


@pytest.mark.parametrize(
    ("written", "visits", "kills"),
    [
        ("", ["S4", "S4"], []),
        ("S4", ["S3", "S4", "S4"], [1]),
        ("S4:3", ["S4", "S4", "S5", "S4", "S4"], [3]),
        ("S40", ["S4"], []),
    ],
)
def test_the_process_is_killed_at_one_visit_of_one_place(
    monkeypatch: pytest.MonkeyPatch, written: str, visits: list[str], kills: list[int]
) -> None:
    killed: list[tuple[int, int, int]] = []
    monkeypatch.setattr(process, "_visits_left", process._armed(written))

    for at, name in enumerate(visits):
        monkeypatch.setattr(os, "kill", lambda pid, sent, at=at: killed.append((at, pid, sent)))
        process.crashpoint(name)

    assert killed == [(at, os.getpid(), signal.SIGKILL) for at in kills]
