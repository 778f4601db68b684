"""The client over a wire: what it asks, what it makes of answers, and how it stays one writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.observation import TOGETHER, observed_objects
from reconciler.service_client.port import CreateOrder, SecretOrder, UpdateOrder, Written
from reconciler.service_client.read_only import EmptyService
from reconciler.service_client.wire import Answer, WireRefusal
from reconciler.state import ObservedObject, ObservedState, OwedSecret
from tests.builders import (
    GREET,
    SHOP,
    WEB,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.unit.service_client.fake_wire import CONTEXT, HERE, FakeWire, Reply, done, operations_of

# Writing.


def test_an_answer_tells_what_was_made() -> None:
    """Id, client id, the one-time secret and what the service complains of."""
    wire = FakeWire(
        AddOIDCApp=done(
            7,
            appId="12",
            clientId="12@shop",
            clientSecret="geheim",
            complianceProblems=[{"key": "K1", "localizedMessage": "m"}],
        ),
        CreateAction=done(8, id="13"),
    )
    orders = [CreateOrder(WEB, declared(WEB).spec, "a"), CreateOrder(GREET, {}, "b")]

    results = OperationsClient(wire, HERE).write(orders, CONTEXT)

    assert results == [
        Written("12", 7, "12@shop", Secret("geheim"), ("K1",)),
        Written("13", 8),
    ]
    assert len(wire.sent) == 1, "independent orders are sent together"


def test_the_second_call_of_an_update_expects_what_the_first_left_behind() -> None:
    """Otherwise a rename would make the tool's own next call look outdated."""
    wire = FakeWire(UpdateApp=done(42), UpdateOIDCAppConfig=done(43))
    found = held(WEB, an_application(devMode=True), object_id="12", sequence=41)
    order = UpdateOrder(declared(a_ref(name="new")), found)

    (result,) = OperationsClient(wire, HERE).write([order], CONTEXT)

    assert result == Written("12", 43, "12@shop")
    expected = [(call.operation, call.expected_sequence) for (call,) in wire.sent]
    assert expected == [("UpdateApp", 41), ("UpdateOIDCAppConfig", 42)]


def test_after_a_refusal_an_order_is_not_gone_on_with_and_the_others_are() -> None:
    """A name that is taken is no reason to leave the rest of the batch undone."""
    refused = WireRefusal(6, "there is another application of this name")
    wire = FakeWire(UpdateApp=refused, UpdateAction=done(9))
    apps = UpdateOrder(declared(a_ref(name="new")), held(WEB, an_application(devMode=True)))
    action = UpdateOrder(declared(GREET), held(GREET, an_action(timeout="1s"), sequence=5))

    first, second = OperationsClient(wire, HERE).write([apps, action], CONTEXT)

    assert isinstance(first, AlreadyExistsError)
    assert second == Written(held(GREET).id, 9)
    assert [len(calls) for calls in wire.sent] == [2]


def test_what_was_written_is_told_even_if_a_later_call_fails() -> None:
    """The secret of a create in the same batch was answered once; it must not be dropped."""
    failure = ServiceError("the disk is full", remedy="Make room.")
    wire = FakeWire(
        AddOIDCApp=done(7, appId="12", clientId="12@shop", clientSecret="geheim"),
        UpdateApp=done(8),
        UpdateOIDCAppConfig=failure,
    )
    create = CreateOrder(a_ref(name="made"), declared(WEB).spec, "a")
    update = UpdateOrder(declared(a_ref(name="new")), held(WEB, an_application(devMode=True)))

    made, second = OperationsClient(wire, HERE).write([create, update], CONTEXT)

    assert made == Written("12", 7, "12@shop", Secret("geheim"))
    assert isinstance(second, ServiceUnavailableError)
    assert (second.problem, second.remedy) == ("the disk is full", "Make room.")


def test_a_wire_that_fails_at_once_is_an_error() -> None:
    """Nothing is known of any order."""
    wire = FakeWire(CreateAction=ServiceError("no", remedy="r"))

    with pytest.raises(ServiceError, match="no"):
        OperationsClient(wire, HERE).write([CreateOrder(GREET, {}, "b")], CONTEXT)


def test_a_new_secret_is_told_with_the_client_id_it_belongs_to() -> None:
    """The service answers the secret alone."""
    wire = FakeWire(RegenerateOIDCClientSecret=done(9, clientSecret="neu"))

    results = OperationsClient(wire, HERE).write(
        [SecretOrder(WEB, "12", "1", "2", "12@shop")], CONTEXT
    )

    assert results == [Written("12", 9, "12@shop", Secret("neu"))]


def test_nothing_to_write_is_nothing_sent() -> None:
    """An apply with nothing to change writes nothing."""
    wire = FakeWire()

    assert OperationsClient(wire, HERE).write([], CONTEXT) == []
    assert wire.sent == []


# Observing.

DETAILS = {"sequence": "41", "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1"}


def listed(kind: Kind, object_id: str, name: str, **more: Any) -> dict[str, Any]:
    """Return an object as the listing of an organization has it."""
    return {
        "kind": kind.value,
        "id": object_id,
        "organizationId": "1",
        "projectId": "",
        "name": name,
        "spec": {},
        "details": DETAILS,
        "clientId": "",
        "hasSecret": False,
        "state": "ACTIVE",
        "trees": [],
        "preventDelete": False,
        "changedBy": "ana",
        "context": {},
        **more,
    }


SPEC = declared(WEB).spec


LISTED = [
    listed(Kind.ORGANIZATION, "1", "Acme", trees=["default", "default"]),
    listed(
        Kind.OIDC_APPLICATION, "3", "storefront", projectId="2", spec=SPEC, clientId="3@shop",
        preventDelete=True, trees=["default"],
    ),
    listed(Kind.PROJECT, "2", "shop"),
    {key: value for key, value in
     listed(Kind.ACTION, "4", "greet", spec=declared(GREET).spec).items()
     if key != "preventDelete"},
]  # fmt: skip


ORG: dict[str, Any] = {"organization_id": "1", "sequence": 41, "changed_by": "ana",
       "changed_at": "2026-01-01T00:00:00Z", "has_secret": False}  # fmt: skip


SEEN = [
    ObservedObject(a_ref(Kind.ORGANIZATION, organization="Acme"), "1", spec={},
                   trees=frozenset({"default"}), prevent_delete=False, **ORG),
    ObservedObject(a_ref(organization="Acme"), "3", spec=SPEC, project_id="2",
                   client_id="3@shop", trees=frozenset({"default"}), prevent_delete=True, **ORG),
    ObservedObject(SHOP._replace(organization="Acme"), "2", spec=DEFAULTS[Kind.PROJECT],
                   prevent_delete=False, **ORG),
    ObservedObject(GREET._replace(organization="Acme"), "4", spec=declared(GREET).spec, **ORG),
]  # fmt: skip


def test_a_listing_becomes_objects_with_the_names_of_their_owners() -> None:
    """Ids in the listing become names, for manifests speak in names."""
    incomplete: list[str] = []

    assert list(observed_objects(("1", "Acme"), LISTED, incomplete)) == SEEN
    assert incomplete == []


def in_pages(call: Call) -> Answer:
    at = int(call.fields["cursor"] or 0)
    following = str(at + 2) if at + 2 < len(LISTED) else ""
    return Answer({"objects": LISTED[at : at + 2], "next": following})


def test_observing_reads_each_organization_page_by_page_and_no_other() -> None:
    """A run reads only what its manifests name, in turns: one call per page, and no writes."""
    organizations = {"acme": [{"id": "1", "name": "Acme"}], "initech": [{"id": "9", "name": "Ini"}]}
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=lambda call: Answer(
            {"result": organizations[call.fields["queries"][0]["nameQuery"]["name"]]}
        ),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": []}),
    )

    state = OperationsClient(wire, HERE).observe(["acme", "initech"])

    assert state == ObservedState("i-1", {found.ref.key: found for found in SEEN})
    assert [[call.operation for call in turn] for turn in wire.sent] == [
        ["GetServiceInfo"], ["ListTrees"], ["ListOrgs", "ListOrgs"], ["ListObjects"],
        ["ListObjects"],
    ]  # fmt: skip
    assert {call.organization for turn in wire.sent for call in turn} == {"", "1"}


def owed_in_pages(call: Call) -> Answer:
    """Return one owed secret on each of two pages; the second is of no listed application."""
    number = 5 if call.fields["cursor"] else 3
    owed = {
        "id": str(number), "clientId": "3@shop", "madeAt": "41", "since": "2026-01-01T00:00:00Z",
        "madeBy": "ci", "tree": "default", "run": "run-1", "state": "lost",
    }  # fmt: skip
    return Answer({"owedSecrets": [owed], "next": "" if call.fields["cursor"] else "3"})


def test_owed_secrets_are_listed_where_the_service_says_custody() -> None:
    """One call per organization and page, and none where the service keeps nothing."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1", "custody": True}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": []}),
        ListOwedSecrets=owed_in_pages,
    )

    state = OperationsClient(wire, HERE).observe(["acme"])

    assert state.custody
    assert state.owed == (
        OwedSecret(SEEN[1].ref, "3", "3@shop", 41, "2026-01-01T00:00:00Z", "ci", "default",
                   "run-1", lost=True),
    )  # fmt: skip
    asked = [call.operation for turn in wire.sent for call in turn]
    assert asked.count("ListOwedSecrets") == 2


@pytest.mark.parametrize(
    ("said", "asked"), [({"custody": False}, 0), ({"custody": True}, 2), ({}, 2)]
)
def test_an_organization_that_keeps_no_secret_is_not_asked_for_them(
    said: Mapping[str, Any], asked: int
) -> None:
    """To ask each would double the requests of a run; an older service does not say."""
    told = {"id": "1", "name": "Acme", "trees": [], **said}
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1", "custody": True}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": [told]}),
        ListOwedSecrets=owed_in_pages,
    )

    state = OperationsClient(wire, HERE).observe(["acme"])

    assert state.custody
    operations = [call.operation for turn in wire.sent for call in turn]
    assert operations.count("ListOwedSecrets") == asked


def test_a_service_without_custody_is_not_asked() -> None:
    """An older service of ours would refuse; delivery goes on without it."""
    wire = FakeWire(GetServiceInfo=Answer({"instance": "i-1"}))
    client = OperationsClient(wire, HERE)

    client.acknowledge([Written("3", 41)])
    with pytest.raises(ServiceError, match="keeps no client secrets"):
        client.claim([OwedSecret(SEEN[1].ref, "3", "c", 41, "", "", "", "")], {})


def test_a_far_service_is_asked_for_several_organizations_in_the_time_of_one() -> None:
    """What is listed under a hundred organizations would otherwise wait for the way each time."""
    names = [f"org-{number}" for number in range(TOGETHER + 1)]
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=lambda call: Answer({"result": [_named(call)]}),
        ListObjects=Answer({"objects": [], "next": ""}),
        ListTrees=Answer({"organizations": []}),
    )

    OperationsClient(wire, HERE).observe(names)

    turns = [(turn[0].operation, len(turn)) for turn in wire.sent]
    assert turns == [
        ("GetServiceInfo", 1), ("ListTrees", 1), ("ListOrgs", TOGETHER),
        ("ListObjects", TOGETHER), ("ListOrgs", 1), ("ListObjects", 1),
    ]  # fmt: skip


def test_an_organization_that_the_service_has_told_of_is_not_looked_for() -> None:
    """Its id came with the trees. Of ninety organizations each would be a request."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListTrees=Answer({"organizations": [{"id": "1", "name": "Acme", "trees": ["default"]}]}),
        ListOrgs=Answer({"result": []}),
        ListObjects=in_pages,
    )

    state = OperationsClient(wire, HERE).observe(["acme", "initech"])

    assert state == ObservedState("i-1", {found.ref.key: found for found in SEEN})
    assert operations_of(wire) == [
        ["GetServiceInfo"], ["ListTrees"], ["ListOrgs"], ["ListObjects"], ["ListObjects"],
    ]  # fmt: skip


def _named(call: Call) -> dict[str, str]:
    name = call.fields["queries"][0]["nameQuery"]["name"]
    return {"id": name, "name": name}


def always_more(call: Call) -> Answer:
    return Answer({"objects": LISTED, "next": f"{call.fields['cursor']}x"})


def always_the_same(call: Call) -> Answer:
    return Answer({"objects": LISTED, "next": "x"})


def always_new(call: Call) -> Answer:
    at = str(int(call.fields["cursor"] or 0) + 1)
    return Answer({"objects": [{**LISTED[-1], "id": at, "name": f"n{at}"}], "next": at})


@pytest.mark.parametrize(
    ("pages", "told", "most"),
    [
        pytest.param(always_the_same, "repeats itself", 2, id="the same page"),
        pytest.param(always_more, "repeats itself", 2, id="the same objects, further on"),
        pytest.param(always_new, "does not end", 1000, id="something new each time"),
    ],
)
def test_a_listing_without_an_end_is_left_and_told(
    pages: Callable[[Call], Answer], told: str, most: int
) -> None:
    """A service gone wrong must not hold a run for ever, nor fill its memory."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=pages,
        ListTrees=Answer({"organizations": []}),
    )

    incomplete = OperationsClient(wire, HERE).observe(["acme"]).incomplete

    assert any(told in reason for reason in incomplete)
    assert len([call for (call,) in wire.sent if call.operation == "ListObjects"]) == most


def test_other_organizations_are_told_by_their_names_and_trees_alone() -> None:
    """What a tree left behind is reported; those of the run itself are in the plan anyway."""
    owed = [{"tree": "a", "secrets": "2"}]
    told = [
        {"id": "1", "name": "Acme", "trees": ["a"], "owed": owed},
        {"id": "2", "name": "Old", "trees": ["a"], "owed": owed},
        {"id": "3", "name": "Older", "trees": []},  # as an older service tells it
    ]
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": told}),
    )

    state = OperationsClient(wire, HERE).observe(["acme"])

    assert state.elsewhere == {"Old": frozenset({"a"}), "Older": frozenset()}
    assert state.owed_left == {"Old": {"a": 2}, "Older": {}}


def test_a_service_that_does_not_tell_of_trees_is_planned_for_all_the_same() -> None:
    """It is advice, and no plan hangs on it."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=Answer({"result": []}),
        ListTrees=WireRefusal(12, "there is no such operation"),
    )

    assert OperationsClient(wire, HERE).observe(["acme"]) == ObservedState("i-1", {})


@pytest.mark.parametrize("refused", ["GetServiceInfo", "ListOrgs", "ListObjects"])
def test_a_service_that_does_not_show_everything_is_an_error(refused: str) -> None:
    """Half a picture, taken for the whole, would plan creates of what is there."""
    replies: Mapping[str, Callable[[Call], Reply] | Reply] = {
        "GetServiceInfo": Answer({"instance": "i-1"}),
        "ListOrgs": Answer({"result": [{"id": "1", "name": "acme"}]}),
        "ListObjects": in_pages,
        "ListTrees": Answer({"organizations": []}),
        refused: WireRefusal(7, "no"),
    }

    with pytest.raises(AccessDeniedError):
        OperationsClient(FakeWire(**replies), HERE).observe(["acme"])


def test_a_service_that_is_not_there_yet_holds_nothing() -> None:
    """A plan before the first apply makes nothing, not even the store."""
    assert EmptyService().observe(["acme"]) == ObservedState("", {})
