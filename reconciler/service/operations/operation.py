"""One operation: its addresses, permission, effect, handler and request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from reconciler.kinds.addresses import ADDRESSES
from reconciler.resources.call import JsonObject
from reconciler.service.operations.form import Asked, Form
from reconciler.service.operations.request import Fields

ADMIN = "zitadel.admin.v1.AdminService"
MANAGEMENT = "zitadel.management.v1.ManagementService"

_DEPRECATED_SINCE = "@1795305600"  # 2026-11-22, in seconds since the epoch


def deprecation(successor: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of each answer of a deprecated call, by the address of its successor.

    ``Deprecation`` is of RFC 9745, ``Link`` of RFC 5829. The call goes on working.
    """
    return (
        ("deprecation", _DEPRECATED_SINCE),
        ("link", f'<{successor}>; rel="successor-version"'),
    )


class Effect(Enum):
    """Effect of an operation on the object that it is about."""

    READS = auto()
    CREATES = auto()
    CHANGES = auto()
    REMOVES = auto()
    COORDINATES = auto()
    """Writes, but no object: leases, trees, custody of secrets, and batches of other operations."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """Facts about an operation that the transports and the engine need.

    Attributes:
        name: The name by which it is called in process.
        permission: What the caller's role must include; empty where any caller may.
        handler: The function that carries it out.
        request: The form of its request, or ``Fields``, which its handler reads.
        grpc: Full names of its methods, ``service/method``; empty for those that only JSON has,
            such as those of our own that ZITADEL does not have.
        about: Its summary in the description of the API; by default that of its handler.
        successor: Name of the operation that replaces it; empty unless it is deprecated.
        made: Of a create whose answer has no id: returns the id of the object from the request.
        is_of_context: Whether what it writes is the context of the call.
    """

    name: str
    permission: str
    effect: Effect
    handler: Callable[[Any, Any], Any]
    request: type[Fields] | Form = Fields
    grpc: tuple[str, ...] = ()
    about: str = ""
    successor: str = ""
    needs_token: bool = True
    made: Callable[[JsonObject], str] | None = None
    is_of_context: bool = False

    @property
    def http(self) -> tuple[str, ...]:
        """Return verb and path template of each of its addresses."""
        return ADDRESSES[self.name]

    @property
    def summary(self) -> str:
        """Return a sentence that says what it does."""
        return self.about or (self.handler.__doc__ or "").strip().partition("\n")[0]

    @property
    def writes(self) -> bool:
        """Return whether it runs in a transaction that can be written to."""
        return self.effect is not Effect.READS

    @property
    def is_of_an_object(self) -> bool:
        """Return whether it writes an object, so that an order of a batch may do the same."""
        return self.effect in {Effect.CREATES, Effect.CHANGES, Effect.REMOVES}

    def read(self, fields: Mapping[str, object]) -> Fields | Asked:
        """Return its request from the fields of a call.

        Raises:
            Refusal: a field is missing, unknown, or of a wrong type or value. Where the handler
                reads the fields, that comes later.
        """
        if not isinstance(self.request, Form):
            return Fields(fields)
        from reconciler.service.operations.models import checked

        return checked(self.request, fields)


def operation(
    name: str,
    permission: str,
    effect: Effect,
    handler: Callable[[Any, Any], Any],
    form: Form,
    *more_methods: str,
    about: str = "",
) -> Operation:
    """Return an operation whose request is checked by a model, with its methods over gRPC."""
    methods = (f"{MANAGEMENT}/{name}", *more_methods)
    return Operation(name, permission, effect, handler, form, methods, about)


def deprecated(operation: Operation, successor: str) -> Operation:
    """Return an operation as one that another replaces."""
    return replace(operation, successor=successor)
