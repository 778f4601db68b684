"""The service client: observes and writes over any wire to a service of our own.

A remote service may be a ZITADEL instead: the client for the service is chosen here.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.service_client.batches import MOST_ORDERS, BatchingWire
from reconciler.service_client.locks import Leases, LocalLock, ProcessIdentity, Terms, UntilRefused
from reconciler.service_client.orders import (
    UPDATE_TRIES,
    calls_of,
    is_shared,
    rebased,
    result_of,
    unchanged,
)
from reconciler.service_client.port import (
    Context,
    Order,
    ReadOnlyService,
    ServiceClient,
    TreeControl,
    UpdateOrder,
    Written,
)
from reconciler.service_client.read_only import OperationsReader, ReadOnlyWire
from reconciler.service_client.trees import Trees
from reconciler.service_client.wire import (
    NO_ADDRESS,
    Wire,
    WireRefusal,
    error_id,
    service_error,
)
from reconciler.state import OwedSecret


class OperationsClient(OperationsReader):
    """A ``ServiceClient`` over a wire to a service that has the ``/reconciler/v1/`` operations."""

    def __init__(
        self,
        wire: Wire,
        holder: ProcessIdentity,
        *,
        batch_size: int = 500,
        packs: bool = False,
        clock: Callable[[], float] = time.monotonic,
        until_refused: UntilRefused | None = None,
    ) -> None:
        """Speak over a wire, as this holder, with the number of orders that it takes best.

        ``packs`` is for a wire that repeats calls whose answer was lost: each write then has an
        idempotency key, and writes are sent in batches where the service has that operation. It
        then says how many orders at a time are best. ``until_refused`` is for a wire that can stop
        at a refusal.
        """
        super().__init__(wire)
        self._writes = wire  # a wire of batches, once the service says that it takes them
        self._packs = packs
        leases_of = partial(Leases, wire, holder, clock, until_refused)
        self._leases = leases = leases_of(Terms())
        self.acquire, self.renew, self.release = leases.acquire, leases.renew, leases.release
        self._trees = Trees(wire, leases_of, leases.by_folded_name)
        self.run = uuid.uuid4().hex  # secrets that this run makes are owed under this id
        self.batch_size = batch_size

    def instance(self) -> str:
        """Return the id of the service; learn how many orders it takes in one request."""
        instance, most = super().instance(), self._info.get("batch")
        is_known = self._writes is not self._wire
        if self._packs and not is_known and type(most) is int and most > 1:
            self.batch_size = min(most, MOST_ORDERS)
            self._writes = BatchingWire(self._wire, self.batch_size)
        return instance

    def write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out independent orders, each call of an order after the one before it.

        An update that meets another writer is tried again, with a fresh read of the object, if
        only fields changed that it leaves as held.

        Raises:
            ServiceError: the wire failed before it reported any order.
        """
        results = [*self._write(orders, context)]
        latest: list[Order] = [*orders]
        for _ in range(UPDATE_TRIES - 1):
            again = self._rebased(latest, results, context)
            if not again:
                break
            try:
                answered = self._write([*again.values()], context)
            except ServiceError as failure:
                return _cut_short(results, [*again], failure)
            for (index, order), result in zip(again.items(), answered, strict=True):
                latest[index], results[index] = order, result
        return results

    def _rebased(
        self,
        orders: Sequence[Order],
        results: Sequence[Written | ServiceError],
        context: Context,
    ) -> Mapping[int, UpdateOrder]:
        """Return the orders to try again, by their index."""
        pairs = zip(orders, results, strict=True)
        refused = {i: order for i, (order, result) in enumerate(pairs) if is_shared(order, result)}
        if not refused:
            return {}
        try:
            observed = self.observe({order.ref.organization for order in refused.values()})
        except ServiceError:
            return {}  # the refusals stand
        now = {held.id: held for held in observed.objects.values()}
        fresh = {
            index: rebased(order, now.get(order.held.id), context.get("tree"))
            for index, order in refused.items()
        }
        return {index: order for index, order in fresh.items() if order is not None}

    def _write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out orders once."""
        # One call of each order at a time: the second call of an update needs the sequence that the
        # first one answers. Calls of different orders do not wait for each other.
        run = str(context.get("run") or self.run)
        plans = [deque(calls_of(order, context, run)) for order in orders]
        results: list[Written | ServiceError] = [unchanged(order) for order in orders]
        is_first = True
        while any(plans):
            turn = [index for index, calls in enumerate(plans) if calls]
            asked = [(orders[index], plans[index].popleft()) for index in turn]
            leases = self._leases.by_folded_name()
            calls = [self._as_sent(order, call, leases) for order, call in asked]
            try:
                replies = self._writes.send(calls)
            except ServiceError as failure:
                # No order was reported yet, so the failure is that of all of them.
                if is_first:
                    raise
                return _cut_short(results, turn, failure)
            is_first = False
            for index, reply in zip(turn, replies, strict=True):
                results[index] = result = result_of(orders[index], reply)
                self._custody.note(orders[index], result)
                _go_on(plans[index], result)
        return results

    def _as_sent(self, order: Order, call: Call, leases: Mapping[str, str]) -> Call:
        """Return a call with what every write has."""
        # A write that is repeated under its key gives its first answer: it is carried out once,
        # and a one-time secret is not lost with the first answer. No later run needs the key: what
        # this one has made is listed then, and its name is taken.
        key = uuid.uuid4().hex if self._packs else ""
        lease = leases.get(order.ref.key.organization, "")
        return replace(call, idempotency_key=key, lease=lease)

    def claim(
        self, owed: Sequence[OwedSecret], context: Context
    ) -> Sequence[Written | ServiceError]:
        return self._custody.claim(owed, context, self._leases.by_folded_name())

    def acknowledge(self, delivered: Collection[Written]) -> None:
        self._custody.acknowledge(delivered, self._leases.by_folded_name())

    def trees(self) -> TreeControl:
        return self._trees


def _cut_short(
    results: Sequence[Written | ServiceError], turn: Sequence[int], failure: ServiceError
) -> Sequence[Written | ServiceError]:
    """Return the results from before the wire failed; orders in flight are reported as unknown."""
    unknown = ServiceUnavailableError(failure.problem, remedy=failure.remedy)
    asked = set(turn)
    return [unknown if index in asked else result for index, result in enumerate(results)]


def _go_on(calls: deque[Call], result: Written | ServiceError) -> None:
    """Let the next call expect the new sequence of this one; after a refusal drop the rest."""
    if isinstance(result, ServiceError):
        calls.clear()
    elif calls:
        calls[0] = replace(calls[0], expected_sequence=result.sequence)


# Between two batches the lease is renewed and signals are handled.
BATCH = 64  # orders at a time over HTTP
BATCH_SECONDS = 20  # that a batch may take where requests a second are limited

_NOT_THERE = frozenset({Code.NOT_FOUND, Code.UNIMPLEMENTED})


@dataclass(frozen=True, slots=True)
class RemoteService:
    """A wire, and what must be known to speak over it.

    Attributes:
        kind: ``reconciler``, ``zitadel``, or ``auto``: then the service is asked for an address
            that only ours has.
        address: Of the service, for telling services apart that have no id.
        locks: A folder for the locks of services that have none.
        per_second: Requests a second that are sent at most, or 0 for no such limit.
        settle: Seconds to wait at most until lists of a ZITADEL show what was written.
    """

    wire: Wire
    holder: ProcessIdentity
    kind: str
    address: str
    locks: Path
    per_second: float = 0.0
    settle: float = 60.0

    @property
    def batch(self) -> int:
        """Return how many orders at a time take no longer than a lock lasts."""
        if self.per_second <= 0:
            return BATCH
        return max(1, min(BATCH, int(self.per_second * BATCH_SECONDS)))

    @property
    def lock(self) -> LocalLock:
        """Return the lock of this machine."""
        return LocalLock(self.locks, self.holder)


def client_of(service: RemoteService) -> ServiceClient:
    """Return the client for a service."""
    if is_ours(service):
        return OperationsClient(service.wire, service.holder, batch_size=service.batch, packs=True)
    from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient

    delays = ListDelays(longest=service.settle)
    return ZitadelClient(
        service.wire, service.address, service.lock, delays, batch_size=service.batch
    )


def read_only_client(service: RemoteService) -> ReadOnlyService:
    """Return what asks a service, and can write nothing."""
    reading = ReadOnlyWire(service.wire)
    if is_ours(service):
        return OperationsReader(reading)
    from reconciler.service_client.zitadel.client import ZitadelClient

    return ZitadelClient(reading, service.address, service.lock)


def is_ours(service: RemoteService) -> bool:
    """Return whether a service is one of ours; otherwise it is taken for a ZITADEL.

    Raises:
        ServiceError: its answer does not show which, or is that of another program.
    """
    if service.kind != "auto":
        return service.kind == "reconciler"
    # Only a sure refusal of the address says "another kind": a token may be wrong, or a proxy down.
    (reply,) = service.wire.send([Call("GetServiceInfo")])
    if isinstance(reply, WireRefusal):
        is_path_wrong = error_id(reply) == NO_ADDRESS  # only a service of ours says so
        if reply.code in _NOT_THERE and not reply.unsure and not is_path_wrong:
            return False
        raise service_error(reply)
    if reply.fields.get("product") != "reconciler":
        raise ServiceError(
            f"{service.address} is not an identity service: another program answers there",
            remedy="Correct the address in --service.",
        )
    return True
