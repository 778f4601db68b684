"""One change of a plan while it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.apply.journal import Intent
from reconciler.apply.outcome import Outcome, Status
from reconciler.apply.sink import Delivery
from reconciler.errors import REFUSED, ReconcilerError
from reconciler.plan.model import Change, ref_of
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import Written


@dataclass(slots=True)
class ChangeRun:
    """A change from nothing sent to nothing owed.

    Attributes:
        intent: Its entry in the journal, open until ``is_over``; None where it needs none.
        result: What the service answered. None before it was asked.
        is_written: Whether anything was written to the service for it.
        secret_at: Place of its new client secret; empty without one in the sink.
        owed: The failure for which its new client secret is still owed, or for which it is still
            active, or None.
    """

    change: Change
    intent: Intent | None = None
    result: Written | ReconcilerError | None = None
    is_written: bool = False
    secret_at: str = ""
    owed: ReconcilerError | None = None

    @property
    def ref(self) -> ResourceRef:
        """Return the ref that the change is about."""
        return ref_of(self.change)

    @property
    def delivery(self) -> Delivery | None:
        """Return its new client secret for the sink, if the service answered one."""
        result = self.result
        if not isinstance(result, Written) or result.client_secret is None:
            return None
        return Delivery(self.ref, result.client_id, result.client_secret)

    @property
    def is_over(self) -> bool:
        """Return whether nothing is owed, and nothing can still happen at the service."""
        return self.owed is None and isinstance(self.result, (Written, *REFUSED))

    @property
    def outcome(self) -> Outcome:
        """Return its outcome as it is now."""
        if self.result is None:
            return Outcome(self.change, Status.NOT_TRIED)
        if isinstance(self.result, ReconcilerError):
            return Outcome(self.change, Status.FAILED, error=self.result)
        if self.owed is not None:
            failed = Outcome(self.change, Status.FAILED, error=self.owed)
            return replace(failed, written=self.is_written)
        result = self.result
        return Outcome(self.change, Status.MADE, result.id, result.client_id, self.secret_at)
