"""The service client: observes and writes over any wire to a service of our own."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.errors import (
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.ref import ResourceRef, fold
from reconciler.service_client.answers import id_of, objects_of, text_of
from reconciler.service_client.batches import MOST_ORDERS, BatchingWire
from reconciler.service_client.leases import Leases, UntilRefused
from reconciler.service_client.locks import ProcessIdentity
from reconciler.service_client.observation import (
    Owner,
    listings,
    not_among,
    observed_objects,
    only_active,
    trees_of,
)
from reconciler.service_client.orders import calls_of, confirmed_result, result_of, unchanged
from reconciler.service_client.owed import Custody, owed_by_tree
from reconciler.service_client.port import (
    Context,
    Order,
    SecretOrder,
    Written,
)
from reconciler.service_client.read_only import HistoryClient
from reconciler.service_client.wire import Reply, Wire, WireRefusal, answers_of, no_custody
from reconciler.state import ObservedObject, ObservedState, OwedSecret


class OperationsClient(HistoryClient):
    """A ``ServiceClient`` over a wire to a service that has the ``/reconciler/v1/`` operations."""

    keeps_answers = True

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
        """Speak over a wire, as this holder; so many orders at a time are best for the wire.

        ``packs`` sends writes in batches where the service has that operation. It then says how
        many orders at a time are best. ``until_refused`` is for a wire that can stop at a refusal.
        """
        super().__init__(wire)
        self._writes = wire
        self._packs = packs
        self._leases = Leases(wire, holder, clock, until_refused)
        self._instance = ""
        self._keeps_secrets = False
        self._sees_all = True
        self._custody = Custody(wire)
        self.run = uuid.uuid4().hex
        self.batch_size = batch_size

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return all that is held in these organizations: list calls only, one per page."""
        instance, named = self.instance(), {fold(name) for name in organizations}
        objects: dict[ResourceRef, ObservedObject] = {}
        incomplete: list[str] = []
        owners: list[str] = []
        seen = self._organizations()
        for listing in listings(self._wire, organizations, _owners(organizations, seen)):
            owners.append(listing.owner[0])
            if listing.incomplete:
                incomplete.append(listing.incomplete)
            found_there = observed_objects(listing.owner, listing.objects, incomplete)
            objects.update((found.ref.key, found) for found in found_there)
        others = [found for name, found in seen.items() if name not in named]
        owed = self._owed(owners, seen, objects)
        return ObservedState(
            instance,
            objects,
            tuple(incomplete),
            elsewhere={text_of(found, "name"): trees_of(found) for found in others},
            custody=self._keeps_secrets,
            owed=owed,
            owed_left={text_of(found, "name"): owed_by_tree(found) for found in others},
            unseen=() if self._sees_all else not_among(objects, organizations),
            only_active=only_active(objects.values()),
        )

    def _owed(
        self,
        owners: Sequence[str],
        seen: Mapping[str, JsonObject],
        objects: Mapping[ResourceRef, ObservedObject],
    ) -> tuple[OwedSecret, ...]:
        """Return what is owed in organizations (ids).

        Those are not asked of which the list says that they keep no secret: most keep none, and
        to ask each would double the requests of a run.
        """
        if not self._keeps_secrets:
            return ()
        without = {id_of(found) for found in seen.values() if found.get("custody") is False}
        asked = [owner for owner in owners if owner not in without]
        return self._custody.listed(asked, objects.values())

    def _organizations(self) -> Mapping[str, JsonObject]:
        """Return organizations with their trees by folded name; none if the service has no list."""
        (reply,) = self._wire.send([Call("ListTrees")])
        if isinstance(reply, WireRefusal):
            return {}
        found = objects_of(reply.fields, "organizations")
        return {fold(text_of(each, "name")): each for each in found}

    def instance(self) -> str:
        """Return the id of the service.

        Raises:
            ServiceError: the service cannot be read, or has no id that can be used.
        """
        if not self._instance:
            (told,) = answers_of(self._wire, [Call("GetServiceInfo")])
            self._instance = id_of({"id": told.get("instance")})
            self._keeps_secrets = told.get("custody") is True
            self._sees_all = told.get("allOrganizations") is not False
            self._pack(told.get("batch"))
        return self._instance

    def _pack(self, most: object) -> None:
        """Send writes in batches from now on, if the service takes so many orders in one."""
        if self._packs and type(most) is int and most > 1:
            self.batch_size = min(most, MOST_ORDERS)
            self._writes = BatchingWire(self._wire, self.batch_size)

    def write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out independent orders, each call of an order after the one before it.

        Raises:
            ServiceError: the wire failed before it told of any order.
        """
        # One call of each order at a time: the second call of an update needs the sequence that the
        # first one answers. Calls of different orders do not wait for each other.
        plans = [deque(calls_of(order, context, self.run)) for order in orders]
        results: list[Written | ServiceError] = [unchanged(order) for order in orders]
        is_first = True
        while any(plans):
            turn = [index for index, calls in enumerate(plans) if calls]
            asked = [(orders[index], plans[index].popleft()) for index in turn]
            try:
                answered = self._carried_out(asked)
            except ServiceError as failure:
                # Nothing was told of any order yet, so the failure is that of all of them.
                if is_first:
                    raise
                return _cut_short(results, turn, failure)
            is_first = False
            for index, result in zip(turn, answered, strict=True):
                results[index] = result
                self._custody.note(orders[index], result)
                _go_on(plans[index], result)
        return results

    def claim(
        self, owed: Sequence[OwedSecret], context: Context
    ) -> Sequence[Written | ServiceError]:
        """Return secrets in custody again, in the order given."""
        self.instance()
        if not self._keeps_secrets:
            raise no_custody()
        return self._custody.claim(owed, context, self._leases.by_folded_name())

    def acknowledge(self, delivered: Collection[Written]) -> None:
        """End the custody of secrets that are safely delivered."""
        self.instance()
        if self._keeps_secrets:
            self._custody.acknowledge(delivered, self._leases.by_folded_name())

    def _carried_out(self, asked: Sequence[tuple[Order, Call]]) -> Sequence[Written | ServiceError]:
        """Send one call of each order, and look up those whose result is not known."""
        leases = self._leases.by_folded_name()
        replies = self._writes.send([_as_sent(order, call, leases) for order, call in asked])
        told = zip(asked, replies, strict=True)
        results = [result_of(order, reply) for (order, _), reply in told]
        # The first try of an update or delete may be what made its second try fail.
        unsure = [index for index, reply in enumerate(replies) if _may_be_done_already(reply)]
        if unsure:
            names = {asked[index][0].ref.organization for index in unsure}
            now = {held.id: held for held in self.observe(names).objects.values()}
            for index in unsure:
                results[index] = confirmed_result(*asked[index], now) or results[index]
        return results

    def acquire(self, organizations: Collection[str]) -> None:
        """Take the lease of each organization, all or none."""
        self._leases.acquire(organizations)

    def renew(self) -> None:
        """Renew every lease; one that ran out and that no other run took is taken again.

        Raises:
            LockHeldError: another run holds it now.
            PreconditionFailedError: another run held it meanwhile, and may have written.
        """
        self._leases.renew()

    def release(self) -> None:
        """Give every lease back; one that cannot be given back runs out by itself."""
        self._leases.release()


def _owners(organizations: Collection[str], seen: Mapping[str, JsonObject]) -> Mapping[str, Owner]:
    """Return the organizations of these names among those seen, by their folded names."""
    named = {name for name in map(fold, organizations) if name in seen}
    return {name: (id_of(seen[name]), text_of(seen[name], "name")) for name in named}


def _as_sent(order: Order, call: Call, leases: Mapping[str, str]) -> Call:
    """Return a call with what every write has. A new secret is made once per order."""
    lease = leases.get(order.ref.key.organization, "")
    if isinstance(order, SecretOrder):
        # The key lets the wire repeat the call without a second secret.
        return replace(call, idempotency_key=uuid.uuid4().hex, lease=lease)
    return replace(call, lease=lease) if lease else call


def _may_be_done_already(reply: Reply) -> bool:
    """Return whether a second try may be refused because the first one was carried out."""
    return (
        isinstance(reply, WireRefusal)
        and reply.unsure
        and reply.code in {Code.NOT_FOUND, Code.PRECONDITION_FAILED}
    )


def _cut_short(
    results: Sequence[Written | ServiceError], turn: Sequence[int], failure: ServiceError
) -> Sequence[Written | ServiceError]:
    """Return what was told before the wire failed; orders in flight are reported as unknown."""
    unknown = ServiceUnavailableError(failure.problem, remedy=failure.remedy)
    asked = set(turn)
    return [unknown if index in asked else result for index, result in enumerate(results)]


def _go_on(calls: deque[Call], result: Written | ServiceError) -> None:
    """Let the next call expect the new sequence of this one; after a refusal drop the rest."""
    if isinstance(result, ServiceError):
        calls.clear()
    elif calls:
        calls[0] = replace(calls[0], expected_sequence=result.sequence)
