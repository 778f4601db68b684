"""The client for a ZITADEL, which has none of the addresses that are ours alone.

There are no trees (so only ``--prune-unmanaged`` deletes), no history and no leases: a lock file
keeps other runs of this machine away. Its lists lag behind its writes; this client waits for
what it has written itself to show.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, Code
from reconciler.resources.capabilities import SOURCE, capabilities_of
from reconciler.resources.ref import ACTION_FLOW, ResourceRef, fold
from reconciler.service_client.locks import LocalLock
from reconciler.service_client.port import (
    Context,
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.read_only import no_history
from reconciler.service_client.wire import (
    NO_ANSWER,
    UNKNOWN,
    Wire,
    WireRefusal,
    is_id,
    no_custody,
    service_error,
)
from reconciler.service_client.zitadel.asking import Pause, Steps
from reconciler.service_client.zitadel.flows import AwaitedFlows, read_flows
from reconciler.service_client.zitadel.generation import ask_generation
from reconciler.service_client.zitadel.organizations import OrganizationCalls
from reconciler.service_client.zitadel.providers import ProviderCalls
from reconciler.service_client.zitadel.reading import Seen, read_organizations, reply_to
from reconciler.service_client.zitadel.roles import denied_write
from reconciler.service_client.zitadel.steps import serial_key_of, steps_of
from reconciler.state import ObjectEvent, ObservedState, OwedSecret, Removal

_LONGEST_STEP = 5.0  # seconds: each look reads every list
BATCH = 64  # orders at a time: signals are heeded between two batches
_PASSING = {NO_ANSWER, 4, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE, Code.UNAUTHENTICATED}
_INSTANCE_IDS = ("iamProjectId", "defaultOrgId", "globalOrgId")


@dataclass(frozen=True, slots=True)
class ListDelays:
    """Time limits for lists to catch up with writes, in seconds.

    Attributes:
        settling: After this long a list shows what was written before.
        step: Before the second look for what was written; it grows with each look.
        longest: How long to look for it. It ends early when everything shows.
    """

    settling: float = 2.0
    step: float = 0.5
    longest: float = 60.0
    sleep: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class _Running:
    """An order under way: its steps, and the call that comes next."""

    index: int
    serial_key: str
    steps: Steps
    call: Call | None = None


class ZitadelClient:
    """A ``ServiceClient`` and a ``ReadOnlyService`` of a ZITADEL."""

    keeps_answers = False
    run = ""

    def __init__(
        self,
        wire: Wire,
        address: str,
        lock: LocalLock,
        patience: ListDelays | None = None,
        *,
        batch_size: int = BATCH,
    ) -> None:
        """Speak over a wire to the service at an address."""
        self.batch_size = batch_size
        self._wire = wire
        self._address = address
        self._lock = lock
        self._delays = patience or ListDelays()
        self._instance = ""
        self._own_project = ""
        self._unidentified = ""
        self._providers = ProviderCalls()
        self._generation: int | None = None
        self._organizations = OrganizationCalls(wire)
        # What was written and must show: by the key of its ref, with its id; 0 for removed.
        self._awaited: dict[tuple[ResourceRef, str], int] = {}
        self._flows = AwaitedFlows()
        # The state that must show, by the id of its object.
        self._states: dict[str, bool] = {}

    def instance(self) -> str:
        """Return the id of the service: that of its own project, or made of its address.

        Raises:
            ServiceError: there is no answer, or the token is not valid. The next run may have an
                answer, and an id that changes would hide the journal of this one.
        """
        if not self._instance:
            told = reply_to(self._wire, Call("GetIAM"))
            if isinstance(told, WireRefusal) and told.code in {UNKNOWN, Code.INTERNAL}:
                told = reply_to(self._wire, Call("GetIAM"))  # a failure may pass
            if isinstance(told, WireRefusal) and told.code in _PASSING:
                raise service_error(told)
            if isinstance(told, WireRefusal):
                self._unidentified, told = f"It refused: {told.message}.", {}
            ids = {name: str(told[name]) for name in _INSTANCE_IDS if is_id(told.get(name))}
            self._own_project = ids.get("iamProjectId", "")
            made = hashlib.sha256(self._address.encode()).hexdigest()[:20]
            self._instance = f"zitadel-{next(iter(ids.values()), made)}"
        return self._instance

    def generation(self) -> int:
        """Return the generation of the server: asked once, when it is first needed."""
        if self._generation is None:
            self._generation = ask_generation(self._wire)
        return self._generation

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return all that is held in these organizations: list calls, and one for each flow."""
        instance = self.instance()
        waited, step = 0.0, self._delays.step
        while True:
            find = partial(self._organizations.find, organizations)
            seen = read_organizations(self._wire, find, self._providers)
            missing = self._not_shown(seen, organizations)
            if flows:
                seen.add(iter(read_flows(self._wire, seen.everything)))
                missing += self._flows.not_shown(seen.objects, organizations)
            # After the longest wait the plan is blocked instead: it would be made from an old list.
            left = self._delays.longest - waited
            if not missing or left <= 0:
                break
            self._delays.sleep(min(step, left))
            waited += step
            step = min(step * 1.5, _LONGEST_STEP)
        incomplete = [f"The service does not show {ref} as it was written." for ref in missing]
        return ObservedState(
            instance,
            seen.objects,
            (*seen.incomplete, *incomplete),
            unexpressed=tuple(seen.unexpressed),
            name_clashes=tuple(seen.name_clashes),
            unseen=seen.unseen,
            missing_role=seen.remedy,
            unshown=tuple(missing),
            own_project=self._own_project,
            unidentified=self._unidentified,
            keeps_history=False,
            knows_audience=self._knows_audience(seen),
            capabilities=self._capabilities,
            generation=self._generation,
            only_active=self._providers.only_active,
            find_generation=self.generation,
        )

    @property
    def _capabilities(self) -> str:
        """Return what the server takes. One without template calls is as old as the source."""
        return SOURCE if self._providers.is_old else capabilities_of(self._generation, "zitadel-3")

    def _knows_audience(self, seen: Seen) -> bool | None:
        """Return whether the server stores audiences; None unless an object or its age tells."""
        if self._providers.is_old:
            return False
        return any(held.spec.get("audience") for held in seen.objects.values()) or None

    def organizations(self) -> Sequence[str]:
        """Return every organization that the caller may see."""
        return self._organizations.visible()

    def history(self, object_id: str) -> Sequence[ObjectEvent]:
        """Refuse, because the service keeps no history."""
        raise no_history()

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Refuse: nothing is told of them."""
        raise no_history()

    def acquire(self, organizations: Collection[str]) -> None:
        """Be the one writer of the service on this machine."""
        self._lock.acquire(self.instance())

    def renew(self) -> None:
        """Stay the one writer: the lock does not run out."""

    def release(self) -> None:
        """Stop being the one writer."""
        self._lock.release()

    def write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out independent orders, those of one project or organization in turn."""
        results: list[Written | ServiceError] = [_not_begun() for _ in orders]
        waiting = [
            _Running(index, serial_key_of(order, index), steps_of(order, context, self._providers))
            for index, order in enumerate(orders)
        ]
        while waiting:
            paused: list[tuple[float, _Running]] = []
            self._run(waiting, paused, results)
            if paused:
                # All that wait do so together, for as long as the longest of them needs.
                self._delays.sleep(max(pause for pause, _ in paused) * self._delays.settling)
            waiting = [running for _, running in paused]
        for order, result in zip(orders, results, strict=True):
            if isinstance(result, Written):
                self._await(order, result)
        return [
            denied_write(result, order) if isinstance(result, ServiceError) else result
            for order, result in zip(orders, results, strict=True)
        ]

    def claim(
        self, owed: Sequence[OwedSecret], context: Context
    ) -> Sequence[Written | ServiceError]:
        """Refuse: a ZITADEL answers a client secret once and keeps only its hash."""
        raise no_custody()

    def acknowledge(self, delivered: Collection[Written]) -> None:
        """Do nothing: a ZITADEL keeps no secret until its delivery is acknowledged."""

    def _run(
        self,
        waiting: Sequence[_Running],
        paused: list[tuple[float, _Running]],
        results: list[Written | ServiceError],
    ) -> None:
        """Take every order as far as it goes without a pause, one with the same key at a time."""
        queues: dict[str, deque[_Running]] = {}
        for running in waiting:
            queues.setdefault(running.serial_key, deque()).append(running)
        while queues:
            for name, serial_key in list(queues.items()):
                while (
                    serial_key
                    and serial_key[0].call is None
                    and _stops(serial_key[0], None, paused, results)
                ):
                    serial_key.popleft()
                if not serial_key:
                    del queues[name]
            turn = [serial_key[0] for serial_key in queues.values()]
            replies = self._wire.send([running.call for running in turn if running.call])
            for running, reply in zip(turn, replies, strict=True):
                running.call = None
                if _stops(running, reply, paused, results):
                    queues[running.serial_key].popleft()

    def _await(self, order: Order, written: Written) -> None:
        """Take note of what must show. A new secret never does."""
        match order:
            case CreateOrder() | UpdateOrder() | DeleteOrder() if order.ref.kind is ACTION_FLOW:
                self._flows.note(order, written)
            case CreateOrder():
                self._awaited[order.ref.key, written.id] = 1
            case UpdateOrder():
                if order.resource.active is not None:
                    self._states[written.id] = order.resource.active
                self._awaited[order.resource.ref.key, written.id] = max(written.sequence, 1)
            case DeleteOrder():
                self._states.pop(written.id, None)
                self._awaited[order.held.ref.key, written.id] = 0
            case SecretOrder():
                pass

    def _not_shown(self, seen: Seen, organizations: Collection[str]) -> list[ResourceRef]:
        names = {fold(name) for name in organizations}
        by_id = {
            found.id: found.sequence
            for found in seen.objects.values()
            if self._states.get(found.id) in {None, found.active}
        }
        missing = []
        for (ref, object_id), sequence in list(self._awaited.items()):
            if ref.organization not in names:
                continue
            shows = by_id.get(object_id, 0)
            # What was removed must not show; what was written must, at its sequence or later.
            if (shows == 0) if sequence == 0 else (shows >= sequence):
                del self._awaited[ref, object_id]
                self._states.pop(object_id, None)
            else:
                missing.append(ref)
        return missing


def _stops(
    running: _Running,
    reply: Any,
    paused: list[tuple[float, _Running]],
    results: list[Written | ServiceError],
) -> bool:
    """Go on with an order until its next call; say if it has ended or paused instead."""
    try:
        step = running.steps.send(reply)
    except StopIteration as end:
        results[running.index] = end.value
        return True
    except ServiceError as failure:
        results[running.index] = failure
        return True
    if isinstance(step, Pause):
        paused.append((step.settlings, running))
        return True
    running.call = step
    return False


def _not_begun() -> ServiceError:
    return ServiceError("the order was not begun", remedy="Run the command again.")
