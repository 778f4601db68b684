"""The service client: observes and writes over any wire to a service of our own."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reconciler.errors import (
    LockHeldError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.ref import ResourceRef, fold
from reconciler.resources.secret import Secret
from reconciler.service_client.holder import Holder, shown_holder
from reconciler.service_client.observation import observed_objects
from reconciler.service_client.port import (
    CreateOrder,
    Order,
    SecretOrder,
    Written,
)
from reconciler.service_client.refusals import service_error
from reconciler.service_client.requests import calls_of
from reconciler.service_client.wire import Answer, Call, Wire, WireRefusal
from reconciler.state import ObservedObject, ObservedState

PAGE = 1000
LEASE_SECONDS = 120


class OperationsClient:
    """A ``ServiceClient`` over a wire to a service that has the ``/reconciler/v1/`` operations."""

    def __init__(self, wire: Wire, holder: Holder) -> None:
        self._wire = wire
        self._holder = holder
        self._leases: dict[str, str] = {}

    def observe(self, organizations: Collection[str]) -> ObservedState:
        """Return all that is held in these organizations: list calls only, one per page."""
        instance = str(self._ask(Call("GetServiceInfo"))["instance"])
        objects: dict[ResourceRef, ObservedObject] = {}
        for name in organizations:
            held = self._organization(name)
            if held is not None:
                listed = list(self._listing(held["id"]))
                objects.update((found.ref.key, found) for found in observed_objects(listed))
        return ObservedState(instance, objects)

    def write(
        self, orders: Sequence[Order], context: Mapping[str, Any]
    ) -> Sequence[Written | ServiceError]:
        """Carry out independent orders, each call of an order after the one before it.

        Raises:
            ServiceError: the wire failed before it told of any order.
        """
        plans = [deque(calls_of(order, context)) for order in orders]
        results: list[Written | ServiceError] = [_unchanged(order) for order in orders]
        is_first = True
        while any(plans):
            turn = [index for index, calls in enumerate(plans) if calls]
            calls = [self._under_lease(plans[index].popleft()) for index in turn]
            try:
                replies = self._wire.send(calls)
            except ServiceError as failure:
                if is_first:
                    raise
                return _cut_short(results, turn, failure)
            is_first = False
            for index, reply in zip(turn, replies, strict=True):
                results[index] = _result(orders[index], reply)
                _go_on(plans[index], results[index])
        return results

    def acquire(self, organizations: Collection[str]) -> None:
        """Take the lease of each organization, all or none."""
        for name in sorted(organizations, key=fold):
            try:
                self._leases[name] = self._lease(name, instead_of="")
            except ReconcilerError:
                self.release()
                raise

    def renew(self) -> None:
        """Renew every lease; one that ran out while nobody wanted it is taken again."""
        for name, lease in list(self._leases.items()):
            fields = {"organization": name, "lease": lease, "seconds": LEASE_SECONDS}
            (reply,) = self._wire.send([Call("RenewLease", fields)])
            if isinstance(reply, WireRefusal):
                self._leases[name] = self._lease(name, instead_of="")

    def release(self) -> None:
        """Give every lease back; one that cannot be given back runs out by itself."""
        calls = [
            Call("ReleaseLease", {"organization": name, "lease": lease})
            for name, lease in self._leases.items()
        ]
        self._leases.clear()
        if calls:
            with suppress(ServiceError):
                self._wire.send(calls)

    def _lease(self, name: str, instead_of: str) -> str:
        fields = {"organization": name, "holder": self._holder.text, "seconds": LEASE_SECONDS}
        if instead_of:
            fields["insteadOf"] = instead_of
        (reply,) = self._wire.send([Call("AcquireLease", fields)])
        if isinstance(reply, Answer):
            return str(reply.fields["lease"])
        held_by = reply.details.get("holder", "")
        fence = str(reply.details.get("fence", ""))
        if not instead_of and fence and self._holder.knows_dead(held_by):
            return self._lease(name, instead_of=fence)
        raise _lock_error(name, reply)

    def _under_lease(self, call: Call) -> Call:
        return replace(call, lease=",".join(self._leases.values())) if self._leases else call

    def _organization(self, name: str) -> Mapping[str, Any] | None:
        query = {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
        answer = self._ask(Call("ListOrgs", {"queries": [{"nameQuery": query}]}))
        for found in answer["result"]:
            if fold(found["name"]) == fold(name):
                return dict(found)
        return None

    def _listing(self, organization_id: str) -> Iterator[Mapping[str, Any]]:
        cursor = ""
        while True:
            fields = {"organizationId": organization_id, "cursor": cursor, "limit": PAGE}
            page = self._ask(Call("ListObjects", fields, organization=organization_id))
            yield from page["objects"]
            cursor = page["next"]
            if not cursor:
                return

    def _ask(self, call: Call) -> Mapping[str, Any]:
        (reply,) = self._wire.send([call])
        if isinstance(reply, WireRefusal):
            raise service_error(reply)
        return reply.fields


def _unchanged(order: Order) -> Written:
    """Return the result of an order before any of its calls: what is known of the object."""
    match order:
        case CreateOrder():
            return Written("", 0)
        case SecretOrder():
            return Written(order.id, 0, order.client_id)
        case _:
            return Written(order.held.id, order.held.sequence, order.held.client_id)


def _result(order: Order, reply: Answer | WireRefusal) -> Written | ServiceError:
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    known, fields = _unchanged(order), reply.fields
    made = next((fields[name] for name in ("id", "appId", "idpId") if name in fields), known.id)
    secret = fields.get("clientSecret")
    return Written(
        id=made,
        sequence=int(fields.get("details", {}).get("sequence", 0)),
        client_id=fields.get("clientId", known.client_id),
        client_secret=Secret(secret) if secret else None,
        problems=tuple(problem["key"] for problem in fields.get("complianceProblems", ())),
    )


def _cut_short(
    results: Sequence[Written | ServiceError], turn: Sequence[int], failure: ServiceError
) -> Sequence[Written | ServiceError]:
    """Return what was told before the wire failed; of the orders in turn nobody knows."""
    unknown = ServiceUnavailableError(failure.problem, remedy=failure.remedy)
    asked = set(turn)
    return [unknown if index in asked else result for index, result in enumerate(results)]


def _go_on(calls: deque[Call], result: Written | ServiceError) -> None:
    """Let the next call expect what this one left behind; after a refusal there is none."""
    if isinstance(result, ServiceError):
        calls.clear()
    elif calls:
        calls[0] = replace(calls[0], expected_sequence=result.sequence)


def _lock_error(name: str, refusal: WireRefusal) -> ReconcilerError:
    holder = refusal.details.get("holder")
    if not holder:
        return service_error(refusal)
    return LockHeldError(
        f"organization {name} is locked by {shown_holder(holder)} "
        f"since {refusal.details.get('acquiredAt', 'an unknown time')}",
        remedy="Wait until it is done, or give --lock-timeout to wait for it.",
    )
