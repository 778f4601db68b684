"""Delivering secrets only for as long as the run is the one writer.

A sink may take minutes. Where another run has taken the lock meanwhile, it may have replaced the
secrets that are still to be delivered: an older secret must not be the last to reach a sink.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from reconciler.apply.sink import Delivery, Kept, NotGivenError, SecretSink, Stops
from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.errors import (
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
)
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import ServiceClient, Written


class Lease:
    """The lock of a run while secrets are delivered. Called, it tells whether to stop.

    Attributes:
        lost: Why the lock could not be renewed; None while the run is the one writer.
    """

    def __init__(self, service: ServiceClient, stops: Stops) -> None:
        """Take the service that is written to, and what else asks to stop."""
        self.lost: ReconcilerError | None = None
        self._service = service
        self._stops = stops
        self._one_at_a_time = threading.Lock()

    def __call__(self) -> object:
        """Return a true value once no further secret may be given to a sink."""
        return self._stops() or self.renewed() is not None

    def renewed(self) -> ReconcilerError | None:
        """Renew the lock where that is due; return why that failed.

        Sinks call from threads of their own, and the service is spoken to by one at a time.
        """
        with self._one_at_a_time:
            if self.lost is None:
                try:
                    self._service.renew()
                except (ServiceError, LockHeldError) as failure:
                    self.lost = failure
            return self.lost


def deliver_held(
    sink: SecretSink, deliveries: Sequence[Delivery], service: ServiceClient, stops: Stops
) -> Sequence[Kept | ReconcilerError]:
    """Deliver secrets while the run is the one writer; return what became of each.

    A secret that was held back because the lock was lost has that failure in its place.
    """
    lease = Lease(service, stops)
    if deliveries and (lost := lease.renewed()):
        return [lost for _ in deliveries]
    results = sink.deliver(deliveries, lease) if deliveries else ()
    return [
        lease.lost if lease.lost and isinstance(result, NotGivenError) else result
        for result in results
    ]


def acknowledged(
    service: ServiceClient, delivered: Mapping[ResourceRef, Written]
) -> Sequence[Diagnostic]:
    """End the custody of secrets that are in the sink; return a finding where that failed."""
    if not delivered:
        return ()
    try:
        service.renew()
        service.acknowledge(delivered.values())
    except (LockHeldError, PreconditionFailedError) as failure:
        return [_may_be_older(ref, failure) for ref in delivered]
    except ServiceError as failure:
        return [
            warning(
                "SECRET-NOT-ACKNOWLEDGED",
                f"the service was not told of a delivery: {failure.problem}",
                f"{len(delivered)} client secret(s) are in the sink and still count as owed; the "
                "next apply delivers the same ones again.",
            )
        ]
    return ()


def _may_be_older(ref: ResourceRef, failure: ReconcilerError) -> Diagnostic:
    return error(
        "SECRET-DELIVERED-LATE",
        "a client secret was delivered after the lock was lost",
        f"{failure.problem}. That run may have replaced the client secret of {ref} before this "
        "run delivered its own. See `reconciler history "
        f"{ref.address}`: if the secret was replaced, deliver the present one again or make a "
        f"new one with --rotate-missing {ref.address}.",
        ref=ref,
    )
