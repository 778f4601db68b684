"""Messages and methods of a real ZITADEL, from the npm package of its protos.

The package holds every file descriptor as text in a JavaScript module. Nothing of it is kept in
this repository: ``.ci/have-web`` installs it before the tests.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
)
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message

_PACKAGE = Path(__file__).parents[1] / "web" / "node_modules" / "@zitadel" / "proto" / "es"
_OF_PROTOBUF = {
    file.DESCRIPTOR.name: file.DESCRIPTOR.serialized_pb
    for file in (descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2)
}
_FILES = (
    "zitadel/management",
    "zitadel/admin",
    "zitadel/auth",
    "zitadel/org/v2/org_service",
    "zitadel/action/v2beta/action_service",
)
# Fields that are newer than the package, version 1.3.1 of April 2026: `audience` exists from
# 3.4.12 and 4.15.2. Its numbers in the requests are those of the server's source; that of the
# answer is the next free one, and only its JSON name counts here.
LATER_FIELDS = (
    ("zitadel.management.v1.AddJWTProviderRequest", "audience", 7),
    ("zitadel.management.v1.UpdateJWTProviderRequest", "audience", 8),
    ("zitadel.idp.v1.JWTConfig", "audience", 5),
)


class Method(NamedTuple):
    """One method, as its server and its gateway see it.

    Attributes:
        verb, path: Of its first REST address; path parameters have the names of their fields.
        permission: That its caller needs; ``authenticated`` for any valid token.
        checked: Field with the id of the project to which a right may be limited, or empty.
    """

    name: str
    request: type[Message]
    answer: type[Message]
    verb: str
    path: str
    permission: str
    checked: str


@cache
def pool() -> descriptor_pool.DescriptorPool:
    """Return every message of the package that its services need."""
    if not _PACKAGE.is_dir():
        raise FileNotFoundError("tests/web/node_modules has no @zitadel/proto: run .ci/have-web")
    found = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for name in _FILES:
        for file in _with_imports(f"{name}.proto", known):
            found.Add(file)
    return found


def message_class(name: str) -> type[Message]:
    """Return a message class by its full name."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


@cache
def method(service: str, name: str) -> Method:
    """Return a method of a service, by its full name."""
    found = pool().FindServiceByName(service).methods_by_name[name]
    http = _option(found, "google.api.http")
    verb = http.WhichOneof("pattern")
    if ".v2" in service:
        asked = _option(found, "zitadel.protoc_gen_zitadel.v2.options").auth_option
        permission, checked, prefix = asked.permission, "", ""
    else:
        asked = _option(found, "zitadel.v1.auth_option")
        permission, checked = asked.permission, asked.check_field_name
        prefix = f"/{service.split('.')[1]}/v1"
    return Method(
        name,
        message_factory.GetMessageClass(found.input_type),
        message_factory.GetMessageClass(found.output_type),
        verb.upper(),
        prefix + getattr(http, verb),
        permission,
        re.sub(r"(?<!^)(?=[A-Z])", "_", checked).lower().replace("_i_d", "_id"),
    )


class Rule(NamedTuple):
    """The rule of one field: its name in Go, and the rule itself."""

    field: str
    shown: str
    rules: Any
    words: frozenset[int]


@cache
def rules_of(message: str) -> tuple[Rule, ...]:
    """Return the rules of a message's fields, in their order."""
    return tuple(_rules(pool().FindMessageTypeByName(message)))


def _rules(message: Descriptor) -> Iterator[Rule]:
    options = message_class("google.protobuf.FieldOptions")
    extension = pool().FindExtensionByName("validate.rules")
    for field in message.fields:
        told: Any = options.FromString(field.GetOptions().SerializeToString())
        if told.HasExtension(extension):
            words = frozenset(field.enum_type.values_by_number) if field.enum_type else frozenset()
            shown = "".join(part.capitalize() for part in field.name.split("_"))
            yield Rule(field.name, shown, told.Extensions[extension], words)


def _option(found: MethodDescriptor, extension: str) -> Any:
    options: Any = message_class("google.protobuf.MethodOptions").FromString(
        found.GetOptions().SerializeToString()
    )
    return options.Extensions[pool().FindExtensionByName(extension)]


def _with_imports(name: str, known: set[str]) -> Iterator[descriptor_pb2.FileDescriptorProto]:
    """Yield a file after all that it imports, each once."""
    if name in known:
        return
    known.add(name)
    file, imported = _file(name)
    for each in imported:
        yield from _with_imports(each, known)
    yield file


def _file(name: str) -> tuple[descriptor_pb2.FileDescriptorProto, list[str]]:
    if name in _OF_PROTOBUF:
        file = descriptor_pb2.FileDescriptorProto.FromString(_OF_PROTOBUF[name])
        return file, list(file.dependency)
    path = _PACKAGE / name.replace(".proto", "_pb.js")
    script = path.read_text(encoding="utf-8")
    told = re.search(r'fileDesc\("([A-Za-z0-9+/]*)=*"(?:, \[([^\]]*)\])?', script)
    assert told, path
    padded = told[1] + "=" * (-len(told[1]) % 4)
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(padded))
    # The text leaves out the imports, which the module names beside it, in their order.
    places = _places(script, name)
    imported = [places[each.strip()] for each in (told[2] or "").split(",") if each.strip()]
    file.dependency[:] = imported
    _add_later_fields(file)
    return file, imported


def _places(script: str, name: str) -> dict[str, str]:
    """Return the file behind each name that a module imports."""
    places = {}
    for names, place in re.findall(r'import \{ ([^}]*) \} from "([^"]*)"', script):
        for each in names.split(","):
            if place == "@bufbuild/protobuf/wkt":
                of_protobuf = each.strip().removeprefix("file_google_protobuf_")
                places[each.strip()] = f"google/protobuf/{of_protobuf}.proto"
            elif place.startswith("."):
                target = (Path("/", name).parent / place).as_posix()
                normal = re.sub(r"/(\./)+", "/", target)
                while "/../" in normal:
                    normal = re.sub(r"/[^/]+/\.\./", "/", normal, count=1)
                places[each.strip()] = normal[1:].replace("_pb.js", ".proto")
    return places


def _add_later_fields(file: descriptor_pb2.FileDescriptorProto) -> None:
    for full_name, field, number in LATER_FIELDS:
        for message in file.message_type:
            if f"{file.package}.{message.name}" == full_name:
                message.field.add(
                    name=field,
                    number=number,
                    type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
                    label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
                )
