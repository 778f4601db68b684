"""Calls from outside: who is it, which organization is it for, and what if that cannot be told."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.build import IdentityService, microseconds
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnusableError,
)
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import NO_LOOKUPS, Lookups
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.eventstore.writers import WRITERS, WRITERS_VERSION
from reconciler.service.operations import custody, engine
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.callers import revoke_token, token_hash
from reconciler.service.operations.commit import Commit
from reconciler.service.operations.dispatch import TURN_BYTES, Dispatcher, Incoming, Received
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request
from reconciler.service.operations.texts import Encoded, answer_bytes, json_bytes
from reconciler.service.projections.maintenance import verify
from tests.memory_store import MemoryEventStore, open_memory
from tests.running import Known, furnish

UNREADABLE = Refusal(Code.INVALID_ARGUMENT, "the fields", "no.fields")
NOBODY = (Code.UNAUTHENTICATED, "the token is not known to this service")


@pytest.fixture
def service() -> IdentityService:
    """Return a service that holds nothing."""
    return open_memory()


@pytest.fixture
def known(service: IdentityService) -> Known:
    """Furnish the service."""
    return furnish(service)


def incoming(token: str, operation: str = "GetMyOrg", fields: Any = None, **more: str) -> Incoming:
    """Return a call with a token; headers by keyword."""
    headers = {name.replace("_", "-"): [value] for name, value in more.items()}
    return Incoming(operation, fields or {}, {"authorization": [f"Bearer {token}"], **headers})


def refused(received: Received) -> tuple[Code, str]:
    """Return code and message of a refusal."""
    assert isinstance(received.answer, Refusal)
    return received.answer.code, received.answer.message


def test_each_call_of_a_batch_is_its_own_callers(service: IdentityService, known: Known) -> None:
    """Answers come in the order of the calls, those of refused ones in their places."""
    tokens = [known.tokens[name] for name in ("editor", "stranger", "editor")]
    calls = [incoming(token) for token in tokens]
    calls.insert(1, incoming("nonsense"))

    received = service.dispatcher.receive(calls)

    assert refused(received[1]) == NOBODY
    assert [one.caller for one in received] == ["editor", "", "stranger", "editor"]
    own = [one.answer["org"]["id"] for one in received if isinstance(one.answer, dict)]
    assert own == [known.organization, known.other_organization, known.organization]


def test_only_who_is_known_is_told_what_is_wrong(service: IdentityService, known: Known) -> None:
    """What could not be read of a request, and what is odd beside it."""
    editor = known.tokens["editor"]
    calls = [
        incoming("nonsense", fields=UNREADABLE),
        incoming("nonsense", if_match="41"),
        incoming(editor, fields=UNREADABLE, if_match="41"),
        incoming(editor, if_match="41"),
    ]

    told = [refused(received) for received in service.dispatcher.receive(calls)]

    assert told[:3] == [NOBODY, NOBODY, (Code.INVALID_ARGUMENT, "the fields")]
    assert told[3][1].startswith("if-match: ")


def test_what_comes_beside_a_request_reaches_its_operation(
    service: IdentityService, known: Known
) -> None:
    """Each header by what it does: names, expects, repeats, holds, explains."""
    admin, action = known.tokens["admin"], {"name": "greet", "script": "function greet() {}"}
    other = {"x_service_orgid": known.other_organization}

    def receive(operation: str, fields: dict[str, Any], **more: str) -> Any:
        (received,) = service.dispatcher.receive([incoming(admin, operation, fields, **more)])
        return received.answer

    made = receive("CreateAction", action, idempotency_key="k", **other)
    again = receive("CreateAction", action, idempotency_key="k", **other)
    assert (made["details"]["resourceOwner"], again) == (known.other_organization, made)
    expected = {"if_match": '"1"', **other}
    assert receive("DeleteAction", {"id": made["id"]}, **expected).reason == "object.moved_on"
    lost = {"x_reconciler_lease": "1.x", **other}
    assert receive("DeleteAction", {"id": made["id"]}, **lost).reason == "lease.lost"
    receive("DeleteAction", {"id": made["id"]}, x_reconciler_context='{"tree":"t"}', **other)
    events = receive("GetObjectHistory", {"id": made["id"]}, **other)["events"]
    assert [(event["context"], event["writer"]) for event in events] == [
        ({}, "admin"),
        ({"tree": "t"}, "admin"),
    ]


def test_a_write_that_is_refused_leaves_the_others_and_the_store_alone(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by its token, it is answered in its place; alone, it costs no commit."""
    action = {"name": "greet", "script": "function greet() {}"}
    good = incoming(known.tokens["editor"], "CreateAction", action)
    bad = incoming("nonsense", "CreateAction", action)

    first, second = service.dispatcher.receive([bad, good])
    assert (first.caller, refused(first)) == ("", NOBODY)
    assert (second.caller, isinstance(second.answer, Refusal)) == ("editor", False)
    monkeypatch.delattr(Engine, "write")
    assert [refused(each) for each in service.dispatcher.receive([bad, bad])] == [NOBODY] * 2


def test_a_list_is_text_for_a_transport_that_takes_it(
    service: IdentityService, known: Known
) -> None:
    """And values for a caller that takes no body; they say the same.

    A transport that encodes lists in parts has each object encoded as a list of its own.
    """
    action = {"name": "greet", "script": "function greet() {}"}
    service.dispatcher.receive([incoming(known.tokens["editor"], "CreateAction", action)])
    call = incoming(known.tokens["editor"], "ListActions")

    as_text, as_values, in_parts = service.dispatcher.receive(
        [
            replace(call, encode=answer_bytes),
            call,
            replace(call, encode=lambda answer: b"%d" % len(answer["result"]), in_parts=True),
        ]
    )

    assert isinstance(in_parts.answer, dict)
    assert in_parts.answer["result"] == Encoded([b"1"])

    assert isinstance(as_values.answer, dict)
    assert as_text.body == answer_bytes(as_values.answer)
    assert isinstance(as_text.answer, dict)
    assert isinstance(as_text.answer["result"], Encoded)
    assert not Incoming("ListActions", {}, {}).has_left()


def test_health_is_told_to_anybody_and_nothing_else_is(service: IdentityService) -> None:
    """Not even where a token comes along that nobody knows."""
    calls = [
        Incoming("Healthz", {}, {}),
        incoming("nonsense", "Healthz"),
        Incoming("GetIAM", {}, {}),
    ]

    health, with_token, other = service.dispatcher.receive(calls)

    assert health == with_token == Received("", {})
    assert refused(other)[0] is Code.UNAUTHENTICATED


class BrokenStore:
    """A store that fails whenever it is looked at, until it is repaired."""

    def __init__(self, failure: Exception | None, store: EventStore | None = None) -> None:
        self.failure = failure
        self._store = store

    def require_writable(self) -> None:
        """Say nothing against it."""

    def snapshot(self) -> AbstractContextManager[Any]:
        if self.failure or self._store is None:
            raise self.failure or AssertionError
        return self._store.snapshot()


@pytest.mark.parametrize(
    ("failure", "code", "reason", "said"),
    [
        (StoreFullError("/var/secret", "r"), Code.RESOURCE_EXHAUSTED, "store.full", "is full"),
        (StoreBusyError("/var/secret", "r"), Code.UNAVAILABLE, "store.busy", "is busy"),
        (StoreUnusableError("/var/secret", "r"), Code.UNAVAILABLE, "store.unavailable", "be used"),
        (StoreError("/var/secret", "r"), Code.UNAVAILABLE, "store.unavailable", "be used"),
        (MemoryError("/var/secret"), Code.UNAVAILABLE, "service.exhausted", "short of"),
        (OSError(24, "/var/secret"), Code.UNAVAILABLE, "service.exhausted", "short of"),
        (ValueError("/var/secret"), Code.INTERNAL, "service.failed", "the service failed"),
    ],
)
def test_a_failure_of_ours_is_an_answer_that_shows_nothing(
    service: IdentityService,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    *,
    code: Code,
    reason: str,
    said: str,
) -> None:
    """Every call of the batch gets it; what happened stands in the log of the operator."""
    store: Any = BrokenStore(failure)
    dispatcher = Dispatcher(store, service.dispatcher._engine, service.now)

    with caplog.at_level(logging.WARNING, "reconciler.service"):
        received = dispatcher.receive([incoming("a"), incoming("b")])

    assert len(received) == 2
    for one in [*received, dispatcher.take_batch(incoming("a", "WriteBatch"))]:
        assert isinstance(one, Received)
        caller, answer, _ = one
        assert isinstance(answer, Refusal)
        assert (caller, answer.code, answer.reason) == ("", code, reason)
        assert said in answer.message
        assert "secret" not in answer.message
    assert "/var/secret" in caplog.text


WRITES = {f"a{number}": "function a() {}" for number in range(4)}


def batch_of(known: Known, token: str = "", **more: Any) -> Incoming:
    """Return a batch that makes four actions."""
    orders = [
        {
            "operation": "CreateAction",
            "fields": {"name": name, "script": script},
            "idempotencyKey": name,
        }
        for name, script in WRITES.items()
    ]
    fields = {"orders": orders, **more}
    return incoming(token or known.tokens["editor"], "WriteBatch", fields)


def orders_of(service: IdentityService, call: Incoming) -> Orders:
    taken = service.dispatcher.take_batch(call)
    assert isinstance(taken, Orders)
    return taken


def test_a_batch_is_answered_as_a_whole_in_the_form_that_its_transport_takes(
    service: IdentityService, known: Known
) -> None:
    """One answer for each order, and the name of the caller for the log."""
    call = batch_of(known)
    orders = orders_of(service, call)
    while not orders.are_done:
        service.dispatcher.carry_out(orders)

    plain = service.dispatcher.answer_of(call, orders)
    assert plain == Received("editor", orders.answer())
    assert len(orders.answer()["answers"]) == len(WRITES)
    encoded = service.dispatcher.answer_of(replace(call, encode=json_bytes), orders)
    assert encoded == plain._replace(body=json_bytes(orders.answer()))


def test_a_batch_that_is_not_taken_is_refused_with_what_is_known_of_its_caller(
    service: IdentityService, known: Known
) -> None:
    """As any other call."""
    unknown = service.dispatcher.take_batch(batch_of(known, "nonsense"))
    malformed = service.dispatcher.take_batch(batch_of(known, orders=[]))

    assert isinstance(unknown, Received)
    assert isinstance(malformed, Received)
    assert (unknown.caller, refused(unknown)) == ("", NOBODY)
    assert malformed.caller == "editor"
    assert refused(malformed) == (Code.INVALID_ARGUMENT, "orders: must be 1 to 500 orders")


@pytest.mark.parametrize(
    ("failure", "told", "tries"),
    [
        pytest.param(StoreFullError("f", "r"), "store.full", 1, id="a full store"),
        pytest.param(MemoryError(), "service.exhausted", 1, id="no memory"),
        pytest.param(ValueError(), "service.failed", 12, id="a defect"),
    ],
)
def test_the_orders_of_a_batch_that_fails_have_its_failure_for_an_answer(
    service: IdentityService,
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    *,
    told: str,
    tries: int,
) -> None:
    """A defect is met by each order alone, and the rest by all of them at once."""
    met = []

    def fail(engine: Engine, orders: Orders) -> None:
        met.append(orders)
        raise failure

    monkeypatch.setattr(Engine, "write_orders", fail)
    orders = orders_of(service, batch_of(known))
    while not orders.are_done:
        service.dispatcher.carry_out(orders)

    answers = orders.answer()["answers"]
    assert [each["error"]["details"][0]["id"] for each in answers] == [told] * len(WRITES)
    assert len(met) == tries


def test_the_log_has_a_problem_of_the_store_once_and_its_end(
    service: IdentityService, known: Known, caplog: pytest.LogCaptureFixture
) -> None:
    """A busy store would fill the log otherwise. What is wrong with one row is logged each time."""
    busy, broken = StoreBusyError("it is busy", "wait"), StoreError("a bad row", "verify it")
    store: Any = BrokenStore(None, service.store)
    dispatcher = Dispatcher(store, service.dispatcher._engine, service.now)
    call = incoming(known.tokens["editor"])

    def logged(failure: Exception | None) -> list[str]:
        caplog.clear()
        store.failure = failure
        dispatcher.receive([call])
        return [record.getMessage() for record in caplog.records]

    told = {
        failure: [f"the store failed: {failure.problem}. {failure.remedy}"]
        for failure in (busy, broken)
    }
    after = ["the store can be used again"]
    with caplog.at_level(logging.WARNING, "reconciler.service"):
        seen = [logged(each) for each in (None, busy, busy, None, None, broken, broken, None)]
        assert seen == [[], told[busy], [], after, [], told[broken], told[broken], []]
        assert logged(OSError(24, "f")) == [
            f"out of memory or file descriptors: {OSError(24, 'f')!r}"
        ]
        assert logged(ValueError("f")) == ["a call failed"]


@pytest.mark.parametrize("in_batch", [False, True])
def test_a_read_does_not_end_a_problem_of_writes(
    service: IdentityService, known: Known, caplog: pytest.LogCaptureFixture, *, in_batch: bool
) -> None:
    """Otherwise reads between looks at readiness would log both for as long as it lasts."""
    store: Any = BrokenStore(None, service.store)
    dispatcher = Dispatcher(store, service.dispatcher._engine, service.now)
    read = incoming(known.tokens["editor"])
    action = {"name": "greet", "script": "x"}
    write = incoming(known.tokens["editor"], "CreateAction", action)
    caplog.set_level(logging.WARNING, "reconciler.service")
    dispatcher.receive([write])
    assert caplog.messages == []

    for failure in (StoreFullError("it is full", "make room"), None, None):
        store.failure = failure
        dispatcher.receive([read])
    assert len(caplog.records) == 1
    if in_batch:
        orders = orders_of(service, batch_of(known))
        while not orders.are_done:
            dispatcher.carry_out(orders)
    else:
        dispatcher.receive([write])

    assert caplog.messages[1:] == ["the store can be used again"]


@pytest.mark.parametrize("failure", [None, StoreError("gone", "wait")])
def test_readiness_is_that_the_store_can_be_read(
    service: IdentityService, failure: StoreError | None
) -> None:
    """A server whose store is gone is left out of the balance, and not restarted for it."""
    store: Any = BrokenStore(failure) if failure else service.store

    assert Dispatcher(store, service.dispatcher._engine, service.now).is_ready() is (
        failure is None
    )


def test_a_store_that_a_newer_version_writes_to_is_not_ready(
    service: IdentityService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of this version could only read it."""
    store: Any = service.store
    monkeypatch.setitem(store._meta, WRITERS, str(WRITERS_VERSION + 1))

    assert not service.dispatcher.is_ready()


def test_a_token_of_one_organization_is_known_by_it_from_its_second_call_on() -> None:
    """Most clients name no organization; their writes are to share commits all the same."""
    service = open_memory()
    known = furnish(service)
    calls = {
        name: Incoming("GetMyOrg", {}, {"authorization": [f"Bearer {token}"]})
        for name, token in known.tokens.items()
    }

    before = [service.dispatcher.organization_of(call) for call in calls.values()]
    service.dispatcher.receive(list(calls.values()))
    after = {name: service.dispatcher.organization_of(call) for name, call in calls.items()}

    assert set(before) == {""}
    assert after == {
        "admin": "",
        "editor": known.organization,
        "viewer": known.organization,
        "stranger": known.other_organization,
    }


def test_no_more_callers_are_kept_than_there_is_room_for(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are looked for again."""
    monkeypatch.setattr("reconciler.service.operations.dispatch.MOST_CALLERS", 2)
    calls = [incoming(known.tokens[name]) for name in ("editor", "viewer", "stranger")]
    kept = []

    for call in calls:
        (received,) = service.dispatcher.receive([call])
        assert not isinstance(received.answer, Refusal)
        kept.append([bool(service.dispatcher.organization_of(each)) for each in calls])

    assert kept == [[True, False, False], [True, True, False], [False, False, True]]


def test_a_caller_that_is_known_costs_no_look_at_the_store_until_its_token_ends(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit checks the token. Callers that are not known are looked for together."""
    done: list[object] = []
    store: Any = service.store
    snapshot, hold_tokens = store.snapshot, store.hold_tokens

    def look() -> Any:
        done.append("a look")
        return snapshot()

    def hold(hashes: Collection[bytes]) -> None:
        done.append(hashes)
        hold_tokens(hashes)

    monkeypatch.setattr(store, "snapshot", look)
    monkeypatch.setattr(store, "hold_tokens", hold)
    editor = known.tokens["editor"]
    hashes = {token_hash(editor)}

    def written(*names: str) -> list[tuple[str, str]]:
        done.clear()
        calls = [incoming(editor, "CreateAction", {"name": name, "script": "x"}) for name in names]
        return [
            (each.caller, each.answer.reason if isinstance(each.answer, Refusal) else "")
            for each in service.dispatcher.receive(calls)
        ]

    assert (written("a"), done[:2]) == ([("editor", "")], ["a look", hashes])
    assert (written("a"), done) == ([("editor", "name.taken")], [hashes])
    assert (written("b"), done) == ([("editor", "")], [hashes])
    assert revoke_token(service.store, "editor", service.now())
    assert (written("c", "d"), done[0]) == ([("editor", "token.revoked")] * 2, hashes)
    assert (written("e"), done) == ([("", "token.revoked")], ["a look", hashes])


@pytest.mark.parametrize("authorization", [[], ["Bearer nonsense"], ["Basic x"], ["Bearer a"] * 2])
def test_the_organization_that_is_named_counts_whoever_asks(authorization: list[str]) -> None:
    """Whether the caller may is asked later, of the store."""
    dispatcher = open_memory().dispatcher
    for headers, named in (
        ({"x-service-orgid": ["7"]}, "7"),
        ({"x-zitadel-orgid": ["8"]}, "8"),
        ({}, ""),
    ):
        call = Incoming("CreateAction", {}, {**headers, "authorization": authorization})

        assert dispatcher.organization_of(call) == named


class SpoiltKey:
    """A sealing key that cannot be used."""

    def ready(self) -> NoReturn:
        raise StoreError("the sealing key /var/secret holds no key", "put it back")

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        self.ready()

    def open(self, sealed: bytes) -> None:
        raise StoreError("the sealing key /var/secret holds no key", "put it back")


def mixed_calls(known: Known) -> list[Incoming]:
    """Return writes of which every tenth makes a secret that has to be sealed."""
    editor = known.tokens["editor"]
    calls = [
        incoming(editor, "CreateAction", {"name": f"a{number}", "script": "x"})
        for number in range(30)
    ]
    for number in (3, 13, 23):
        fields = {
            "projectId": known.project,
            "name": f"app{number}",
            "appType": "OIDC_APP_TYPE_WEB",
            "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
        }
        calls[number] = incoming(editor, "AddOIDCApp", fields, idempotency_key=str(number))
    return calls


@pytest.fixture(params=["memory", "sqlite"])
def spoilt(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[IdentityService]:
    """Yield a service whose sealing key cannot be used."""
    store: EventStore = MemoryEventStore(microseconds)
    if request.param == "sqlite":
        create(tmp_path / "identity.db")
        store = SqliteEventStore(tmp_path / "identity.db", microseconds)
    with closing(IdentityService(store, SpoiltKey(), microseconds)) as service:
        yield service


def test_a_key_that_cannot_be_used_fails_only_the_calls_that_need_it(
    spoilt: IdentityService, caplog: pytest.LogCaptureFixture
) -> None:
    """Calls of others share their commit; these are written all the same, each once."""
    known = furnish(spoilt)

    answers = [received.answer for received in spoilt.dispatcher.receive(mixed_calls(known))]

    failed = [number for number, answer in enumerate(answers) if isinstance(answer, Refusal)]
    assert failed == [3, 13, 23]
    assert {answer.reason for answer in answers if isinstance(answer, Refusal)} == {
        "store.unavailable"
    }
    assert "holds no key" in caplog.text
    with spoilt.store.snapshot() as view:
        held = view.objects_page(known.organization)
    assert sorted(row.name for row in held if row.kind == Kind.ACTION) == sorted(
        f"a{number}" for number in range(30) if number not in {3, 13, 23}
    )
    assert verify(spoilt.store) == []


def test_a_key_that_cannot_be_used_is_met_once_in_a_commit_of_a_batch(
    spoilt: IdentityService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its other orders are carried out; no order is tried on its own, or fills the log."""
    calls = mixed_calls(furnish(spoilt))
    orders = [
        {
            "operation": call.operation,
            "fields": dict(call.fields) if isinstance(call.fields, dict) else {},
            "idempotencyKey": f"key{number}",
        }
        for number, call in enumerate([*calls[:4], *[calls[13]] * 40])
    ]
    taken = spoilt.dispatcher.take_batch(
        replace(calls[0], operation="WriteBatch", fields={"orders": orders})
    )
    assert isinstance(taken, Orders)
    really, tries, commits = type(spoilt.store).transaction, [0], 0

    def counted(*arguments: Any) -> Any:
        tries[0] += 1
        return really(*arguments)

    monkeypatch.setattr(type(spoilt.store), "transaction", counted)
    monkeypatch.setattr(engine, "HELD_SECONDS", 60.0)  # on a busy machine, too, for many orders
    while not taken.are_done:
        commits += 1
        spoilt.dispatcher.carry_out(taken)

    answers = taken.answer()["answers"]
    assert ["answer" in answer for answer in answers] == [True] * 3 + [False] * 41
    assert {answer["error"]["details"][0]["id"] for answer in answers[3:]} == {"store.unavailable"}
    assert tries[0] == commits < 20
    assert caplog.text.count("holds no key") <= commits
    assert verify(spoilt.store) == []


def test_a_write_that_meets_a_defect_fails_alone(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ours, in one operation: the others of its batch do not know of it."""
    monkeypatch.setattr(custody, "keep", lambda *_: 1 // 0)  # reached by every write
    calls = mixed_calls(known)
    really = Commit.carry_out

    def fragile(commit: Commit, request: Request) -> Any:
        return really(commit, request) if request.operation == "AddOIDCApp" else {}

    monkeypatch.setattr(Commit, "carry_out", fragile)

    answers = [received.answer for received in service.dispatcher.receive(calls)]

    failed = [number for number, answer in enumerate(answers) if isinstance(answer, Refusal)]
    assert failed == [3, 13, 23]
    assert refused(Received("", answers[3])) == (Code.INTERNAL, "the service failed")


@pytest.mark.parametrize(
    "failure",
    [StoreFullError("f", "r"), StoreReadOnlyError("f", "r"), StoreBusyError("f", "r"), OSError(12)],
)
def test_a_failure_of_the_whole_store_is_met_once(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """To try each call on its own would take longer, and change nothing."""
    met = []

    def fail(engine: Engine, requests: Sequence[Request], **named: bool) -> Any:
        met.append(len(requests))
        raise failure

    monkeypatch.setattr(Engine, "write", fail)

    service.dispatcher.receive(mixed_calls(known))

    assert met == [30]


def test_no_read_is_begun_once_answers_are_long(service: IdentityService, known: Known) -> None:
    """Whether their caller takes them is seen before more are made."""
    call = incoming(known.tokens["editor"])
    long = replace(call, encode=lambda _: bytes(TURN_BYTES // 2))

    assert len(service.dispatcher.receive([long] * 5)) == 2
    longer = replace(call, encode=lambda _: bytes(TURN_BYTES - 1))
    assert len(service.dispatcher.receive([longer] * 5)) == 2
    assert len(service.dispatcher.receive([call] * 5)) == 5


def test_a_read_that_meets_a_defect_takes_no_time_from_the_others(
    service: IdentityService, known: Known
) -> None:
    """It fails alone. The others keep their order, and what has no time left waits."""

    def fail(answer: Any) -> bytes:
        raise ValueError(answer)

    call = incoming(known.tokens["editor"])
    calls = [replace(call, encode=fail), *[call] * 7]

    in_time, at_once = (service.dispatcher.receive(calls, seconds) for seconds in (60.0, 0.0))

    assert [isinstance(each.answer, Refusal) for each in in_time] == [True] + [False] * 7
    assert refused(in_time[0]) == (Code.INTERNAL, "the service failed")
    assert at_once == in_time[:3]


def test_an_object_is_encoded_once_and_again_after_a_change(
    service: IdentityService, known: Known
) -> None:
    """For each encoding; and nobody gets the bytes who may not see the object."""
    editor, encoded = known.tokens["editor"], []

    def encode(answer: dict[str, Any]) -> bytes:
        encoded.append(answer["action"]["name"])
        return json_bytes(answer)

    action = {"name": "first", "script": "function first() {}"}
    ((_, made, _),) = service.dispatcher.receive([incoming(editor, "CreateAction", action)])
    assert not isinstance(made, Refusal)
    read = replace(incoming(editor, "GetAction", {"id": made["id"]}), encode=encode)
    change = incoming(editor, "UpdateAction", {**action, "id": made["id"], "name": "second"})
    stranger = replace(read, headers=incoming(known.tokens["stranger"]).headers)

    bodies = [each.body for each in service.dispatcher.receive([read, read])]
    assert bodies[0] == bodies[1]
    assert b'"first"' in bodies[0]
    _, after = service.dispatcher.receive([change, read])  # of one transaction
    assert b'"second"' in after.body
    assert refused(service.dispatcher.receive([stranger])[0])[0] is Code.NOT_FOUND
    assert service.dispatcher.receive([read])[0] == after
    assert encoded == ["first", "second"]


def test_a_call_that_asks_the_same_as_the_one_before_it_has_its_answer(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that differs in a field, a header, its caller or only in the type of a value none."""
    carried_out: list[Request] = []
    read = Engine.read

    def counted(engine: Engine, view: Snapshot, requests: Sequence[Request]) -> Any:
        carried_out.extend(requests)
        return read(engine, view, requests)

    monkeypatch.setattr(Engine, "read", counted)
    editor, viewer = known.tokens["editor"], known.tokens["viewer"]
    asked = [
        incoming(editor, "ListActions", {"query": {"limit": 1}}),
        incoming(editor, "ListActions", {"query": {"limit": 1}}),
        incoming(editor, "ListActions", {"query": {"limit": True}}),
        incoming(editor, "ListActions", {"query": {"limit": 2}}),
        incoming(viewer, "ListActions", {"query": {"limit": 2}}),
        incoming(viewer, "ListActions", {"query": {"limit": 2}}, x_zitadel_orgid="1"),
        replace(incoming(viewer, "ListActions", {"query": {"limit": 2}}), encode=answer_bytes),
    ]
    alone = [service.dispatcher.receive([call])[0] for call in asked]
    carried_out.clear()
    assert repr(service.dispatcher.receive(asked)) == repr(alone)
    assert len(carried_out) == len(asked) - 1
    assert isinstance(alone[2].answer, Refusal)


@pytest.mark.parametrize("late", [0, 1])
def test_calls_that_fail_together_still_share_their_commits_when_halved(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """So one that something keeps waiting has no answer, and those before it have theirs."""
    write = Engine.write

    def fail(engine: Engine, requests: Sequence[Request], *, is_shared: bool) -> Any:
        if len(requests) > 1:
            raise ValueError("one of them")
        if requests[0].fields["name"] == f"a{late}":
            raise StoreBusyError("others were faster", "Try again.")
        return write(engine, requests, is_shared=is_shared)

    monkeypatch.setattr(Engine, "write", fail)
    calls = mixed_calls(known)[:2]

    assert len(service.dispatcher.receive(calls, is_shared=True)) == late


def test_an_organization_that_loses_every_race_does_not_make_others_lose(
    service: IdentityService, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share a commit with it, which fails; then each is tried alone."""
    transaction = service.store.transaction

    def begin(asked: Lookups = NO_LOOKUPS) -> AbstractContextManager[Transaction]:
        if known.organization in asked.organizations:
            raise StoreConflictError("others were faster", "Try again.")
        return transaction(asked)

    monkeypatch.setattr(service.store, "transaction", begin)
    fields = {"name": "greet", "script": "function greet() {}"}
    late, other = (
        incoming(known.tokens[name], "CreateAction", fields) for name in ("editor", "stranger")
    )

    assert service.dispatcher.receive([late, other], is_shared=True) == []

    assert refused(service.dispatcher.receive([late])[0])[0] is Code.ABORTED
    assert not isinstance(service.dispatcher.receive([other])[0].answer, Refusal)
