"""Events of the trees of an organization: their pauses, and the commits that were applied.

What they say last is kept in the marks of the organization's row, by the name of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.service.domain.events import KindEvents, MarkEvent

PAUSED = "paused"
APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class TreePaused(MarkEvent):
    """A tree is not to be applied for a while.

    Attributes:
        until: When the pause ends by itself, in microseconds since the epoch.
    """

    VERB = "tree.paused"
    tree: str
    reason: str
    until: int

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """Put the pause in the place of an earlier one, and drop those that are over."""
        kept = {tree: pause for tree, pause in marks.get(PAUSED, {}).items() if pause["until"] > at}
        pause = {"reason": self.reason, "until": self.until, "since": at, "writer": writer}
        marks[PAUSED] = {**kept, self.tree: pause}


@dataclass(frozen=True, slots=True)
class TreeResumed(MarkEvent):
    """A pause ended before its time."""

    VERB = "tree.resumed"
    tree: str

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """Drop the pause."""
        kept = {tree: pause for tree, pause in marks[PAUSED].items() if tree != self.tree}
        marks[PAUSED] = kept
        if not kept:
            del marks[PAUSED]


@dataclass(frozen=True, slots=True)
class TreeApplied(MarkEvent):
    """The manifests of a commit were applied, all of them.

    Attributes:
        outcome: Whether that changed anything.
    """

    VERB = "tree.applied"
    tree: str
    commit: str
    outcome: str

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """Put the record in the place of an earlier one."""
        record = {"commit": self.commit, "outcome": self.outcome, "at": at, "writer": writer}
        marks[APPLIED] = {**marks.get(APPLIED, {}), self.tree: record}


ROW = KindEvents((TreePaused, TreeResumed, TreeApplied))
