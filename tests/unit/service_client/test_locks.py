"""Locks: a process is taken for dead only where that is certain; leases over the wire."""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from reconciler.errors import (
    LocalFileError,
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import (
    AT_ONCE,
    LEASE_SECONDS,
    RENEW_AFTER_SECONDS,
    LocalLock,
    ProcessIdentity,
    holder_in_words,
    user_name,
)
from reconciler.service_client.port import UpdateOrder
from reconciler.service_client.wire import Answer, WireRefusal
from tests.builders import GREET, an_action, declared, held
from tests.rows import each_row
from tests.unit.service_client.fake_wire import CONTEXT, HERE, FakeWire, Reply, done


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that waits, and end it."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate()


def holder_of(process: int) -> ProcessIdentity:
    """Return a process of this machine as it would have described itself."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    return replace(HERE, process=process, started=stat.rpartition(")")[2].split()[19])


def test_a_process_that_runs_is_not_dead(child: subprocess.Popen[bytes]) -> None:
    """Taking its lock would make two writers."""
    assert not HERE.knows_dead(holder_of(child.pid).text)
    assert not HERE.knows_dead(HERE.text)


def test_a_process_that_was_killed_is_dead(child: subprocess.Popen[bytes]) -> None:
    """After a crash nobody waits for the lock to run out."""
    holder = holder_of(child.pid)
    child.kill()
    child.wait()

    assert HERE.knows_dead(holder.text)


def test_a_process_that_only_waits_to_be_collected_is_dead(child: subprocess.Popen[bytes]) -> None:
    """A zombie writes nothing any more."""
    holder = holder_of(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert HERE.knows_dead(holder.text)


@each_row(
    ("other", "dead"),
    [
        pytest.param(replace(HERE, started="1"), True, id="its process id was given out again"),
        pytest.param(
            replace(HERE, boot="another", started="1"), False,
            id="on another machine of the same name, or before this one was started again",
        ),
        pytest.param(replace(HERE, host="elsewhere", started="1"), False, id="on another machine"),
        pytest.param(
            replace(HERE, namespace="pid:[1]", started="1"), False,
            id="in another container of this machine",
        ),
        pytest.param(replace(HERE, process=0, started="1"), False, id="no process id"),
        pytest.param(replace(HERE, process=-1, started="1"), False, id="a negative process id"),
        pytest.param(
            replace(HERE, process=2**22 + 1, started="1"), True, id="an id nobody can have"
        ),
    ],
)  # fmt: skip
def test_only_a_process_of_this_machine_is_known_to_be_dead(
    other: ProcessIdentity, dead: object
) -> None:
    """What this process cannot see may well be alive."""
    assert HERE.knows_dead(other.text) is dead


def test_without_boot_ids_no_process_is_known_to_be_dead() -> None:
    """Two machines of one name cannot be told apart there."""
    here = replace(HERE, boot="")

    assert not here.knows_dead(replace(here, started="1").text)
    assert not here.knows_dead(replace(here, process=2**22 + 1).text)


FIELDS = json.loads(HERE.text)


@each_row(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("somebody", id="words"),
        pytest.param("[]", id="another shape"),
        pytest.param("[" * 100_000, id="deep nesting"),
        pytest.param("{}", id="no fields"),
        pytest.param(json.dumps({**FIELDS, "more": 1}), id="more fields"),
        pytest.param(json.dumps({**FIELDS, "process": "../1"}), id="a path for a process"),
        pytest.param(json.dumps({**FIELDS, "process": True}), id="a flag for a process"),
        pytest.param(json.dumps({**FIELDS, "started": 1}), id="a number for a text"),
        pytest.param(json.dumps({**FIELDS, "process": 10**30}), id="no number of the kernel's"),
    ],
)
def test_a_holder_that_cannot_be_read_is_not_dead(text: str) -> None:
    """A service of another make may say who holds the lock in its own words."""
    assert not HERE.knows_dead(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            ProcessIdentity("ana", "build-7", "b", 42, "s", "n").text,
            "ana on build-7 (process 42)",
            id="a process",
        ),
        pytest.param("pipeline 12", "pipeline 12", id="words of another tool"),
    ],
)  # fmt: skip
def test_a_holder_is_told_in_words(text: str, shown: str) -> None:
    """Whoever waits wants to know whom to ask."""
    assert holder_in_words(text) == shown


def test_this_process_says_all_it_must_be_recognised_by() -> None:
    """On Linux each of these is known; elsewhere the lock runs out by itself."""
    assert HERE.process == os.getpid()
    assert all([HERE.user, HERE.host, HERE.boot, HERE.started, HERE.namespace])


@pytest.mark.parametrize(
    ("login", "name"),
    [
        pytest.param("ana", "ana", id="a name"),
        pytest.param(os.fsdecode(b"jos\xe9"), r"jos\u{dce9}", id="not UTF-8"),
        pytest.param("x" * 5000, "x" * 100, id="longer than a lease has room for"),
    ],
)
def test_the_name_of_a_user_is_text_that_a_service_takes(
    login: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", login)

    assert user_name() == name


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user that it has no entry for."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)

    assert user_name() == str(os.getuid())


# Leases of organizations: taken, renewed, lost and given back.


class FakeLeases(FakeWire):
    """Leases as the service keeps them; time passes only when a test says so."""

    def __init__(self) -> None:
        super().__init__(
            AcquireLease=self.acquire,
            RenewLease=self.renew,
            ReleaseLease=self.release,
            UpdateAction=done(1),
        )
        self.held: dict[str, tuple[int, str]] = {}
        self._fence = 0

    def acquire(self, call: Call) -> Reply:
        name = call.fields["organization"]
        fence, holder = self.held.get(name, (0, ""))
        if holder and str(fence) != call.fields.get("insteadOf"):
            return WireRefusal(
                10, "another run holds the lease",
                {"holder": holder, "fence": str(fence), "acquiredAt": "2026-01-01T00:00:00Z"},
            )  # fmt: skip
        self._fence += 1
        self.held[name] = self._fence, call.fields["holder"]
        return Answer({"lease": f"{self._fence}.token", "fence": str(self._fence)})

    def renew(self, call: Call) -> Reply:
        fence, _ = self.held.get(call.fields["organization"], (0, ""))
        if call.fields["lease"] != f"{fence}.token":
            return WireRefusal(10, "the lease is no longer yours")
        return Answer({})

    def release(self, call: Call) -> Reply:
        if self.renew(call) == Answer({}):
            del self.held[call.fields["organization"]]
        return Answer({})


LIVE = ProcessIdentity("ben", "build-7", "b", 42, "s", "n").text


DEAD = replace(HERE, process=2**22 + 1).text


def passing() -> Callable[[], float]:
    """Return a clock on which a lease grows old between any two looks."""
    return partial(next, count(0, LEASE_SECONDS / 2))


def test_the_lease_of_its_organization_goes_with_every_write_and_is_given_back() -> None:
    """A run that was fenced out cannot write, and one that ends leaves nothing locked."""
    wire = FakeLeases()
    client = OperationsClient(wire, HERE)
    order = UpdateOrder(declared(GREET), held(GREET, an_action(timeout="1s")))

    client.acquire(["initech", "Acme"])
    assert wire.held == {"Acme": (1, HERE.text), "initech": (2, HERE.text)}
    client.write([order], CONTEXT)
    client.release()
    client.write([order], CONTEXT)

    assert [c.lease for (c, *_) in wire.sent if c.operation == "UpdateAction"] == ["1.token", ""]
    assert wire.held == {}
    assert [call.fields["seconds"] for (call,) in wire.sent[:2]] == [LEASE_SECONDS] * 2


def test_who_holds_the_lock_is_told_and_since_when() -> None:
    """Whoever is kept waiting wants to know by whom."""
    wire = FakeLeases()
    wire.held["acme"] = 7, LIVE

    with pytest.raises(LockHeldError) as refused:
        OperationsClient(wire, HERE).acquire(["acme"])

    assert (refused.value.problem, refused.value.remedy) == (
        "organization acme is locked by ben on build-7 (process 42) since 2026-01-01T00:00:00Z",
        "Wait until it is done, or give --lock-timeout to wait for it.",
    )


def test_leases_are_taken_one_by_one_in_order() -> None:
    """So one of two runs gets what both want."""
    wire = FakeLeases()

    OperationsClient(wire, HERE).acquire(["c", "A", "b"])

    assert [call.fields["organization"] for (call,) in wire.sent] == ["A", "b", "c"]


def test_all_leases_are_taken_or_none() -> None:
    """A run that waits with half its locks keeps others waiting for nothing."""
    wire = FakeLeases()
    wire.held["initech"] = 7, LIVE
    client = OperationsClient(wire, HERE)

    with pytest.raises(LockHeldError):
        client.acquire(["acme", "initech"])

    assert wire.held == {"initech": (7, LIVE)}
    del wire.held["initech"]
    client.acquire(["acme", "initech"])
    assert sorted(wire.held) == ["acme", "initech"]


def test_the_first_leases_are_renewed_while_others_are_taken() -> None:
    """Over a slow network they would run out before the last one is there."""
    wire, now = FakeLeases(), [0.0]
    take = wire.acquire

    def slowly(call: Call) -> Reply:
        now[0] += RENEW_AFTER_SECONDS / 2
        return take(call)

    wire.replies["AcquireLease"] = slowly
    OperationsClient(wire, HERE, clock=lambda: now[0]).acquire(["a", "b", "c"])

    asked = [[(call.operation, call.fields["organization"]) for call in sent] for sent in wire.sent]
    assert asked == [
        [("AcquireLease", "a")],
        [("AcquireLease", "b")],
        [("RenewLease", "a"), ("RenewLease", "b")],
        [("AcquireLease", "c")],
    ]


def in_one_commit(wire: FakeLeases) -> Callable[[Sequence[Call]], Sequence[Answer | WireRefusal]]:
    """Return a way to carry out calls together, up to the first one that is refused."""

    def carry_out(calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        done: list[Call] = []
        replies: list[Answer | WireRefusal] = []
        for call in calls:
            done.append(call)
            replies += FakeWire.send(wire, [call])
            wire.sent.pop()
            if isinstance(replies[-1], WireRefusal):
                break
        wire.sent.append(done)
        return replies

    return carry_out


def test_leases_are_taken_in_few_commits_where_one_stops_at_the_first_refusal() -> None:
    """A commit for each of 800 organizations takes seconds."""
    wire = FakeLeases()
    names = [f"o{number:04}" for number in range(AT_ONCE + 2)]
    wire.held["o0001"] = 7, DEAD
    client = OperationsClient(wire, HERE, until_refused=in_one_commit(wire))

    client.acquire(names)

    asked = [[str(call.fields["organization"]) for call in sent] for sent in wire.sent]
    assert asked == [names[:2], ["o0001"], names[2:]]
    assert sorted(wire.held) == names


@pytest.mark.parametrize("at_once", [True, False], ids=["in one commit", "one by one"])
def test_a_run_that_is_refused_takes_no_lease_after_that(*, at_once: bool) -> None:
    """To take what sorts after it would move fences of other runs; what it took is given back."""
    wire = FakeLeases()
    wire.held["beta"] = 7, LIVE
    client = OperationsClient(wire, HERE, until_refused=in_one_commit(wire) if at_once else None)

    with pytest.raises(LockHeldError):
        client.acquire(["acme", "beta", "corp"])

    asked = [(call.operation, call.fields["organization"]) for sent in wire.sent for call in sent]
    assert asked == [("AcquireLease", "acme"), ("AcquireLease", "beta"), ("ReleaseLease", "acme")]


def test_the_lock_of_a_dead_process_is_taken_over_at_once() -> None:
    """After a crash the next apply does not wait for the lease to run out."""
    wire = FakeLeases()
    wire.held["acme"] = 7, DEAD

    OperationsClient(wire, HERE).acquire(["acme"])

    assert wire.held == {"acme": (1, HERE.text)}


def test_of_two_that_take_over_a_lock_only_one_gets_it() -> None:
    """The second finds another fence than the one it saw, and a holder that lives."""
    wire = FakeLeases()
    wire.held["acme"] = 7, DEAD
    acquire = wire.acquire

    def too_late(call: Call) -> Reply:
        if call.fields.get("insteadOf"):
            wire.held["acme"] = 8, LIVE
        return acquire(call)

    wire.replies["AcquireLease"] = too_late

    with pytest.raises(LockHeldError, match="ben on build-7"):
        OperationsClient(wire, HERE).acquire(["acme"])


def test_a_service_without_leases_refuses_in_its_own_words() -> None:
    """No holder is told, so none is made up."""
    wire = FakeWire(AcquireLease=WireRefusal(12, "there is no such operation"))

    with pytest.raises(ServiceError, match="there is no such operation"):
        OperationsClient(wire, HERE).acquire(["acme"])


@pytest.mark.parametrize(
    ("taken_by", "expected"),
    [
        pytest.param(None, None, id="nobody took it"),
        pytest.param(LIVE, LockHeldError, id="somebody else did"),
    ],
)
def test_a_lease_that_ran_out_is_taken_again_unless_somebody_has_it(
    taken_by: str | None, expected: type[ReconcilerError] | None
) -> None:
    """A slow batch is no reason to stop; another writer is."""
    wire = FakeLeases()
    client = OperationsClient(wire, HERE, clock=passing())
    client.acquire(["acme"])
    client.renew()
    assert wire.held["acme"] == (1, HERE.text)
    del wire.held["acme"]
    if taken_by:
        wire.held["acme"] = 7, taken_by

    if expected is None:
        client.renew()
        assert wire.held["acme"] == (2, HERE.text)
    else:
        with pytest.raises(expected):
            client.renew()


def test_a_lease_that_somebody_else_held_meanwhile_is_not_written_under() -> None:
    """A run that slept through the apply of another one would go on with a plan of yesterday."""
    wire = FakeLeases()
    sleeper, other = (
        OperationsClient(wire, replace(HERE, host=host), clock=passing()) for host in "ab"
    )
    sleeper.acquire(["acme"])
    del wire.held["acme"]
    other.acquire(["acme"])
    other.release()

    with pytest.raises(PreconditionFailedError, match="another run has locked"):
        sleeper.renew()
    sleeper.release()

    assert wire.held == {}


def test_leases_are_renewed_together() -> None:
    """A run over a hundred organizations waits once before a batch, not a hundred times."""
    wire = FakeLeases()
    client = OperationsClient(wire, HERE, clock=passing())
    client.acquire(["acme", "beta"])
    wire.sent.clear()

    client.renew()

    assert [[call.operation for call in calls] for calls in wire.sent] == [["RenewLease"] * 2]
    names = [call.fields["organization"] for calls in wire.sent for call in calls]
    assert names == ["acme", "beta"]


def test_leases_are_renewed_and_given_back_in_the_order_of_their_names() -> None:
    """Two runs that lock the same rows of a database in two orders would end in a deadlock."""
    wire = FakeLeases()
    wire.held["Acme"] = 7, DEAD  # taken over after the free one
    client = OperationsClient(wire, HERE, clock=passing())
    client.acquire(["Acme", "beta"])
    wire.sent.clear()

    client.renew()
    client.release()

    asked = [[(call.operation, call.fields["organization"]) for call in sent] for sent in wire.sent]
    assert asked == [
        [("RenewLease", "Acme"), ("RenewLease", "beta")],
        [("ReleaseLease", "Acme"), ("ReleaseLease", "beta")],
    ]


def test_who_has_no_lease_renews_none() -> None:
    """There is nothing to ask the service for."""
    wire = FakeLeases()

    OperationsClient(wire, HERE).renew()

    assert wire.sent == []


def test_a_renewal_without_an_answer_is_not_taken_for_another_writer() -> None:
    """The lease may still be ours; nobody is told to wait for this very run to end."""
    wire = FakeLeases()
    client = OperationsClient(wire, HERE, clock=passing())
    client.acquire(["acme"])
    wire.replies["RenewLease"] = WireRefusal(13, "the service failed", unsure=True)

    with pytest.raises(ServiceUnavailableError, match="the service failed"):
        client.renew()

    assert wire.held == {"acme": (1, HERE.text)}


def test_a_lease_that_cannot_be_given_back_is_left_to_run_out() -> None:
    """The work is done; a report of it must not be lost to that."""
    wire = FakeLeases()
    client = OperationsClient(wire, HERE, clock=passing())
    client.acquire(["acme"])
    wire.replies["ReleaseLease"] = ServiceUnavailableError("gone", remedy="r")

    client.release()
    client.release()

    assert [call.operation for (call,) in wire.sent] == ["AcquireLease", "ReleaseLease"]


def test_a_young_lease_is_not_renewed() -> None:
    """An apply of many batches over many organizations would do little else."""
    wire, now = FakeLeases(), [0.0]
    client = OperationsClient(wire, HERE, clock=lambda: now[0])
    client.acquire(["acme"])

    for now[0] in (
        1,
        RENEW_AFTER_SECONDS - 1,
        RENEW_AFTER_SECONDS,
        RENEW_AFTER_SECONDS + 1,
        2 * RENEW_AFTER_SECONDS,
    ):
        client.renew()

    assert [call.operation for (call,) in wire.sent] == ["AcquireLease", *["RenewLease"] * 2]


def test_a_lock_file_has_one_holder_until_it_is_released(tmp_path: Path) -> None:
    """Another process, or another client of this one, is told who holds it."""
    ours, theirs = LocalLock(tmp_path, HERE), LocalLock(tmp_path, replace(HERE, user="eva"))
    ours.acquire("i1")
    ours.acquire("i1")

    with pytest.raises(LockHeldError, match=re.escape(HERE.user)):
        theirs.acquire("i1")

    ours.release()
    theirs.acquire("i1")
    assert json.loads((tmp_path / "lock-i1").read_text())["user"] == "eva"
    theirs.release()


def test_a_lock_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A link in its place is not followed."""
    (tmp_path / "lock-i1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(LocalFileError, match="cannot make the lock file"):
        LocalLock(tmp_path, HERE).acquire("i1")

    assert not (tmp_path / "elsewhere").exists()


def test_what_is_no_lock_file_has_no_holder(tmp_path: Path) -> None:
    """A folder or a pipe of that name is not waited for; the run that takes the lock refuses it."""
    (tmp_path / "lock-folder").mkdir()
    os.mkfifo(tmp_path / "lock-pipe")
    lock = LocalLock(tmp_path, HERE)

    assert [lock.holder(name) for name in ("folder", "pipe", "missing")] == ["", "", ""]
