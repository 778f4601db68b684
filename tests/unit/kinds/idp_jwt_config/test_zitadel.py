"""JWT providers of a ZITADEL: which of the two families of calls a server has, and its calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import ServiceError
from reconciler.kinds.idp_jwt_config.zitadel import ROW
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, DeleteOrder, UpdateOrder
from reconciler.service_client.wire import WireRefusal, lost
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import NO_PROJECT, Owner
from reconciler.state import ObservedObject
from tests.builders import PARTNER, a_jwt_config, a_ref, declared, held
from tests.rows import each_row

NEW, OLD = replace(ROW, is_old=False), replace(ROW, is_old=True)
ACME = Owner("1", "acme")
NOT_THERE = WireRefusal(5, "Not Found", is_code_told=True)
HELD = held(PARTNER, object_id="7", organization_id="1", carried={"stylingType": "S"})
OTHER = declared(PARTNER, a_jwt_config(issuer="https://new.example.com"))
RENAMED = declared(a_ref(Kind.IDP_JWT_CONFIG, "other"))

BASE: JsonObject = {
    "id": "7", "name": "web",
    "details": {"sequence": "9", "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1"},
}  # fmt: skip
JWT = {"issuer": "https://a.example.com", "keysEndpoint": "https://a.example.com/keys"}
JWT |= {"jwtEndpoint": "https://a.example.com/login", "headerName": "x-token"}
INACTIVE: JsonObject = {"id": "7", "state": "IDP_STATE_INACTIVE"}


def test_a_server_is_old_after_two_refusals_in_a_row() -> None:
    """The first one may come from a proxy."""
    calls = replace(ROW)

    assert calls.can_ask_on(NOT_THERE, was_refused=False)
    assert calls.is_old is None
    assert [calls.can_ask_on(NOT_THERE, was_refused=True), calls.is_old] == [True, True]
    assert not replace(ROW).can_ask_on(lost("no answer"), was_refused=True)
    assert not NEW.can_ask_on(NOT_THERE, was_refused=True)
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
def test_a_server_is_asked_with_its_own_calls(calls: ZitadelKind, operations: list[str]) -> None:
    order = CreateOrder(declared(PARTNER, {**OTHER.spec, "audience": "acme"}), "1")

    (create,), (delete,) = calls.writes(order), calls.writes(DeleteOrder(HELD))
    made = [create, calls.get(order, "7"), calls.named(order), delete]

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
    calls: ZitadelKind, order: UpdateOrder, expected: list[tuple[str, str | None]]
) -> None:
    """What stands beside the configuration goes with the name."""
    made = [(call.operation, call.fields.get("stylingType")) for call in calls.writes(order)]

    assert made == expected


@pytest.mark.parametrize(
    ("calls", "beside", "active", "can_be"),
    [
        (OLD, [], True, HELD.can_be_inactive),
        (NEW, [], True, False),
        (NEW, [INACTIVE], False, True),
        (NEW, [{**INACTIVE, "state": "IDP_STATE_ACTIVE"}], True, True),
    ],
)
def test_only_the_old_list_tells_the_state_of_a_provider(
    calls: ZitadelKind, beside: list[JsonObject], *, active: bool, can_be: bool
) -> None:
    (found,) = calls.objects([{**BASE, "type": "PROVIDER_TYPE_JWT"}], ACME, NO_PROJECT, beside)

    assert isinstance(found, ObservedObject)
    assert (found.active, found.can_be_inactive) == (active, can_be)
    assert calls.is_unseen(Call("DeactivateOrgIDP")) is not calls.is_old


@pytest.mark.parametrize(
    ("calls", "fields", "strange"),
    [
        (NEW, {"owner": "O", "type": "T", "config": {"ldap": {}}}, ("config", "type")),
        (OLD, {"owner": "O", "stylingType": "S", "oidcConfig": {}}, ("oidcConfig",)),
    ],
)
def test_what_no_manifest_can_say_is_marked(
    calls: ZitadelKind, fields: JsonObject, strange: tuple[str, ...]
) -> None:
    """Nothing ever writes to it."""
    assert calls.observed({**BASE, **fields}, ACME).uncarried == strange


def test_what_is_not_known_of_a_provider_is_sent_back() -> None:
    """An update would reset it otherwise."""
    config = {"jwt": {**JWT, "newer": 1}, "options": {"isLinkingAllowed": True}, "more": 2}
    new = NEW.observed({**BASE, "owner": "O", "type": "T", "config": config, "later": 3}, ACME)
    old = OLD.observed({**BASE, "owner": "O", "autoRegister": True, "jwtConfig": JWT}, ACME)

    assert new.spec == old.spec == {**JWT, "audience": ""}
    assert new.carried == {
        "newer": 1, "more": 2, "later": 3, "providerOptions": {"isLinkingAllowed": True},
    }  # fmt: skip
    assert old.carried == {"autoRegister": True}
