"""JSON texts of answers; those of objects are kept, so that each is encoded once.

Lists are the largest answers by far, and most of what they answer was answered before. A kept
text is found by the object's sequence, which every change moves on: it is never out of date,
whichever server made the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from reconciler.service.eventstore.rows import MarkedKey, ObjectKey, ObjectRow

MAX_TEXTS_BYTES = 16 << 20
LONGEST_KEPT = 64 << 10
MAX_LIST_BYTES = 4 << 20
"""Of the objects of one answer. A page of a thousand usual ones is a tenth of that."""
READ_AT_ONCE = 16  # objects; each may be as large as a request
ENTRY_BYTES = 400  # a key with its id and sequence, and its place in a dictionary
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode

T = TypeVar("T")
View: TypeAlias = Callable[[ObjectRow], dict[str, Any]]
LookUp: TypeAlias = Callable[[Collection[str]], Sequence[ObjectRow]]


class Encoded(bytes):
    """A JSON text in UTF-8, in the place of the value of a member of an answer."""


def json_bytes(value: Any) -> bytes:
    """Return the JSON text of a value, in UTF-8."""
    return _encode(value).encode()


def answer_bytes(answer: Mapping[str, Any]) -> bytes:
    """Return the JSON text of an answer, of which some members may be encoded already."""
    if not any(isinstance(value, Encoded) for value in answer.values()):
        return json_bytes(answer)
    return b"{%b}" % b",".join(
        b"%b:%b" % (json_bytes(name), value if isinstance(value, Encoded) else json_bytes(value))
        for name, value in answer.items()
    )


def listed(texts: Iterable[bytes]) -> Encoded:
    """Return the JSON list of texts."""
    return Encoded(b"[%b]" % b",".join(texts))


def within(items: Iterable[T], size_of: Callable[[T], int]) -> list[T]:
    """Return items from the first on, at least one, as many as an answer holds."""
    taken: list[T] = []
    size = 0
    for item in items:
        size += size_of(item)
        if taken and size > MAX_LIST_BYTES:
            break
        taken.append(item)
    return taken


class Texts:
    """Texts of objects, within a limit in bytes. Any thread may use it.

    A view whose texts are kept must show nothing that changes without a new sequence, nor
    anything of a context: contexts come in any number and length.
    """

    def __init__(self, limit: int = MAX_TEXTS_BYTES) -> None:
        # What was not asked for since the last turn over is dropped at the next.
        self._recent: dict[tuple[View, str, int], bytes] = {}
        self._earlier: dict[tuple[View, str, int], bytes] = {}
        self._most = limit // 2
        self._bytes = 0
        self._lock = Lock()

    def of(
        self, view: View, keys: Sequence[ObjectKey | MarkedKey], look_up: LookUp
    ) -> Sequence[bytes]:
        """Return the text of a view of each object, from the first on, as many as an answer holds.

        Those that are not known are looked up.
        """
        parts = (keys[first : first + READ_AT_ONCE] for first in range(0, len(keys), READ_AT_ONCE))
        return within((text for part in parts for text in self._of_part(view, part, look_up)), len)

    def _of_part(
        self, view: View, keys: Sequence[ObjectKey | MarkedKey], look_up: LookUp
    ) -> Sequence[bytes]:
        known = [self._known((view, key.id, key.sequence)) for key in keys]
        missing = [key.id for key, text in zip(keys, known, strict=True) if text is None]
        rows = {row.id: row for row in look_up(missing)} if missing else {}
        return [
            self._made(view, rows[key.id]) if text is None else text
            for key, text in zip(keys, known, strict=True)
        ]

    def _known(self, key: tuple[View, str, int]) -> bytes | None:
        text = self._recent.get(key)
        if text is None:
            text = self._earlier.get(key)
            if text is not None:
                self._keep(key, text)
        return text

    def _made(self, view: View, row: ObjectRow) -> bytes:
        text = json_bytes(view(row))
        self._keep((view, row.id, row.sequence), text)
        return text

    def _keep(self, key: tuple[View, str, int], text: bytes) -> None:
        if len(text) > LONGEST_KEPT:
            return
        with self._lock:
            size = len(text) + ENTRY_BYTES
            if self._bytes + size > self._most:
                self._earlier, self._recent, self._bytes = self._recent, {}, 0
            self._recent[key] = text
            self._bytes += size
