"""The client over a wire: what it writes, in which batches, and to which kind of service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import AlreadyExistsError, ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.resources.secret import Secret
from reconciler.service_client.client import (
    BATCH,
    OperationsClient,
    RemoteService,
    client_of,
    read_only_client,
)
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.read_only import OperationsReader
from reconciler.service_client.wire import Answer, WireRefusal
from reconciler.service_client.zitadel.client import ZitadelClient
from tests.builders import GREET, WEB, a_ref, an_action, an_application, declared, held
from tests.rows import each_row
from tests.unit.service_client.fake_wire import CONTEXT, HERE, FakeWire, done, operations_of

# Writing.


def test_an_answer_tells_what_was_made() -> None:
    """Id, client id, the one-time secret and what the service complains of."""
    wire = FakeWire(
        AddOIDCApp=done(
            7,
            appId="12",
            clientId="12@shop",
            clientSecret="geheim",
        ),
        CreateAction=done(8, id="13"),
    )
    orders = [CreateOrder(declared(WEB)), CreateOrder(declared(GREET))]

    results = OperationsClient(wire, HERE).write(orders, CONTEXT)

    assert results == [
        Written("12", 7, "12@shop", Secret("geheim")),
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
    create = CreateOrder(declared(a_ref(name="made")))
    update = UpdateOrder(declared(a_ref(name="new")), held(WEB, an_application(devMode=True)))

    made, second = OperationsClient(wire, HERE).write([create, update], CONTEXT)

    assert made == Written("12", 7, "12@shop", Secret("geheim"))
    assert isinstance(second, ServiceUnavailableError)
    assert (second.problem, second.remedy) == ("the disk is full", "Make room.")


def test_a_wire_that_fails_at_once_is_an_error() -> None:
    """Nothing is known of any order."""
    wire = FakeWire(CreateAction=ServiceError("no", remedy="r"))

    with pytest.raises(ServiceError, match="no"):
        OperationsClient(wire, HERE).write([CreateOrder(declared(GREET))], CONTEXT)


def test_a_new_secret_is_told_with_the_client_id_it_belongs_to() -> None:
    """The service answers the secret alone."""
    wire = FakeWire(RegenerateOIDCClientSecret=done(9, clientSecret="neu"))

    results = OperationsClient(wire, HERE).write(
        [
            SecretOrder(
                held(WEB, object_id="12", organization_id="1", project_id="2", client_id="12@shop")
            )
        ],
        CONTEXT,
    )

    assert results == [Written("12", 9, "12@shop", Secret("neu"))]


@each_row("problems", [None, 7, "K1", [None], {}])
def test_problems_of_any_form_keep_no_create_from_being_written(problems: object) -> None:
    """They are told by the plan; what the service answers of them is not read."""
    made = done(7, appId="12", clientId="12@shop", complianceProblems=problems)
    client = OperationsClient(FakeWire(AddOIDCApp=made), HERE)

    assert client.write([CreateOrder(declared(WEB))], CONTEXT) == [Written("12", 7, "12@shop")]


def test_nothing_to_write_is_nothing_sent() -> None:
    """An apply with nothing to change writes nothing."""
    wire = FakeWire()

    assert OperationsClient(wire, HERE).write([], CONTEXT) == []
    assert wire.sent == []


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


def test_writes_go_in_batches_where_the_service_has_them() -> None:
    wire, client = packing(**INFO)
    orders = [CreateOrder(declared(GREET)) for _ in "ab"]

    results = client.write(orders, CONTEXT)

    assert results == [Written("3", 7), Written("4", 7)]
    assert operations_of(wire) == [["WriteBatch"]]
    assert client.batch_size == 500


@each_row("batch", [None, 0, 1, -5, True, "500"])
def test_a_service_that_has_no_batches_is_called_as_ever(batch: object) -> None:
    """An older one does not tell; what is no number is none."""
    wire, client = packing(**{**INFO, "batch": batch})

    client.write([CreateOrder(declared(GREET)) for _ in "ab"], CONTEXT)

    assert operations_of(wire) == [["CreateAction", "CreateAction"]]
    assert client.batch_size == 64


@each_row("batch", [None, 500])
def test_every_write_over_a_network_has_a_key_of_its_own(batch: object) -> None:
    """Where its answer is lost it is asked for again, and counts once."""
    wire, client = packing(**{**INFO, "batch": batch})
    wire.replies |= {"UpdateAction": done(7), "DeleteAction": done(8)}
    orders: list[Order] = [
        CreateOrder(declared(GREET)),
        UpdateOrder(declared(GREET), held(GREET, an_action(timeout="1s"))),
        DeleteOrder(held(GREET)),
    ]

    for order in orders:
        client.write([order], CONTEXT)

    keys = {call.idempotency_key for (call,) in wire.sent}
    assert len(keys - {""}) == 3


def test_a_service_may_take_more_than_a_lock_lasts() -> None:
    """Signals and the lease are looked after between batches."""
    _, client = packing(**{**INFO, "batch": 10**9})

    assert client.batch_size == 500


def test_in_process_a_batch_is_one_commit_already() -> None:
    wire = FakeWire(GetServiceInfo=Answer(INFO), CreateAction=done(7, id="3"))
    client = OperationsClient(wire, HERE)
    client.instance()

    client.write([CreateOrder(declared(GREET)) for _ in "ab"], CONTEXT)

    assert operations_of(wire)[1:] == [["CreateAction", "CreateAction"]]


# Which client a service needs.

OURS = Answer({"product": "reconciler"})
NOT_THERE = WireRefusal(Code.NOT_FOUND, "no such address")


class OneReply:
    """Gives one reply to every call."""

    def __init__(self, reply: Answer | WireRefusal) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Return the reply for each call."""
        self.asked += [call.operation for call in calls]
        return [self.reply for _ in calls]


def a_service(
    folder: Path, reply: Answer | WireRefusal = OURS, kind: str = "auto"
) -> RemoteService:
    return RemoteService(OneReply(reply), HERE, kind, "https://id.example.com", folder)


@pytest.mark.parametrize(
    ("per_second", "batch"), [(0, BATCH), (-1, BATCH), (1, 20), (0.01, 1), (100, BATCH)]
)
def test_a_batch_takes_no_longer_than_a_lock_lasts(
    tmp_path: Path, per_second: float, batch: int
) -> None:
    assert replace(a_service(tmp_path), per_second=per_second).batch == batch


@pytest.mark.parametrize(
    ("kind", "reply", "writer", "reader"),
    [
        ("auto", OURS, OperationsClient, OperationsReader),
        ("auto", NOT_THERE, ZitadelClient, ZitadelClient),
        ("auto", replace(NOT_THERE, code=Code.UNIMPLEMENTED), ZitadelClient, ZitadelClient),
        ("reconciler", NOT_THERE, OperationsClient, OperationsReader),
        ("zitadel", OURS, ZitadelClient, ZitadelClient),
    ],
)
def test_the_client_is_that_of_the_service(
    tmp_path: Path, kind: str, reply: Answer | WireRefusal, writer: type, reader: type
) -> None:
    """A service is asked what it is only where nobody said so."""
    service = a_service(tmp_path, reply, kind)

    assert isinstance(client_of(service), writer)
    assert isinstance(read_only_client(service), reader)
    assert isinstance(service.wire, OneReply)
    assert service.wire.asked == ["GetServiceInfo"] * 2 * (kind == "auto")


@pytest.mark.parametrize("changed", [{"code": Code.UNAUTHENTICATED}, {"unsure": True}])
def test_a_service_that_does_not_say_what_it_is_is_an_error(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """A token that is wrong, or an answer of something in between, is no other kind."""
    with pytest.raises(ServiceError):
        client_of(a_service(tmp_path, replace(NOT_THERE, **changed)))


@pytest.mark.parametrize("said", [{}, {"product": "another"}, {"product": None}])
def test_a_program_that_has_an_answer_to_everything_is_no_service(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    """A ZITADEL refuses the address. Where the kind is given, that counts."""
    with pytest.raises(ServiceError, match=r"//id\.example\.com is not an identity"):
        client_of(a_service(tmp_path, Answer(said)))

    assert isinstance(client_of(a_service(tmp_path, Answer(said), "zitadel")), ZitadelClient)
