"""The frames of gRPC-web: one message in; a message and trailers, or trailers alone, out."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode

from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.transport.calls import MAX_MESSAGE, status_bytes, too_large

OK = 0
DEADLINE_EXCEEDED = 4
ACCEPTED_ENCODINGS = "gzip"
_HEAD = struct.Struct(">BI")
_PLAIN, _COMPRESSED, _TRAILERS = 0x00, 0x01, 0x80
_GZIP_ONLY = 16 + zlib.MAX_WBITS
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])", re.ASCII)
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def read_message(body: bytes, encoding: str) -> bytes:
    """Return the one message that a request has.

    Raises:
        Refusal: there is not exactly one, it is too large, or compressed in an unknown way.
    """
    if len(body) < _HEAD.size:
        raise _malformed("must begin with a whole frame head")
    flag, length = _HEAD.unpack_from(body)
    if flag not in {_PLAIN, _COMPRESSED}:
        raise _malformed("must be a message, plain or compressed")
    if length > MAX_MESSAGE:
        raise too_large()
    if length != len(body) - _HEAD.size:
        raise _malformed("must be one message, as long as its frame says, and nothing else")
    message = body[_HEAD.size :]
    return message if flag == _PLAIN else _decompressed(message, encoding)


def write_answer(message: bytes) -> bytes:
    """Return an answer and the trailers that say that all went well."""
    return _frame(_PLAIN, message) + _trailers(OK, "")


def write_refusal(refusal: Refusal) -> bytes:
    """Return the trailers of a refusal."""
    details = b64encode(status_bytes(refusal)).decode().rstrip("=")
    return _trailers(refusal.code, refusal.message, details)


def write_too_late() -> bytes:
    """Return the trailers of a call whose time ran out."""
    return _trailers(DEADLINE_EXCEEDED, "the deadline of the call has passed")


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
    return int(found[1]) * _UNITS[found[2]]


def _decompressed(message: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        raise _malformed("must not say that it is compressed where grpc-encoding says it is not")
    if encoding != "gzip":
        raise Refusal(
            Code.UNIMPLEMENTED,
            f"a message may be compressed with {ACCEPTED_ENCODINGS} only",
            "message.encoding",
        )
    reader = zlib.decompressobj(_GZIP_ONLY)
    try:
        plain = reader.decompress(message, MAX_MESSAGE + 1)
    except zlib.error:
        raise _malformed("must be compressed as grpc-encoding says") from None
    if len(plain) > MAX_MESSAGE:
        raise too_large()
    if not reader.eof or reader.unused_data:
        raise _malformed("must be compressed as a whole, with nothing after it")
    return plain


def _malformed(rule: str) -> Refusal:
    return invalid("frame", rule)


def _trailers(code: int, message: str, details: str = "") -> bytes:
    lines = [f"grpc-status:{int(code)}"]
    if message:
        lines.append(f"grpc-message:{percent_encoded(message)}")
    if details:
        lines.append(f"grpc-status-details-bin:{details}")
    return _frame(_TRAILERS, "".join(f"{line}\r\n" for line in lines).encode())


def percent_encoded(message: str) -> str:
    """Return a text as ``grpc-message`` carries it: printable ASCII but the percent sign."""
    return "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte != ord("%") else f"%{byte:02X}"
        for byte in message.encode("utf-8", "replace")
    )


def _frame(flag: int, content: bytes) -> bytes:
    return _HEAD.pack(flag, len(content)) + content
