"""Reading a service: page by page; what could write does not get as far as the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from reconciler.errors import AccessDeniedError, ServiceError
from reconciler.kinds.addresses import ADDRESSES
from reconciler.resources.call import Call
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service_client.observation import TOGETHER, observed_objects
from reconciler.service_client.read_only import (
    FEEDS_AT_ONCE,
    HISTORIES_AT_ONCE,
    EmptyService,
    OperationsReader,
    ReadOnlyWire,
)
from reconciler.service_client.wire import Answer, WireRefusal
from reconciler.state import ObservedObject, ObservedState, OwedSecret
from tests.builders import GREET, SHOP, WEB, a_ref, declared
from tests.rows import each_row
from tests.unit.service_client.fake_wire import FakeWire, Reply, operations_of


class Sent:
    """A wire that notes what is sent."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        self.calls += calls
        return [Answer({}) for _ in calls]


@each_row("operation", ADDRESSES)
def test_a_wire_for_reading_carries_what_gets_or_lists_and_nothing_else(operation: str) -> None:
    """Whatever a plan, a drift or an export asks for: not one call of a batch is sent."""
    sent = Sent()
    calls = [Call("ListOrgs"), Call(operation)]

    if operation.startswith(("Get", "List", "Healthz")):
        assert ReadOnlyWire(sent).send(calls) == [Answer({}), Answer({})]
        assert sent.calls == calls
    else:
        with pytest.raises(AssertionError, match=f"^{operation} writes"):
            ReadOnlyWire(sent).send(calls)
        assert sent.calls == []


DETAILS = {
    "sequence": "41", "creationDate": "2025-01-01T00:00:00Z",
    "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1",
}  # fmt: skip


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
        "owner": None,
        "preventDelete": False,
        "critical": False,
        "ignore": [],
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
    listed(Kind.PROJECT, "2", "shop", spec=DEFAULTS[Kind.PROJECT]),
    listed(Kind.ACTION, "4", "greet", spec=declared(GREET).spec),
]  # fmt: skip


ORG: dict[str, Any] = {"organization_id": "1", "sequence": 41, "changed_by": "ana",
       "changed_at": "2026-01-01T00:00:00Z", "created_at": "2025-01-01T00:00:00Z",
       "has_secret": False, "critical": False, "ignored": frozenset()}  # fmt: skip


SEEN = [
    ObservedObject(a_ref(Kind.ORGANIZATION, organization="Acme"), "1", spec={},
                   trees=frozenset({"default"}), prevent_delete=False, **ORG),
    ObservedObject(a_ref(organization="Acme"), "3", spec=SPEC, project_id="2",
                   client_id="3@shop", trees=frozenset({"default"}), prevent_delete=True, **ORG),
    ObservedObject(SHOP._replace(organization="Acme"), "2", spec=DEFAULTS[Kind.PROJECT],
                   prevent_delete=False, **ORG),
    ObservedObject(GREET._replace(organization="Acme"), "4", spec=declared(GREET).spec,
                   prevent_delete=False, **ORG),
]  # fmt: skip


def test_a_listing_becomes_objects_with_the_names_of_their_owners() -> None:
    """Ids in the listing become names, for manifests speak in names."""
    incomplete: list[str] = []

    assert list(observed_objects(("1", "Acme"), LISTED, incomplete).values()) == SEEN
    assert incomplete == []


def trees_listed(object_id: str = "1", name: str = "Acme", **more: Any) -> dict[str, Any]:
    """Return an organization as ``ListTrees`` answers it."""
    told = {"trees": [], "owed": [], "custody": False, "pauses": [], "unmade": []}
    return {"id": object_id, "name": name, **told, **more}


NOTHING_OWED = Answer({"owedSecrets": [], "next": ""})


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
        ListOwedSecrets=NOTHING_OWED,
    )

    state = OperationsReader(wire).observe(["acme", "initech"])

    assert state == ObservedState("i-1", {found.ref.key: found for found in SEEN}, custody=True)
    assert [[call.operation for call in turn] for turn in wire.sent] == [
        ["GetServiceInfo"], ["ListTrees"], ["ListOrgs", "ListOrgs"], ["ListObjects"],
        ["ListObjects"], ["ListOwedSecrets"],
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


def test_owed_secrets_are_listed() -> None:
    """One call per organization and page."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": []}),
        ListOwedSecrets=owed_in_pages,
    )

    state = OperationsReader(wire).observe(["acme"])

    assert state.custody
    assert state.owed == (
        OwedSecret(SEEN[1].ref, "3", "3@shop", 41, "2026-01-01T00:00:00Z", "ci", "default",
                   "run-1", lost=True),
    )  # fmt: skip
    asked = [call.operation for turn in wire.sent for call in turn]
    assert asked.count("ListOwedSecrets") == 2


@pytest.mark.parametrize(("said", "asked"), [({"custody": False}, 0), ({"custody": True}, 2)])
def test_an_organization_that_keeps_no_secret_is_not_asked_for_them(
    said: Mapping[str, Any], asked: int
) -> None:
    """To ask each would double the requests of a run."""
    told = trees_listed(**said)
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": [told]}),
        ListOwedSecrets=owed_in_pages,
    )

    state = OperationsReader(wire).observe(["acme"])

    assert state.custody
    operations = [call.operation for turn in wire.sent for call in turn]
    assert operations.count("ListOwedSecrets") == asked


def test_a_far_service_is_asked_for_several_organizations_in_the_time_of_one() -> None:
    """What is listed under a hundred organizations would otherwise wait for the way each time."""
    names = [f"org-{number}" for number in range(TOGETHER + 1)]
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=lambda call: Answer({"result": [_named(call)]}),
        ListObjects=Answer({"objects": [], "next": ""}),
        ListTrees=Answer({"organizations": []}),
        ListOwedSecrets=NOTHING_OWED,
    )

    OperationsReader(wire).observe(names)

    turns = [(turn[0].operation, len(turn)) for turn in wire.sent]
    assert turns == [
        ("GetServiceInfo", 1), ("ListTrees", 1), ("ListOrgs", TOGETHER),
        ("ListObjects", TOGETHER), ("ListOrgs", 1), ("ListObjects", 1),
        ("ListOwedSecrets", TOGETHER + 1),
    ]  # fmt: skip


def test_an_organization_that_the_service_has_told_of_is_not_looked_for() -> None:
    """Its id came with the trees. Of ninety organizations each would be a request."""
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListTrees=Answer({"organizations": [trees_listed(trees=["default"])]}),
        ListOrgs=Answer({"result": []}),
        ListObjects=in_pages,
    )

    state = OperationsReader(wire).observe(["acme", "initech"])

    assert state == ObservedState("i-1", {found.ref.key: found for found in SEEN}, custody=True)
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
        ListOwedSecrets=NOTHING_OWED,
    )

    incomplete = OperationsReader(wire).observe(["acme"]).incomplete

    assert any(told in reason for reason in incomplete)
    assert len([call for (call,) in wire.sent if call.operation == "ListObjects"]) == most


def test_other_organizations_are_told_by_their_names_and_trees_alone() -> None:
    """What a tree left behind is reported; those of the run itself are in the plan anyway."""
    owed = [{"tree": "a", "secrets": "2"}]
    told = [
        trees_listed(trees=["a"], owed=owed),
        trees_listed("2", "Old", trees=["a"], owed=owed),
        trees_listed("3", "Clean"),
    ]
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i-1"}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=in_pages,
        ListTrees=Answer({"organizations": told}),
    )

    state = OperationsReader(wire).observe(["acme"])

    assert state.elsewhere == {"Old": frozenset({"a"}), "Clean": frozenset()}
    assert state.owed_left == {"Old": {"a": 2}, "Clean": {}}


@pytest.mark.parametrize("refused", ["GetServiceInfo", "ListTrees", "ListOrgs", "ListObjects"])
def test_a_service_that_does_not_show_everything_is_an_error(refused: str) -> None:
    """Half a picture would plan creates of what is there, and apply a tree that is paused."""
    replies: Mapping[str, Callable[[Call], Reply] | Reply] = {
        "GetServiceInfo": Answer({"instance": "i-1"}),
        "ListOrgs": Answer({"result": [{"id": "1", "name": "acme"}]}),
        "ListObjects": in_pages,
        "ListTrees": Answer({"organizations": []}),
        refused: WireRefusal(7, "no"),
    }

    with pytest.raises(AccessDeniedError):
        OperationsReader(FakeWire(**replies)).observe(["acme"])


def test_a_service_that_is_not_there_yet_holds_nothing() -> None:
    """A plan before the first apply makes nothing, not even the store."""
    assert EmptyService("sqlite:a").observe(["acme"]) == ObservedState("", {}, new_store="sqlite:a")


def a_history(call: Call) -> Answer:
    """Return one event of an object a page; ``long`` has two pages."""
    after = int(call.fields.get("after", 0))
    event = {
        "sequence": str(after + 1), "type": "action.added", "recordedAt": "a", "writer": "w",
        "payload": {"name": call.fields["id"]}, "context": {}, "verified": {},
    }  # fmt: skip
    following = "1" if call.fields["id"] == "long" and not after else ""
    return Answer({"events": [event], "next": following})


def test_a_far_service_is_asked_for_many_histories_in_the_time_of_one() -> None:
    """After a day of work by hand hundreds are read, and each would wait for the way."""
    few = ["long", *map(str, range(HISTORIES_AT_ONCE))]
    wire = FakeWire(GetObjectHistory=a_history)

    histories = dict(OperationsReader(wire).histories(few))

    assert {each: [event.sequence for event in events] for each, events in histories.items()} == {
        **{each: [1] for each in few}, "long": [1, 2],
    }  # fmt: skip
    assert all(event.payload["name"] == each for each in few for event in histories[each])
    assert [len(turn) for turn in wire.sent] == [HISTORIES_AT_ONCE, 1, 1]


def test_one_history_that_is_refused_is_told_after_those_before_it() -> None:
    """It must not look like an object to which nothing happened."""
    wire = FakeWire(
        GetObjectHistory=lambda call: (
            WireRefusal(7, "no") if call.fields["id"] == "2" else a_history(call)
        )
    )

    told = OperationsReader(wire).histories(["1", "2"])

    assert next(told)[0] == "1"
    with pytest.raises(AccessDeniedError):
        next(told)


A_CHANGE = {
    "kind": "Action", "id": "4", "projectId": "", "name": "n", "type": "action.changed",
    "sequence": "43", "recordedAt": "a", "writer": "w", "context": {}, "verified": {},
}  # fmt: skip


def test_the_events_of_many_organizations_are_asked_for_together() -> None:
    """Each in its own pages, in the order in which they were asked for."""

    def page(call: Call) -> Answer:
        owner, cursor = call.fields["organizationId"], call.fields["cursor"]
        has_more = owner == "7" and cursor == "70"
        event = {**A_CHANGE, "sequence": str(int(str(cursor)) + 1)}
        return Answer({"changes": [event], "next": "71" if has_more else ""})

    wire = FakeWire(ListChanges=page)
    after = {str(number): number * 10 for number in range(FEEDS_AT_ONCE, 0, -1)}

    found = dict(OperationsReader(wire).changes_of(after))

    assert [*found] == [*after]
    assert [each.sequence for each in found["7"]] == [71, 72]
    assert [each.sequence for each in found["3"]] == [31]
    assert [len(calls) for calls in wire.sent] == [FEEDS_AT_ONCE, 1]


def of_the_past(*answers: Reply) -> tuple[OperationsReader, FakeWire]:
    """Return a reader of a service in which one object changed since, and how it answers that."""
    told = iter(answers)
    wire = FakeWire(
        GetServiceInfo=Answer({"instance": "i"}),
        ListOrgs=Answer({"result": [{"id": "1", "name": "Acme"}]}),
        ListObjects=Answer({"objects": LISTED, "next": ""}),
        ListChanges=Answer({"changes": [A_CHANGE, A_CHANGE], "next": ""}),
        ListObjectsAt=lambda _: next(told),
    )
    return OperationsReader(wire), wire


def test_only_what_changed_since_is_asked_for_and_once() -> None:
    """The rest is as it is listed now."""
    then = {**LISTED[3], "name": "hello"}
    reader, wire = of_the_past(Answer({"objects": [then], "absent": []}))

    seen = reader.observe_at({"acme": 42})

    names = {key.name for key in seen.objects}
    assert names == {"acme", "storefront", "shop", "hello"}
    (asked,) = [call for calls in wire.sent for call in calls if call.operation == "ListObjectsAt"]
    assert asked.fields == {"organizationId": "1", "sequence": "42", "ids": ["4"]}


@each_row(
    "answer",
    [
        {},
        {"objects": [], "absent": []},
        {"objects": [], "absent": "4"},
        {"objects": [], "absent": [{"id": "4"}]},
        {"objects": [], "absent": ["5"]},
        {"objects": [LISTED[2]], "absent": ["4"]},
        {"objects": [{"id": 4}], "absent": []},
        {"objects": {"4": {}}, "absent": []},
    ],
)
def test_a_service_that_answers_something_else_is_no_service(answer: dict[str, Any]) -> None:
    """It is not asked again and again, and nothing that it made up is exported."""
    reader, _ = of_the_past(Answer(answer))

    with pytest.raises(ServiceError, match="cannot be used"):
        reader.observe_at({"acme": 42})
