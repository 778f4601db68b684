"""A tree's usual name, and a part of a very large one, by organization: what one job looks after.

An organization belongs to a shard with everything in it, so a shard is complete in itself. Which
one depends on the organization's name and on the number of shards, and on nothing else: not on
files, on other organizations, or on the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.resources.ref import fold

DEFAULT_TREE = "default"
"""Name of a tree that is given none."""

MAX_SHARDS = 10_000
_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of so many shards; they count from 1."""

    index: int
    count: int

    def holds(self, organization: str) -> bool:
        """Return whether an organization, in any case, belongs to this shard."""
        return shard_of(organization, self.count) == self.index

    def __str__(self) -> str:
        """Return how a command line names it: ``2/4``."""
        return f"{self.index}/{self.count}"


def shard_of(organization: str, count: int) -> int:
    """Return the shard, from 1, that an organization belongs to where there are so many.

    That is the SHA-256 of the folded name in UTF-8, as one number, modulo the count, plus 1.
    """
    import hashlib

    name = fold(organization).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest(), "big") % count + 1


def read_shard(text: str) -> Shard:
    """Return the shard that a text such as ``2/4`` names.

    Raises:
        ValueError: it names none; the message is a sentence about the text.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("is not of the form I/N")
    index, count = map(int, found.groups())
    if not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"has a number of shards that is not from 1 to {MAX_SHARDS}")
    if not 1 <= index <= count:
        raise ValueError(f"names a shard that is not from 1 to {count}")
    return Shard(index, count)
