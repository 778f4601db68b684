"""Messages and trailers of gRPC and gRPC-web as bytes, in both directions.

A message stands in a frame: a byte of flags, the length of the content (4 bytes, big-endian), and
the content. For instance, ``00 00000003`` and three bytes are a message of three bytes that is not
compressed.
"""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.service.domain.refusal import Code, Refusal, always, invalid
from reconciler.service.operations.request import Headers
from reconciler.service.transport.http_messages import one
from reconciler.service.transport.intake import Body
from reconciler.service.transport.limits import (
    JSON_FACTOR,
    MAX_MESSAGE,
    MESSAGE_FACTOR,
    SMALL_MESSAGE,
)
from reconciler.service.transport.protobuf import status_bytes

OK = 0
DEADLINE_EXCEEDED = 4
HEAD = struct.Struct(">BI")
PLAIN, COMPRESSED, TRAILERS = 0x00, 0x01, 0x80
LONGEST = MAX_MESSAGE + HEAD.size
DENSE = MESSAGE_FACTOR // JSON_FACTOR  # times its length is the place of a message
# What zlib is asked for, by the name of the encoding. 16 is the head and the checksum of gzip, and
# no other format; deflate is what zlib itself writes (RFC 9110, 8.4.1.2).
ENCODINGS: Mapping[str, int] = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
ACCEPTED_ENCODINGS = ", ".join(ENCODINGS)
# ``grpc-timeout`` as gRPC writes it: ``250m`` is a quarter of a second, ``2M`` are two minutes.
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])", re.ASCII)
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
MILLISECOND = 0.001
_SHOWN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

Pairs = list[tuple[str, str]]

too_large = always(
    Code.RESOURCE_EXHAUSTED,
    "message.too_large",
    f"a message must be at most {MAX_MESSAGE} bytes long",
)


@dataclass
class MessageBody(Body):
    """The body of a request with one message, which says its length itself."""

    longest: int = LONGEST

    @property
    def length(self) -> int:
        """Return the length of the frame of the message, or what the request says; 0 for none."""
        if len(self.read) < HEAD.size:
            return super().length
        return HEAD.size + int.from_bytes(self.read[1 : HEAD.size])

    @property
    def weight(self) -> int:
        if self._is_compressed:
            return 0 if self._stays_small() else DENSE * self.longest
        return DENSE * len(self.read) if len(self.read) > SMALL_MESSAGE else 0

    @property
    def large_weight(self) -> int:
        return DENSE * (self.longest if self._is_compressed else self.length or self.longest)

    def _stays_small(self) -> bool:
        """Return whether a compressed message is small as a whole, or cannot be read at all."""
        window = ENCODINGS.get(one(self.headers, "grpc-encoding").lower())
        if window is None:
            return True
        try:
            plain = zlib.decompressobj(window).decompress(self.read[HEAD.size :], SMALL_MESSAGE + 1)
        except zlib.error:
            return True
        return len(plain) <= SMALL_MESSAGE

    @property
    def _is_compressed(self) -> bool:
        """Return whether it can become as long as any message, however short it is."""
        return self.read[:1] == bytes((COMPRESSED,))


def read_timeout(text: str) -> float | None:
    """Return the seconds that a caller gives a call, or None if it gives no limit.

    Raises:
        Refusal: it says something else.
    """
    if not text:
        return None
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise invalid("grpc-timeout", "must be up to eight digits and one of H, M, S, m, u, n")
    seconds = int(found[1]) * _UNITS[found[2]]
    # The clock of the event loop counts milliseconds: a shorter time has passed.
    return seconds if seconds >= MILLISECOND else 0


def message_of_call(body: bytes | None, headers: Headers) -> bytes:
    """Return the one message of a call; a body of None is too long.

    Raises:
        Refusal: the body is too long, or ``read_message`` refuses it.
    """
    if body is None:
        raise too_large()
    return read_message(body, one(headers, "grpc-encoding").lower())


def read_message(body: bytes, encoding: str, longest: int = MAX_MESSAGE) -> bytes:
    """Return the one message that a request has, which is at most so long.

    Raises:
        Refusal: there is not exactly one, it is too large, or compressed in an unknown way.
    """
    if len(body) < HEAD.size:
        raise invalid("frame", "must begin with a whole frame head")
    flag, length = HEAD.unpack_from(body)
    if flag not in {PLAIN, COMPRESSED}:
        raise invalid("frame", "must be a message, plain or compressed")
    # Before the length is compared: of two faults, the caller reads the one that it can act on.
    if length > longest:
        raise too_large()
    if length != len(body) - HEAD.size:
        raise invalid("frame", "must be one message, as long as its frame says, and nothing else")
    message = body[HEAD.size :]
    return message if flag == PLAIN else _decompressed(message, encoding, longest)


def _decompressed(message: bytes, encoding: str, longest: int) -> bytes:
    if encoding in {"", "identity"}:
        raise invalid(
            "frame", "must not say that it is compressed where grpc-encoding says it is not"
        )
    if encoding not in ENCODINGS:
        raise Refusal(
            Code.UNIMPLEMENTED,
            f"a message may be compressed with {ACCEPTED_ENCODINGS} only",
            "message.encoding",
        )
    reader = zlib.decompressobj(ENCODINGS[encoding])
    try:
        # By one byte more than allowed, a message at the limit is not taken for a larger one. No
        # more is held, however much a few compressed bytes stand for.
        plain = reader.decompress(message, longest + 1)
    except zlib.error:
        raise invalid("frame", "must be compressed as grpc-encoding says") from None
    if len(plain) > longest:
        raise too_large()
    if not reader.eof or reader.unused_data:
        raise invalid("frame", "must be compressed as a whole, with nothing after it")
    return plain


def frame(flag: int, content: bytes) -> bytes:
    """Return content in a frame."""
    return HEAD.pack(flag, len(content)) + content


def trailers(answer: bytes | Refusal | None, metadata: Sequence[tuple[str, str]] = ()) -> Pairs:
    """Return the trailers of an answer, of a refusal, or of a call whose time ran out (None).

    ``metadata`` goes with it.
    """
    if isinstance(answer, bytes):
        return [("grpc-status", str(OK)), *metadata]
    if answer is None:
        return [*_status(DEADLINE_EXCEEDED, "the deadline of the call has passed"), *metadata]
    # gRPC sends headers whose names end in ``-bin`` in base64, without padding.
    details = b64encode(status_bytes(answer)).decode().rstrip("=")
    status = _status(int(answer.code), answer.message)
    return [*status, ("grpc-status-details-bin", details), *metadata]


def _status(code: int, message: str) -> Pairs:
    return [("grpc-status", str(code)), ("grpc-message", percent_encoded(message))]


def percent_encoded(message: str) -> str:
    """Return a text as ``grpc-message`` carries it: printable ASCII but the percent sign."""
    return quote(message, safe=_SHOWN, errors="replace")
