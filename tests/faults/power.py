"""A power cut, played from a recording: what a disk may hold when the power goes.

``strace`` records what a process writes, syncs and names, and what it acknowledges on stdout.
From that an image is laid down for any instant: what was synced is there; of what was not, each
sector of 512 bytes is there or not as the dice fall; names that were not synced with their folder
are there in their order, up to some point.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.faults.tracing import run_traced

SECTOR = 512
WITHIN = 60
LONGEST = 1 << 24
CALLS = "openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,link,linkat,rename,close"
_LINE = re.compile(r"(\w+)\((.*)\) += (\d+)(?:<([^>]*)>)?(?:\(deleted\))?")


class Written(NamedTuple):
    """Bytes were written, and may lie in a cache."""

    file: int
    offset: int
    data: bytes


class Resized(NamedTuple):
    """A file was cut or made longer."""

    file: int
    size: int


class Synced(NamedTuple):
    """All that was done to a file is on the disk."""

    file: int


class Named(NamedTuple):
    """A name leads to a file, or to none any more."""

    name: str
    file: int | None


class NamesSynced(NamedTuple):
    """The names in the folder are on the disk."""


class Acknowledged(NamedTuple):
    """The process told the world something."""

    text: str


Step = Written | Resized | Synced | Named | NamesSynced | Acknowledged


def record(script: str, arguments: Sequence[str], folder: Path) -> list[Step]:
    """Run a script, which waits for its tracer, in an empty folder; return what it did there."""
    trace = folder.with_name(folder.name + ".trace")
    options = ["-xx", "-y", "-s", str(LONGEST), "-e", f"trace={CALLS}", "-o", str(trace)]
    done = run_traced(options, script, arguments, folder, WITHIN)
    assert done.returncode == 0, done.stderr
    with trace.open(encoding="ascii") as lines:
        return list(_Reader(folder).steps(lines))


class _Reader:
    """Reads a trace: calls of the system in, steps out."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._names: dict[str, int] = {}
        self._open: dict[int, int] = {}
        self._at: dict[int, int] = {}
        self._files = 0

    def steps(self, lines: Iterable[str]) -> Iterator[Step]:
        """Yield what was done to files in the folder, and what was told."""
        for line in lines:
            found = _LINE.match(line)
            if found:
                yield from self._step(found[1], found[2], int(found[3]), _plain(found[4] or ""))

    def _step(self, call: str, said: str, result: int, opened: str) -> Iterator[Step]:
        if call == "openat":
            yield from self._opened(said, result, opened)
        elif call in {"link", "linkat", "rename", "unlink", "unlinkat"}:
            yield from self._named(call, [_plain(text) for text in re.findall(r'"([^"]*)"', said)])
        elif call == "write" and said.startswith("1<"):
            yield Acknowledged(_data(said).decode())
        else:
            yield from self._on_handle(call, said, result)

    def _opened(self, said: str, handle: int, path: str) -> Iterator[Step]:
        name = self._name(path)
        if path == self._folder:
            self._open[handle] = 0
        if name is None:
            return
        if name not in self._names:
            self._files += 1
            self._names[name] = self._files
            yield Named(name, self._files)
        self._open[handle], self._at[handle] = self._names[name], 0
        if "O_TRUNC" in said:
            yield Resized(self._open[handle], 0)

    def _named(self, call: str, paths: Sequence[str]) -> Iterator[Step]:
        names = [self._name(str(Path(self._folder) / path)) for path in paths]
        if names[0] is None:
            return
        file = self._names.get(names[0])
        for name in names[1:]:
            assert name is not None
            assert file is not None
            self._names[name] = file
            yield Named(name, file)
        if not call.startswith("link"):
            self._names.pop(names[0], None)
            yield Named(names[0], None)

    def _on_handle(self, call: str, said: str, result: int) -> Iterator[Step]:
        handle = int(said.partition("<")[0])
        file = self._open.get(handle)
        if file is None:
            return
        if call == "close":
            del self._open[handle]
        elif call in {"fsync", "fdatasync"}:
            yield Synced(file) if file else NamesSynced()
        elif call == "ftruncate":
            yield Resized(file, int(said.rpartition(", ")[2]))
        else:
            offset = self._at[handle] if call == "write" else int(said.rpartition(", ")[2])
            self._at[handle] = offset + result
            yield Written(file, offset, _data(said)[:result])

    def _name(self, path: str) -> str | None:
        """Return the name of a path in the folder; None of one elsewhere."""
        folder, _, name = path.rpartition("/")
        return name if folder == self._folder else None


def _data(said: str) -> bytes:
    (text,) = re.findall(r'"([^"]*)"', said)
    return bytes.fromhex(text.replace("\\x", ""))


def _plain(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode()


@dataclass
class _File:
    """What is on the disk for sure, and what may be."""

    sure: bytearray = field(default_factory=bytearray)
    unsure: list[Written | Resized] = field(default_factory=list)

    def synced(self) -> None:
        for step in self.unsure:
            _carry_out(self.sure, step)
        self.unsure.clear()

    def left(self, dice: random.Random, chance: float) -> bytes:
        content = bytearray(self.sure)
        for step in self.unsure:
            for part in _sectors(step) if isinstance(step, Written) else (step,):
                if dice.random() < chance:
                    _carry_out(content, part)
        return bytes(content)


def _carry_out(content: bytearray, step: Written | Resized) -> None:
    size = step.size if isinstance(step, Resized) else step.offset + len(step.data)
    if isinstance(step, Resized):
        del content[size:]
    content.extend(bytes(max(0, size - len(content))))
    if isinstance(step, Written):
        content[step.offset : size] = step.data


def _sectors(step: Written) -> Iterator[Written]:
    end = step.offset + len(step.data)
    at = step.offset
    while at < end:
        upto = min(end, (at // SECTOR + 1) * SECTOR)
        yield Written(step.file, at, step.data[at - step.offset : upto - step.offset])
        at = upto


class Disk:
    """A disk with a cache before it, as a recording fills them."""

    def __init__(self) -> None:
        self.acknowledged = ""
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._unsure_names: list[Named] = []

    def take(self, step: Step) -> None:
        """Carry out a step."""
        match step:
            case Acknowledged():
                self.acknowledged += step.text
            case Written() | Resized():
                self._files.setdefault(step.file, _File()).unsure.append(step)
            case Synced():
                self._files.setdefault(step.file, _File()).synced()
            case Named():
                self._unsure_names.append(step)
            case NamesSynced():
                self._names = self._named(len(self._unsure_names))
                self._unsure_names.clear()

    def cut(self, dice: random.Random, folder: Path, chance: float) -> None:
        """Lay down what is left in an empty folder if the power goes now."""
        for name, file in self._named(dice.randint(0, len(self._unsure_names))).items():
            content = self._files.get(file, _File()).left(dice, chance)
            path = folder / name
            path.write_bytes(content)
            path.chmod(0o600)

    def _named(self, count: int) -> dict[str, int]:
        names = dict(self._names)
        for name, file in self._unsure_names[:count]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return names


def power_cuts(
    steps: Sequence[Step], count: int, dice: random.Random, folder: Path, chance: float = 0.5
) -> Iterator[tuple[Path, str]]:
    """Yield folders as power cuts at so many instants leave them, and what was acknowledged."""
    instants = sorted(dice.randint(1, len(steps)) for _ in range(count))
    disk, done = Disk(), 0
    for number, instant in enumerate(instants):
        for step in steps[done:instant]:
            disk.take(step)
        done = instant
        image = folder / f"image-{number}"
        image.mkdir()
        disk.cut(dice, image, chance)
        yield image, disk.acknowledged
