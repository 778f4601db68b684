"""JWT providers of a ZITADEL: which of the two families of calls a server has, and its calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, UpdateOrder
from reconciler.service_client.wire import WireRefusal, lost
from reconciler.service_client.zitadel.providers import (
    ProviderCalls,
    ServerAge,
    is_unknown_address,
)
from tests.builders import PARTNER, a_jwt_config, a_ref, declared, held
from tests.rows import each_row

NEW, OLD = ProviderCalls(ServerAge.NEW), ProviderCalls(ServerAge.OLD)
NOT_THERE = WireRefusal(5, "Not Found", is_code_told=True)
HELD = held(PARTNER, object_id="7", organization_id="1", carried={"stylingType": "S"})
OTHER = declared(PARTNER, a_jwt_config(issuer="https://new.example.com"))
RENAMED = declared(a_ref(Kind.IDP_JWT_CONFIG, "other"))


@each_row(
    ("refusal", "is_one"),
    [
        (NOT_THERE, True),
        (replace(NOT_THERE, code=12), True),
        (replace(NOT_THERE, code=7), False),
        (replace(NOT_THERE, is_code_told=False), False),
        (replace(NOT_THERE, unsure=True), False),
        (replace(NOT_THERE, details={"id": "QUERY-1"}), False),
    ],
)
def test_an_address_is_unknown_only_where_the_gateway_says_so(
    refusal: WireRefusal, *, is_one: bool
) -> None:
    assert is_unknown_address(refusal) is is_one


def test_a_server_is_old_after_two_refusals_in_a_row() -> None:
    """The first one may come from a proxy."""
    calls = ProviderCalls()

    assert calls.can_ask_on(NOT_THERE, was_refused=False)
    assert calls.age is ServerAge.UNKNOWN
    assert [calls.can_ask_on(NOT_THERE, was_refused=True), calls.is_old] == [True, True]
    assert not ProviderCalls().can_ask_on(lost("no answer"), was_refused=True)
    assert not ProviderCalls(ServerAge.NEW).can_ask_on(NOT_THERE, was_refused=True)
    with pytest.raises(ServiceError, match="lacked a moment ago"):
        calls.answered()


@pytest.mark.parametrize(
    ("calls", "operations"),
    [
        (NEW, ["AddJWTProvider", "GetProviderByID", "ListProviders", "DeleteProvider"]),
        (OLD, ["AddOrgJWTIDP", "GetOrgIDPByID", "ListOrgIDPs", "RemoveOrgIDP"]),
    ],
    ids=["new", "old"],
)
def test_a_server_is_asked_with_its_own_calls(calls: ProviderCalls, operations: list[str]) -> None:
    order = CreateOrder(PARTNER, OTHER.spec, "k", "1")

    made = [calls.create(order), calls.get("7", "1"), calls.named("a", "1"), calls.delete(HELD)]

    assert [call.operation for call in made] == operations
    assert {call.organization for call in made} == {"1"}
    assert ("audience" in made[0].fields) is not calls.is_old


@each_row(
    ("calls", "order", "expected"),
    [
        (NEW, UpdateOrder(declared(PARTNER), HELD), []),
        (NEW, UpdateOrder(RENAMED, HELD), [("UpdateJWTProvider", "S")]),
        (NEW, UpdateOrder(OTHER, HELD), [("UpdateJWTProvider", "S")]),
        (OLD, UpdateOrder(RENAMED, HELD), [("UpdateOrgIDP", "S")]),
        (OLD, UpdateOrder(OTHER, HELD), [("UpdateOrgIDPJWTConfig", None)]),
        (OLD, UpdateOrder(replace(OTHER, active=False), HELD),
         [("DeactivateOrgIDP", None), ("UpdateOrgIDPJWTConfig", None)]),
    ],
)  # fmt: skip
def test_an_update_sends_back_what_its_call_would_reset(
    calls: ProviderCalls, order: UpdateOrder, expected: list[tuple[str, str | None]]
) -> None:
    """What stands beside the configuration goes with the name."""
    made = [(call.operation, call.fields.get("stylingType")) for call in calls.update(order)]

    assert made == expected


@pytest.mark.parametrize(
    ("calls", "states", "active", "can_be"),
    [
        (OLD, {}, True, HELD.can_be_inactive),
        (NEW, {}, True, False),
        (NEW, {"7": False}, False, True),
        (NEW, {"7": True}, True, True),
    ],
)
def test_only_the_old_list_tells_the_state_of_a_provider(
    calls: ProviderCalls, states: dict[str, bool], *, active: bool, can_be: bool
) -> None:
    found = calls.with_state(HELD, states)

    assert (found.active, found.can_be_inactive) == (active, can_be)
    assert calls.is_unseen(Call("DeactivateOrgIDP")) is not calls.is_old
