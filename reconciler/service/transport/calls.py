"""One call over gRPC or gRPC-web: the bytes of a message in, those of the answer out.

Both wires hand over here; what differs between them is how bytes and refusals are framed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from secrets import token_bytes
from typing import Any, Protocol, TypeAlias

from google.protobuf.message import DecodeError

from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.operations.request import Headers
from reconciler.service.transport.observer import Answer
from reconciler.service.transport.protobuf import Method, fields_of, message_class, message_of

LOG = logging.getLogger("reconciler.service")
MAX_MESSAGE = 1 << 20
# Messages that stand for one that is too large, and one without room; see ``frames.Sizes``.
TOO_LARGE, NO_ROOM = token_bytes(16), token_bytes(16)
DOMAIN = "reconciler"
ERROR_DETAIL = "zitadel.v1.ErrorDetail"
ERROR_INFO = "google.rpc.ErrorInfo"

_Make: TypeAlias = Callable[..., Any]  # generated classes, whose fields no checker knows
_STATUS: _Make = message_class("google.rpc.Status")
_ERROR_DETAIL: _Make = message_class(ERROR_DETAIL)
_ERROR_INFO: _Make = message_class(ERROR_INFO)


class CallContext(Protocol):
    """A call as the gRPC library shows it; the library has no types."""

    def peer(self) -> str:
        """Return the address of the connection."""
        ...

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]]:
        """Return the headers; those with bytes have names that end in ``-bin``."""
        ...

    async def read(self) -> bytes:
        """Return the next message, or the library's mark of their end."""
        ...

    async def write(self, message: object) -> None:
        """Send one message of several."""
        ...

    def set_code(self, code: object) -> None:
        """Set the status."""
        ...

    def set_details(self, details: str) -> None:
        """Set the message that goes with the status."""
        ...

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, str | bytes]]) -> None:
        """Set what follows the answer."""
        ...

    def add_done_callback(self, callback: Callable[[CallContext], None]) -> None:
        """Have a function called once the call is over, however it ends."""
        ...


async def answer_bytes(
    answer: Answer, method: Method, asked: bytes | Refusal, headers: Headers, delivery: ExitStack
) -> bytes | Refusal:
    """Carry out a call. Nothing is raised: a refusal is an answer.

    ``asked`` is a refusal where the message could not be taken in; that is told only to callers
    who may know. ``delivery`` ends once the network has taken the answer.
    """
    encode = _encoding_of(method)
    fields = _fields(method, asked)
    received = await answer(Incoming(method.operation, fields, headers, encode, delivery=delivery))
    if isinstance(received.answer, Refusal):
        return received.answer
    try:
        return received.body or encode(received.answer)
    except Exception:  # a defect of ours must not show itself
        LOG.exception("an answer does not fit its message")
        return Refusal(Code.INTERNAL, "the service failed", "service.failed")


@cache
def _encoding_of(method: Method) -> Callable[[JsonObject], bytes]:
    """Return the encoding of the answers of a method: always the same, as kept ones are named."""
    return partial(_message_bytes, method)


def _message_bytes(method: Method, answer: JsonObject) -> bytes:
    return message_of(method.answer, answer).SerializeToString()


def status_bytes(refusal: Refusal) -> bytes:
    """Return a refusal as ``google.rpc.Status``, which ``grpc-status-details-bin`` carries.

    Its first detail is the one that JSON answers. The facts that stand among its members there
    have a second one here, because a message has only the fields that everybody gave it.
    """
    details = [(ERROR_DETAIL, _ERROR_DETAIL(id=refusal.reason, message=refusal.message))]
    if refusal.details:
        facts = {name: str(fact) for name, fact in refusal.details.items()}
        info = _ERROR_INFO(reason=refusal.reason, domain=DOMAIN, metadata=facts)
        details.append((ERROR_INFO, info))
    status = _STATUS(code=int(refusal.code), message=refusal.message)
    for name, detail in details:
        status.details.add(type_url=f"type.googleapis.com/{name}", value=detail.SerializeToString())
    data: bytes = status.SerializeToString()
    return data


def too_large() -> Refusal:
    """Refuse a message for its size."""
    return Refusal(
        Code.RESOURCE_EXHAUSTED,
        f"a message must be at most {MAX_MESSAGE} bytes long",
        "message.too_large",
    )


def no_message() -> Refusal:
    """Refuse a call that ends before its message."""
    return invalid("request", "must be one message; none came")


def too_slow() -> Refusal:
    """Refuse a call whose message takes too long."""
    return Refusal(Code.ABORTED, "the message took too long to arrive", "message.too_slow")


def _fields(method: Method, asked: bytes | Refusal) -> JsonObject | Refusal:
    if isinstance(asked, Refusal):
        return asked
    try:
        return fields_of(method.request.FromString(asked))
    except DecodeError:
        return invalid("request", f"must be a message {method.request.DESCRIPTOR.full_name}")
    except Refusal as refusal:
        return refusal
