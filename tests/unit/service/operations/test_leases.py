"""Leases: one holder at a time, a fence that only rises, and writes under a lost lease."""

from __future__ import annotations

import pytest

from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.leases import MAX_SECONDS
from tests.unit.service.asking import Asking


def acquired(ask: Asking, **fields: object) -> dict[str, str]:
    wanted = {"named": "acme", "holder": "me", "seconds": 60, **fields}
    answer: dict[str, str] = ask("AcquireLease", **wanted)
    return answer


def test_the_fence_rises_with_each_holder(ask: Asking) -> None:
    first = acquired(ask)
    refused = ask.refused("AcquireLease", named="ACME", holder="other", seconds=1)
    assert (refused.reason, refused.details["holder"]) == ("lease.held", "me")

    ask("ReleaseLease", named="acme", lease=first["lease"])
    second = acquired(ask)
    third = acquired(ask, insteadOf=second["fence"])
    assert [lease["fence"] for lease in (first, second, third)] == ["1", "2", "3"]


def test_a_lease_ends_by_its_time_unless_it_is_renewed(ask: Asking) -> None:
    lease = acquired(ask)["lease"]
    ask.clock.time += 50 * MICROSECONDS
    ask("RenewLease", named="acme", lease=lease, seconds=60)
    ask.clock.time += 50 * MICROSECONDS
    ask.an_action("a", under=lease)
    ask.clock.time += 11 * MICROSECONDS

    assert ask.refused("RenewLease", named="acme", lease=lease, seconds=1).reason == "lease.lost"
    refused = ask.refused("AddProject", organization=ask.organization, name="b", under=lease)
    assert refused.reason == "lease.lost"


@pytest.mark.parametrize("seconds", [0, MAX_SECONDS + 1])
def test_a_length_out_of_range_is_refused(ask: Asking, seconds: int) -> None:
    refused = ask.refused("AcquireLease", named="acme", holder="me", seconds=seconds)

    assert refused.details["field"] == "seconds"


def test_an_organization_that_the_caller_does_not_see_has_no_lease(ask: Asking) -> None:
    bound = Caller("ci", Role.EDITOR, frozenset({"7"}))

    refused = ask.refused("AcquireLease", by=bound, named="acme", holder="me", seconds=1)
    assert refused.code == 5
