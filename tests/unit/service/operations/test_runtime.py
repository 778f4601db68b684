"""Leases end after the time they were given, whatever is done to the clock of the wall."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.build import IdentityService
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.operations.runtime import EPOCH, Identifiers, Kept, LeaseClock
from tests.examples import NOON, Clock
from tests.memory_store import MemoryEventStore, new_key
from tests.unit.service.asking import Asking

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR


class Hand:
    """A clock that stands where a test sets it."""

    def __init__(self, time: int) -> None:
        self.time = time

    def __call__(self) -> int:
        return self.time


class Machine:
    """A process on some machine: a wall clock that can be set, and one that cannot."""

    def __init__(self, store: EventStore, wall: int) -> None:
        self.wall = Hand(wall)
        self.steady = Hand(7 * SECOND)
        service = IdentityService(store, new_key(), self.wall, steady=self.steady)
        self.ask = Asking(service, Clock())

    def wait(self, microseconds: int) -> None:
        """Let time pass: both clocks run."""
        self.wall.time += microseconds
        self.steady.time += microseconds

    def acquire(self, seconds: int = 60) -> Any:
        return self.ask("AcquireLease", named="acme", holder="h", seconds=seconds)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    """Yield a store with the organization acme; its events are of a day later."""
    made: EventStore = MemoryEventStore(Hand(NOON + DAY))
    if request.param == "sqlite":
        create(tmp_path / "identity.db")
        made = SqliteEventStore(tmp_path / "identity.db", Hand(NOON + DAY))
    with closing(made):
        Machine(made, NOON).ask("AddOrg", name="acme")
        yield made


def refused(machine: Machine) -> str:
    return machine.ask.refused("AcquireLease", named="acme", holder="x", seconds=60).reason


@pytest.mark.parametrize("jump", [-DAY, -HOUR, DAY])
def test_a_lease_lasts_its_time_though_the_wall_is_set(store: EventStore, jump: int) -> None:
    """Set back, it would last a day longer; set forward, it would end at once."""
    machine = Machine(store, NOON)
    lease = machine.acquire()["lease"]

    machine.wall.time += jump

    machine.wait(59 * SECOND)
    assert refused(machine) == "lease.held"
    machine.ask("AddProject", organization=_acme(machine), name="p", under=lease)
    machine.wait(2 * SECOND)
    assert (
        machine.ask.refused("AddProject", organization=_acme(machine), name="q", under=lease).reason
        == "lease.lost"
    )
    assert machine.acquire()["fence"] == "2"


def _acme(machine: Machine) -> str:
    return str(machine.ask("ListOrgs")["result"][0]["id"])


def test_events_of_a_time_when_the_wall_was_ahead_end_no_lease(store: EventStore) -> None:
    """Neither of their own organization nor of others."""
    machine = Machine(store, NOON)
    machine.acquire()
    machine.wall.time += DAY
    machine.ask("AddProject", organization=_acme(machine), name="p")
    machine.wall.time -= DAY

    assert refused(machine) == "lease.held"


def test_a_restart_with_a_wall_that_was_set_back_does_not_prolong_a_lease(
    store: EventStore,
) -> None:
    """The holder died; the next process goes on from the times that the store has."""
    Machine(store, NOON).acquire()
    after = Machine(store, NOON - DAY)

    assert refused(after) == "lease.held"
    after.wait(61 * SECOND)

    assert after.acquire()["fence"] == "2"


def test_a_lease_that_was_renewed_for_long_ends_an_hour_after_such_a_restart(
    store: EventStore,
) -> None:
    """How long ago it was renewed is not known; a lease has an hour at most."""
    before = Machine(store, NOON)
    lease = before.acquire(3600)["lease"]
    for _ in range(3):
        before.wait(HOUR - SECOND)
        before.ask("RenewLease", named="acme", lease=lease, seconds=3600)
    after = Machine(store, NOON - DAY)
    assert refused(after) == "lease.held"
    after.wait(HOUR - SECOND)
    assert refused(after) == "lease.held"

    after.wait(2 * SECOND)

    assert after.acquire()["fence"] == "2"


@pytest.mark.parametrize("behind", [SECOND, DAY])
def test_servers_whose_walls_differ_agree_once_they_meet(store: EventStore, behind: int) -> None:
    """The one behind goes on from the lease of the one ahead, and neither takes it early."""
    ahead, late = Machine(store, NOON), Machine(store, NOON - behind)
    lease = ahead.acquire()["lease"]
    assert refused(late) == "lease.held"
    for machine in (ahead, late):
        machine.wait(59 * SECOND)
    assert refused(late) == refused(ahead) == "lease.held"
    ahead.ask("RenewLease", named="acme", lease=lease, seconds=60)
    for machine in (ahead, late):
        machine.wait(59 * SECOND)
    assert refused(late) == "lease.held"

    for machine in (ahead, late):
        machine.wait(2 * SECOND)

    mine = late.acquire()
    assert mine["fence"] == "2"
    assert refused(ahead) == "lease.held"
    assert ahead.ask.refused("RenewLease", named="acme", lease=lease, seconds=9).reason == (
        "lease.lost"
    )


def test_the_clock_never_goes_back() -> None:
    """Whatever the wall does, and whatever times are met."""
    wall, steady = Hand(NOON), Hand(0)
    clock = LeaseClock(wall, steady)
    steps: list[Callable[[], int]] = [
        lambda: clock.after(NOON - DAY),
        lambda: clock.after(NOON + SECOND),
        lambda: clock.after(NOON),
        clock,
    ]
    seen = [clock()]
    for step in steps:
        wall.time -= HOUR
        seen.append(step())
    steady.time += SECOND
    seen.append(clock())

    assert [time - NOON for time in seen] == [0, 0, SECOND, SECOND, SECOND, 2 * SECOND]


def test_ids_grow_whatever_the_clock_and_chance_do() -> None:
    """Within a process each is greater than the one before, and below 2**63."""
    times = iter([EPOCH + 5, EPOCH + 5, EPOCH + 5, EPOCH + 4, 0, EPOCH + 6, 2**43])
    bits = iter([9, 9, 3, 9, 9, 0, 2**22 - 1])

    identifiers = Identifiers(lambda: next(times) * 1000, lambda _: next(bits))
    made = [int(identifiers.next()) for _ in range(6)]

    first = (5 << 22) + 9
    assert made == [first, first + 1, first + 2, first + 3, first + 4, 6 << 22]


def test_ids_stay_below_what_a_store_can_hold() -> None:
    """For longer than anybody will run this."""
    year_2080 = 3_471_292_800_000_000

    made = Identifiers(lambda: year_2080, lambda _: 2**22 - 1).next()

    assert int(made) < 2**63


def test_a_total_is_that_of_one_state() -> None:
    totals = Kept[int](most=2)
    totals.put(("Action", "1"), b"a", 7)

    assert totals.get(("Action", "1"), b"a") == 7
    assert totals.get(("Action", "1"), b"b") is None
    assert totals.get(("Project", "1"), b"a") is None


def test_totals_keep_to_their_limit() -> None:
    totals = Kept[int](most=2)
    for parent in ("1", "2", "3"):
        totals.put(("Action", parent), b"a", 7)

    assert [totals.get(("Action", parent), b"a") for parent in ("1", "3")] == [None, 7]
