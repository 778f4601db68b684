"""The mark of an undo: which values it took back, so that they stay undone.

The client writes it as one text into the context of a write, because contexts are flat; the service
keeps it with the object and answers it. A text that is no mark is ignored: it is only claimed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

MOST_VALUES = 50
MOST_TEXT = 500
"""Characters of a text of a mark; a longer reason is cut. So a mark fits into a context."""


class Undone(NamedTuple):
    """Values that an undo took back.

    Attributes:
        run: Id of the run of the undo.
        of: Id of the run that was undone.
        reason: Why; may be empty.
        values: Digest of each value that was taken back, by the name of its field as
            ``plan.diff.field_changes`` has it. An empty name stands for the object itself: the run
            made it and the undo removed it, or the run removed it and the undo brought it back.
    """

    run: str
    of: str
    reason: str
    values: Mapping[str, str]


def undone_text(mark: Undone | None) -> str:
    """Return a mark as the text of a context; empty for none."""
    if mark is None:
        return ""
    fields = {**mark._asdict(), "reason": mark.reason[:MOST_TEXT], "values": dict(mark.values)}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def undone_of_text(text: object) -> Undone | None:
    """Return the mark that a text says; None if it is no mark."""
    if not isinstance(text, str):
        return None
    try:
        return undone_of(json.loads(text))
    except (ValueError, RecursionError):
        return None


def undone_of(value: object) -> Undone | None:
    """Return the mark that a JSON value says; None if it is no mark."""
    if not isinstance(value, dict) or value.keys() != set(Undone._fields):
        return None
    run, of, reason, values = (value[name] for name in Undone._fields)
    if not isinstance(values, dict) or not 0 < len(values) <= MOST_VALUES:
        return None
    texts = (run, of, reason, *values, *values.values())
    if not all(isinstance(text, str) and len(text) <= MOST_TEXT for text in texts):
        return None
    if not (run and of) or any("\ud800" <= each <= "\udfff" for text in texts for each in text):
        return None
    return Undone(run, of, reason, values)
