"""The garbage collector is left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from reconciler.resources.collector import collect_seldom, collector_paused


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
