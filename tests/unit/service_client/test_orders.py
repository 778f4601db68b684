"""Which operations carry out an order: exactly these, with exactly these fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.errors import PreconditionFailedError, ServiceError
from reconciler.resources.call import Call
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.orders import (
    calls_of,
    is_shared,
    rebased,
    result_of,
)
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, SecretOrder, UpdateOrder
from reconciler.service_client.wire import WireRefusal
from reconciler.state import ObservedObject
from tests.builders import (
    ACME,
    GREET,
    PARTNER,
    SHOP,
    WEB,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.rows import each_row

CONTEXT = {"tree": "default", "revision": "abc", "plan": "sha256:1"}
ACTION = declared(GREET).spec
# What the older calls write: the audience is not theirs.
IDP = {name: value for name, value in declared(PARTNER).spec.items() if name != "audience"}
CHECKED = {**IDP, "audience": "us"}
APP = declared(WEB).spec
UPDATED_APP = {name: value for name, value in APP.items() if name != "version"}
ORG, PROJECT = held(ACME).id, held(SHOP).id
FLAGS = {**held(SHOP).spec, "projectRoleCheck": True}


def said(*, protected: bool = False, critical: bool = False) -> str:
    """Return the context as it is sent with what is declared."""
    return json.dumps({**CONTEXT, "preventDelete": protected, "critical": critical})


def create(ref: ResourceRef, **more: Any) -> CreateOrder:
    return CreateOrder(declared(ref), **more)


@each_row(
    ("order", "call"),
    [
        pytest.param(
            create(ACME),
            Call("AddOrg", {"name": "acme"}, context=said()),
            id="an organization",
        ),
        pytest.param(
            create(SHOP, organization_id=ORG),
            Call("AddProject", {"name": "shop"}, ORG, context=said()),
            id="a project",
        ),
        pytest.param(
            create(PARTNER, organization_id=ORG),
            Call(
                "AddOrgJWTIDP",
                {"name": "partner", **IDP},
                ORG,
                context=said(),
            ),
            id="an identity provider",
        ),
        pytest.param(
            CreateOrder(declared(PARTNER, CHECKED), ORG),
            Call(
                "AddJWTProvider",
                {"name": "partner", **CHECKED},
                ORG,
                context=said(),
            ),
            id="an identity provider with an audience, which older calls do not have",
        ),
        pytest.param(
            create(WEB, organization_id=ORG, project_id=PROJECT),
            Call(
                "AddOIDCApp",
                {"name": "storefront", "projectId": PROJECT, **APP},
                ORG,
                context=said(),
            ),
            id="an application",
        ),
        pytest.param(
            CreateOrder(declared(GREET, prevent_delete=True), ORG),
            Call(
                "CreateAction",
                {"name": "greet", **ACTION},
                ORG,
                context=said(protected=True),
            ),
            id="a protected action",
        ),
    ],
)
def test_a_create_is_one_call(order: CreateOrder, call: Call) -> None:
    assert list(calls_of(order, CONTEXT)) == [call]


OLD_APP = held(WEB, an_application(devMode=True), sequence=41)
OLD_IDP = held(PARTNER, a_jwt_config(issuer="https://old.example.com"), sequence=41)
OLD_ACTION = held(GREET, an_action(timeout="1s"), sequence=41)
APP_TARGET = {"projectId": PROJECT, "appId": OLD_APP.id}


def update(operation: str, fields: dict[str, Any], *, protected: bool = False) -> Call:
    """Return a call that expects the object to be as it was planned on."""
    return Call(operation, fields, ORG, expected_sequence=41, context=said(protected=protected))


def renamed(ref: ResourceRef) -> ResourceRef:
    return a_ref(ref.kind, "new")


@each_row(
    ("order", "calls"),
    [
        pytest.param(
            UpdateOrder(declared(WEB), OLD_APP),
            [update("UpdateOIDCAppConfig", {**APP_TARGET, **UPDATED_APP})],
            id="an application: every field but the version, which is fixed",
        ),
        pytest.param(
            UpdateOrder(declared(renamed(WEB)), replace(OLD_APP, spec=APP)),
            [update("UpdateApp", {**APP_TARGET, "name": "new"})],
            id="an application renamed",
        ),
        pytest.param(
            UpdateOrder(declared(renamed(WEB)), OLD_APP),
            [
                update("UpdateApp", {**APP_TARGET, "name": "new"}),
                update("UpdateOIDCAppConfig", {**APP_TARGET, **UPDATED_APP}),
            ],
            id="an application renamed and configured: two calls",
        ),
        pytest.param(
            UpdateOrder(declared(PARTNER), OLD_IDP),
            [update("UpdateOrgIDPJWTConfig", {"idpId": OLD_IDP.id, **IDP})],
            id="an identity provider",
        ),
        pytest.param(
            UpdateOrder(declared(renamed(PARTNER)), OLD_IDP),
            [
                update("UpdateOrgIDP", {"idpId": OLD_IDP.id, "name": "new"}),
                update("UpdateOrgIDPJWTConfig", {"idpId": OLD_IDP.id, **IDP}),
            ],
            id="an identity provider renamed and configured: two calls",
        ),
        pytest.param(
            UpdateOrder(declared(renamed(PARTNER), {**IDP, "audience": "us"}), OLD_IDP),
            [
                update(
                    "UpdateJWTProvider", {"id": OLD_IDP.id, "name": "new", **IDP, "audience": "us"}
                )
            ],
            id="an identity provider renamed and given an audience: one call",
        ),
        pytest.param(
            UpdateOrder(declared(SHOP, FLAGS), held(SHOP, sequence=41)),
            [update("UpdateProject", {"id": PROJECT, "name": "shop", **FLAGS})],
            id="a project, with flags that were kept as well",
        ),
        pytest.param(
            UpdateOrder(declared(GREET), OLD_ACTION),
            [update("UpdateAction", {"id": OLD_ACTION.id, "name": "greet", **ACTION})],
            id="an action",
        ),
        pytest.param(
            UpdateOrder(declared(renamed(GREET)), replace(OLD_ACTION, spec=ACTION)),
            [update("UpdateAction", {"id": OLD_ACTION.id, "name": "new", **ACTION})],
            id="an action renamed: its one update does both",
        ),
        pytest.param(
            UpdateOrder(declared(GREET), replace(OLD_ACTION, carried={"colour": "red"})),
            [
                update(
                    "UpdateAction",
                    {"id": OLD_ACTION.id, "name": "greet", "colour": "red", **ACTION},
                )
            ],
            id="fields of a newer service are sent back as they are",
        ),
        pytest.param(
            UpdateOrder(declared(GREET), replace(OLD_ACTION, carried={"timeout": "9s"})),
            [update("UpdateAction", {"id": OLD_ACTION.id, "name": "greet", **ACTION})],
            id="what is declared wins over what is carried",
        ),
    ],
)
def test_an_update_sends_every_field_and_expects_what_it_was_planned_on(
    order: UpdateOrder, calls: Sequence[Call]
) -> None:
    """A field left out would be empty afterwards; a newer object must not be written over."""
    assert list(calls_of(order, CONTEXT)) == list(calls)


@each_row("ref", [ACME, SHOP, WEB, PARTNER, GREET])
@each_row("wanted", ["protected", "free"])
def test_protection_alone_is_recorded_without_an_update(ref: ResourceRef, wanted: str) -> None:
    """The service ignores an update that changes nothing, context included."""
    protected = wanted == "protected"
    found = held(ref, sequence=41, prevent_delete=not protected)
    order = UpdateOrder(declared(ref, prevent_delete=protected), found)

    assert list(calls_of(order, CONTEXT)) == [
        update("RecordContext", {"id": found.id}, protected=protected)
    ]


@pytest.mark.parametrize(
    ("order", "call"),
    [
        pytest.param(
            DeleteOrder(OLD_APP),
            Call("RemoveApp", APP_TARGET, ORG, 41, context=json.dumps(CONTEXT)),
            id="an application",
        ),
        pytest.param(
            DeleteOrder(OLD_IDP),
            Call("RemoveOrgIDP", {"idpId": OLD_IDP.id}, ORG, 41, context=json.dumps(CONTEXT)),
            id="an identity provider",
        ),
        pytest.param(
            DeleteOrder(OLD_ACTION),
            Call("DeleteAction", {"id": OLD_ACTION.id}, ORG, 41, context=json.dumps(CONTEXT)),
            id="an action",
        ),
        pytest.param(
            SecretOrder(
                held(
                    WEB,
                    object_id=OLD_APP.id,
                    organization_id=ORG,
                    project_id=PROJECT,
                    client_id="7@shop",
                )
            ),
            Call("RegenerateOIDCClientSecret", APP_TARGET, ORG, context=json.dumps(CONTEXT)),
            id="a new secret",
        ),
    ],
)
def test_deletes_and_new_secrets_are_one_call(order: Order, call: Call) -> None:
    """A delete expects what it was planned on; what is newer is not deleted."""
    assert list(calls_of(order, CONTEXT)) == [call]


@pytest.mark.parametrize("ref", [ACME, SHOP, WEB, PARTNER, GREET], ids=str)
def test_being_critical_alone_is_recorded_without_an_update(ref: ResourceRef) -> None:
    """The guard against lock-outs must know of it, even where the manifest is gone."""
    found = held(ref, sequence=41)
    (call,) = calls_of(UpdateOrder(declared(ref, critical=True), found), CONTEXT)

    assert (call.operation, call.context) == ("RecordContext", said(critical=True))


@pytest.mark.parametrize(
    "message",
    [
        "orders[3].operation: must be a write that may be part of a batch",
        "there is nothing at this address",
        "this address has no such verb",
    ],
)
def test_a_service_that_lacks_a_call_is_to_be_upgraded(message: str) -> None:
    """One of ours that is older than the call."""
    order = CreateOrder(declared(PARTNER, CHECKED), ORG)

    refused = result_of(order, WireRefusal(3, message))

    assert isinstance(refused, ServiceError)
    assert "upgrade it" in refused.remedy


TARGETS = [
    pytest.param(SHOP, "Project", {"id": held(SHOP).id}, id="a project"),
    pytest.param(PARTNER, "OrgIDP", {"idpId": held(PARTNER).id}, id="an identity provider"),
    pytest.param(WEB, "App", {"projectId": PROJECT, "appId": held(WEB).id}, id="an application"),
    pytest.param(GREET, "Action", {"id": held(GREET).id}, id="an action"),
]


@each_row(("ref", "noun", "target"), TARGETS)
@each_row("active", [True, False])
def test_a_state_is_one_call(
    ref: ResourceRef, noun: str, target: dict[str, str], *, active: bool
) -> None:
    """It names the object, and expects what it was planned on."""
    order = UpdateOrder(replace(declared(ref), active=active), held(ref, active=not active))

    (call,) = calls_of(order, CONTEXT)
    verb = "Reactivate" if active else "Deactivate"
    assert (call.operation, call.fields) == (f"{verb}{noun}", target)
    assert (call.expected_sequence, call.context) == (1, said())


@pytest.mark.parametrize(
    ("active", "operations"),
    [
        (False, ["DeactivateApp", "UpdateApp", "UpdateOIDCAppConfig"]),
        (True, ["UpdateApp", "UpdateOIDCAppConfig", "ReactivateApp"]),
    ],
    ids=["off first", "on last"],
)
def test_what_is_changed_is_not_in_use_meanwhile(operations: list[str], *, active: bool) -> None:
    was = held(a_ref(name="old"), {"devMode": True}, active=not active, changed_in="default")
    order = UpdateOrder(replace(declared(WEB), active=active), was)
    calls = calls_of(order, {"tree": "default"})
    assert [call.operation for call in calls] == operations


LEFT = replace(
    declared(WEB, an_application(devMode=True)), ignored=frozenset({"additionalOrigins"})
)


@each_row(
    ("ignored", "before", "context"),
    [
        ((), None, {}),
        ((), frozenset(), {}),
        (("devMode", "clockSkew"), frozenset(), {"ignore": "clockSkew,devMode"}),
        ((), frozenset({"devMode"}), {"ignore": ""}),
    ],
)
def test_ignored_fields_are_said_where_there_are_or_were_any(
    ignored: Sequence[str], before: frozenset[str] | None, context: dict[str, str]
) -> None:
    """All other objects have the context that they had before there were ignored fields."""
    wanted = replace(declared(WEB), ignored=frozenset(ignored), critical=True)
    (call,) = calls_of(UpdateOrder(wanted, replace(held(WEB), ignored=before)), {})

    assert json.loads(call.context) == {"preventDelete": False, "critical": True, **context}


def moved(**now: Any) -> ObservedObject:
    """Return the application as it is after another writer."""
    return replace(held(WEB), sequence=9, **now)


def spec_with(**fields: Any) -> dict[str, Any]:
    return {**held(WEB).spec, **fields}


THEIRS = {"additionalOrigins": ["https://theirs.example.com"]}


@each_row(
    ("now", "is_again"),
    [
        pytest.param(moved(spec=spec_with(**THEIRS)), True, id="the ignored field"),
        pytest.param(moved(), True, id="no field"),
        pytest.param(moved(spec=spec_with(devMode=True)), True, id="a field, as it is wanted"),
        pytest.param(moved(spec=spec_with(clockSkew="1s")), False, id="another field"),
        pytest.param(moved(ref=a_ref(name="other")), False, id="the name"),
        pytest.param(moved(critical=True), False, id="a mark"),
        pytest.param(moved(ignored=frozenset({"devMode"})), False, id="the ignored fields"),
        pytest.param(moved(ignored=LEFT.ignored), True, id="the ignored fields, as wanted"),
        pytest.param(moved(owner="theirs"), False, id="the owner"),
        pytest.param(moved(owner="ours"), True, id="the owner, by this tree"),
        pytest.param(moved(active=False), True, id="a state that no manifest says"),
        pytest.param(moved(has_secret=True), False, id="that it has a secret"),
        pytest.param(moved(uncarried=("x",)), False, id="what an update would erase"),
        pytest.param(replace(moved(), sequence=1), False, id="nothing"),
        pytest.param(None, False, id="it is gone"),
    ],
)
def test_an_update_is_tried_again_where_nothing_changed_that_was_decided(
    now: ObservedObject | None, *, is_again: bool
) -> None:
    """It then sends what it leaves to others as it is now, on the condition of that read."""
    again = rebased(UpdateOrder(LEFT, held(WEB)), now, "ours")

    assert (again is not None) is is_again
    if again is not None and now is not None:
        kept = now.spec["additionalOrigins"]
        assert again.resource.spec == {**LEFT.spec, "additionalOrigins": kept}
        assert {call.expected_sequence for call in calls_of(again, {})} == {9}


def test_an_undo_that_gives_an_object_back_is_its_own_by_the_new_owner() -> None:
    order = UpdateOrder(replace(LEFT, owner="theirs"), held(WEB))

    assert rebased(order, moved(owner="theirs"), "ours") is not None
    assert rebased(order, moved(owner="ours"), "ours") is None


def test_a_declared_state_that_moved_is_not_tried_again() -> None:
    order = UpdateOrder(replace(LEFT, active=True), held(WEB))

    assert rebased(order, moved(active=False), "ours") is None
    assert rebased(order, moved(active=True), "ours") is not None


@each_row(
    ("now", "is_again"),
    [
        pytest.param({"hasProjectCheck": True}, True, id="a flag that no manifest says"),
        pytest.param({}, False, id="nothing that explains it"),
        pytest.param({"projectRoleCheck": True, "hasProjectCheck": True}, True, id="as wanted"),
    ],
)
def test_a_project_is_tried_again_only_where_a_flag_explains_it(
    now: dict[str, bool], *, is_again: bool
) -> None:
    """Without ignored fields an object that moved for another reason is not written over."""
    before = held(SHOP)
    order = UpdateOrder(declared(SHOP, {"projectRoleCheck": True}), before)

    again = rebased(order, replace(before, sequence=9, spec={**before.spec, **now}), "ours")

    assert (again is not None) is is_again


def test_only_a_conflict_of_an_update_that_leaves_fields_is_looked_at_again() -> None:
    """An action that leaves none is refused at once, without another read."""
    conflict = PreconditionFailedError("moved", remedy="Plan again.")
    update = UpdateOrder(LEFT, held(WEB))

    assert is_shared(update, conflict)
    assert not is_shared(update, ServiceError("broken", remedy="Wait."))
    assert not is_shared(UpdateOrder(declared(GREET), held(GREET)), conflict)
    assert not is_shared(DeleteOrder(held(WEB)), conflict)
