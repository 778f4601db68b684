"""The power goes while a store is written."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from reconciler.service.build import open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreError
from tests.faults import store_writer
from tests.faults.catalogue import Row, ViolationError, must
from tests.faults.invariants import check_events
from tests.faults.power import Step, power_cuts, record
from tests.faults.store_writer import arguments, check_acknowledged, request, told

STORE = "identity.db"
IMAGES = 75
MEMORY = Path("/dev") / "shm"  # where it can be had, because images are synced for nothing


def recording(folder: Path, **options: object) -> Sequence[Step]:
    """Return what a writer with some options did to a store."""
    place = folder / "recorded"
    place.mkdir()
    return record(store_writer.__file__, arguments(place / STORE, **options, traced=1), place)


def check_image(image: Path, acknowledged: str) -> None:
    """Check that everything acknowledged is in an image, and that work can go on there."""
    answers = told(acknowledged)
    path = image / STORE
    must(path.exists() or not answers, "I1", "there is no store")
    try:
        with closing(open_sqlite(path, create=True)) as service:
            check_events(service.store)
            check_acknowledged(service, answers)
            service.call(request(len(answers), answers))
    except StoreError as error:
        raise ViolationError("I9", error.problem) from error
    except Refusal as refusal:  # the key that sealed a secret is gone
        raise ViolationError("I3", refusal.message) from refusal


@contextmanager
def images_in() -> Iterator[Path]:
    """Yield a folder for images, which is gone afterwards."""
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="power-", dir=place) as folder:
        yield Path(folder)


def the_power_goes(dice: random.Random, folder: Path) -> int:
    """Record a writer once, and cut its power at many instants."""
    steps = recording(
        folder,
        calls=dice.randint(6, 40),
        batch=dice.choice((1, 1, 3)),
        reopen=dice.choice((3, 7, 1000)),
        pragma=f"wal_autocheckpoint={dice.choice((10, 50, 1000))}",
    )
    chance = dice.choice((0.1, 0.5, 0.5, 0.9))
    with images_in() as place:
        for image, acknowledged in power_cuts(steps, IMAGES, dice, place, chance):
            shutil.copytree(image, folder / "image")  # as it was before anybody opened it
            check_image(image, acknowledged)
            shutil.rmtree(folder / "image")
            shutil.rmtree(image)
    return IMAGES


ROWS = (Row("F1d", "the power goes while a store is written", the_power_goes, 2),)
