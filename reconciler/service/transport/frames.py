"""Follows the frames of HTTP/2 on one connection, without their headers.

Enough to know which calls there are, and how long the messages of gRPC on them say that they are.
A message that is too long is replaced, and one for which there is no room yet is kept back; all
else is passed on. Decoding headers is left to the gRPC server.

A frame is a head of 9 bytes (length 3, kind 1, flags 1, stream 4) and its content.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from reconciler.service.transport.limits import MOST_KEPT
from reconciler.service.transport.stream_messages import Entry, Messages, Sizes

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, CONTINUATION = 0x0, 0x1, 0x3, 0x9
END_STREAM, END_HEADERS, PADDED = 0x1, 0x4, 0x8
_FRAME_HEAD = 9
_LONGEST_FRAME = 16_384  # every peer takes frames of this length


class FramesError(Exception):
    """A connection that cannot be followed any more."""


class _Head(NamedTuple):
    length: int
    kind: int
    flags: int
    stream: int


def _read_head(head: bytes) -> _Head:
    # The first bit is reserved, and ignored (RFC 9113, 4.1). Numbers are big-endian.
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
                _, kind, flags, stream = self._frame
                if kind == RST_STREAM or (kind in {DATA, HEADERS} and flags & END_STREAM):
                    self._ended(stream)
        return data


class CallerFrames:
    """The direction in which calls come.

    A stream has ended for the caller only when it is answered, so the end of what the caller
    sends is no end here.

    New calls may have to wait. Then all frames of their streams are held; those of calls that have
    begun, and those of the connection itself, are passed on. Headers are compressed with what
    earlier ones taught the reader, so calls begin in the order in which they came.

    Attributes:
        newest: The stream of the call that was passed on last.
        held_bytes: Length of the frames of calls that wait.
    """

    def __init__(
        self,
        ended: Callable[[int], None],
        large: Callable[[int, int], Entry],
        sizes: Sizes,
        may_begin: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """Follow calls.

        ``ended`` is told of each stream that the caller gives up. ``large`` is told stream and
        length of each message that is neither small nor too long, and says whether it may enter;
        where that is later, ``enter`` must be called. ``may_begin`` is told the
        stream of each new call, and says whether it is passed on; where it is not, ``go_on`` must
        be called.
        """
        self._ended = ended
        self._large = large
        self._sizes = sizes
        self._may_begin = may_begin
        self._held: dict[int, bytearray] = {}  # frames of calls that wait, by stream
        self._whole: set[int] = set()  # those of them whose headers have come to their end
        self._is_held = False  # the present frame
        self._is_following = False  # bytes, at this moment
        self._entering = 0  # the stream of the call whose frames begin to be passed on
        self.held_bytes = 0
        self._preface_left = len(PREFACE)
        self._begun = b""  # a head that is not whole
        self._frame = _Head(0, 0, 0, 0)
        self._left = 0  # of the content of the present frame
        self._is_rewritten = False  # the present frame: pieces of it get heads of their own
        self._is_cut = False  # what was passed on ends within a frame or a block of headers
        self.newest = 0
        self._calls: dict[int, Messages] = {}
        self._ready = bytearray()  # frames to pass on as soon as they cut nothing

    @property
    def is_calling(self) -> bool:
        """Return whether a call is not answered yet."""
        return bool(self._calls or self._held)

    def feed(self, data: bytes) -> bytes:
        """Take bytes in, the preface first; return what to pass on.

        Raises:
            FramesError: a frame is padded, or a call has headers at its end while others wait,
                neither of which a client of gRPC does.
        """
        preface = data[: self._preface_left]
        self._preface_left -= len(preface)
        self._is_following = True
        passed = preface + self._follow(data[len(preface) :])
        self._is_following = False
        return passed + self.go_on()

    def go_on(self) -> bytes:
        """Return the frames of calls that waited and may begin now.

        While others are being followed there are none: a call that is given up among them may make
        room, but nothing may overtake them. They are looked at again after those.
        """
        if self._is_following:
            return b""
        self._is_following = True
        passed = bytearray()
        while self._held and not self._left and not self._is_cut:
            stream = next(iter(self._held))
            if stream not in self._whole or not self._may_begin(stream):
                break
            self._whole.discard(stream)
            frames = bytes(self._held.pop(stream))
            self.held_bytes -= len(frames)
            self._entering = stream
            # Half a head of the frame that comes next must not get between those frames.
            begun, self._begun = self._begun, b""
            passed += self._follow(frames)
            self._begun = begun
        self._is_following = False
        return bytes(passed)

    def _follow(self, data: bytes) -> bytes:
        passed: list[bytes] = []
        data = self._begun + data
        self._begun = b""
        at, end = 0, len(data)
        while at < end:
            start = at
            if not self._left:
                if end - at < _FRAME_HEAD:
                    self._begun = data[at:]
                    break
                self._begin_frame(data[at : at + _FRAME_HEAD], end - at - _FRAME_HEAD)
                at += _FRAME_HEAD
            stop = at + min(self._left, end - at)
            self._left -= stop - at
            if self._is_held:
                self._held.setdefault(self._frame.stream, bytearray()).extend(data[start:stop])
                self.held_bytes += stop - start
            elif self._is_rewritten:
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
        """Return frames that may be passed on now, after ``enter`` or ``forget``."""
        if self._is_cut:
            return b""
        frames = bytes(self._ready)
        self._ready.clear()
        return frames

    def enter(self, stream: int, *, as_mark: bool = False) -> None:
        """Pass on the message that waits, or a mark for it. Where none waits, nothing is done."""
        call = self._calls.get(stream)
        if call is None or call.kept is None:
            return
        if as_mark:
            call.refuse()
        self._ready += _data_frames(stream, bytes(call.kept), ends=call.has_ended)
        call.kept = None

    def forget(self, stream: int) -> None:
        """Follow a stream no longer: it was answered, or given up.

        What was kept is passed on even so: it counts in the window of the connection.
        """
        self.enter(stream)
        self._calls.pop(stream, None)

    def _begin_frame(self, head: bytes, come: int) -> None:
        """Decide about a frame, of whose content and what follows so many bytes have come."""
        self._frame = _read_head(head)
        self._left, kind, flags, stream = self._frame
        self._is_held = self._must_wait(is_whole=self._left <= come)
        self._is_rewritten = kind == DATA and stream in self._calls
        if kind == DATA and flags & PADDED:
            raise FramesError

    def _must_wait(self, *, is_whole: bool) -> bool:
        """Return whether the present frame belongs to a call that may not begin yet.

        No call begins before its headers are whole: half of them would keep its place.
        """
        _, kind, flags, stream = self._frame
        if stream in self._held:
            return True
        if kind != HEADERS or stream == self._entering:
            return False
        if stream > self.newest:
            is_whole = is_whole and bool(flags & END_HEADERS)
            return bool(self._held) or not is_whole or not self._may_begin(stream)
        if self._held:
            raise FramesError
        return False

    def _end_frame(self) -> None:
        _, kind, flags, stream = self._frame
        if self._is_held:
            if kind in {HEADERS, CONTINUATION} and flags & END_HEADERS:
                self._whole.add(stream)
            return
        if kind in {HEADERS, CONTINUATION}:
            # No frame may come between those of one block of headers.
            self._is_cut = not flags & END_HEADERS
            if flags & END_HEADERS and stream > self.newest:
                self.newest = stream
                self._calls[stream] = Messages(self._sizes)
        elif kind == RST_STREAM:
            self._ended(stream)

    def _rewritten(self, piece: bytes) -> bytes:
        """Return a piece of a DATA frame as frames of its own, as far as it is passed on."""
        stream = self._frame.stream
        ends = bool(self._frame.flags & END_STREAM) and not self._left
        call = self._calls.get(stream)
        if call is None:  # it was answered while this frame came
            return _data_frames(stream, piece, ends=ends)
        content = call.take(piece, partial(self._large, stream))
        if ends:  # within the head of a message, which is the gRPC server's to judge
            content, call.head = content + call.head, b""
        if call.kept is None:
            return self.ready() + _data_frames(stream, content, ends=ends)
        call.kept += content
        call.has_ended = ends
        if len(call.kept) > MOST_KEPT:
            self.enter(stream, as_mark=True)
        return b""


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
