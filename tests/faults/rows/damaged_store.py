"""The file of a store is damaged while nobody has it open."""

from __future__ import annotations

import random
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from reconciler.service.build import open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.projections.maintenance import verify
from tests.faults.catalogue import Row, ViolationError, must
from tests.faults.power import SECTOR
from tests.faults.rows.power_cut import STORE, images_in
from tests.faults.store_writer import Answer, request
from tests.program import program

FLIPS = 60
CUTS = 25
PAGE = 4096
WITHIN = 30
CALLS = 24
LATE_CALLS = 6
SHOWN = (  # the rest are answers kept for a day
    "SELECT * FROM events",
    "SELECT * FROM heads",
    "SELECT * FROM objects",
    "SELECT * FROM tokens",
    "SELECT * FROM meta",
)
MISSED_AT_MOST = 0.01  # of the bits that change what is shown
COMMANDS = (("store", "verify"), ("export",), ("store", "backup", "copy.db"))

Damage = Callable[[random.Random, bytes], bytes]
Tables = Mapping[str, Sequence[str]]


def bits_are_flipped(dice: random.Random, folder: Path) -> int:
    """Flip one bit after the other, each in a sound store."""
    answers = _filled(folder / STORE)
    sound = (folder / STORE).read_bytes()
    shown = _tables(folder / STORE)
    missed, live = [], 0
    with images_in() as place:
        for _ in range(FLIPS):
            flipped, where = _with_a_bit_flipped(dice, sound)
            path = place / STORE
            path.write_bytes(flipped)
            found = is_found(path)
            must(path.read_bytes() == flipped, "I9", f"{where} and looking changed the file")
            changed = (
                [] if found else [name for name in SHOWN if _tables(path)[name] != shown[name]]
            )
            live += bool(found or changed)
            missed += [f"{where}: {changed}"] if changed else []
            if not found and not changed:
                _answers_or_refuses(path, answers)
    must(len(missed) <= max(1, live * MISSED_AT_MOST), "I9", missed)
    return FLIPS


def the_file_is_damaged(dice: random.Random, folder: Path) -> int:
    """Cut, blank or swap pages; a program told to use the store says so and leaves it alone."""
    answers = _filled(folder / STORE)
    sound = (folder / STORE).read_bytes()
    shown = _tables(folder / STORE)
    with images_in() as place:
        for number in range(CUTS):
            how, damage = dice.choice(tuple(DAMAGES.items()))
            if number == 0:
                how, damage = "cut", _cut
            path = place / STORE
            path.write_bytes(damage(dice, sound))
            if not is_found(path):
                must(how != "cut", "I9", "a file that is cut short was not found")
                must(_tables(path) == shown, "I9", f"{how} was not found")
                _answers_or_refuses(path, answers)
    damaged = _cut(dice, sound)
    (folder / STORE).write_bytes(damaged)
    told = program(folder)(*dice.choice(COMMANDS), "--service", f"sqlite:{STORE}")
    must(told.code == 1, "I10", told.all)
    must((folder / STORE).read_bytes() == damaged, "I9", "the damaged store was changed")
    return CUTS


def logs_are_mixed_up(dice: random.Random, folder: Path) -> int:
    """Take the log of commits away, or put that of another time or store beside the file."""
    old, new, other = folder / "old", folder / "new", folder / "other"
    for place in (old, new, other):
        place.mkdir()
    answers = _filled(old / STORE)
    others = _filled(other / STORE)
    (new / STORE).write_bytes((old / STORE).read_bytes())
    log = _with_more(new / STORE, answers)
    other_log = _with_more(other / STORE, others)
    before, after = _events(old / STORE), _events(new / STORE)
    for name, base, beside in (
        ("the log is gone", old, b""),
        ("an old log beside a newer file", new, log),
        ("the log of another store", old, other_log),
        ("the log of another store beside a newer file", new, other_log),
        ("half a log", old, log[: dice.randrange(len(log))]),
    ):
        place = folder / name.replace(" ", "-")
        place.mkdir()
        (place / STORE).write_bytes((base / STORE).read_bytes())
        (place / f"{STORE}-wal").write_bytes(beside)
        if not is_found(place / STORE):
            held = _events(place / STORE)
            must(before == held[: len(before)], "I1", f"{name}: what was in the file is gone")
            must(held == after[: len(held)], "I4", f"{name}: something else is there")
    return 5


def is_found(path: Path) -> bool:
    """Say whether a store is refused, or found wanting by ``verify``; nothing else is raised."""
    try:
        with _in_time(), closing(open_sqlite(path, read_only=True)) as service:
            return bool(verify(service.store))
    except StoreError:
        return True


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise a violation if the block does not end: a damaged file can lead in circles."""

    def too_long(*_: object) -> None:
        raise ViolationError("I9", f"looking did not end within {WITHIN} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(WITHIN)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _filled(path: Path) -> list[Answer]:
    answers: list[Answer] = []
    with closing(open_sqlite(path, create=True)) as service:
        for number in range(CALLS):
            answers.append(service.call(request(number, answers)))
    return answers


def _with_more(path: Path, answers: Sequence[Answer]) -> bytes:
    """Write more to a store; return its log as it was before the file took it over."""
    with closing(open_sqlite(path)) as service:
        for number in range(CALLS, CALLS + LATE_CALLS):
            service.call(request(number, answers))
        return path.with_name(f"{STORE}-wal").read_bytes()


def _events(path: Path) -> Sequence[object]:
    with closing(open_sqlite(path, read_only=True)) as service, service.store.snapshot() as view:
        return view.read_all(limit=100_000)


def _tables(path: Path) -> Tables:
    """Return the rows that a file shows, as texts, by what asks for them."""
    address = f"file:{path}?immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = bytes
        return {asked: _rows(connection, asked) for asked in SHOWN}


def _rows(connection: sqlite3.Connection, asked: str) -> Sequence[str]:
    try:
        return sorted(map(repr, connection.execute(asked)))
    except UnicodeDecodeError:
        return ("the name of a column is damaged",)


def _answers_or_refuses(path: Path, answers: Sequence[Answer]) -> None:
    """Check that who asks again is answered as before or refused, never otherwise."""
    asked = [request(number, answers) for number in range(len(answers))]
    keyed = [number for number, call in enumerate(asked) if call.idempotency_key]
    with closing(open_sqlite(path)) as service:
        for number in keyed:
            try:
                again = service.call_many([asked[number]])[0]
            except StoreError:
                continue
            if not isinstance(again, Refusal):
                must(again == answers[number], "I3", f"call {number} is answered otherwise")


def _with_a_bit_flipped(dice: random.Random, sound: bytes) -> tuple[bytes, str]:
    place, bit = dice.randrange(len(sound)), dice.randrange(8)
    held = bytearray(sound)
    held[place] ^= 1 << bit
    return bytes(held), f"bit {bit} of byte {place}"


def _cut(dice: random.Random, sound: bytes) -> bytes:
    return sound[: dice.randrange(len(sound))]


def _blank(dice: random.Random, sound: bytes) -> bytes:
    page = dice.randrange(len(sound) // PAGE) * PAGE
    return sound[:page] + bytes(PAGE) + sound[page + PAGE :]


def _swap(dice: random.Random, sound: bytes) -> bytes:
    first, second = sorted(dice.sample(range(len(sound) // PAGE), 2))
    pages = [sound[start : start + PAGE] for start in range(0, len(sound), PAGE)]
    pages[first], pages[second] = pages[second], pages[first]
    return b"".join(pages)


def _scribble(dice: random.Random, sound: bytes) -> bytes:
    start = dice.randrange(len(sound) // SECTOR) * SECTOR
    return sound[:start] + dice.randbytes(SECTOR) + sound[start + SECTOR :]


DAMAGES: Mapping[str, Damage] = {
    "cut": _cut,
    "blank": _blank,
    "swap": _swap,
    "scribble": _scribble,
}


ROWS = (
    Row("F6", "bits of a store are flipped", bits_are_flipped, 2),
    Row("F6a", "pages of a store are cut, blanked or swapped", the_file_is_damaged, 2),
    Row("F6b", "the log beside a store is not its own", logs_are_mixed_up, 1),
)
