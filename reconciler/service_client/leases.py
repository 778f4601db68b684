"""The leases of a run: one for each organization that it may write to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from reconciler.errors import (
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    UnseenOrganizationError,
)
from reconciler.resources.call import Call, Code
from reconciler.resources.ref import fold
from reconciler.service_client.locks import ProcessIdentity, lock_error
from reconciler.service_client.wire import Reply, Wire, WireRefusal, service_error

LEASE_SECONDS = 120  # much longer than a batch takes: it is renewed between two of them
RENEW_AFTER_SECONDS = LEASE_SECONDS / 4
AT_ONCE = 250  # leases taken in one commit, which other writers wait for
UntilRefused: TypeAlias = Callable[[Sequence[Call]], Sequence[Reply]]
"""Carries out calls in their order and in one commit, up to the first one that is refused.

It returns a reply to each call that was tried.
"""


class Leases:
    """Leases taken over a wire by one process."""

    def __init__(
        self,
        wire: Wire,
        holder: ProcessIdentity,
        clock: Callable[[], float],
        until_refused: UntilRefused | None = None,
    ) -> None:
        """Take leases for a holder; the clock counts seconds.

        Without ``until_refused``, leases are taken one by one.
        """
        self._wire = wire
        self._until_refused = until_refused or wire.send
        self._at_once = AT_ONCE if until_refused else 1
        self._holder = holder
        self._clock = clock
        self._tokens: dict[str, str] = {}
        self._fences: dict[str, int] = {}
        self._renewed = clock()

    def by_folded_name(self) -> Mapping[str, str]:
        """Return what a write names its lease by, by the folded name of the organization."""
        return {fold(name): lease for name, lease in self._tokens.items()}

    def acquire(self, organizations: Collection[str]) -> None:
        """Take the lease of each organization, all or none."""
        self._renewed = self._clock()
        try:
            # A lease that is taken and given back moves the fence of an organization that another
            # run may be about to renew. So nothing is taken that sorts after a lease that is
            # refused. In order, of two runs the one with the first name in common goes on.
            names = _in_order(organizations)
            while names:
                # Over a network the first leases could run out before the last one is taken.
                self.renew()
                names = names[self._acquire(names[: self._at_once]) :]
        except ReconcilerError:
            self.release()
            raise

    def _acquire(self, names: Sequence[str]) -> int:
        """Take leases in order, up to one that a dead process held; return how many were taken."""
        replies = self._until_refused([self._acquisition(name) for name in names])
        # Those after a refused one were not tried, and have no reply. The refused one is the last
        # reply, so all that were given are kept before it may raise.
        for name, reply in zip(names, replies, strict=False):
            refusal = self._kept(name, reply)
            if refusal is not None:
                self._acquire_from_dead(name, refusal)
        return len(replies)

    def renew(self) -> None:
        """Renew every lease; one that ran out and that no other run took is taken again.

        Leases renewed less than 30 s ago are not checked again: the service refuses a write
        under a lease that was lost.

        Raises:
            LockHeldError: another run holds it now.
            PreconditionFailedError: another run held it meanwhile, and may have written.
        """
        # The time before the call counts: a slow answer must not make the lease seem newer.
        names, now = _in_order(self._tokens), self._clock()
        if not names or now - self._renewed < RENEW_AFTER_SECONDS:
            return
        replies = self._wire.send([self._renewal(name) for name in names])
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, WireRefusal):
                if reply.code != Code.ABORTED:
                    # Unknown error: do not assume that the lease was lost.
                    raise service_error(reply)
                self._take_again(name)
        self._renewed = now

    def _renewal(self, name: str) -> Call:
        lease = self._tokens[name]
        fields = {"organization": name, "lease": lease, "seconds": LEASE_SECONDS}
        return Call("RenewLease", fields)

    def _take_again(self, name: str) -> None:
        # Fences are counted up by one with each lease of an organization. A gap means that another
        # run held it in between, and may have changed what this plan was made from.
        before = self._fences[name]
        self._acquire([name])
        if self._fences[name] != before + 1:
            raise PreconditionFailedError(
                f"another run has locked organization {name} since this plan was made",
                remedy="Run the command again: it plans from what is held now.",
            )

    def release(self) -> None:
        """Give every lease back; one that cannot be given back runs out by itself."""
        calls = [
            Call("ReleaseLease", {"organization": name, "lease": self._tokens[name]})
            for name in _in_order(self._tokens)
        ]
        # Cleared first: whatever comes of the calls, no later write goes under these leases.
        self._tokens.clear()
        if calls:
            with suppress(ServiceError):
                self._wire.send(calls)

    def _acquisition(self, name: str, instead_of: str = "") -> Call:
        fields = {"organization": name, "holder": self._holder.text, "seconds": LEASE_SECONDS}
        if instead_of:
            fields["insteadOf"] = instead_of
        key = uuid.uuid4().hex  # a repeated call gives the same lease again
        return Call("AcquireLease", fields, idempotency_key=key)

    def _kept(self, name: str, reply: Reply) -> WireRefusal | None:
        """Keep a lease that was given; return the refusal of one that was not."""
        if isinstance(reply, WireRefusal):
            return reply
        self._fences[name] = int(reply.fields["fence"])
        self._tokens[name] = str(reply.fields["lease"])
        return None

    def _acquire_from_dead(self, name: str, refusal: WireRefusal) -> None:
        """Take a refused lease if a process of this machine holds it that has died.

        Raises:
            UnseenOrganizationError: the organization exists, and this token does not see it.
            ReconcilerError: another run holds the lease, or the service failed.
        """
        # The fence says which lease is meant: of two runs that take it over, one gets it.
        fence = str(refusal.details.get("fence", ""))
        if fence and self._holder.knows_dead(refusal.details.get("holder", "")):
            (reply,) = self._wire.send([self._acquisition(name, instead_of=fence)])
            again = self._kept(name, reply)
            if again is None:
                return
            refusal = again
        if refusal.code == Code.NOT_FOUND:  # it exists, and only for tokens that see it
            raise UnseenOrganizationError([name])
        raise lock_error(name, refusal)


def _in_order(organizations: Collection[str]) -> Sequence[str]:
    """Return organizations in the order in which every run sends them.

    So two runs cannot each hold what the other needs: leases, or rows of a database in a commit.
    """
    return sorted(organizations, key=fold)
