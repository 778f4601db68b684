"""The pace of a run: when a commit is tried again, and which objects are contested."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 1800.0
FIGHT_SECONDS = 3600.0
MOST_HEALS = 3  # within that time; then the object is contested
EVERYTHING_SECONDS = 600.0  # after it everything is observed, also where nothing seems to happen
TRIGGER_SECONDS = 5.0  # between two rounds that were asked for


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of one commit that did not succeed.

    Attributes:
        due: When it may be tried again.
    """

    commit: str = ""
    failures: int = 0
    due: float = 0.0

    def is_due(self, commit: str, now: float) -> bool:
        """Return whether a commit may be tried now: another one always may."""
        return commit != self.commit or now >= self.due

    def failed(self, commit: str, now: float, chance: float) -> Tries:
        """Return the tries after one more; ``chance`` is a random number from 0 to 1.

        It keeps runs of several machines from coming back at the same time.
        """
        failures = self.failures + 1 if commit == self.commit else 1
        longest: float = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, 20))
        return Tries(commit, failures, now + longest * (0.5 + chance / 2))


class Fight(NamedTuple):
    """One object that was healed.

    Attributes:
        healed: When, the last times.
        sequence: That of the object when it was looked at last.
        moved: When that was seen to change.
    """

    healed: tuple[float, ...] = ()
    sequence: int = 0
    moved: float = 0.0

    def is_on(self, now: float) -> bool:
        """Return whether the object is contested."""
        if len(self.healed) < MOST_HEALS:
            return False
        took = self.healed[-1] - self.healed[-MOST_HEALS]
        return took <= FIGHT_SECONDS and now - self.moved < FIGHT_SECONDS


@dataclass(frozen=True, slots=True)
class Fights:
    """The objects that were healed towards one commit, by id."""

    commit: str = ""
    objects: Mapping[str, Fight] = field(default_factory=dict, hash=False)

    def towards(self, commit: str) -> Fights:
        """Return the fights of a commit: those of another one are over."""
        return self if commit == self.commit else Fights(commit)

    def seen(self, sequences: Mapping[str, int], now: float) -> Fights:
        """Return the fights after objects were looked at; one that rested for long is over."""
        objects = {}
        for each, fight in self.objects.items():
            sequence = sequences.get(each, fight.sequence)
            moved = now if sequence != fight.sequence else fight.moved
            if now - moved < FIGHT_SECONDS:
                objects[each] = fight._replace(sequence=sequence, moved=moved)
        return replace(self, objects=objects)

    def healed(self, ids: Collection[str], now: float) -> Fights:
        """Return the fights after objects were healed."""
        after = {
            each: Fight(
                (*self.objects.get(each, Fight()).healed[1 - MOST_HEALS :], now),
                self.objects.get(each, Fight()).sequence,
                now,
            )
            for each in ids
        }
        return replace(self, objects={**self.objects, **after})

    def contested(self, now: float) -> frozenset[str]:
        """Return the ids of the objects that are left alone."""
        return frozenset(each for each, fight in self.objects.items() if fight.is_on(now))
