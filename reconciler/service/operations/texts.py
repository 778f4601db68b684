"""Encoded answers, and a cache of the encodings of objects.

Lists are the largest answers by far, and mostly repeat what was answered before. The key of a
cached text has the object's sequence, which every change moves on: it is never out of date,
whichever server made the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from reconciler.service.domain.refusal import invalid
from reconciler.service.eventstore.rows import ObjectKey, ObjectRow
from reconciler.service.projections.objects import fast_json

MAX_TEXTS_BYTES = 16 << 20
LONGEST_KEPT = 64 << 10
MAX_LIST_BYTES = 4 << 20
"""Most bytes of a page with a cursor. A page of a thousand usual objects is a tenth of that."""
MAX_PAGE_BYTES = 8 << 20
"""Of the objects of any other page, which is whole or refused."""
READ_AT_ONCE = 16  # objects; each may be as large as a request
ENVELOPE_BYTES = 4 << 10  # of a view beside the spec: name, details, problems of compliance
LONGER_AS_TEXT = 40  # times, what protobuf takes: one byte of it can be the word of an enum
ENTRY_BYTES = 400  # a key with its id and sequence, and its place in a dictionary
_NO_TEXTS: Mapping[ObjectKey, bytes] = MappingProxyType({})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode

View: TypeAlias = Callable[[ObjectRow], dict[str, object]]
Encode: TypeAlias = Callable[[dict[str, Any]], bytes]
Make: TypeAlias = Callable[[ObjectRow], bytes]
LookUp: TypeAlias = Callable[[Collection[str]], Sequence[ObjectRow]]


class Encoded(tuple[bytes, ...]):
    """A list as the encodings of its members, in the place of the value of a member of an answer.

    They are JSON texts, or what a transport makes of them; see ``as_part``. They are joined once,
    with the rest of the answer: a page is long, and each copy takes memory.
    """

    __slots__ = ()


class EncodedAnswer(dict[str, Any]):
    """An answer that is encoded already, as its transport asked; its members are left out."""

    def __init__(self, body: bytes) -> None:
        self.body = body


def json_bytes(value: object) -> bytes:
    """Return the JSON text of a value, in UTF-8.

    Answers have whole numbers only: others are written in two ways by the two encoders.
    """
    try:
        return fast_json(sorts=False)(value)
    except TypeError:  # a number of more than 64 bits, in what a context says
        return _encode(value).encode()


@cache
def as_json(view: View) -> Make:
    """Return what makes the JSON text of a view of an object; always the same for a view."""
    return lambda row: json_bytes(view(row))


@cache
def as_part(encode: Encode, member: str, view: View) -> Make:
    """Return what encodes an answer whose one member is a list of one object.

    It is for an encoding as that of protobuf: messages that follow one another are one message,
    with what is in the lists of each.
    """
    return lambda row: encode({member: [view(row)]})


def answer_bytes(answer: Mapping[str, object]) -> bytes:
    """Return the JSON text of an answer; some members may be encoded already."""
    if not any(isinstance(value, Encoded) for value in answer.values()):
        return json_bytes(answer)
    # A comma stands between members of a list as between those of an object: one join adds all.
    pieces: list[bytes] = []
    for name, value in answer.items():
        start = len(pieces)
        pieces += (value or (b"",)) if isinstance(value, Encoded) else (json_bytes(value),)
        if isinstance(value, Encoded):
            pieces[start] = b"[" + pieces[start]
            pieces[-1] += b"]"
        pieces[start] = json_bytes(name) + b":" + pieces[start]
    pieces[0] = b"{" + pieces[0]
    pieces[-1] += b"}"
    return b",".join(pieces)


def within(parts: Iterable[Sequence[bytes]]) -> list[bytes]:
    """Return texts from the first on, at least one, as many as a page with a cursor holds."""
    taken: list[bytes] = []
    left = MAX_LIST_BYTES
    for part in parts:
        left -= sum(map(len, part))
        taken += part
        if left < 0:
            break
    while left < 0 and len(taken) > 1:
        left += len(taken.pop())
    return taken


class Page:
    """A page with a cursor while it is filled: members up to a number, and to so many bytes.

    The first member is taken however long it is.
    """

    def __init__(self, most: int, *, as_text: bool) -> None:
        self._most = most
        self._as_text = as_text
        self._left = MAX_LIST_BYTES
        self._members: list[Any] = []  # as they are answered

    def takes(self, view: dict[str, Any]) -> bool:
        """Add a member, and return whether there was room for it."""
        text = json_bytes(view)
        count = len(self._members)
        if count and (count == self._most or len(text) > self._left):
            return False
        self._left -= len(text)
        self._members.append(text if self._as_text else view)
        return True

    def fill(self, found: Iterable[tuple[str, dict[str, Any]]]) -> str:
        """Add members, each with its cursor; return that of the last one if some are left over."""
        last = ""
        for cursor, view in found:
            if not self.takes(view):
                return last
            last = cursor
        return ""

    def members(self) -> list[dict[str, Any]] | Encoded:
        """Return the members, as text if that was asked for."""
        return Encoded(self._members) if self._as_text else self._members


def whole(parts: Iterable[Sequence[bytes]]) -> list[bytes]:
    """Return all texts of a page that comes in parts.

    Raises:
        Refusal: together they are too long for an answer.
    """
    taken: list[bytes] = []
    size = 0
    for part in parts:
        size += sum(map(len, part))
        if is_too_long(size):
            rule = f"must be smaller: these objects are longer than {MAX_PAGE_BYTES} bytes together"
            raise invalid("query.limit", rule)
        taken += part
    return taken


def is_too_long(size: int) -> bool:
    """Return whether texts of so many bytes are more than a page may have."""
    return size > MAX_PAGE_BYTES


def longest_text(row: ObjectRow) -> int:
    """Return an upper limit of the bytes of any view of an object.

    A code point of the spec has at most four bytes. An application also shows the origins of its
    URIs, which makes it at most twice as long.
    """
    return ENVELOPE_BYTES + 2 * 4 * len(row.spec)


def longest_texts(parts: Sequence[bytes]) -> int:
    """Return an upper limit of the bytes of objects as text that are encoded as protobuf does."""
    return len(parts) * ENVELOPE_BYTES + LONGER_AS_TEXT * sum(map(len, parts))


class Texts:
    """Encodings of objects, within a limit in bytes. It is thread-safe.

    A view that is encoded must show nothing that changes without a new sequence.
    """

    def __init__(self, limit: int = MAX_TEXTS_BYTES) -> None:
        # By their object, for each way to make them.
        self._texts: dict[Hashable, dict[ObjectKey, bytes]] = {}
        self._limit = limit
        self._bytes = 0
        self._lock = Lock()

    def of(
        self, make: Make, keys: Sequence[ObjectKey], look_up: LookUp
    ) -> Iterator[Sequence[bytes]]:
        """Yield what is made of each object, in parts; in one part if all are cached.

        Objects that are not cached are looked up, a few at a time.
        """
        # A page has hundreds of objects, so that this is the hottest place of every list.
        known = list(map(self._kept(make).get, keys))
        if None not in known:
            yield cast("list[bytes]", known)
            return
        for first in range(0, len(keys), READ_AT_ONCE):
            yield self._of_part(make, keys[first : first + READ_AT_ONCE], look_up)

    def of_answer(self, encode: Encode, member: str, view: View, row: ObjectRow) -> EncodedAnswer:
        """Return the answer that shows one object as its only member, encoded."""
        way = encode, member, view
        body = self._kept(way).get((row.id, row.sequence))
        if body is None:
            body = encode({member: view(row)})
            self._keep(way, row, body)
        return EncodedAnswer(body)

    def _of_part(self, make: Make, keys: Sequence[ObjectKey], look_up: LookUp) -> Sequence[bytes]:
        known = list(map(self._kept(make).get, keys))
        missing = [key[0] for key, text in zip(keys, known, strict=True) if text is None]
        rows = {row.id: row for row in look_up(missing)} if missing else {}
        return [
            self._made(make, rows[key[0]]) if text is None else text
            for key, text in zip(keys, known, strict=True)
        ]

    def _made(self, make: Make, row: ObjectRow) -> bytes:
        text = make(row)
        self._keep(make, row, text)
        return text

    def _keep(self, way: Hashable, row: ObjectRow, text: bytes) -> None:
        if len(text) > LONGEST_KEPT:
            return
        with self._lock:
            size = len(text) + ENTRY_BYTES
            # All go at once: that is seldom, and what is asked for again is soon made again.
            if self._bytes + size + ENTRY_BYTES > self._limit:
                self._texts, self._bytes = {}, 0
            if way not in self._texts:  # counted: some callers make an encoding for each call
                self._texts[way] = {}
                self._bytes += ENTRY_BYTES
            self._texts[way][row.id, row.sequence] = text
            self._bytes += size

    def _kept(self, way: Hashable) -> Mapping[ObjectKey, bytes]:
        return self._texts.get(way, _NO_TEXTS)
