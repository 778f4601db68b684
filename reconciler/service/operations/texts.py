"""JSON texts of answers; those of objects are kept, so that each is encoded once.

Lists are the largest answers by far, and most of what they answer was answered before. A kept
text is found by the object's sequence, which every change moves on: it is never out of date,
whichever server made the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

from reconciler.service.domain.refusal import invalid
from reconciler.service.eventstore.rows import MarkedKey, ObjectKey, ObjectRow

MAX_TEXTS_BYTES = 16 << 20
LONGEST_KEPT = 64 << 10
MAX_LIST_BYTES = 4 << 20
"""Most bytes of a page with a cursor. A page of a thousand usual objects is a tenth of that."""
MAX_PAGE_BYTES = 8 << 20
"""Of the objects of any other page, which is whole or refused."""
READ_AT_ONCE = 16  # objects; each may be as large as a request
ENVELOPE_BYTES = 4 << 10  # of a view beside the spec: name, details, problems of compliance
ENTRY_BYTES = 400  # a key with its id and sequence, and its place in a dictionary
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode

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


def within(texts: Iterable[bytes]) -> list[bytes]:
    """Return texts from the first on, at least one, as many as a page with a cursor holds."""
    taken: list[bytes] = []
    size = 0
    for text in texts:
        size += len(text)
        if taken and size > MAX_LIST_BYTES:
            break
        taken.append(text)
    return taken


def whole(texts: Iterable[bytes]) -> list[bytes]:
    """Return all texts of a page.

    Raises:
        Refusal: together they are too long for an answer.
    """
    taken: list[bytes] = []
    size = 0
    for text in texts:
        size += len(text)
        if is_too_long(size):
            rule = f"must be smaller: these objects are longer than {MAX_PAGE_BYTES} bytes together"
            raise invalid("query.limit", rule)
        taken.append(text)
    return taken


def is_too_long(size: int) -> bool:
    """Return whether texts of so many bytes are more than a page may have."""
    return size > MAX_PAGE_BYTES


def longest_text(row: ObjectRow) -> int:
    """Return a number of bytes that the text of no view of an object exceeds.

    A code point of the spec has at most four bytes. An application shows the origins of its URIs
    beside its spec, which makes it twice as long at most.
    """
    return ENVELOPE_BYTES + 2 * 4 * len(row.spec)


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
    ) -> Iterator[bytes]:
        """Yield the text of a view of each object.

        Those that are not known are looked up, a few at a time.
        """
        for first in range(0, len(keys), READ_AT_ONCE):
            yield from self._of_part(view, keys[first : first + READ_AT_ONCE], look_up)

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
