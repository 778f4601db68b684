"""The identity service as the reconciler sees it: observe it, write to it, be its one writer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from reconciler.errors import ServiceError
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret
from reconciler.state import (
    FeedEvent,
    Heads,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    OwedSecret,
    Removal,
    Resource,
    Undone,
)


@dataclass(frozen=True, slots=True)
class CreateOrder:
    """Make an object.

    It is made active: to deactivate what was made is an order of its own.

    Attributes:
        organization_id: Id of the owner; empty for an organization.
        project_id: Id of the project, of what belongs to one.
        named_ids: Ids of the objects that the spec names, by their folded names.
        despite: What let its change pass a guard or a policy that would stop it; kept with what is
            written, like the context.
    """

    resource: Resource
    organization_id: str = ""
    project_id: str = ""
    named_ids: Mapping[str, str] = field(default_factory=dict)
    despite: Mapping[str, str] = field(default_factory=dict)

    @property
    def ref(self) -> ResourceRef:
        """Return the ref that the object gets."""
        return self.resource.ref


class _OfHeld:
    """An order about an object that is held."""

    __slots__ = ()
    held: ObservedObject

    @property
    def ref(self) -> ResourceRef:
        """Return the ref under which the object is held."""
        return self.held.ref

    @property
    def organization_id(self) -> str:
        """Return the id of the organization that owns the object."""
        return self.held.organization_id


@dataclass(frozen=True, slots=True)
class UpdateOrder(_OfHeld):
    """Make an object be as declared, if it is still at the sequence expected.

    It is deactivated before anything else is changed, and reactivated after: what is being changed
    and is inactive before or after is so in between.

    Attributes:
        named_ids: Ids of the objects that the spec names, by their folded names.
        is_new: The object was made a moment ago by the same run.
        is_moved: An earlier write of the same run may have changed the object, so that it is at a
            later sequence.
    """

    resource: Resource
    held: ObservedObject
    named_ids: Mapping[str, str] = field(default_factory=dict)
    is_new: bool = False
    is_moved: bool = False
    despite: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteOrder(_OfHeld):
    """Remove an object, if it is still at the sequence expected.

    Attributes:
        is_moved: As of an update.
        undone: The mark that it leaves under the address of the object.
    """

    held: ObservedObject
    is_moved: bool = False
    undone: Undone | None = None
    despite: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretOrder(_OfHeld):
    """Make a new client secret for an application; the old one ends."""

    held: ObservedObject
    despite: Mapping[str, str] = field(default_factory=dict)


Context: TypeAlias = Mapping[str, object]
"""Tree, revision, plan digest and the like: kept with everything that is written."""

Order: TypeAlias = CreateOrder | UpdateOrder | DeleteOrder | SecretOrder


@dataclass(frozen=True, slots=True)
class Written:
    """The result of carrying out an order.

    Attributes:
        client_secret: Answered once, by a create or by a secret order.
    """

    id: str
    sequence: int
    client_id: str = ""
    client_secret: Secret | None = None


class HistoryReader(Protocol):
    """A service that can be asked what is there, and what was."""

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return all that is held in the organizations of these names, and nothing else.

        A name that no organization has is no error; it is simply not in the result. Without
        ``flows``, action flows may be left out, where each of them costs a request.

        Raises:
            ServiceError: the service cannot be read, or the caller may not.
        """
        ...

    def generation(self) -> int | None:
        """Return the generation of a ZITADEL: 4, 3 for an older one, 0 where it is unknown.

        None for every other service. It may be a request.
        """
        ...

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        """Yield the id and the events of each object, oldest first; of removed ones, too.

        Of no objects nothing is asked, and no service refuses.

        Raises:
            ServiceError: there was no such object, or the service keeps no history. What could be
                read before was yielded.
        """
        ...

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Return what was removed from an organization, oldest first.

        Raises:
            ServiceError: the service cannot be read, or keeps no history.
        """
        ...


class ReadOnlyService(HistoryReader, Protocol):
    """A service that can be asked what is there, what was, and why. It has no way to write."""

    def heads(self) -> Heads | None:
        """Return where the log of every organization ends that the caller sees.

        None where the service has no feed: then only listing its objects shows a change.

        Raises:
            ServiceError: the service cannot be read.
        """
        ...

    def changes_of(self, after: Mapping[str, int]) -> Iterator[tuple[str, Sequence[FeedEvent]]]:
        """Yield the events of each organization (id) past its sequence, oldest first.

        Organizations come in the order given. Several are asked at a time, so that many cost few
        round trips.

        Raises:
            ServiceError: the service cannot be read, or has no feed.
        """
        ...

    def observe_at(self, moments: Mapping[str, int]) -> ObservedState:
        """Return what organizations held after the last event up to a sequence of each.

        ``moments`` has the sequence by the name that the organization has now. One that did not
        exist yet is left out. Secrets that are owed, and pauses, are of no moment and left out.

        Raises:
            ServiceError: the service cannot be read, or has no feed.
        """
        ...

    def organizations(self) -> Sequence[str]:
        """Return the names of all organizations that the caller may see, by name.

        Raises:
            ServiceError: the service cannot be read.
        """
        ...


class TreeControl(Protocol):
    """Pauses, leadership and records of trees, as far as a service keeps them.

    Each is kept by organization and tree, and needs the role ``editor`` there.
    """

    def lead(
        self, tree: str, organizations: Collection[str], seconds: int, *, take: bool = False
    ) -> None:
        """Become the one leader of a tree in these organizations, by their names; all or none.

        It lasts so many seconds from the last renewal. ``take`` ends the leadership of another
        run: only the one writer of these organizations may, as the other cannot be writing then.

        Raises:
            LockHeldError: another run leads; the error says which, and since when.
        """
        ...

    def renew(self, *, at_once: bool = False) -> None:
        """Stay the leader. Sends nothing if a quarter of the time has not passed yet.

        ``at_once`` sends it: after the organizations were locked, and before they are written to.
        A leader that is taken over later has to wait for that lock.

        Raises:
            LockHeldError: another run leads now.
            PreconditionFailedError: another run led meanwhile. This one leads again, and must look
                again at what it decided on.
        """
        ...

    def resign(self) -> None:
        """Stop being the leader. Does nothing where this run was not."""
        ...

    def record_commit(self, commit: str, outcome: str, context: Context) -> None:
        """Record that a commit was applied, in every organization that is led.

        ``outcome`` is ``changed`` or ``unchanged``. A commit that is the last one already is
        recorded only once.

        Raises:
            LockHeldError: this run does not lead any more, or has lost the lock that it wrote
                under; nothing was recorded there.
            ServiceError: the service cannot be written to.
        """
        ...

    def pause(self, tree: str, organizations: Collection[str], reason: str, seconds: int) -> None:
        """Say that a tree is not to be applied, for so many seconds from now.

        Raises:
            ServiceError: refused, or the service cannot be written to.
        """
        ...

    def resume(self, tree: str, organizations: Collection[str]) -> None:
        """End the pauses of a tree. Does nothing where there is none.

        Raises:
            ServiceError: refused, or the service cannot be written to.
        """
        ...


class ServiceClient(ReadOnlyService, Protocol):
    """A service that can be looked at and written to.

    Attributes:
        batch_size: How many orders it is best given at a time. Between two batches the caller
            renews its lock and heeds signals, so a batch takes much less time than a lock lasts.
    """

    batch_size: int

    def trees(self) -> TreeControl | None:
        """Return the control of trees; None where the service keeps nothing of them.

        Raises:
            ServiceError: the service cannot be read.
        """
        ...

    def acquire(self, organizations: Collection[str]) -> None:
        """Become the one writer of these organizations, by their names.

        Raises:
            LockHeldError: another run is; the error says which, and since when.
        """
        ...

    def renew(self) -> None:
        """Stay the one writer for a while longer.

        Raises:
            LockHeldError: another run has become it.
        """
        ...

    def release(self) -> None:
        """Stop being the one writer. Does nothing where this run was not."""
        ...

    def write(self, orders: Sequence[Order], context: Context) -> Sequence[Written | ServiceError]:
        """Carry out independent orders; return what each gave, in their order.

        The context (tree, revision, plan digest) is kept with everything that is written.

        A refused order is a ``ServiceError`` in its place and keeps no other from being carried
        out. What is returned as written is durable.
        """
        ...

    def claim(
        self, owed: Sequence[OwedSecret], context: Context
    ) -> Sequence[Written | ServiceError]:
        """Return secrets in custody again, each with its client secret, in the order given.

        Each claim is recorded by the service. A secret that cannot be had again is a
        ``ServiceError`` in its place. The caller is the one writer of the organizations.

        Raises:
            ServiceError: the service has no custody, or cannot be reached.
        """
        ...

    def acknowledge(self, delivered: Collection[Written]) -> None:
        """End the custody of secrets that are safely delivered, by object id and sequence.

        A secret that was replaced or acknowledged meanwhile is passed over. Does nothing where
        the service has no custody.

        Raises:
            LockHeldError: the caller is not the one writer any more; they stay owed, unless the
                run that is has replaced them.
            ServiceError: the service cannot be reached; they stay owed, which loses nothing.
        """
        ...
