"""Fuzzing what comes over the network: HTTP framing, frames of gRPC, messages, replies."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress
from urllib.parse import unquote

import httptools
from google.protobuf.message import DecodeError

from reconciler.service.domain.refusal import Refusal
from reconciler.service.transport.framing import Framing, FramingError, Part
from reconciler.service.transport.grpc_messages import (
    PLAIN,
    frame,
    percent_encoded,
    read_message,
    read_timeout,
    trailers,
)
from reconciler.service.transport.limits import MAX_MESSAGE, Limits
from reconciler.service.transport.protobuf import METHODS, fields_of, message_of
from reconciler.service_client.http_messages import reply_of
from reconciler.service_client.wire import WireRefusal, error_id
from tests.fuzz.services import Story

_ENCODINGS = ("", "gzip", "identity", "br")
_METHODS = [METHODS[path] for path in sorted(METHODS)]
_LIMITS = Limits(head_bytes=2048, target_bytes=256, headers=20, body_bytes=1024, chunks=20)


def grpc_frames(data: bytes) -> bool:
    """Read one message of a body: framed anew it is the same body."""
    encoding, body = _ENCODINGS[data[0] % 4] if data else "", data[1:]
    text = body.decode("latin-1")
    with suppress(Refusal):
        seconds = read_timeout(text)
        assert seconds is None or 0 <= seconds <= 99_999_999 * 3600
    sent = percent_encoded(text)
    assert sent.isascii()
    assert sent.isprintable()
    assert unquote(sent) == text
    try:
        message = read_message(body, encoding)
    except Refusal as refusal:
        _check_trailers(trailers(refusal))
        return False
    assert len(message) <= MAX_MESSAGE
    if body[0] == 0:
        assert frame(PLAIN, message) == body
    else:
        assert gzip.decompress(body[5:]) == message
    return True


def _check_trailers(pairs: list[tuple[str, str]]) -> None:
    assert all(text.isascii() and text.isprintable() for pair in pairs for text in pair)
    assert dict(pairs)["grpc-status"] != "0"


def messages(data: bytes) -> bool:
    """Read a message of any method, carry the call out, and write what is answered."""
    method, content = _METHODS[data[0] % len(_METHODS)] if data else _METHODS[0], data[1:]
    try:
        message = method.request.FromString(content)
        fields = fields_of(message)
    except (DecodeError, Refusal):
        return False
    if _has_words_only(fields):
        assert fields_of(message_of(method.request, fields)) == fields
    answer = Story().call(method.operation, fields)
    if isinstance(answer, Refusal):
        return False
    message_of(method.answer, answer).SerializeToString()
    return True


def _has_words_only(value: object) -> bool:
    """Say whether an answer could say this: no number for a word, no time before the first."""
    if isinstance(value, dict):
        return all(map(_has_words_only, value.values()))
    if isinstance(value, list):
        return all(map(_has_words_only, value))
    return not isinstance(value, int) and not (isinstance(value, str) and value.startswith("-"))


class _Heard:
    """What a parser of HTTP makes of what it is given."""

    def __init__(self) -> None:
        self.whole = 0
        self.body = 0

    def on_body(self, body: bytes) -> None:
        self.body += len(body)

    def on_message_complete(self) -> None:
        self.whole += 1


def http_framing(data: bytes) -> bool:
    """Cut a connection into requests: however bytes come in, and as the parser behind does."""
    stream, piece = data[1:], 1 + (data[0] if data else 0)
    outcomes = [_framed(stream, size) for size in (1, piece, len(stream) + 1)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    if outcomes[0] is None:
        return False
    passed, part, requests, _ = outcomes[0]
    heard = _Heard()
    begun = requests - (part is not Part.NOTHING)
    try:
        if passed:
            httptools.HttpRequestParser(heard).feed_data(passed)
    except httptools.HttpParserError:
        return False  # a method that it does not know
    assert heard.whole == begun
    return heard.whole > 0


def _framed(stream: bytes, size: int) -> tuple[bytes, Part, int, int] | None:
    """Return what is passed on and where the connection then is, or None if it is refused."""
    framing = Framing(_LIMITS)
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))
    try:
        passed = b"".join(map(framing.feed, pieces))
    except FramingError as error:
        _check(error)
        return None
    return passed, framing.part, framing.requests, framing.received


def _check(error: FramingError) -> None:
    assert error.http_status in {400, 413, 414, 431}


def replies(data: bytes) -> bool:
    """Read a response of a service: an answer or a refusal, whatever it is."""
    status = struct.unpack_from(">H", data)[0] % 600 if len(data) > 1 else 200
    reply = reply_of(status, "application/json", data[2:])
    if isinstance(reply, WireRefusal):
        error_id(reply).encode("utf-8", "replace")
        assert reply.message
        return False
    assert status == 200
    return True
