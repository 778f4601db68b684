"""Everything a fuzzer ever broke, and what it found worth keeping, goes through again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.seeds import LARGE, seeds_of
from tests.fuzz.targets import (
    MAX_MEMORY,
    MAX_SECONDS,
    TARGETS,
    TooSlowError,
    little_memory,
    slowness,
    timed,
)

HERE = Path(__file__).parent
MAX_FILES = 60
MAX_FILE = 16 * 1024


def kept(target: str) -> list[Path]:
    """Return the files of a target: crashes that were mended, and inputs that reach far."""
    folders = (HERE / "crashes" / target, HERE / "corpus" / target)
    return [path for folder in folders for path in sorted(folder.glob("*"))]


def inputs(target: str) -> Iterator[bytes]:
    yield b""
    yield from seeds_of(target)
    yield from (path.read_bytes() for path in kept(target))


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_documented_refusals_comes_out(name: str) -> None:
    """Within a second and 256 MiB; some inputs are taken, and some are refused."""
    target = timed(TARGETS[name])
    with little_memory():
        answers = [target(data) for data in inputs(name)]

    assert set(answers) == {True, False}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_manifest_is_judged_in_a_second(name: str) -> None:
    """Whoever opens a pull request could otherwise stop its checks for a minute."""
    target = timed(TARGETS["manifest"])
    with little_memory():
        target(LARGE[name].encode())


def test_a_file_belongs_to_a_target_and_is_small() -> None:
    """A corpus that nobody replays, or nobody can look through, proves nothing."""
    found = [path for name in ("corpus", "crashes") for path in (HERE / name).glob("*/*")]

    assert {path.parent.name for path in found} <= set(TARGETS)
    assert [path.name for path in found if path.stat().st_size > MAX_FILE] == []
    assert [name for name in TARGETS if len(kept(name)) > MAX_FILES] == []


def test_an_input_that_takes_too_long_or_too_much_is_found() -> None:
    """The bounds above would otherwise be words; a smaller one is compared the same way."""
    seconds = MAX_SECONDS / 10

    def slow(data: bytes) -> bool:
        ends = time.process_time() + 2 * seconds * slowness()
        while time.process_time() < ends:
            pass
        return True

    with pytest.raises(TooSlowError):
        timed(slow, seconds)(b"")
    with little_memory(), pytest.raises(MemoryError):
        bytearray(2 * MAX_MEMORY)
