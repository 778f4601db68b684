"""Which organization a call is for, told from outside the store: calls for one share commits."""

from __future__ import annotations

import pytest

from reconciler.service.build import open_memory
from reconciler.service.operations.reception import Incoming
from tests.running import furnish


def test_a_token_of_one_organization_is_known_by_it_from_its_second_call_on() -> None:
    """Most clients name no organization; their writes are to share commits all the same."""
    service = open_memory()
    known = furnish(service)
    calls = {
        name: Incoming("GetMyOrg", {}, {"authorization": [f"Bearer {token}"]})
        for name, token in known.tokens.items()
    }

    before = [service.reception.organization_of(call) for call in calls.values()]
    service.reception.receive(list(calls.values()))
    after = {name: service.reception.organization_of(call) for name, call in calls.items()}

    assert set(before) == {""}
    assert after == {
        "admin": "",
        "editor": known.organization,
        "viewer": known.organization,
        "stranger": known.other_organization,
    }


@pytest.mark.parametrize("authorization", [[], ["Bearer nonsense"], ["Basic x"], ["Bearer a"] * 2])
def test_the_organization_that_is_named_counts_whoever_asks(authorization: list[str]) -> None:
    """Whether the caller may is asked later, of the store."""
    reception = open_memory().reception
    for headers, named in (
        ({"x-service-orgid": ["7"]}, "7"),
        ({"x-zitadel-orgid": ["8"]}, "8"),
        ({}, ""),
    ):
        call = Incoming("CreateAction", {}, {**headers, "authorization": authorization})

        assert reception.organization_of(call) == named
