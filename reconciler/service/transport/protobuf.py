"""Messages of gRPC and gRPC-web, to JSON-shaped fields as the operations read them, and back.

The messages come from a descriptor set made of ``proto/`` (``make protos``). They live in a pool
of their own, so that a program may load other code of the same names beside them.

What is absent in a message is what protobuf says it is: an empty text, false, zero, the first
word of an enum. Only where protobuf knows the difference, a field that is absent is left out.
A number that an enum has no word for stays a number, which every operation refuses by the name
of the field, as it does a word it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from reconciler.resources.call import JsonObject
from reconciler.resources.fields import NANOSECONDS, format_duration, parse_duration
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.operation import MANAGEMENT, deprecation
from reconciler.service.operations.table import operations
from reconciler.service.operations.texts import Encoded

DESCRIPTORS = Path(__file__).parent / "proto" / "descriptors.binpb"


class Method(NamedTuple):
    """One method: the operation it is, and what goes in and comes out.

    Attributes:
        metadata: Of each of its answers.
    """

    operation: str
    request: type[Message]
    answer: type[Message]
    metadata: tuple[tuple[str, str], ...]


def load_pool() -> DescriptorPool:
    """Return a new pool with every message and service of ours."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        pool.Add(file)
    return pool


POOL = load_pool()


def message_class(name: str) -> type[Message]:
    """Return the class of a message, by its full name."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))


def _methods() -> Iterator[tuple[str, Method]]:
    for operation in operations().values():
        successor = operation.successor
        metadata = deprecation(f"/{MANAGEMENT}/{successor}") if successor else ()
        for path in operation.grpc:
            service, name = path.split("/")
            found = POOL.FindServiceByName(service).FindMethodByName(name)
            request, answer = map(GetMessageClass, (found.input_type, found.output_type))
            yield f"/{path}", Method(operation.name, request, answer, metadata)


METHODS: Mapping[str, Method] = dict(_methods())
"""By path, such as ``/zitadel.management.v1.ManagementService/AddProject``."""

SERVICES = tuple(sorted({path.split("/")[1] for path in METHODS}))


MOST_PARTS = 10_000  # values in the lists of one message
DURATION = "google.protobuf.Duration"
TIMESTAMP = "google.protobuf.Timestamp"
_WHOLE_NUMBERS = {
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_INT32,
}

Value: TypeAlias = Any
"""Value of a field of a message: a scalar, a message or a list, as the field says."""

Read = Callable[[Value, str], object]
Convert = Callable[[Value], object]


def fields_of(message: Message, path: str = "") -> dict[str, object]:
    """Return the fields of a message, by their JSON names.

    Raises:
        Refusal: a field is unknown, or is no duration.
    """
    # The library keeps fields that it does not know. They are refused, as they are in JSON: a
    # field that is ignored looks to its sender like one that was applied.
    unknown = UnknownFieldSet(message)
    if len(unknown):
        raise invalid(f"{path}{unknown[0].field_number}", "is not the number of a field")
    fields: dict[str, object] = {}
    for field in _readers(message.DESCRIPTOR):
        # A scalar of proto3 has no presence: one that was not sent counts as sent with its zero.
        if field.may_be_absent and not message.HasField(field.name):
            continue
        value, at = getattr(message, field.name), f"{path}{field.json}"
        if field.many:
            fields[field.json] = [
                field.read(item, f"{at}[{index}]") for index, item in enumerate(value)
            ]
        else:
            fields[field.json] = field.read(value, at)
    return fields


def request_fields(method: Method, data: bytes) -> JsonObject:
    """Return the fields of the request of a method.

    Raises:
        Refusal: it is no message, has too much in lists, or a field of it is unknown.
    """
    message = parsed(method.request, data)
    if _parts_of(message) > MOST_PARTS:
        raise invalid("request", f"must not have more than {MOST_PARTS} values in lists")
    return fields_of(message)


def parsed(kind: type[Message], data: bytes) -> Any:
    """Return the message that bytes encode.

    Raises:
        Refusal: they encode no message of this kind.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise invalid("request", f"must be a message {kind.DESCRIPTOR.full_name}") from None


def _parts_of(message: Message) -> int:
    """Return how many values the lists of a message have; not all of them, once there are many.

    Two bytes of a message can be an object of ours, which takes a hundred.
    """
    parts = 0
    for field, value in message.ListFields():
        if field.is_repeated:
            parts += len(value)
        if field.message_type is None or parts > MOST_PARTS:
            continue
        parts += sum(map(_parts_of, value if field.is_repeated else (value,)))
    return parts


def message_of(kind: type[Message], answer: JsonObject) -> Message:
    """Return an answer as a message.

    Raises:
        KeyError: the message has no such field, or an enum no such word: a defect of ours.
    """
    return kind(**_members(cast("Descriptor", kind.DESCRIPTOR), answer))


class _Reader(NamedTuple):
    name: str
    json: str
    many: bool
    may_be_absent: bool
    read: Read


@cache
def _readers(descriptor: Descriptor) -> tuple[_Reader, ...]:
    return tuple(
        _Reader(field.name, field.json_name, field.is_repeated, field.has_presence, _read(field))
        for field in descriptor.fields
    )


def _read(field: FieldDescriptor) -> Read:
    if field.enum_type is not None:
        # A number without a word stays a number, which the checks of the request then refuse.
        words = {value.number: value.name for value in field.enum_type.values}
        return lambda number, _: words.get(number, number)
    if field.message_type is None:
        return lambda value, _: value
    if field.message_type.full_name == DURATION:
        return _duration
    return lambda part, at: fields_of(part, f"{at}.")


def _duration(value: Duration, at: str) -> str:
    """Return a duration as text. Who takes durations from 0 only refuses the sign."""
    # For instance, -1.5s is -1 second and -500,000,000 nanos: both have the same sign.
    seconds, nanos = value.seconds, value.nanos
    if abs(nanos) >= NANOSECONDS or seconds * nanos < 0:
        raise invalid(at, "must have nanos of the sign of its seconds, and less than a second")
    total = seconds * NANOSECONDS + nanos
    return format_duration(total) if total >= 0 else f"-{format_duration(-total)}"


def _members(descriptor: Descriptor, fields: JsonObject) -> dict[str, object]:
    """Return members as the library makes a message of them, by the names of its fields."""
    writers = _writers(descriptor)
    members = {}
    for json, value in fields.items():
        name, convert = writers[json]
        members[name] = convert(value)
    return members


@cache
def _writers(descriptor: Descriptor) -> Mapping[str, tuple[str, Convert]]:
    return {field.json_name: (field.name, _write(field)) for field in descriptor.fields}


def _write(field: FieldDescriptor) -> Convert:
    convert = _conversion(field)
    # One after the other: a long list is not held as members and as messages at one time.
    return (lambda values: map(convert, values)) if field.is_repeated else convert


def _conversion(field: FieldDescriptor) -> Convert:
    if field.message_type is not None:
        return _OF_TEXT.get(field.message_type.full_name) or partial(_members, field.message_type)
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}
        return lambda word: numbers[word]
    # JSON carries numbers of 64 bits as text, because many readers hold numbers as doubles.
    return int if field.type in _WHOLE_NUMBERS else lambda value: value


def _duration_of(text: str) -> Mapping[str, int]:
    seconds, nanos = divmod(parse_duration(text), NANOSECONDS)
    return {"seconds": seconds, "nanos": nanos}


_OF_TEXT: Mapping[str, Convert] = {DURATION: _duration_of, TIMESTAMP: datetime.fromisoformat}


DOMAIN = "reconciler"

_Make: TypeAlias = Callable[..., Any]  # generated classes, whose fields no checker knows
_STATUS: _Make = message_class("google.rpc.Status")
_ERROR_DETAIL: _Make = message_class("zitadel.v1.ErrorDetail")
_ERROR_INFO: _Make = message_class("google.rpc.ErrorInfo")


@cache
def encoding_of(method: Method) -> Callable[[JsonObject], bytes]:
    """Return what encodes the answers of a method; lists that it encoded itself are put in.

    It is always the same function for a method: what is made of objects is kept by it.
    """

    def encode(answer: JsonObject) -> bytes:
        lists = {name: value for name, value in answer.items() if isinstance(value, Encoded)}
        rest = {name: value for name, value in answer.items() if name not in lists}
        start = message_of(method.answer, rest).SerializeToString()
        return b"".join((start, *chain.from_iterable(lists.values())))

    return encode


def status_bytes(refusal: Refusal) -> bytes:
    """Return a refusal as ``google.rpc.Status``, which ``grpc-status-details-bin`` carries.

    Its first detail is the one that JSON answers. The facts that stand among its members there
    have a second one here, because a message has only the fields of its definition.
    """
    status = _STATUS(code=int(refusal.code), message=refusal.message)
    status.details.add().Pack(_ERROR_DETAIL(id=refusal.reason, message=refusal.message))
    if refusal.details:
        facts = {name: str(fact) for name, fact in refusal.details.items()}
        info = _ERROR_INFO(reason=refusal.reason, domain=DOMAIN, metadata=facts)
        status.details.add().Pack(info)
    data: bytes = status.SerializeToString()
    return data
