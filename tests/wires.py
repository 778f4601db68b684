"""The three ways into a server, each as a client of its kind has it, and one form of answers.

Nothing here is the service's own code: messages are made and read by protobuf's library, frames
are written by hand.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, unquote

import grpc
import httpx
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from reconciler.service.domain.refusal import HTTP_STATUS, Code
from reconciler.service.operations.table import operations
from reconciler.service.transport.protobuf import METHODS, POOL, message_class
from tests.plain_http import plain_client
from tests.running import Server

Headers = Sequence[tuple[str, str]]
UNDEFINED = "NO_SUCH_WORD"
UNDEFINED_NUMBER = 99


@dataclass(frozen=True)
class Answered:
    """An answer, JSON-shaped."""

    fields: Mapping[str, Any]
    code: int = 0


@dataclass(frozen=True)
class Refused:
    """A refusal: its code, its sentence, its id, and what else is known."""

    code: int
    message: str
    reason: str
    facts: Mapping[str, str]


Outcome = Answered | Refused


class Wire(Protocol):
    """One way into a server."""

    def call(
        self, operation: str, fields: Mapping[str, Any], headers: Headers, address: int = 0
    ) -> Outcome:
        """Call an operation, at one of its addresses."""
        ...

    def close(self) -> None:
        """Hang up."""


class Json:
    """REST."""

    def __init__(self, server: Server, **more: Any) -> None:
        self.client = plain_client(server.address, **more)

    def call(
        self, operation: str, fields: Mapping[str, Any], headers: Headers, address: int = 0
    ) -> Outcome:
        verb, template = operations()[operation].http[address].split(" ")
        rest = dict(fields)
        path = re.sub(r"{(\w+)}", lambda found: quote(rest.pop(found[1]), safe=""), template)
        body = None if verb in {"GET", "DELETE"} and not rest else json.dumps(rest)
        typed = [*headers, ("content-type", "application/json")] if body else headers
        answer = self.client.request(verb, path, headers=list(typed), content=body)
        return _from_json(answer)

    def close(self) -> None:
        self.client.close()


def _from_json(answer: httpx.Response) -> Outcome:
    fields = answer.json()
    if answer.status_code == 200:
        return Answered(fields)
    assert answer.status_code == HTTP_STATUS[Code(fields["code"])]
    return refusal_of(fields)


def refusal_of(fields: Mapping[str, Any]) -> Refused:
    """Return the refusal that a JSON body says."""
    (detail,) = fields["details"]
    assert detail["@type"] == "type.googleapis.com/zitadel.v1.ErrorDetail"
    assert detail["message"] == fields["message"]
    facts = {name: detail[name] for name in detail.keys() - {"@type", "id", "message"}}
    return Refused(fields["code"], fields["message"], detail["id"], facts)


class Grpc:
    """gRPC, by grpcio's own client."""

    def __init__(self, server: Server) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")

    def call(
        self, operation: str, fields: Mapping[str, Any], headers: Headers, address: int = 0
    ) -> Outcome:
        path = f"/{operations()[operation].grpc[address]}"
        method = METHODS[path]
        try:
            data = self.bytes(path, message_from(method.request, fields), headers)
        except grpc.RpcError as error:
            return refused_by(error)
        return Answered(fields_from(method.answer.FromString(data)))

    def bytes(self, path: str, message: bytes, headers: Headers = (), **more: Any) -> bytes:
        """Call with the bytes of a message."""
        data: bytes = self._channel.unary_unary(path)(message, metadata=tuple(headers), **more)
        return data

    def close(self) -> None:
        self._channel.close()


def refused_by(error: Any) -> Refused:
    """Return the refusal that grpcio raised."""
    trailers = dict(error.trailing_metadata() or ())
    return _from_status(
        error.code().value[0], error.details(), trailers.get("grpc-status-details-bin", b"")
    )


class GrpcWeb:
    """gRPC-web, by hand."""

    def __init__(self, server: Server, **more: Any) -> None:
        self.client = plain_client(server.address, **more)

    def call(
        self, operation: str, fields: Mapping[str, Any], headers: Headers, address: int = 0
    ) -> Outcome:
        path = f"/{operations()[operation].grpc[address]}"
        method = METHODS[path]
        answer = self.post(path, frame(message_from(method.request, fields)), headers)
        assert answer.status_code == 200
        return read_web(answer.content, method.answer)

    def post(self, path: str, body: bytes, headers: Headers = (), **more: Any) -> httpx.Response:
        """Post a body."""
        typed = [("content-type", "application/grpc-web+proto"), *headers]
        return self.client.post(path, content=body, headers=typed, **more)

    def close(self) -> None:
        self.client.close()


WIRES: Mapping[str, Callable[[Server], Wire]] = {"json": Json, "grpc": Grpc, "grpc-web": GrpcWeb}


def frame(content: bytes, flag: int = 0, length: int | None = None) -> bytes:
    """Return a frame, whose length may lie."""
    return struct.pack(">BI", flag, len(content) if length is None else length) + content


def frames(body: bytes) -> list[tuple[int, bytes]]:
    """Return the flag and the content of each frame of a body."""
    found = []
    while body:
        flag, length = struct.unpack_from(">BI", body)
        assert len(body) >= 5 + length
        found.append((flag, body[5 : 5 + length]))
        body = body[5 + length :]
    return found


def read_web(body: bytes, kind: type[Message]) -> Outcome:
    """Return what a gRPC-web answer says."""
    *messages, (flag, trailers) = frames(body)
    assert flag == 0x80
    said = dict(line.split(":", 1) for line in trailers.decode("ascii").split("\r\n") if line)
    if said["grpc-status"] == "0":
        ((flag, message),) = messages
        assert flag == 0
        return Answered(fields_from(kind.FromString(message)))
    assert not messages
    details = said.get("grpc-status-details-bin", "")
    data = b64decode(details + "=" * (-len(details) % 4))
    return _from_status(int(said["grpc-status"]), unquote(said["grpc-message"]), data)


def _from_status(code: int, message: str, data: bytes) -> Refused:
    if not data:
        return Refused(code, message, "", {})
    status: Any = message_class("google.rpc.Status").FromString(data)
    assert (status.code, status.message) == (code, message)
    detail: Any = message_class("zitadel.v1.ErrorDetail")()
    assert status.details[0].Unpack(detail)
    assert detail.message == message
    facts: dict[str, str] = {}
    for further in status.details[1:]:
        info: Any = message_class("google.rpc.ErrorInfo")()
        assert further.Unpack(info)
        facts |= info.metadata
    return Refused(code, message, detail.id, facts)


def message_from(kind: type[Message], fields: Mapping[str, Any]) -> bytes:
    """Return JSON-shaped fields as a message; words that no enum has become such numbers."""
    return ParseDict(_numbered(fields), kind(), descriptor_pool=POOL).SerializeToString()


def _numbered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _numbered(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_numbered(inner) for inner in value]
    return UNDEFINED_NUMBER if value == UNDEFINED else value


def fields_from(message: Message) -> dict[str, Any]:
    """Return a message as JSON-shaped fields, those of zero included."""
    return MessageToDict(message, always_print_fields_with_no_presence=True)
