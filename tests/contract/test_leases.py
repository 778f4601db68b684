"""Leases: one holder at a time, and writes under a lost one are refused, over every store."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from tests.unit.service.asking import Asking


def lease(ask: Asking, name: str = "acme", **fields: Any) -> dict[str, Any]:
    return ask("AcquireLease", **{"named": name, "holder": "me", "seconds": 60, **fields})


def test_a_lease_is_held_by_one_at_a_time(ask: Asking) -> None:
    """Who asks in vain is told who holds it since when; names compare ignoring case."""
    first = lease(ask)

    refusal = ask.refused("AcquireLease", named="ACME", holder="you", seconds=60)

    assert refusal.code == 10
    assert refusal.details == {
        "holder": "me",
        "fence": first["fence"],
        "acquiredAt": first["acquiredAt"],
        "expiresAt": first["expiresAt"],
    }
    assert lease(ask, "globex")["lease"]  # of an organization that is still to be made


def test_a_lease_ends_with_its_time_or_when_it_is_given_back(ask: Asking) -> None:
    """Each next holder has a greater fence."""
    fences = [int(lease(ask)["fence"])]
    ask.clock.time += 60_000_001
    second = lease(ask)
    ask("ReleaseLease", named="acme", lease=second["lease"])
    third = lease(ask)
    ask("ReleaseLease", named="acme", lease=second["lease"])

    fences += [int(second["fence"]), int(third["fence"])]
    assert fences == sorted(set(fences))
    assert ask.refused("AcquireLease", named="acme", holder="you", seconds=60).code == 10


def test_a_lease_can_be_taken_from_a_holder_who_is_known_dead(ask: Asking) -> None:
    """Only from that one: the fence must be the one the caller was told."""
    first = lease(ask)
    taken = lease(ask, insteadOf=first["fence"])

    assert int(taken["fence"]) == int(first["fence"]) + 1
    stale = {"named": "acme", "holder": "x", "seconds": 1, "insteadOf": first["fence"]}
    assert ask.refused("AcquireLease", **stale).code == 10
    assert ask.refused("RenewLease", named="acme", lease=first["lease"], seconds=9).code == 10


def test_a_lease_is_renewed_by_its_holder_while_it_counts(ask: Asking) -> None:
    """A holder who slept too long has lost it, even if nobody has taken it."""
    mine = lease(ask)
    ask.clock.time += 59_000_000
    renewed = ask("RenewLease", named="acme", lease=mine["lease"], seconds=60)
    assert (renewed["lease"], renewed["fence"]) == (mine["lease"], mine["fence"])
    assert renewed["expiresAt"] > mine["expiresAt"]

    ask.clock.time += 61_000_000

    assert ask.refused("RenewLease", named="acme", lease=mine["lease"], seconds=60).code == 10


def test_a_write_under_a_lease_that_is_lost_is_refused(ask: Asking) -> None:
    """A holder who was paused and woke up again writes nothing."""
    mine = lease(ask)
    other = lease(ask, "globex")
    made = ask.an_action("a", under=mine["lease"])["id"]
    ask("UpdateAction", id=made, name="a", script="x", under=mine["lease"])
    before = ask.event_count()

    taken = lease(ask, insteadOf=mine["fence"])

    writes: list[tuple[str, dict[str, Any]]] = [
        ("CreateAction", {"organization": ask.organization, "name": "b", "script": "x"}),
        ("UpdateAction", {"id": made, "name": "c", "script": "x"}),
        ("DeleteAction", {"id": made}),
        ("AddProject", {"organization": ask.organization, "name": "b"}),
        ("AddOrg", {"name": "initech"}),
    ]
    for operation, fields in writes:
        refusal = ask.refused(operation, under=mine["lease"], **fields)
        assert (refusal.code, refusal.http_status) == (10, 409)
    assert ask.event_count() == before
    assert ask("AddOrg", name="globex", under=other["lease"])["id"]
    assert ask.an_action("b", under=taken["lease"])["id"]


def test_a_lease_that_is_lost_within_a_batch_is_lost_for_the_rest_of_it(ask: Asking) -> None:
    """What is remembered for speed is forgotten when it changes."""
    mine = lease(ask)["lease"]
    make = {"organization": ask.organization, "script": "x", "under": mine}
    calls = [
        ask.request("CreateAction", {**make, "name": "a"}),
        ask.request("ReleaseLease", {"named": "acme", "lease": mine}),
        ask.request("CreateAction", {**make, "name": "b"}),
    ]

    first, _, last = ask.service.call_many(calls)

    assert isinstance(first, dict)
    assert isinstance(last, Refusal)
    assert last.code == 10


@pytest.mark.parametrize("seconds", [0, 3601, "x", 1.5, True])
def test_a_lease_lasts_from_a_second_to_an_hour(ask: Asking, seconds: object) -> None:
    """A lease for ever would be a lock that a crash leaves behind."""
    assert ask.refused("AcquireLease", named="acme", holder="me", seconds=seconds).code == 3
