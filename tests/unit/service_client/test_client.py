"""The client over a wire: what it asks, what it makes of answers, and how it stays one writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.leases import LEASE_SECONDS, RENEW_AFTER_SECONDS
from reconciler.service_client.locks import ProcessIdentity, this_process
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

HERE = this_process()
CONTEXT = {"tree": "default"}
Reply = Answer | WireRefusal | Exception


class FakeWire:
    """Answers each call by its operation, from a table or a function; keeps what was sent."""

    def __init__(self, **replies: Callable[[Call], Reply] | Reply) -> None:
        self.replies = replies
        self.sent: list[list[Call]] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Answer calls, or raise what an operation is told to raise."""
        self.sent.append(list(calls))
        return [self._reply(call) for call in calls]

    def _reply(self, call: Call) -> Answer | WireRefusal:
        reply = self.replies[call.operation]
        found = reply(call) if callable(reply) else reply
        if isinstance(found, Exception):
            raise found
        return found


def done(sequence: int = 0, **fields: Any) -> Answer:
    return Answer({"details": {"sequence": str(sequence)}, **fields})


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
    ObservedObject(SHOP._replace(organization="Acme"), "2", spec={}, prevent_delete=False, **ORG),
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


# Being the one writer.


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


def test_a_run_that_is_refused_takes_no_lease_after_that() -> None:
    """To take what sorts after the refused lease would move fences of other runs."""
    wire = FakeLeases()
    wire.held["beta"] = 7, LIVE
    client = OperationsClient(wire, HERE)

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


# Batches.

INFO = {"instance": "i-1", "batch": 500}


def packing(**info: Any) -> tuple[FakeWire, OperationsClient]:
    """Return a client that may pack, of a service that tells this of itself, and its wire."""
    answers = Answer({"answers": [{"answer": done(7, id=text).fields} for text in "34"]})
    wire = FakeWire(GetServiceInfo=Answer(info), CreateAction=done(7, id="3"), WriteBatch=answers)
    client = OperationsClient(wire, HERE, batch_size=64, packs=True)
    client.instance()
    wire.sent.clear()
    return wire, client


def operations_of(wire: FakeWire) -> list[list[str]]:
    return [[call.operation for call in calls] for calls in wire.sent]


def test_writes_go_in_batches_where_the_service_has_them() -> None:
    wire, client = packing(**INFO)
    orders = [CreateOrder(GREET, {}, key) for key in "ab"]

    results = client.write(orders, CONTEXT)

    assert results == [Written("3", 7), Written("4", 7)]
    assert operations_of(wire) == [["WriteBatch"]]
    assert client.batch_size == 500


@pytest.mark.parametrize("batch", [None, 0, 1, -5, True, "500"])
def test_a_service_that_has_no_batches_is_called_as_ever(batch: object) -> None:
    """An older one does not tell; what is no number is none."""
    wire, client = packing(**{**INFO, "batch": batch})

    client.write([CreateOrder(GREET, {}, key) for key in "ab"], CONTEXT)

    assert operations_of(wire) == [["CreateAction", "CreateAction"]]
    assert client.batch_size == 64


def test_a_service_may_take_more_than_a_lock_lasts() -> None:
    """Signals and the lease are looked after between batches."""
    _, client = packing(**{**INFO, "batch": 10**9})

    assert client.batch_size == 500


def test_in_process_a_batch_is_one_commit_already() -> None:
    wire = FakeWire(GetServiceInfo=Answer(INFO), CreateAction=done(7, id="3"))
    client = OperationsClient(wire, HERE)
    client.instance()

    client.write([CreateOrder(GREET, {}, key) for key in "ab"], CONTEXT)

    assert operations_of(wire)[1:] == [["CreateAction", "CreateAction"]]
