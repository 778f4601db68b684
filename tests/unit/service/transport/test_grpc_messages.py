"""Messages of gRPC and gRPC-web: one in, trailers out, and everything else refused."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64decode
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.service.domain.refusal import Code, Refusal, moved_on, not_found
from reconciler.service.transport.grpc_messages import (
    COMPRESSED,
    DENSE,
    LONGEST,
    MessageBody,
    message_of_call,
    percent_encoded,
    read_message,
    read_timeout,
    too_large,
    trailers,
)
from reconciler.service.transport.grpc_messages import frame as framed
from reconciler.service.transport.limits import MAX_MESSAGE, SMALL_MESSAGE
from reconciler.service.transport.protobuf import message_class, status_bytes
from tests.effort import cases
from tests.rows import each_row
from tests.wires import frame

STATUS: Any = message_class("google.rpc.Status")


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * MAX_MESSAGE], ids=len)
def test_one_message_is_read(content: bytes) -> None:
    """An empty message is one, too: all its fields are absent."""
    assert read_message(frame(content), "") == content


PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("content", [b"", b"x" * 1000, b"\0" * MAX_MESSAGE], ids=len)
def test_a_compressed_message_is_read(content: bytes, encoding: str) -> None:
    """Public clients compress by default."""
    assert read_message(frame(PACK[encoding](content), 1), encoding) == content


SOUND = gzip.compress(b"message")


@each_row(
    ("body", "encoding", "code"),
    [
        pytest.param(b"", "", 3, id="no body"),
        pytest.param(b"\0\0\0\0", "", 3, id="half a head"),
        pytest.param(frame(b"abc", length=4), "", 3, id="shorter than it says"),
        pytest.param(frame(b"abc", length=2), "", 3, id="longer than it says"),
        pytest.param(frame(b"a") + frame(b"b"), "", 3, id="two messages"),
        pytest.param(frame(b"a") + frame(b"", 0x80), "", 3, id="trailers of a caller"),
        pytest.param(frame(b"", 0x80), "", 3, id="trailers alone"),
        pytest.param(frame(b"a", 2), "", 3, id="an unknown flag"),
        pytest.param(frame(b"a", 0x81), "", 3, id="compressed trailers"),
        pytest.param(frame(b"", length=2**32 - 1), "", 8, id="a length of 4 GiB"),
        pytest.param(frame(b"a" * (MAX_MESSAGE + 1)), "", 8, id="a byte too long"),
        pytest.param(frame(SOUND, 1), "", 3, id="compressed, which no header says"),
        pytest.param(frame(SOUND, 1), "identity", 3, id="compressed as nothing"),
        pytest.param(frame(SOUND, 1), "br", 12, id="compressed in an unknown way"),
        pytest.param(frame(b"message", 1), "gzip", 3, id="not compressed"),
        pytest.param(frame(SOUND[:-1], 1), "gzip", 3, id="compressed, cut short"),
        pytest.param(frame(SOUND + b"x", 1), "gzip", 3, id="compressed, with more behind"),
        pytest.param(frame(SOUND + SOUND, 1), "gzip", 3, id="compressed in two parts"),
        pytest.param(frame(zlib.compress(b"a"), 1), "gzip", 3, id="deflate for gzip"),
        pytest.param(frame(SOUND, 1), "deflate", 3, id="gzip for deflate"),
        pytest.param(frame(zlib.compress(b"\0" * 2**23), 1), "deflate", 8, id="a bomb of deflate"),
        pytest.param(
            frame(gzip.compress(b"\0" * (MAX_MESSAGE + 1)), 1),
            "gzip",
            8,
            id="a byte too long inside",
        ),
        pytest.param(frame(gzip.compress(b"\0" * 2**23), 1), "gzip", 8, id="a bomb"),
    ],
)
def test_anything_else_is_refused(body: bytes, encoding: str, code: int) -> None:
    """A frame that could be read in two ways is read in none."""
    with pytest.raises(Refusal) as caught:
        read_message(body, encoding)

    assert caught.value.code == code


@settings(max_examples=cases(50), deadline=None)
@given(st.binary(max_size=64), st.sampled_from(["", "gzip", "deflate", "identity", "br"]))
def test_no_body_does_anything_but_be_read_or_refused(body: bytes, encoding: str) -> None:
    """Whatever a stranger sends."""
    try:
        message = read_message(body, encoding)
    except Refusal:
        return

    assert body[0] == 1 or message == body[5:]


@pytest.mark.parametrize(
    ("sent", "weight", "large_weight"),
    [
        pytest.param(frame(b"x" * 100), 0, DENSE * 105, id="short"),
        pytest.param(frame(b"x" * SMALL_MESSAGE), DENSE * (5 + SMALL_MESSAGE), None, id="longer"),
        pytest.param(frame(b"x", COMPRESSED), 0, DENSE * LONGEST, id="compressed"),
        pytest.param(frame(b"", length=MAX_MESSAGE), 0, DENSE * LONGEST, id="begun"),
        pytest.param(b"\0\0", 0, DENSE * LONGEST, id="half a head"),
    ],
)
def test_a_message_needs_room_by_its_length_in_memory(
    sent: bytes, weight: int, large_weight: int | None
) -> None:
    """Where it is small, and where it is not; its frame says how long it will be."""
    body = MessageBody({}, read=bytearray(sent))

    assert body.weight == weight
    assert large_weight in {None, body.large_weight}


@pytest.mark.parametrize(
    ("sent", "headers", "length"),
    [
        (b"", {}, 0),
        (b"", {"content-length": ["9"]}, 9),
        (b"\0\0\0\0\7", {"content-length": ["9"]}, 12),
    ],
)
def test_the_frame_of_a_message_says_its_length(
    sent: bytes, headers: dict[str, list[str]], length: int
) -> None:
    """Over what the request says, which most clients leave out."""
    assert MessageBody(headers, read=bytearray(sent)).length == length


def test_a_message_that_was_not_taken_in_is_too_large() -> None:
    assert message_of_call(frame(b"a"), {}) == b"a"
    with pytest.raises(Refusal, match=too_large().message):
        message_of_call(None, {})


def test_an_answer_is_a_message_and_trailers() -> None:
    """Byte by byte, as the protocol has it."""
    assert framed(0, b"abc") == b"\0\0\0\0\3abc"
    assert trailers(b"abc", [("deprecation", "@1")]) == [
        ("grpc-status", "0"),
        ("deprecation", "@1"),
    ]


def test_a_refusal_is_trailers_alone_with_its_details() -> None:
    """In base64 without padding, as gRPC has it."""
    found = dict(trailers(not_found("action")))
    data = found["grpc-status-details-bin"]

    assert found["grpc-status"] == "5"
    assert found["grpc-message"] == "there is no such action"
    assert "=" not in data
    assert b64decode(data + "=" * (-len(data) % 4)) == status_bytes(not_found("action"))


def test_a_call_that_is_too_late_has_the_code_for_it() -> None:
    """It is not a refusal of ours, so it stands in no table."""
    assert dict(trailers(None))["grpc-status"] == "4"


@settings(max_examples=cases(30), deadline=None)
@given(st.text())
def test_any_message_survives_the_wire(text: str) -> None:
    """Percent signs, line ends and letters beyond ASCII among them."""
    encoded = percent_encoded(text)

    assert encoded.isascii()
    assert encoded.isprintable()
    if text.isprintable():
        assert unquote(encoded) == text


@each_row(
    ("text", "seconds"),
    [
        ("", None),
        ("1S", 1),
        ("5M", 300),
        ("2H", 7200),
        ("250m", 0.25),
        ("0n", 0),
        ("99999999u", 99.999999),
        ("1000u", 0.001),
        ("999u", 0),
    ],
)
def test_a_deadline_is_read(text: str, seconds: float | None) -> None:
    """Where a caller says nothing there is none."""
    assert read_timeout(text) == (seconds if seconds is None else pytest.approx(seconds))


@each_row("text", ["1", "S", "-1S", "1s", "1.5S", "123456789S", "1S ", "٣S"])
def test_what_is_no_deadline_is_refused(text: str) -> None:
    """Guessing would end calls that were meant to last."""
    with pytest.raises(Refusal, match=r"^grpc-timeout: "):
        read_timeout(text)


def test_facts_of_a_refusal_go_along_for_programs() -> None:
    """JSON has them as members of its detail; a message has only the fields it was given."""
    status = STATUS.FromString(status_bytes(moved_on(42)))
    detail = message_class("zitadel.v1.ErrorDetail")()
    info: Any = message_class("google.rpc.ErrorInfo")()

    assert status.code == Code.PRECONDITION_FAILED
    assert [found.type_url for found in status.details] == [
        "type.googleapis.com/zitadel.v1.ErrorDetail",
        "type.googleapis.com/google.rpc.ErrorInfo",
    ]
    assert status.details[0].Unpack(detail)
    assert status.details[1].Unpack(info)
    assert dict(info.metadata) == {"sequence": "42"}
    assert (info.reason, info.domain) == ("object.moved_on", "reconciler")
