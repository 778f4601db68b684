"""The client for a ZITADEL, which has none of the addresses that are ours alone.

There are no trees (so only ``--prune-unmanaged`` deletes), no history and no leases: a lock file
keeps other runs of this machine away. Its lists lag behind its writes; this client waits for
what it has written itself to show.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from reconciler.errors import NotListedError, ServiceError
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import Call, Code, is_id
from reconciler.resources.capabilities import SOURCE, capabilities_of
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ResourceRef, fold
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
    Answer,
    Wire,
    WireRefusal,
    error_id,
    no_custody,
    service_error,
)
from reconciler.service_client.zitadel.organizations import OrganizationCalls
from reconciler.service_client.zitadel.reading import Seen, read_organizations
from reconciler.service_client.zitadel.roles import denied, role_that_writes
from reconciler.service_client.zitadel.steps import OrderSteps, Pause, is_unknown_address, run
from reconciler.service_client.zitadel.writes import serial_key_of, steps_of
from reconciler.state import (
    FeedEvent,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    OwedSecret,
    Removal,
    without,
)

_LONGEST_STEP = 5.0  # seconds: each look reads every list
BATCH = 64  # orders at a time: signals are handled between two batches
# Codes of refusals that may be gone the next time; 4 is a deadline.
_PASSING = {NO_ANSWER, 4, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE, Code.UNAUTHENTICATED}
_INSTANCE_IDS = ("iamProjectId", "defaultOrgId", "globalOrgId")
# No call answers the version. Every server from 4.0 on has this call of its second kind of actions,
# and no older one. It is open to every user, changes nothing and has a small answer.
_ONLY_FROM_4 = Call("ListExecutionFunctions")


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


class ZitadelClient:
    """A ``ServiceClient`` and a ``ReadOnlyService`` of a ZITADEL."""

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
        self._lock, self.release = lock, lock.release
        self._delays = patience or ListDelays()
        self._instance = ""
        self._own_project = ""
        self._unidentified = ""
        self._kinds = {kind: replace(calls) for kind, calls in ZITADEL.items()}
        self._generation: int | None = None
        self._organizations = OrganizationCalls(wire)
        self._awaited = Awaited()

    def instance(self) -> str:
        """Return the id of the service: that of its own project, or made of its address.

        Raises:
            ServiceError: there is no answer, or the token is not valid. The next run may have an
                answer, and an id that changes would hide the journal of this one.
        """
        if not self._instance:
            (told,) = self._wire.send([Call("GetIAM")])
            if isinstance(told, WireRefusal) and told.code in {UNKNOWN, Code.INTERNAL}:
                (told,) = self._wire.send([Call("GetIAM")])  # a failure may pass
            if isinstance(told, WireRefusal) and told.code in _PASSING:
                raise service_error(told)
            if isinstance(told, WireRefusal):
                self._unidentified, told = f"It refused: {told.message}.", Answer({})
            found = told.fields
            ids = {name: str(found[name]) for name in _INSTANCE_IDS if is_id(found.get(name))}
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
        """Return all that is held in these organizations: lists, and reads of what has no list."""
        instance = self.instance()
        # Every list is read again until all that this client wrote shows, or time is up.
        waited, step = 0.0, self._delays.step
        while True:
            find = partial(self._organizations.find, organizations)
            seen = read_organizations(self._wire, find, self._kinds)
            for kind in self._kinds.values() if flows else ():
                seen.add(kind.read_one_by_one(self._wire, seen.everything))
            missing = self._awaited.not_shown(seen.everything, organizations, flows=flows)
            unlisted = self._awaited.not_listed(seen.objects, organizations)
            # After the longest wait the plan is blocked instead: it would be made from an old list.
            left = self._delays.longest - waited
            if not (missing or unlisted) or left <= 0:
                break
            self._delays.sleep(min(step, left))
            waited += step
            step = min(step * 1.5, _LONGEST_STEP)
        self._awaited.taken.clear()  # they are waited for once
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
            unlisted=tuple(unlisted),
            own_project=self._own_project,
            unidentified=self._unidentified,
            keeps_history=False,
            knows_audience=self._knows_audience(seen),
            # A server without template calls is as old as the source.
            capabilities=SOURCE if self._is_old else capabilities_of(self._generation, "zitadel-3"),
            generation=self._generation,
            only_active=frozenset(
                kind
                for kind, calls in self._kinds.items()
                if calls.only_active and not calls.is_old
            ),
        )

    @property
    def _is_old(self) -> bool:
        return any(calls.is_old for calls in self._kinds.values())

    def _knows_audience(self, seen: Seen) -> bool | None:
        """Return whether the server stores audiences; None if unknown."""
        if self._is_old:
            return False
        new = {kind: calls.only_new for kind, calls in self._kinds.items()}
        held = seen.objects.values()
        return any(each.spec.get(name) for each in held for name in new[each.ref.kind]) or None

    def organizations(self) -> Sequence[str]:
        return self._organizations.visible()

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        if object_ids:
            raise no_history()
        return iter(())

    def removals(self, organization_id: str) -> Sequence[Removal]:
        raise no_history()

    def heads(self) -> None:
        """Return None: a ZITADEL has no feed."""

    def observe_at(self, moments: Mapping[str, int]) -> ObservedState:
        raise no_history()

    def changes_of(self, after: Mapping[str, int]) -> Iterator[tuple[str, Sequence[FeedEvent]]]:
        raise no_history()

    def trees(self) -> None:
        """Return None: a ZITADEL keeps nothing of trees."""

    def acquire(self, organizations: Collection[str]) -> None:
        """Be the one writer of the service on this machine."""
        self._lock.acquire(self.instance())

    def renew(self) -> None:
        """Stay the one writer: the lock does not run out."""

    def write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out independent orders, those of one project or organization in turn."""
        steps = [
            OrderSteps(serial_key_of(order, number), steps_of(order, self._kinds[order.ref.kind]))
            for number, order in enumerate(orders)
        ]
        results = run(self._wire, steps, self._wait)
        for index, order in enumerate(orders):
            result = results[index]
            if isinstance(result, Written):
                self._awaited.note(order, result)
            else:
                if isinstance(result, NotListedError):
                    self._awaited.taken.add(order.ref.key)
                results[index] = denied(result, role_that_writes(order))
        return results

    def _wait(self, pause: Pause) -> None:
        self._delays.sleep(pause.settlings * self._delays.settling)

    def claim(
        self, owed: Sequence[OwedSecret], context: Context
    ) -> Sequence[Written | ServiceError]:
        """Refuse: a ZITADEL answers a client secret once and keeps only its hash."""
        raise no_custody()

    def acknowledge(self, delivered: Collection[Written]) -> None:
        """Do nothing: a ZITADEL keeps no secret until its delivery is acknowledged."""


class _Expected(NamedTuple):
    """An object as lists must show it after a write.

    Attributes:
        sequence: At least this one; 0 for an object that was removed.
        active: The state that was written; None if none was.
        spec: The whole spec but for ignored fields, of a kind without lists; None for other kinds.
    """

    ref: ResourceRef
    sequence: int
    active: bool | None = None
    spec: Spec | None = None

    def is_shown_by(self, held: ObservedObject | None) -> bool:
        """Return whether an object, or none, is what was written or what came after it."""
        if self.spec is not None:
            # It has no sequence of its own, and without one value none at all. So it shows when
            # it has the spec of the order, or was written to later.
            shown = held.spec if held else DEFAULTS[self.ref.kind]
            return self.spec.items() <= shown.items() or (
                held is not None and held.sequence > self.sequence
            )
        if held is None or self.active not in {None, held.active}:
            return self.sequence == 0
        return 0 < self.sequence <= held.sequence


class Awaited:
    """Everything that was written and that lists must still show.

    Attributes:
        taken: Keys of names that were refused as taken and were not listed: another run may have
            made the objects a moment ago.
    """

    def __init__(self) -> None:
        self._expected: dict[str, _Expected] = {}  # by id of the object
        self.taken: set[ResourceRef] = set()

    def note(self, order: Order, written: Written) -> None:
        """Take note of what must show after an order that was carried out."""
        is_whole, sequence = not ZITADEL[order.ref.kind].lists, max(written.sequence, 1)
        match order:
            case SecretOrder():  # a secret never shows
                return
            case CreateOrder() if is_whole:
                expected = _Expected(order.ref.key, written.sequence, spec=order.resource.spec)
            case CreateOrder():
                # Whatever sequence its list has for it, it is there.
                expected = _Expected(order.ref.key, 1)
            case UpdateOrder(resource=resource) if is_whole:
                spec = without(resource.ignored, resource.spec)
                expected = _Expected(resource.ref.key, written.sequence, spec=spec)
            case UpdateOrder(resource=resource):
                before = self._expected.get(written.id)
                active = before.active if before and resource.active is None else resource.active
                expected = _Expected(resource.ref.key, sequence, active)
            case DeleteOrder() if is_whole:
                emptied = DEFAULTS[order.ref.kind]
                expected = _Expected(order.ref.key, written.sequence, spec=emptied)
            case DeleteOrder():
                expected = _Expected(order.ref.key, 0)
        self._expected[written.id] = expected

    def not_shown(
        self, objects: Iterable[ObservedObject], organizations: Collection[str], *, flows: bool
    ) -> list[ResourceRef]:
        """Return what objects of some organizations (names) do not show yet.

        Without ``flows``, these were not read.
        """
        names = {fold(name) for name in organizations}
        held = {each.id: each for each in objects}
        missing = []
        for object_id, expected in list(self._expected.items()):
            is_read = flows or ZITADEL[expected.ref.kind].lists
            if expected.ref.organization not in names or not is_read:
                continue
            if expected.is_shown_by(held.get(object_id)):
                del self._expected[object_id]
            else:
                missing.append(expected.ref)
        return missing

    def not_listed(
        self, objects: Collection[ResourceRef], organizations: Collection[str]
    ) -> list[ResourceRef]:
        """Return the names that are taken in organizations (names) by no object of the list."""
        self.taken.difference_update(objects)
        names = {fold(name) for name in organizations}
        return sorted(ref for ref in self.taken if ref.organization in names)


def ask_generation(wire: Wire) -> int:
    """Return 4 for a server from 4.0 on, 3 for an older one, 0 where it is unknown.

    An unknown address is asked for twice: the first refusal may come from a proxy.
    """
    for _ in range(2):
        (reply,) = wire.send([_ONLY_FROM_4])
        # A refusal with an error id comes from the operation: the server has it.
        if isinstance(reply, Answer) or (error_id(reply) and not reply.unsure):
            return 4
        if not is_unknown_address(reply):
            return 0
    return 3
