"""Bounds of requests on one connection, judged on the bytes themselves.

Two servers that disagree about that let one caller's bytes become another's request. So whatever
could be read in two ways is refused before a parser sees it: its leniency is then of no account.
"""

from __future__ import annotations

import re
from enum import IntEnum, auto

from reconciler.service.transport.http_messages import HttpRefusal
from reconciler.service.transport.limits import Limits

# A token of RFC 9110, 5.6.2; and a path with a query, of characters that need no escape.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TARGET = rb"/[!$%&'()*+,./0-9:;=?@A-Z_a-z~-]*"
_WHOLE_TARGET = re.compile(_TARGET)
# The target of CONNECT is no path, and what follows its head is no HTTP.
_REQUEST_LINE = re.compile(rb"(?!CONNECT )[A-Z]{1,32} (" + _TARGET + rb") HTTP/1\.([01])\r\n")
# No blank before the colon, and no header that goes on in the next line: parsers disagree on both.
_HEADERS = re.compile(rb"(?:" + _TOKEN + rb":[\t -~]*\r\n)*\r\n")
_HOST = re.compile(rb"\r\nhost:[\t ]*[a-z0-9._\[\]:-]+[\t ]*\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length:[\t ]*([0-9]{1,18})[\t ]*\r\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[\t ]*chunked[\t ]*\r\n")
# No upgrade is granted, but the parser would stop reading HTTP at a request for one.
_UPGRADE = re.compile(rb"(?i)\r\nupgrade:[^\r]*")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}\r\n")
_LONGEST_SIZE_LINE = 10
# A tiny chunk costs more than its bytes. For instance, the 257th is taken only once
# ``chunk_bytes`` have come, and the 258th once twice as many have.
_FREE_CHUNKS = 256  # of any length


def is_target(target: bytes) -> bool:
    """Return whether an address, with its query, has only characters that need no escape."""
    return _WHOLE_TARGET.fullmatch(target) is not None


class FramingError(HttpRefusal):
    """A request whose bounds are not beyond doubt, or beyond the limits: the connection ends."""

    def __init__(self, status: int, rule: str) -> None:
        super().__init__(status, rule, "framing.invalid")


class Part(IntEnum):  # hashed in C; an Enum is hashed in Python
    """The part of a request that the next byte of a connection belongs to."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()
    CHUNK_SIZE = auto()
    CHUNK_END = auto()
    LAST_END = auto()


class Framing:
    """Follows one connection.

    Attributes:
        part: Where it is.
        requests: How many heads have begun.
        received: Bytes of the present body so far, its framing included.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = b""
        self._left = 0
        self._chunked = False
        self._chunks = 0
        self.part = Part.NOTHING
        self.requests = 0
        self.received = 0

    @property
    def in_body(self) -> bool:
        """Return whether a body has begun and not ended."""
        return self.part not in {Part.NOTHING, Part.HEAD}

    def feed(self, data: bytes) -> bytes:
        """Take bytes in; return those that may be parsed now. The others are held back.

        Raises:
            FramingError: the connection cannot go on.
        """
        rest = self._held + data if self._held else data
        self._held = b""
        passed = []
        while rest:
            taken, rest = self._step(rest)
            if not taken:
                self._held = rest
                break
            passed.append(taken)
        # There is mostly one piece, which is then handed on without a copy.
        return passed[0] if len(passed) == 1 else b"".join(passed)

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the next piece that is complete, or nothing, and the rest."""
        if self.part in {Part.NOTHING, Part.HEAD}:
            return self._head(data)
        return self._chunks_in(data) if self._chunked else self._content(data)

    def _head(self, data: bytes) -> tuple[bytes, bytes]:
        if self.part is Part.NOTHING:
            self.part = Part.HEAD
            self.requests += 1
        end = data.find(b"\r\n\r\n") + 4
        if end < 4:  # find() gave -1: the head is not whole
            self._check_unfinished(data)
            return b"", data
        head = data[:end]
        self._check_head(head)
        self._begin_body(head.lower(), is_first_version=head[head.index(b"\r\n") - 1] == ord("0"))
        return _UPGRADE.sub(b"", head), data[end:]

    def _check_unfinished(self, data: bytes) -> None:
        """Refuse what can no longer become a head, without waiting for its end."""
        self._check_request_line(data)
        if len(data) > self._limits.head_bytes:
            raise FramingError(431, "the headers are too long")
        # Two readers that disagree on where a line ends could see two different requests.
        if data.count(b"\n") != data.count(b"\r\n"):
            raise FramingError(400, "lines must end with CR LF")

    def _check_request_line(self, data: bytes) -> None:
        line = data.find(b"\r\n")
        # 64 bytes are more than verb, version and blanks take; the target itself is measured below.
        if (line if line >= 0 else len(data)) > self._limits.target_bytes + 64:
            raise FramingError(414, "the address is too long")
        if line < 0:
            return
        found = _REQUEST_LINE.match(data)
        if found is None:
            raise FramingError(400, "the request line is not one of HTTP/1.1")
        if len(found[1]) > self._limits.target_bytes:
            raise FramingError(414, "the address is too long")

    def _check_head(self, head: bytes) -> None:
        self._check_request_line(head)
        if len(head) > self._limits.head_bytes:
            raise FramingError(431, "the headers are too long")
        if head.count(b"\r\n") - 2 > self._limits.headers:
            raise FramingError(431, "there are too many headers")
        if not _HEADERS.fullmatch(head, head.index(b"\r\n") + 2):
            raise FramingError(400, "the headers are not well-formed")

    def _begin_body(self, head: bytes, *, is_first_version: bool) -> None:
        """Learn from a head, in lower case, how its body is delimited."""
        if head.count(b"\r\nhost:") != 1 or not _HOST.search(head):
            raise FramingError(400, "host: must be given once")
        lengths = head.count(b"\r\ncontent-length:")
        codings = head.count(b"\r\ntransfer-encoding:")
        # Of two lengths, a proxy may believe one and this server the other: what lies between
        # would be the next request, of a caller that the proxy has never seen.
        if lengths + codings > 1:
            raise FramingError(400, "the length of the body must be given once")
        self._chunked = codings == 1
        self._left = self._chunks = self.received = 0
        self.part = Part.NOTHING
        if self._chunked:
            if is_first_version or not _CHUNKED.search(head):
                raise FramingError(400, "transfer-encoding: must be chunked")
            self.part = Part.CHUNK_SIZE
        elif lengths:
            self._left = self._length(head)
            self.part = Part.BODY if self._left else Part.NOTHING

    def _length(self, head: bytes) -> int:
        found = _LENGTH.search(head)
        if found is None:
            raise FramingError(400, "content-length: must be one whole number")
        length = int(found[1])
        if length > self._limits.body_bytes:
            raise FramingError(413, "the body is too large")
        return length

    def _content(self, data: bytes) -> tuple[bytes, bytes]:
        taken, rest = data[: self._left], data[self._left :]
        self._take(len(taken), Part.NOTHING)
        return taken, rest

    def _take(self, length: int, following: Part) -> None:
        """Count bytes of a body or a chunk; what follows its last one begins."""
        self._left -= length
        self.received += length
        if not self._left:
            self.part = following

    def _chunks_in(self, data: bytes) -> tuple[bytes, bytes]:
        """Walk over chunks without copying: a caller may send thousands of bytes, each a chunk."""
        at, after = -1, 0
        while at != after and self.part is not Part.NOTHING:
            at = after
            if self.part is Part.CHUNK_SIZE:
                after = self._chunk_size(data, at)
            elif self.part is Part.BODY:
                after = min(at + self._left, len(data))
                self._take(after - at, Part.CHUNK_END)
            else:
                after = self._line_end(data, at)
        return data[:after], data[after:]

    def _chunk_size(self, data: bytes, at: int) -> int:
        """Return the end of a size line, or its beginning if it is not whole."""
        found = _CHUNK_SIZE.match(data, at)
        if found is None:
            # Eight digits and the line end make ten bytes: with more, it cannot become a size line.
            begun = data[at : at + _LONGEST_SIZE_LINE]
            if len(begun) == _LONGEST_SIZE_LINE or b"\n" in begun:
                raise FramingError(400, "a chunk must begin with its size and nothing else")
            return at
        self._left = int(found[0], 16)
        self._chunks += 1
        self.received += found.end() - at
        if (
            self._left + self.received > self._limits.body_bytes
            or self._chunks > self._limits.chunks
            or self._chunks > _FREE_CHUNKS + self.received // self._limits.chunk_bytes
        ):
            raise FramingError(413, "the body is too large")
        self.part = Part.BODY if self._left else Part.LAST_END
        return found.end()

    def _line_end(self, data: bytes, at: int) -> int:
        """Return the end of the line end behind a chunk, or its beginning if it is not whole."""
        end = data[at : at + 2]
        if not b"\r\n".startswith(end):
            raise FramingError(400, "a chunk must end where its size says, without trailers")
        if len(end) < 2:
            return at
        self.part = Part.CHUNK_SIZE if self.part is Part.CHUNK_END else Part.NOTHING
        return at + 2
