"""Follows the messages of gRPC on one stream of HTTP/2, as pieces of them come.

A message is a head of 5 bytes (compressed 1, length 4) and its content. The pieces are cut anyhow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from secrets import token_bytes
from typing import NamedTuple

MESSAGE_HEAD = 5
# Marks that the gRPC server finds in the place of a message that is refused; see ``Sizes``.
TOO_LARGE, NO_ROOM = token_bytes(16), token_bytes(16)


class Entry(Enum):
    """Answers to the question whether a long message may be passed on."""

    NOW = auto()
    LATER = auto()
    NEVER = auto()


class Sizes(NamedTuple):
    """Lengths of messages, in bytes, without their heads, and what stands for a refused one.

    The gRPC server need not take a message in to refuse it: a mark goes in its place, and what
    follows on that stream is never read there. All marks are equally long.
    """

    small: int  # of those that enter without a question
    longest: int  # of those that may enter
    too_large: bytes  # goes in the place of a longer one
    no_room: bytes  # goes in the place of one that may not enter


@dataclass(slots=True)
class Messages:
    """The messages of one call, as far as they have come."""

    sizes: Sizes
    head: bytes = b""  # of a message; it is not passed on until it is whole
    left: int = 0  # bytes of the present message that have not come
    mark: bytes = b""  # is passed on in the place of the bytes that come next
    kept: bytearray | None = None  # what waits until its message may enter
    entry_at: int = 0  # where in it that message begins
    has_ended: bool = False  # the caller has ended the stream meanwhile

    def _replaced(self, content: bytes) -> bytes:
        """Return content of a message with what is left of the mark in its place."""
        here, self.mark = self.mark[: len(content)], self.mark[len(content) :]
        return here + content[len(here) :]

    def refuse(self) -> None:
        """Put a mark in the place of the message that waits."""
        kept = self.kept or bytearray()
        # ``before`` is what came in the same piece before the message. Of the message, the head and
        # the first bytes become the mark; the bytes after those follow it, and are never read.
        before, message = kept[: self.entry_at], kept[self.entry_at :]
        self.mark = mark = self.sizes.no_room
        self.kept = before + message_head(mark) + self._replaced(bytes(message[MESSAGE_HEAD:]))

    def take(self, piece: bytes, large: Callable[[int], Entry]) -> bytes:
        """Return what becomes of a piece; ``large`` judges a long message that begins in it."""
        # The usual case: the piece lies within one message that enters, and is passed on as it is.
        if len(piece) <= self.left and not self.mark:
            self.left -= len(piece)
            return piece
        content = bytearray()
        at = 0
        while at < len(piece):
            if not self.left:
                # Pieces are cut anywhere, so the five bytes of a head may come one by one.
                known = len(self.head)
                self.head += piece[at : at + MESSAGE_HEAD - known]
                at += len(self.head) - known
                if len(self.head) < MESSAGE_HEAD:
                    break
                content += self._begin(len(content), large)
            taken = piece[at : at + self.left]
            content += self._replaced(taken)
            self.left -= len(taken)
            at += len(taken)
        return bytes(content)

    def _begin(self, at: int, large: Callable[[int], Entry]) -> bytes:
        """Decide about a message whose head is whole; return the head to pass on."""
        head, self.head = self.head, b""
        # Byte 0 says whether the message is compressed; bytes 1 to 4 are its length, big-endian.
        self.left = int.from_bytes(head[1:])
        if self.left > self.sizes.longest:
            self.mark = self.sizes.too_large
        elif self.left > self.sizes.small and self.kept is None:
            entry = large(self.left)
            if entry is Entry.LATER:
                self.kept, self.entry_at = bytearray(), at
            elif entry is Entry.NEVER:
                self.mark = self.sizes.no_room
        return message_head(self.mark) if self.mark else head


def message_head(message: bytes) -> bytes:
    """Return the head of a message that is not compressed."""
    return b"\0" + len(message).to_bytes(4)
