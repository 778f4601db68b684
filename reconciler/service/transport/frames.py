"""Follows the frames of HTTP/2 in one direction of a connection, without their headers.

Enough to know which streams there are, and how long the messages of gRPC on them say that they
are. The bytes themselves are only passed on. Decoding headers is left to the gRPC server.

A frame is a head of 9 bytes (length 3, kind 1, flags 1, stream 4) and its content. A message of
gRPC is a head of 5 bytes (compressed 1, length 4) and its content, cut into DATA frames anyhow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM = 0x0, 0x1, 0x3
END_STREAM, PADDED = 0x1, 0x8
_FRAME_HEAD, _MESSAGE_HEAD = 9, 5


class Sizes(NamedTuple):
    """Lengths of messages, in bytes, without their heads.

    Attributes:
        small: Of those that nothing is told of.
        longest: Of those that are passed on.
        mark: The message that is passed on instead of a longer one, so that the gRPC server need
            not take it in to refuse it; what follows on that stream is never read there.
    """

    small: int
    longest: int
    mark: bytes


class FramesError(Exception):
    """A connection that cannot be followed any more."""


class Frames:
    """One direction of a connection."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        """Tell ``ended`` of each stream that this side ends."""
        self._ended = ended
        self._head = b""
        self._left = 0  # of the content of the present frame
        self._kind = self._flags = self._stream = 0

    def feed(self, data: bytes) -> bytes:
        """Take bytes in; return what to pass on.

        Raises:
            FramesError: a frame is padded, which no client of gRPC does.
        """
        at, end = 0, len(data)
        while at < end:
            if not self._left:
                at = self._begin_frame(data, at)
                if self._head:
                    break
            taken = min(self._left, end - at)
            if taken and self._kind == DATA:
                data = self._content(data, at, at + taken)
            at += taken
            self._left -= taken
            if not self._left:
                self._end_frame()
        return data

    def _begin_frame(self, data: bytes, at: int) -> int:
        """Read the head of a frame as far as it is there; return where to go on."""
        head = self._head + data[at : at + _FRAME_HEAD - len(self._head)]
        at += len(head) - len(self._head)
        if len(head) < _FRAME_HEAD:
            self._head = head
            return at
        self._head = b""
        self._left = int.from_bytes(head[:3])
        self._kind, self._flags = head[3], head[4]
        self._stream = int.from_bytes(head[5:]) & 0x7FFF_FFFF
        self._frame_began()
        return at

    def _frame_began(self) -> None:
        """See the head of a frame."""

    def _content(self, data: bytes, start: int, end: int) -> bytes:
        """See a piece of a DATA frame; return all bytes as they are to be passed on."""
        return data

    def _end_frame(self) -> None:
        if self._kind == RST_STREAM or (
            self._kind in {DATA, HEADERS} and self._flags & END_STREAM and self._ends_streams
        ):
            self._ended(self._stream)

    _ends_streams = True


class CallerFrames(Frames):
    """The direction in which calls come.

    A stream has ended for the caller only when it is answered, so the end of what the caller
    sends is no end here.
    """

    _ends_streams = False

    def __init__(
        self, ended: Callable[[int], None], large: Callable[[int, int], None], sizes: Sizes
    ) -> None:
        """Tell ``large`` of each message that is neither small nor too long: stream and length."""
        super().__init__(ended)
        self._large = large
        self._sizes = sizes
        self._skipped = len(PREFACE)
        self._newest = 0
        self._message_heads: dict[int, bytes] = {}  # of the streams that are not answered yet
        self._message_left: dict[int, int] = {}
        self._marks: dict[int, bytes] = {}  # what is left to write of them

    def feed(self, data: bytes) -> bytes:
        """Take bytes in, the preface first; return what to pass on."""
        if not self._skipped:
            return super().feed(data)
        preface = data[: self._skipped]
        self._skipped -= len(preface)
        return preface + super().feed(data[len(preface) :])

    def forget(self, stream: int) -> None:
        """Follow a stream no longer: it was answered, or given up."""
        self._message_heads.pop(stream, None)
        self._message_left.pop(stream, None)
        self._marks.pop(stream, None)

    def _frame_began(self) -> None:
        if self._kind == HEADERS and self._stream > self._newest:
            self._newest = self._stream
            self._message_heads[self._stream] = b""
        if self._kind == DATA and self._flags & PADDED:
            raise FramesError

    def _content(self, data: bytes, start: int, end: int) -> bytes:
        stream = self._stream
        if stream not in self._message_heads:
            return data
        while start < end:
            left = self._message_left.get(stream, 0)
            if not left:
                known = self._message_heads[stream]
                head = known + data[start : min(end, start + _MESSAGE_HEAD - len(known))]
                start += len(head) - len(known)
                if len(head) < _MESSAGE_HEAD:
                    self._message_heads[stream] = head
                    return data
                self._message_heads[stream] = b""
                left = int.from_bytes(head[1:])
                if left > self._sizes.longest and not known:
                    self._marks[stream] = mark = self._sizes.mark
                    length = b"\0" + len(mark).to_bytes(4)
                    data = data[: start - _MESSAGE_HEAD] + length + data[start:]
                elif left > self._sizes.small:
                    self._large(stream, left)
            taken = min(left, end - start)
            if stream in self._marks:
                data = self._marked(data, start, taken)
            start += taken
            self._message_left[stream] = left - taken
        return data

    def _marked(self, data: bytes, start: int, count: int) -> bytes:
        """Put the mark, or what is left of it, in the place of the content of a message."""
        mark = self._marks[self._stream]
        here, self._marks[self._stream] = mark[:count], mark[count:]
        return data[:start] + here + data[start + len(here) :]
