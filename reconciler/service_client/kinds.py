"""The form in which a kind says which calls write it, and what their answers mean.

Names and addresses of operations are ZITADEL's (DESIGN 5.1), so both kinds of service are written
to by these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from reconciler.errors import ServiceError
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, SecretOrder, UpdateOrder
from reconciler.state import ObservedObject, holds

OneCall: TypeAlias = tuple[str, JsonObject]
"""Operation and fields of a call."""

Placed: TypeAlias = CreateOrder | ObservedObject
"""Something of a name, with the ids of its owners."""

_DEACTIVATE, _REACTIVATE = "Deactivate", "Reactivate"


@dataclass(frozen=True)
class KindCalls:
    """The operations that write one kind. A kind with calls of another form overrides methods.

    Attributes:
        create: Makes an object; empty where ``configure`` does.
        rename: Changes the name; the same as ``configure`` where one call changes both.
        configure: Writes the spec; empty for a kind without fields.
        remove: Removes an object.
        secret: Makes a new client secret; empty for a kind that has none.
        state: Name of the calls that switch it off and on, after their verb.
        id_field: Field of the id in all calls but ``create``, and in the answer of that; empty
            where project and name are its address.
        fixed: Fields of the spec that only ``create`` sends.
        carries: Whether an update sends back the fields that this version does not know.
        named: Kind of the objects that an answered spec names by their ids; None for no such.
        refusals: Errors, and what to do about them, by the ids of refusals.
        not_kept: Reasons why a service does not keep a field that was sent, by its name.
    """

    create: str = ""
    rename: str = ""
    configure: str = ""
    remove: str = ""
    secret: str = ""
    state: str = ""
    id_field: str = "id"
    fixed: frozenset[str] = frozenset()
    carries: bool = True
    named: Kind | None = None
    refusals: Mapping[str, tuple[type[ServiceError], str]] = field(default_factory=dict)
    not_kept: Mapping[str, str] = field(default_factory=dict)

    def target(self, at: Placed, object_id: str) -> JsonObject:
        """Return the fields by which a call names an object."""
        own = {self.id_field: object_id} if self.id_field else name_of(at.ref)
        return {**project_of(at), **own}

    def known_id(self, order: CreateOrder) -> str:
        """Return the id that an object will have; empty where its create answers it."""
        return ""

    def calls(self, order: Order) -> Sequence[OneCall]:
        """Return the calls of an order; none for an update that changes nothing but marks."""
        match order:
            case CreateOrder():
                return [*self.creates(order)]
            case UpdateOrder():
                changes, switch = self.rewrites(order), self.switch(order)
                return [*in_turn(changes, switch, active=order.resource.active)]
            case DeleteOrder():
                return [(self.remove, self.target(order.held, order.held.id))]
            case SecretOrder():
                return [(self.secret, self.target(order.held, order.held.id))]

    def creates(self, order: CreateOrder) -> Iterator[OneCall]:
        """Yield the calls that make an object."""
        yield self.create, {**name_of(order.ref), **order.resource.spec, **project_of(order)}

    def rewrites(self, order: UpdateOrder) -> Iterator[OneCall]:
        """Yield the calls for name and spec; none if they stay."""
        held, wanted = order.held, order.resource
        is_renamed, is_changed = held.ref.name != wanted.ref.name, not holds(held, wanted.spec)
        if not self.configure:  # nothing of it changes
            return
        target, name = self.target(held, held.id), name_of(wanted.ref)
        if self.rename == self.configure:
            if is_renamed or is_changed:
                yield self.configure, {**target, **name, **self.sent(order)}
            return
        if is_renamed:
            yield self.rename, {**target, **name}
        if is_changed:
            yield self.configure, {**target, **self.sent(order)}

    def sent(self, order: UpdateOrder) -> JsonObject:
        """Return the fields of a full update: what is not known here goes back as it came."""
        fields = {**order.held.carried, **order.resource.spec}
        return {name: value for name, value in fields.items() if name not in self.fixed}

    def switch(self, order: UpdateOrder) -> OneCall | None:
        """Return the call that changes the state; None if it stays."""
        held, active = order.held, order.resource.active
        if active in {None, held.active}:
            return None
        verb = _REACTIVATE if active else _DEACTIVATE
        return f"{verb}{self.state}", self.target(held, held.id)

    def with_names(self, spec: JsonObject, names: Mapping[str, str]) -> tuple[JsonObject, bool]:
        """Return an answered spec with names for ids, and whether every id has a name.

        ``names`` are those of the kind that it names (``named``), by id.
        """
        return spec, True


def name_of(ref: ResourceRef) -> JsonObject:
    """Return the field that has a name."""
    return {KINDS[ref.kind].name_field: ref.name}


def project_of(at: Placed) -> JsonObject:
    """Return the field that names the project of what belongs to one."""
    return {"projectId": at.project_id} if at.ref.project else {}


def in_turn(
    changes: Iterable[OneCall], switch: OneCall | None, *, active: bool | None
) -> Iterator[OneCall]:
    """Yield the changes of an object with that of its state: deactivated first, reactivated last.

    So a configuration that is being changed is never in use on the way, and a wrong one is not
    switched on.
    """
    if switch is not None and not active:
        yield switch
    yield from changes
    if switch is not None and active:
        yield switch
