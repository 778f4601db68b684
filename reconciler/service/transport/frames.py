"""Follows the frames of HTTP/2 on one connection, without their headers.

Enough to know which calls there are, and how long the messages of gRPC on them say that they are.
A message that is too long is replaced, and one for which there is no room yet is kept back; all
else is passed on. Decoding headers is left to the gRPC server.

A frame is a head of 9 bytes (length 3, kind 1, flags 1, stream 4) and its content. A message of
gRPC is a head of 5 bytes (compressed 1, length 4) and its content, cut into DATA frames anyhow.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, CONTINUATION = 0x0, 0x1, 0x3, 0x9
END_STREAM, END_HEADERS, PADDED = 0x1, 0x4, 0x8
_FRAME_HEAD, _MESSAGE_HEAD = 9, 5
_LONGEST_FRAME = 16_384  # every peer takes frames of this length
MOST_KEPT = 64 * 1024  # bytes of a call; more than peers may send before they get more window


class Entry(Enum):
    """Answers to the question whether a long message may be passed on."""

    NOW = auto()
    LATER = auto()
    NEVER = auto()


class Sizes(NamedTuple):
    """Lengths of messages, in bytes, without their heads, and what stands for a refused one.

    The gRPC server need not take a message in to refuse it: a mark goes in its place, and what
    follows on that stream is never read there. All marks are equally long.

    Attributes:
        small: Of those that enter without a question.
        longest: Of those that may enter.
        too_large: Goes in the place of a longer one.
        no_room: Goes in the place of one that may not enter.
    """

    small: int
    longest: int
    too_large: bytes
    no_room: bytes


class FramesError(Exception):
    """A connection that cannot be followed any more."""


class _Head(NamedTuple):
    length: int
    kind: int
    flags: int
    stream: int


def _read_head(head: bytes) -> _Head:
    stream = int.from_bytes(head[5:9]) & 0x7FFF_FFFF
    return _Head(int.from_bytes(head[:3]), head[3], head[4], stream)


class Frames:
    """The direction in which answers go."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        """Tell ``ended`` of each stream that this side ends."""
        self._ended = ended
        self._begun = b""  # a head that is not whole
        self._frame = _Head(0, 0, 0, 0)
        self._left = 0  # of the content of the present frame

    def feed(self, data: bytes) -> bytes:
        """Take bytes in; return what to pass on: the same."""
        at, end = 0, len(data)
        while at < end:
            if not self._left:
                head = self._begun + data[at : at + _FRAME_HEAD - len(self._begun)]
                at += len(head) - len(self._begun)
                self._begun = head
                if len(head) < _FRAME_HEAD:
                    break
                self._begun = b""
                self._frame = _read_head(head)
                self._left = self._frame.length
            taken = min(self._left, end - at)
            at += taken
            self._left -= taken
            if not self._left:
                self._end_frame()
        return data

    def _end_frame(self) -> None:
        _, kind, flags, stream = self._frame
        if kind == RST_STREAM or (kind in {DATA, HEADERS} and flags & END_STREAM):
            self._ended(stream)


class _Call:
    """The messages of one call, as far as they have come.

    Attributes:
        head: The head of a message while it is not whole; until then it is not passed on.
        left: Bytes of the present message that have not come.
        mark: Bytes to pass on in the place of those that come next.
        kept: Bytes that wait until their message may enter; None where none waits.
        entry_at: Where in them that message begins.
        has_ended: Whether the caller has ended the stream meanwhile.
    """

    __slots__ = ("entry_at", "has_ended", "head", "kept", "left", "mark")

    def __init__(self) -> None:
        self.head = self.mark = b""
        self.left = self.entry_at = 0
        self.kept: bytearray | None = None
        self.has_ended = False

    def replaced(self, content: bytes) -> bytes:
        """Return content of a message with what is left of the mark in its place."""
        here, self.mark = self.mark[: len(content)], self.mark[len(content) :]
        return here + content[len(here) :]


class CallerFrames:
    """The direction in which calls come.

    A stream has ended for the caller only when it is answered, so the end of what the caller
    sends is no end here.

    Attributes:
        newest: The stream of the call that came last.
    """

    def __init__(
        self, ended: Callable[[int], None], large: Callable[[int, int], Entry], sizes: Sizes
    ) -> None:
        """Follow calls.

        ``ended`` is told of each stream that the caller gives up. ``large`` is told stream and
        length of each message that is neither small nor too long, and says whether it may enter;
        where that is later, ``enter`` or ``refuse`` must be called.
        """
        self._ended = ended
        self._large = large
        self._sizes = sizes
        self._preface_left = len(PREFACE)
        self._begun = b""  # a head that is not whole
        self._frame = _Head(0, 0, 0, 0)
        self._left = 0  # of the content of the present frame
        self._is_within = False  # a frame
        self._is_rewritten = False  # the present frame: pieces of it get heads of their own
        self._is_cut = False  # what was passed on ends within a frame or a block of headers
        self.newest = 0
        self._calls: dict[int, _Call] = {}
        self._ready = bytearray()  # frames to pass on as soon as they cut nothing

    @property
    def is_calling(self) -> bool:
        """Return whether a call is not answered yet."""
        return bool(self._calls)

    def feed(self, data: bytes) -> bytes:
        """Take bytes in, the preface first; return what to pass on.

        Raises:
            FramesError: a frame is padded, which no client of gRPC does.
        """
        preface = data[: self._preface_left]
        self._preface_left -= len(preface)
        passed = [preface]
        data = self._begun + data[len(preface) :]
        self._begun = b""
        at, end = 0, len(data)
        while at < end:
            start = at
            if not self._is_within:
                if end - at < _FRAME_HEAD:
                    self._begun = data[at:]
                    break
                self._begin_frame(data[at : at + _FRAME_HEAD])
                at += _FRAME_HEAD
            stop = at + min(self._left, end - at)
            self._left -= stop - at
            if self._is_rewritten:
                passed.append(self._rewritten(data[at:stop]))
            else:
                passed.append(data[start:stop])
                self._is_cut = self._left > 0
            at = stop
            if not self._left:
                self._end_frame()
                passed.append(self.ready())
        return b"".join(passed)

    def ready(self) -> bytes:
        """Return frames that may be passed on now, after ``enter``, ``refuse`` or ``forget``."""
        if self._is_cut:
            return b""
        frames = bytes(self._ready)
        self._ready.clear()
        return frames

    def enter(self, stream: int) -> None:
        """Pass on what was kept of a call. Where nothing waits, nothing is done."""
        call = self._calls.get(stream)
        if call is not None and call.kept is not None:
            self._ready += _data_frames(stream, bytes(call.kept), ends=call.has_ended)
            call.kept = None

    def refuse(self, stream: int) -> None:
        """Pass on a mark for the message that waits. Where none waits, nothing is done."""
        call = self._calls.get(stream)
        if call is not None and call.kept is not None:
            before, message = call.kept[: call.entry_at], call.kept[call.entry_at :]
            call.mark = mark = self._sizes.no_room
            content = call.replaced(bytes(message[_MESSAGE_HEAD:]))
            call.kept = before + _message_head(mark) + content
            self.enter(stream)

    def forget(self, stream: int) -> None:
        """Follow a stream no longer: it was answered, or given up.

        What was kept is passed on even so: it counts in the window of the connection.
        """
        self.enter(stream)
        self._calls.pop(stream, None)

    def _begin_frame(self, head: bytes) -> None:
        self._frame = _read_head(head)
        self._left, kind, flags, stream = self._frame
        self._is_within = True
        self._is_rewritten = kind == DATA and stream in self._calls
        if kind == DATA and flags & PADDED:
            raise FramesError

    def _end_frame(self) -> None:
        self._is_within = False
        _, kind, flags, stream = self._frame
        if kind in {HEADERS, CONTINUATION}:
            # No frame may come between those of one block of headers.
            self._is_cut = not flags & END_HEADERS
            if flags & END_HEADERS and stream > self.newest:
                self.newest = stream
                self._calls[stream] = _Call()
        elif kind == RST_STREAM:
            self._ended(stream)

    def _rewritten(self, piece: bytes) -> bytes:
        """Return a piece of a DATA frame as frames of its own, as far as it is passed on."""
        stream = self._frame.stream
        ends = bool(self._frame.flags & END_STREAM) and not self._left
        call = self._calls.get(stream)
        if call is None:  # it was answered while this frame came
            return _data_frames(stream, piece, ends=ends)
        content = self._content(call, piece)
        if ends:  # within the head of a message, which is the gRPC server's to judge
            content, call.head = content + call.head, b""
        if call.kept is None:
            return self.ready() + _data_frames(stream, content, ends=ends)
        call.kept += content
        call.has_ended = ends
        if len(call.kept) > MOST_KEPT:
            self.refuse(stream)
        return b""

    def _content(self, call: _Call, piece: bytes) -> bytes:
        """Return what becomes of a piece of the messages of a call."""
        if len(piece) <= call.left and not call.mark:
            call.left -= len(piece)
            return piece
        content = bytearray()
        at = 0
        while at < len(piece):
            if not call.left:
                known = len(call.head)
                call.head += piece[at : at + _MESSAGE_HEAD - known]
                at += len(call.head) - known
                if len(call.head) < _MESSAGE_HEAD:
                    break
                content += self._begin_message(call, len(content))
            taken = piece[at : at + call.left]
            content += call.replaced(taken)
            call.left -= len(taken)
            at += len(taken)
        return bytes(content)

    def _begin_message(self, call: _Call, at: int) -> bytes:
        """Decide about a message whose head is whole; return the head to pass on."""
        head, call.head = call.head, b""
        call.left = int.from_bytes(head[1:])
        if call.left > self._sizes.longest:
            call.mark = self._sizes.too_large
        elif call.left > self._sizes.small and call.kept is None:
            entry = self._large(self._frame.stream, call.left)
            if entry is Entry.LATER:
                call.kept, call.entry_at = bytearray(), at
            elif entry is Entry.NEVER:
                call.mark = self._sizes.no_room
        return _message_head(call.mark) if call.mark else head


def _message_head(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4)


def _data_frames(stream: int, content: bytes, *, ends: bool) -> bytes:
    """Return content as DATA frames, of which the last ends the stream or not."""
    if not content and not ends:
        return b""
    frames = bytearray()
    for start in range(0, len(content) or 1, _LONGEST_FRAME):
        piece = content[start : start + _LONGEST_FRAME]
        is_last = start + _LONGEST_FRAME >= len(content)
        flags = END_STREAM if ends and is_last else 0
        frames += len(piece).to_bytes(3) + bytes((DATA, flags)) + stream.to_bytes(4) + piece
    return bytes(frames)
