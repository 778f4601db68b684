"""The simulated power cut finds a store that loses what it acknowledged: settings known to do so.

What the store itself does is a row of the catalogue, ``rows/power_cut.py``.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.catalogue import ViolationError
from tests.faults.power import (
    SECTOR,
    Acknowledged,
    Disk,
    Named,
    NamesSynced,
    Synced,
    Written,
    power_cuts,
)
from tests.faults.rows.power_cut import check_image, images_in, recording

IMAGES = 60
CALLS = 18


def violated(folder: Path, **options: object) -> Counter[str]:
    """Return how often each invariant was violated by power cuts, with options of the writer."""
    steps = recording(folder, calls=CALLS, **options)
    found: Counter[str] = Counter()
    with images_in() as place:
        for image, acknowledged in power_cuts(steps, IMAGES, random.Random(1), place):
            try:
                check_image(image, acknowledged)
            except ViolationError as violation:
                found[violation.invariant] += 1
    return found


def test_the_settings_of_the_store_lose_nothing(tmp_path: Path) -> None:
    """The same writer, as it is: what the others are measured against."""
    assert violated(tmp_path) == {}


@pytest.mark.parametrize("level", ["NORMAL", "OFF"])
def test_a_store_that_does_not_sync_every_commit_is_found_out(tmp_path: Path, level: str) -> None:
    """Without a sync, commits that were acknowledged are lost."""
    assert violated(tmp_path, pragma=f"synchronous={level}")["I1"] > IMAGES / 10


def test_a_store_that_never_syncs_is_found_damaged(tmp_path: Path) -> None:
    """Where the file itself is written without a sync, what is left of it is no store."""
    found = violated(tmp_path, pragma="synchronous=OFF", reopen=2)

    assert found["I9"] + found["I5"] > 0


def test_a_file_that_is_named_before_it_is_synced_is_found_out(tmp_path: Path) -> None:
    """The key that seals secrets, or the store itself, is then empty or gone."""
    assert violated(tmp_path, settle=0).total() > IMAGES / 10


def test_a_disk_keeps_what_was_synced_and_some_of_the_rest(tmp_path: Path) -> None:
    """Sector by sector, and names in their order."""
    disk = Disk()
    for step in (
        Named("kept", 1), NamesSynced(), Written(1, 0, b"a" * 4 * SECTOR), Synced(1),
        Acknowledged("first"), Written(1, 100, b"b" * 100 * SECTOR), Named("perhaps", 2),
    ):  # fmt: skip
        disk.take(step)

    left = set()
    for number in range(40):
        image = tmp_path / str(number)
        image.mkdir()
        disk.cut(random.Random(number), image, 0.5)
        content = (image / "kept").read_bytes()
        assert content[:100] == b"a" * 100
        assert {content[SECTOR : 2 * SECTOR], content[2 * SECTOR : 3 * SECTOR]} <= {
            b"a" * SECTOR,
            b"b" * SECTOR,
        }
        left.add((image / "perhaps").exists())

    assert disk.acknowledged == "first"
    assert left == {True, False}
