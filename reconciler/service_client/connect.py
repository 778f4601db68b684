"""From a wire to a client: which kind of service is at its other end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.resources.call import Call, Code
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import LocalLock, ProcessIdentity
from reconciler.service_client.port import ReadOnlyService, ServiceClient
from reconciler.service_client.read_only import ReadOnlyClient, ReadOnlyWire
from reconciler.service_client.wire import Wire, WireRefusal, service_error

# Between two batches the lease is renewed and signals are heeded.
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
    """Return the client for a service.

    Raises:
        ServiceError: it cannot be asked which kind it is.
    """
    if _is_ours(service):
        return OperationsClient(service.wire, service.holder, batch_size=service.batch, packs=True)
    from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient

    delays = ListDelays(longest=service.settle)
    return ZitadelClient(
        service.wire, service.address, service.lock, delays, batch_size=service.batch
    )


def read_only_client(service: RemoteService) -> ReadOnlyService:
    """Return what asks a service, and can write nothing.

    Raises:
        ServiceError: it cannot be asked which kind it is.
    """
    reading = ReadOnlyWire(service.wire)
    if _is_ours(service):
        return ReadOnlyClient(OperationsClient(reading, service.holder), reading)
    from reconciler.service_client.zitadel.client import ZitadelClient

    return ZitadelClient(reading, service.address, service.lock)


def _is_ours(service: RemoteService) -> bool:
    if service.kind != "auto":
        return service.kind == "reconciler"
    (reply,) = service.wire.send([Call("GetServiceInfo")])
    if isinstance(reply, WireRefusal):
        if reply.code in _NOT_THERE and not reply.unsure:
            return False
        raise service_error(reply)
    return reply.fields.get("product") == "reconciler"
