"""Changes while they are carried out: intents, orders and outcomes, and the report of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler.apply.journal import Intent, new_key
from reconciler.apply.sink import Delivery
from reconciler.diagnostics import Diagnostic
from reconciler.errors import REFUSED, ReconcilerError
from reconciler.kinds.fields import KINDS
from reconciler.plan.diff import is_not_sent
from reconciler.plan.model import Change, Create, Delete, held_of, makes_secret, ref_of
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, owner_of
from reconciler.resources.references import REFERRED, references
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, UpdateOrder, Written
from reconciler.state import ObservedObject

Ids = Mapping[ResourceRef, str]
"""Id of each object that is held, by the key of its ref."""


class Status(StrEnum):
    """The results that a change can have."""

    MADE = "made"
    FAILED = "failed"
    NOT_TRIED = "not_tried"
    # Nothing had to be sent: all that differs are lists that the server keeps.
    UNTOUCHED = "untouched"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one change.

    Attributes:
        secret_at: Where the client secret was delivered, if there was one.
        error: Why it failed.
        written: Whether it failed after the service had been written to: its secret is owed.
    """

    change: Change
    status: Status
    id: str = ""
    client_id: str = ""
    secret_at: str = ""
    error: ReconcilerError | None = None
    written: bool = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """The delivery of a client secret that was owed before the run.

    Attributes:
        secret_at: The place it was delivered to; empty where it was not.
        error: Why it was not delivered: it is still owed. None if it was.
    """

    ref: ResourceRef
    id: str
    client_id: str
    secret_at: str = ""
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The result of every change of a plan, in the plan's order.

    Attributes:
        notes: What else to know: above all what an interrupted run had left open and this one
            brought to its end.
        remaining: How many changes a plan made afterwards still has; None where it was not made.
        interrupted: The signal that stopped the run, or 0.
        delivered: Client secrets that were owed before the run, and what became of each.
        left_out: How many changes of the tree are not of the part that was applied.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[Diagnostic, ...] = ()
    remaining: int | None = None
    interrupted: int = 0
    delivered: tuple[Delivered, ...] = ()
    left_out: int = 0

    def count(self, status: Status) -> int:
        """Return how many changes ended so."""
        return sum(outcome.status is status for outcome in self.outcomes)

    @property
    def is_complete(self) -> bool:
        """Return whether all that was to be done is done, so that nothing of it is left or owed."""
        return not (
            self.interrupted
            or self.remaining
            or self.count(Status.MADE) < len(self.outcomes)
            or any(note.is_error for note in self.notes)
            or any(delivered.error for delivered in self.delivered)
        )


class Progress(NamedTuple):
    """Called while a plan is carried out: 7 of 200 changes are done."""

    done: int
    total: int
    latest: Outcome


class Watch(Protocol):
    """An observer of a run: receives its progress, and may ask it to stop."""

    def begins(self, changes: Sequence[Change]) -> None:
        """Take note of changes that are about to be sent."""
        ...

    def progress(self, progress: Progress) -> None:
        """Take note of how far the run is."""
        ...

    def stop_signal(self) -> int:
        """Return the signal that asked the run to stop, or 0."""
        ...


@dataclass(slots=True)
class ChangeRun:
    """A change from nothing sent to nothing owed.

    Attributes:
        intents: Its entries in the journal, open until ``is_over``.
        result: What the service answered. None before it was asked.
        is_written: Whether anything was written to the service for it.
        secret_at: Place of its new client secret; empty without one in the sink.
        owed: The failure for which its new client secret is still owed, or for which it is still
            active, or None.
    """

    change: Change
    intents: Sequence[Intent] = ()
    result: Written | ReconcilerError | None = None
    is_written: bool = False
    secret_at: str = ""
    owed: ReconcilerError | None = None

    @property
    def delivery(self) -> Delivery | None:
        """Return its new client secret for the sink, if the service answered one."""
        result = self.result
        if not isinstance(result, Written) or result.client_secret is None:
            return None
        return Delivery(ref_of(self.change), result.client_id, result.client_secret)

    @property
    def is_over(self) -> bool:
        """Return whether nothing is owed, and nothing can still happen at the service."""
        return self.owed is None and isinstance(self.result, (Written, *REFUSED))

    @property
    def outcome(self) -> Outcome:
        """Return its outcome as it is now."""
        result = self.result
        if result is None:
            is_left = is_not_sent(self.change)
            return Outcome(self.change, Status.UNTOUCHED if is_left else Status.NOT_TRIED)
        if isinstance(result, ReconcilerError):
            return Outcome(self.change, Status.FAILED, error=result)
        if self.owed is not None:
            return Outcome(self.change, Status.FAILED, error=self.owed, written=self.is_written)
        return Outcome(self.change, Status.MADE, result.id, result.client_id, self.secret_at)


def intents_of(change: Change, *, custody: bool, has_sink: bool) -> Iterator[Intent]:
    """Yield what the journal records before a change is sent, since nothing else records it.

    ``custody`` is whether the service keeps secrets until their delivery is acknowledged.
    """
    ref, held = ref_of(change), held_of(change)
    if makes_secret(change) and not custody:
        yield Intent("secret", new_key(), ref, held.id if held else "")
    if isinstance(change, Create) and change.resource.active is False:
        yield Intent("inactive", new_key(), ref, spec=change.resource.spec)
    # The secret may be in the sink from an earlier auth method that had one.
    if has_sink and held and held.client_id and KINDS[held.ref.kind].secrets:
        if isinstance(change, Delete):
            yield Intent("delete", new_key(), ref, held.id, held.client_id)
        elif ref != held.ref:
            yield Intent("rename", new_key(), held.ref, held.id, held.client_id)


def order_of(change: Change, ids: Ids, removed: Collection[tuple[Kind, str]] = ()) -> Order:
    """Return the order that carries out a change; its owners are held.

    ``removed`` are the kinds of which this run has removed an object, each with the id of the
    organization: what named it is at a later sequence.
    """
    held = held_of(change)
    is_moved = held is not None and (REFERRED.get(held.ref.kind), held.organization_id) in removed
    if isinstance(change, Delete):
        return DeleteOrder(change.held, is_moved=is_moved, undone=change.undone)
    named = references(change.resource.ref, change.resource.spec)
    named_ids = {ref.key.name: ids[ref.key] for ref, _ in named}
    if not isinstance(change, Create):
        return UpdateOrder(change.resource, change.held, named_ids=named_ids, is_moved=is_moved)
    owners = _owner_ids(change.resource.ref, ids)
    return CreateOrder(change.resource, *owners, named_ids=named_ids)


def deactivation_of(change: Create, made: Written, ids: Ids) -> UpdateOrder:
    """Return the order that deactivates what a create has just made."""
    resource = change.resource
    held = ObservedObject(
        resource.ref,
        made.id,
        made.sequence,
        resource.spec,
        *_owner_ids(resource.ref, ids),
        made.client_id,
    )
    return UpdateOrder(resource, held, is_new=True)


def _owner_ids(ref: ResourceRef, ids: Ids) -> tuple[str, str]:
    """Return the ids of an object's organization and project; empty where it has none."""
    if ref.kind is Kind.ORGANIZATION:
        return "", ""
    owner = owner_of(ref)
    project_id = ids[owner.key] if owner and owner.kind is Kind.PROJECT else ""
    return ids[organization_ref(ref.organization).key], project_id
