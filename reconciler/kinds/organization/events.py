"""Events of an organization that leave marks on it: of trees, and of objects that an undo removed.

What they say last is kept in the marks of the organization's row, by the name of the tree or by the
key of the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.resources.undone import undone_of_text
from reconciler.service.domain.events import KindEvents, MarkEvent

PAUSED = "paused"
APPLIED = "applied"
UNMADE = "unmade"
MOST_UNMADE = 200
"""Objects of an organization whose marks are kept, the newest. One is enough to block a plan."""


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
        _drop(marks, PAUSED, self.tree)


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


@dataclass(frozen=True, slots=True)
class ObjectUnmade(MarkEvent):
    """An undo removed an object, which a plan is not to make again.

    Attributes:
        key: Of the object.
        undone: The mark, as the text of a context.
    """

    VERB = "object.unmade"
    key: str
    undone: str

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """Keep the mark as the newest one."""
        mark = undone_of_text(self.undone)
        if mark is None:
            return
        kept = {**marks.get(UNMADE, {}), self.key: {**mark._asdict(), "at": at}}
        newest = sorted(kept, key=lambda key: kept[key]["at"])[-MOST_UNMADE:]
        marks[UNMADE] = {key: kept[key] for key in newest}


@dataclass(frozen=True, slots=True)
class ObjectRemade(MarkEvent):
    """An object that an undo had removed was made again."""

    VERB = "object.remade"
    key: str

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """End the mark."""
        _drop(marks, UNMADE, self.key)


def _drop(marks: dict[str, Any], name: str, key: str) -> None:
    """Remove what one of the marks has under a key, and the mark with the last of them."""
    marks[name].pop(key, None)
    if not marks[name]:
        del marks[name]


ROW = KindEvents((TreePaused, TreeResumed, TreeApplied, ObjectUnmade, ObjectRemade))
