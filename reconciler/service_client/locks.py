"""Locks: a run is the one writer of the organizations that it writes to, or the leader of a tree.

A service of our own gives leases, one for each organization, and one for each tree in it. For other
services there is a lock file on this machine. Both are kept with the identity of the process:
enough to tell a person which process holds a lock, and to see that a process of this machine has
died.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from reconciler.diagnostics import name_as_text
from reconciler.errors import (
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    UnseenOrganizationError,
    writing,
)
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.files import open_locked, read_start
from reconciler.resources.ref import fold
from reconciler.resources.strict_json import Within, read_as
from reconciler.service_client.wire import Answer, Reply, Wire, WireRefusal, service_error

# Leases are renewed at most every 30 s, so four renewals may fail before one runs out.
LEASE_SECONDS = 120  # much longer than a batch takes: it is renewed between two of them
RENEW_AFTER_SECONDS = LEASE_SECONDS / 4
AT_ONCE = 250  # leases taken in one commit, which other writers wait for
_USER_NAME = 100  # characters that are kept of the name of a user
_MAX_HOLDER = 4096  # bytes of a lock file that are read
UntilRefused: TypeAlias = Callable[[Sequence[Call]], Sequence[Reply]]
"""Carries out calls in their order and in one commit, up to the first one that is refused.

It returns a reply to each call that was tried.
"""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process that may hold a lock.

    Attributes:
        started: When the process began, in the kernel's own count, so that a process id that
            was given out again is not taken for it.
        boot: Id of this run of the machine, which no other machine has; empty where the system
            has none.
        namespace: Where the process id counts; a container does not see those of another one.
    """

    user: str
    host: str
    boot: str
    process: Annotated[int, Within(1, 2**31 - 1)]  # no more ids than the kernel gives
    started: str
    namespace: str

    @property
    def text(self) -> str:
        """Return the form in which a holder is kept with the lock."""
        return json.dumps(asdict(self))

    def knows_dead(self, text: str) -> bool:
        """Return whether another holder was a process of this machine and is certainly gone.

        A lock of before a reboot, or of a system without boot ids, runs out by itself.
        """
        other = _read(text)
        # Process ids are only comparable within one boot and one namespace of the same machine.
        # Another boot may be that of another machine: many share a host name, such as localhost.
        if other is None or (other.host, other.boot) != (self.host, self.boot) or not self.boot:
            return False
        return other.namespace == self.namespace and _is_gone(other)


def this_process() -> ProcessIdentity:
    """Return this process as a holder."""
    process, boot, namespace = os.getpid(), "", ""
    with suppress(OSError):  # Linux alone has both
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return ProcessIdentity(
        user_name(), socket.gethostname(), boot, process, _started(process) or "", namespace
    )


def user_name() -> str:
    """Return the name of the user of this process, as text that a service takes."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
    # LOGNAME may hold anything: bytes that are no UTF-8, or more than a lease has room for.
    return name_as_text(name)[:_USER_NAME]


def holder_in_words(text: str) -> str:
    """Return a holder in words."""
    holder = _read(text)
    return f"{holder.user} on {holder.host} (process {holder.process})" if holder else text


def _read(text: str) -> ProcessIdentity | None:
    """Return a holder that a lock is kept with; None where another tool wrote something else."""
    try:
        return read_as(ProcessIdentity, text.encode())
    except ValueError:
        return None


def _is_gone(other: ProcessIdentity) -> bool:
    started = _started(other.process)
    if started is not None:
        return started != other.started
    try:
        os.kill(other.process, 0)  # asks whether there is such a process, and does nothing to it
    except OSError as failure:
        return isinstance(failure, ProcessLookupError)
    return False


def _started(process: int) -> str | None:
    """Return when a process began: empty for one that has ended, None if unknown."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name of the program, in parentheses, may hold spaces and parentheses itself. Of what comes
    # after it, the 1st field is the state (Z: ended, not yet waited for), the 20th the start time.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


class Terms(NamedTuple):
    """The terms of leases.

    Attributes:
        tree: The tree that they make the holder the leader of; empty for one writer.
        seconds: How long they last from the last renewal.
        takes: Whether those of other holders are ended.
    """

    tree: str = ""
    seconds: int = LEASE_SECONDS
    takes: bool = False

    def named(self, organization: str) -> dict[str, object]:
        """Return the fields that name the lease of an organization."""
        named: dict[str, object] = {"organization": organization}
        return {**named, "tree": self.tree} if self.tree else named

    def in_words(self, organization: str) -> str:
        """Return what the lease of an organization is of."""
        return f"{f'tree {self.tree} of ' if self.tree else ''}organization {organization}"


class Leases:
    """Leases taken over a wire by one process: of organizations, or of a tree in them."""

    def __init__(
        self,
        wire: Wire,
        holder: ProcessIdentity,
        clock: Callable[[], float],
        until_refused: UntilRefused | None,
        terms: Terms,
    ) -> None:
        """Take leases for a holder: one by one without ``until_refused``."""
        self._terms = terms
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
            if isinstance(reply, Answer):
                self._keep(name, reply)
            else:
                self._acquire_from_dead(name, reply)
        return len(replies)

    def renew(self, *, at_once: bool = False) -> None:
        """Renew every lease; one that ran out and that no other run took is taken again.

        Unless ``at_once``, leases are not checked again in the first quarter of their time: the
        service refuses a write under a lease that was lost.

        Raises:
            LockHeldError: another run holds it now.
            PreconditionFailedError: another run held it meanwhile, and may have written.
        """
        # The time before the call counts: a slow answer must not make the lease seem newer.
        names, now = _in_order(self._tokens), self._clock()
        seconds = self._terms.seconds
        quarter = RENEW_AFTER_SECONDS * seconds / LEASE_SECONDS
        if not names or (not at_once and now - self._renewed < quarter):
            return
        calls = [Call("RenewLease", {**self._named(n), "seconds": seconds}) for n in names]
        for name, reply in zip(names, self._wire.send(calls), strict=True):
            if isinstance(reply, WireRefusal):
                if reply.code != Code.ABORTED:
                    # Unknown error: do not assume that the lease was lost.
                    raise service_error(reply)
                self._take_again(name)
        self._renewed = now

    def _take_again(self, name: str) -> None:
        # Fences are counted up by one with each lease of an organization. A gap means that another
        # run held it in between, and may have changed what this plan was made from.
        before = self._fences[name]
        self._acquire([name])
        if self._fences[name] != before + 1:
            raise PreconditionFailedError(
                f"another run has locked {self._terms.in_words(name)} since this plan was made",
                remedy="Run the command again: it plans from what is held now.",
            )

    def release(self) -> None:
        """Give every lease back; one that cannot be given back runs out by itself."""
        calls = [Call("ReleaseLease", self._named(name)) for name in _in_order(self._tokens)]
        # Cleared first: whatever comes of the calls, no later write goes under these leases.
        self._tokens.clear()
        if calls:
            with suppress(ServiceError):
                self._wire.send(calls)

    def _named(self, name: str) -> JsonObject:
        return {**self._terms.named(name), "lease": self._tokens[name]}

    def _acquisition(self, name: str, instead_of: str = "") -> Call:
        fields = {
            **self._terms.named(name),
            "holder": self._holder.text,
            "seconds": self._terms.seconds,
        }
        if instead_of:
            fields["insteadOf"] = instead_of
        key = uuid.uuid4().hex  # a repeated call gives the same lease again
        return Call("AcquireLease", fields, idempotency_key=key)

    def _keep(self, name: str, given: Answer) -> None:
        self._fences[name] = int(given.fields["fence"])
        self._tokens[name] = str(given.fields["lease"])

    def _acquire_from_dead(self, name: str, refusal: WireRefusal) -> None:
        """Take a refused lease from a process of this machine that has died, or that it takes."""
        # The fence says which lease is meant: of two runs that take it over, one gets it.
        fence, holder = (refusal.details.get(fact, "") for fact in ("fence", "holder"))
        if fence and (self._terms.takes or self._holder.knows_dead(holder)):
            (reply,) = self._wire.send([self._acquisition(name, instead_of=str(fence))])
            if isinstance(reply, Answer):
                self._keep(name, reply)
                return
            refusal, holder = reply, reply.details.get("holder", "")
        if refusal.code == Code.NOT_FOUND:  # it exists, and only for tokens that see it
            raise UnseenOrganizationError([name])
        if holder:
            since = refusal.details.get("acquiredAt", "an unknown time")
            raise _held(self._terms.in_words(name), holder, since)
        raise service_error(refusal)


def _in_order(organizations: Collection[str]) -> Sequence[str]:
    """Return organizations in the order in which every run sends them.

    So two runs cannot each hold what the other needs: leases, or rows of a database in a commit.
    """
    return sorted(organizations, key=fold)


class LocalLock:
    """A lock file per service, in a folder of ours."""

    def __init__(self, folder: Path, holder: ProcessIdentity) -> None:
        self._folder = folder
        self._holder = holder
        self._descriptor = -1

    def _path(self, instance: str) -> Path:
        return self._folder / f"lock-{instance}"

    def acquire(self, instance: str) -> None:
        """Take the lock of a service.

        Raises:
            LockHeldError: another process here has it.
            LocalFileError: the file cannot be made.
        """
        if self._descriptor >= 0:
            return
        path = self._path(instance)
        remedy = "Make its folder one this user may write to. Nothing was written."
        with writing(f"make the lock file {path}", remedy):
            try:
                descriptor = open_locked(path, os.O_RDWR | os.O_CREAT)
            except BlockingIOError:
                raise _held("the service", *_text_and_time(path)) from None
        with suppress(OSError):  # the holder's name is for messages only; the lock is the kernel's
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self._holder.text.encode(), 0)
        self._descriptor = descriptor

    def holder(self, instance: str) -> str:
        """Return who may hold the lock of a service and since when, in words; empty if it is free.

        The lock itself is not touched, so that no run is refused for that. A process that still
        lives may have given it back.
        """
        try:
            text, since = _text_and_time(self._path(instance))
        except OSError:
            return ""
        if not text or self._holder.knows_dead(text):
            return ""
        return f"{holder_in_words(text)} since {since}"

    def release(self) -> None:
        """Give the lock back, if it was taken."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _text_and_time(path: Path) -> tuple[str, str]:
    """Return what a lock file holds, and when it was written."""
    content, status = read_start(path, _MAX_HOLDER, os.O_NOFOLLOW)
    since = datetime.fromtimestamp(status.st_mtime, UTC)
    return content.decode("utf-8", "replace"), f"{since:%Y-%m-%dT%H:%M:%SZ}"


def _held(what: str, holder: str, since: object) -> LockHeldError:
    return LockHeldError(
        f"{what} is locked by {holder_in_words(holder)} since {since}",
        remedy="Wait until it is done, or give --lock-timeout to wait for it.",
    )
