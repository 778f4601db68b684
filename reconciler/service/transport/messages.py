"""The messages and methods of the gRPC face, from a descriptor set made of ``proto/``.

They live in a pool of their own, so that a program may load other code of the same names beside
them. ``make protos`` makes the descriptor set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from reconciler.service.operations.table import operations

DESCRIPTORS = Path(__file__).parent / "proto" / "descriptors.binpb"


class Method(NamedTuple):
    """One method: the operation it is, and what goes in and comes out."""

    operation: str
    request: type[Message]
    answer: type[Message]


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
        for path in operation.grpc:
            service, name = path.split("/")
            found = POOL.FindServiceByName(service).FindMethodByName(name)
            yield (
                f"/{path}",
                Method(
                    operation.name,
                    GetMessageClass(found.input_type),
                    GetMessageClass(found.output_type),
                ),
            )


METHODS: Mapping[str, Method] = dict(_methods())
"""By path, such as ``/zitadel.management.v1.ManagementService/AddOIDCApp``."""

SERVICES = tuple(sorted({path.split("/")[1] for path in METHODS}))
