"""From a wire to a client: which kind of service is at its other end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.resources.call import Call
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import Holder, LocalLock
from reconciler.service_client.port import ServiceClient, ServiceInquiry
from reconciler.service_client.read_only import Inquiry, ReadingWire
from reconciler.service_client.refusals import service_error
from reconciler.service_client.wire import Wire, WireRefusal

BATCH = 64
BATCH_SECONDS = 20
"""Orders at a time over HTTP: between batches the lease is renewed and signals are heeded."""

_NOT_THERE = frozenset({5, 12})


@dataclass(frozen=True, slots=True)
class Line:
    """A wire, and what must be known to speak over it.

    Attributes:
        kind: ``reconciler``, ``zitadel``, or ``auto``: then the service is asked for an address
            that only ours has.
        address: Of the service, for telling services apart that have no id.
        locks: A folder for the locks of services that have none.
        per_second: Requests a second that are sent at most, or 0 for no such limit.
    """

    wire: Wire
    holder: Holder
    kind: str
    address: str
    locks: Path
    per_second: float = 0.0

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


def client_of(line: Line) -> ServiceClient:
    """Return the client for a service.

    Raises:
        ServiceError: it cannot be asked which kind it is.
    """
    if _is_ours(line):
        return OperationsClient(line.wire, line.holder, batch_size=line.batch, packs=True)
    from reconciler.service_client.zitadel.client import ZitadelClient

    return ZitadelClient(line.wire, line.address, line.lock, batch_size=line.batch)


def inquiry_of(line: Line) -> ServiceInquiry:
    """Return what asks a service, and can write nothing.

    Raises:
        ServiceError: it cannot be asked which kind it is.
    """
    reading = ReadingWire(line.wire)
    if _is_ours(line):
        return Inquiry(OperationsClient(reading, line.holder), reading)
    from reconciler.service_client.zitadel.client import ZitadelClient

    return ZitadelClient(reading, line.address, line.lock)


def _is_ours(line: Line) -> bool:
    if line.kind != "auto":
        return line.kind == "reconciler"
    (reply,) = line.wire.send([Call("GetServiceInfo")])
    if isinstance(reply, WireRefusal):
        if reply.code in _NOT_THERE and not reply.unsure:
            return False
        raise service_error(reply)
    return reply.fields.get("product") == "reconciler"
