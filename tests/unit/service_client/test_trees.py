"""The feed and the control of trees over a wire that answers as a test says."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.errors import LockHeldError, ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.port import TreeControl
from reconciler.service_client.read_only import EmptyService, OperationsReader
from reconciler.service_client.wire import NO_ADDRESS, Answer, WireRefusal
from reconciler.state import Applied, Head, Heads, Pause
from tests.rows import each_row
from tests.unit.service_client.fake_wire import CONTEXT, HERE, FakeWire, operations_of

INFO = Answer({"instance": "i", "feed": True})
COMMIT = "a" * 40
PAUSE = {"tree": "t", "reason": "r", "until": "u", "since": "s", "writer": "w"}
RECORD = {"tree": "t", "commit": "c", "outcome": "changed", "recordedAt": "a", "writer": "w"}


def a_head(name: Any = "Acme", **other: Any) -> dict[str, Any]:
    """Return a head as the service answers it."""
    head = {"id": "7", "name": name, "sequence": "41", "owed": "2"}
    return {**head, "pauses": [PAUSE], "applied": [RECORD], **other}


def page(*heads: dict[str, Any], following: str = "") -> Answer:
    return Answer({"instance": "i", "organizations": [*heads], "next": following})


def a_change(**other: Any) -> dict[str, Any]:
    """Return a change as the service answers it."""
    texts = {"kind": "Action", "projectId": "", "name": "n", "type": "t", "recordedAt": "a"}
    told = {"id": "7", "sequence": "41", "writer": "w", "context": {}, "verified": {}}
    return {**told, **texts, **other}


def lease(_: Call) -> Answer:
    return Answer({"lease": "3.x", "fence": "3"})


def refusal(code: int, **details: str) -> WireRefusal:
    return WireRefusal(code, "no", details)


def control(**replies: Any) -> tuple[TreeControl, FakeWire]:
    """Return the control of a service that gives every lease."""
    ready = {"GetServiceInfo": INFO, "AcquireLease": lease, "ReleaseLease": Answer({})}
    wire = FakeWire(**{**ready, **replies})
    return OperationsClient(wire, HERE).trees(), wire


def test_heads_are_read_to_the_last_page() -> None:
    """By folded name, as manifests and services may spell it differently."""
    wire = FakeWire(
        ListHeads=lambda call: (
            page(a_head("Globex", id="8"))
            if call.fields.get("cursor")
            else page(a_head(), following="7")
        )
    )

    heads = OperationsReader(wire).heads()

    told = (Pause("t", "r", "u", "s", "w"),), (Applied("t", "c", "a", "w"),)
    assert heads == Heads(
        "i", {"acme": Head("7", "Acme", 41, 2, *told), "globex": Head("8", "Globex", 41, 2, *told)}
    )
    assert operations_of(wire) == [["ListHeads"], ["ListHeads"]], "one call where one page will do"


@each_row(
    "failed",
    [
        refusal(Code.UNAUTHENTICATED),
        refusal(Code.UNAVAILABLE),
        refusal(Code.UNIMPLEMENTED),
        refusal(Code.NOT_FOUND, id=NO_ADDRESS),
    ],
)
def test_a_service_that_fails_is_not_taken_for_one_without_a_feed(failed: WireRefusal) -> None:
    with pytest.raises(ServiceError):
        OperationsReader(FakeWire(ListHeads=failed)).heads()


@each_row(
    "odd",
    [
        a_head(id="../x"),
        a_head(sequence="-1"),
        a_head(sequence=41),
        a_head(owed="many"),
        a_head(name=None),
        a_head(pauses={}),
        a_head(pauses=[{**PAUSE, "until": 1}]),
        a_head(applied=[{**RECORD, "commit": None}]),
        {name: value for name, value in a_head().items() if name != "applied"},
    ],
)
def test_a_head_that_cannot_be_meant_is_an_error(odd: dict[str, Any]) -> None:
    """Taken for a head that did not move, it would hide every change."""
    with pytest.raises(ServiceError, match="answer cannot be used"):
        OperationsReader(FakeWire(ListHeads=page(odd))).heads()


@each_row(
    "odd",
    [
        a_change(context=[]),
        a_change(id=""),
        a_change(sequence="x"),
        a_change(name=1),
        {name: value for name, value in a_change().items() if name != "verified"},
    ],
)
def test_a_change_that_cannot_be_meant_is_an_error(odd: dict[str, Any]) -> None:
    wire = FakeWire(ListChanges=Answer({"changes": [odd], "next": ""}))

    with pytest.raises(ServiceError, match="answer cannot be used"):
        dict(OperationsReader(wire).changes_of({"7": 0}))


def test_pages_that_come_again_end() -> None:
    same = Answer({"changes": [a_change()], "next": "41"})

    ((_, found),) = OperationsReader(FakeWire(ListChanges=same)).changes_of({"7": 40})

    assert len(found) == 2


def test_there_is_nothing_in_a_service_that_is_still_to_be_made() -> None:
    assert EmptyService("x").heads() == Heads("", {})
    assert [*EmptyService("x").changes_of({"7": 0})] == []


def test_who_leads_nothing_sends_nothing() -> None:
    trees, wire = control()

    trees.record_commit(COMMIT, "changed", CONTEXT)
    trees.renew(at_once=True)
    trees.resign()

    assert wire.sent == []


def test_leadership_is_taken_in_order_of_name_and_given_back_before_another() -> None:
    trees, wire = control(RecordCommit=Answer({}))
    trees.lead("a", ["globex", "Acme"], 60)
    trees.lead("b", ["acme"], 60)
    trees.record_commit(COMMIT, "changed", CONTEXT)

    sent = [
        (call.operation, call.fields["organization"], call.fields["tree"])
        for calls in wire.sent
        for call in calls
    ]
    assert sent == [
        ("AcquireLease", "Acme", "a"),
        ("AcquireLease", "globex", "a"),
        ("ReleaseLease", "Acme", "a"),
        ("ReleaseLease", "globex", "a"),
        ("AcquireLease", "acme", "b"),
        ("RecordCommit", "acme", "b"),
    ]
    assert wire.sent[0][0].fields["seconds"] == 60


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (refusal(Code.ABORTED, id="leadership.lost"), LockHeldError),
        (refusal(Code.ABORTED), LockHeldError),
        (refusal(Code.UNAVAILABLE), ServiceUnavailableError),
    ],
)
def test_a_record_that_is_refused_says_why(reply: WireRefusal, raised: type[Exception]) -> None:
    trees, _ = control(RecordCommit=reply)
    trees.lead("shop", ["acme"], 60)

    with pytest.raises(raised):
        trees.record_commit(COMMIT, "changed", CONTEXT)


def test_a_record_names_the_lease_that_the_run_writes_under() -> None:
    """A run that lost its lock may have been followed by another one."""
    wire = FakeWire(
        GetServiceInfo=INFO, AcquireLease=lease, ReleaseLease=Answer({}), RecordCommit=Answer({})
    )
    client = OperationsClient(wire, HERE)
    client.acquire(["Acme"])
    trees = client.trees()
    assert trees is not None
    trees.lead("shop", ["acme", "globex"], 60)

    trees.record_commit(COMMIT, "changed", CONTEXT)

    assert [call.lease for call in wire.sent[-1]] == ["3.x", ""]
    assert all(call.fields["lease"] == "3.x" for call in wire.sent[-1])
