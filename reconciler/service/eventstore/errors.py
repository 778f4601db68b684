"""Errors of a store.

StoreError                   a person has to do something, or wait
├── StoreUnusableError           the file is not a store, or no longer a sound one
│   ├── StoreMissingError            no store exists there yet
│   └── StoreDamagedError            it was verified, and is not what was written
├── StoreUnreachableError        the database does not answer, or the open files were moved
├── StoreReadOnlyError           it may be read, not written
├── StoreFullError               no room; reads still work
└── StoreBusyError               another program writes, for longer than the limit of a wait
    └── StoreConflictError           (also a ConflictError) the whole transaction lost a race
ConflictError                two writers want what only one can have
├── StreamConflictError          the stream is not where the writer thinks, or not new
└── NameTakenError               another object has the name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StoreError(Exception):
    """A store that cannot serve: what is wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class StoreUnusableError(StoreError):
    """The file is not a store of ours, is from a newer version, or is damaged."""


class StoreMissingError(StoreUnusableError):
    """No store exists at this place, and none was to be made."""


class StoreDamagedError(StoreUnusableError):
    """A store, or its log, is not what was written; ``findings`` say where."""

    def __init__(self, problem: str, remedy: str, findings: Sequence[str] = ()) -> None:
        super().__init__(problem, remedy)
        self.findings = findings


class StoreUnreachableError(StoreError):
    """The database does not answer, or the files of an open store were taken away.

    A commit that was under way may have been carried out, or be in those files.
    """


class StoreReadOnlyError(StoreError):
    """The store cannot be written to."""


class StoreFullError(StoreError):
    """There is no room left for what is to be written."""


class StoreBusyError(StoreError):
    """Another writer kept the store locked for too long."""


class ConflictError(Exception):
    """Another writer changed what a decision was based on."""


class StreamConflictError(ConflictError):
    """The stream already has an event of this version."""


class NameTakenError(ConflictError):
    """Another object of the kind and owner has the name, ignoring case."""


# Both: the engine tries a conflict again, and who is left with one reads that the store is busy.
class StoreConflictError(StoreBusyError, ConflictError):
    """The transaction lost against others as a whole. Nothing of it was written; try again."""


class Meaning(NamedTuple):
    """The meaning of an error of a database, with ``{place}`` for where the store is."""

    kind: type[StoreError]
    problem: str
    remedy: str

    def at(self, place: object) -> StoreError:
        """Return the error for the person whose store it is."""
        return self.kind(self.problem.format(place=place), self.remedy)
