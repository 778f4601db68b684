"""One operation, as every transport addresses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from reconciler.resources.call import ADDRESSES
from reconciler.service.operations.fields import Fields

Handler = Callable[[Any, Any], dict[str, Any]]
Reader = Callable[[Mapping[str, Any], str], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """Facts about an operation that the transports and the engine need.

    Attributes:
        name: The name by which it is called in process.
        grpc: Full names of its methods, ``service/method``; empty for those that only JSON has.
        permission: What the caller's role must include; empty where any caller may.
        writes: Whether it runs in a transaction that can be written to.
        module: Module of this package with its request and its handler. Modules load models,
            so they are loaded when they are first called.
        handler: The function that carries it out.
        request: The model of its request; empty where the handler reads the fields itself.
        source: Whether it is one of the three operations of the source document; the others
            support them.
    """

    name: str
    grpc: tuple[str, ...]
    permission: str
    writes: bool
    module: str
    handler: str
    request: str = ""
    source: bool = False

    @property
    def http(self) -> tuple[str, ...]:
        """Return verb and path template of each of its addresses."""
        return ADDRESSES[self.name]


@cache
def handler_of(operation: Operation) -> Handler:
    """Return the function that carries out an operation."""
    handler: Handler = getattr(_module(operation), operation.handler)
    return handler


@cache
def reader_of(operation: Operation) -> Reader:
    """Return what makes the request of an operation of its fields and of their JSON text."""
    if not operation.request:
        return lambda fields, _: Fields(fields)
    from reconciler.service.operations.models import checked

    model = getattr(_module(operation), operation.request)
    return lambda _, text: checked(model, text)


@cache
def nullable_of(operation: Operation) -> frozenset[str]:
    """Return the names of the fields for which null is the same as left out.

    Where the handler reads the fields itself, it sees to that itself.
    """
    if not operation.request:
        return frozenset()
    model = getattr(_module(operation), operation.request)
    return frozenset(field.alias for field in model.model_fields.values())


def without_null(operation: Operation, fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without those that are null: left out, as in the JSON form of protobuf.

    An unknown field stays, to be refused.
    """
    if None not in fields.values():
        return fields
    known = nullable_of(operation)
    return {name: value for name, value in fields.items() if value is not None or name not in known}


def _module(operation: Operation) -> Any:
    return import_module(f"reconciler.service.operations.{operation.module}")
