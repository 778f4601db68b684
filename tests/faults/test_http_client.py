"""The client over HTTP on bad days: what is lost, late, garbled, hostile or far too large."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from reconciler.apply.outcome import Status
from reconciler.errors import (
    AccessDeniedError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service_client.connect import RemoteService
from reconciler.service_client.http_wire import Limits
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import Answer, WireRefusal
from tests.builders import a_ref, an_action, an_application, declared, desired
from tests.fault_proxy import at_random, fault_proxy
from tests.http_clients import QUICK, apply_with, http_client, http_wire, plan_with
from tests.listening import listening
from tests.running import Server, running_server

CANARY = "rct_canary-that-must-not-be-seen"
CONTEXT = {"tree": "default"}
LOOK = Call("GetServiceInfo")
MAKE = Call("CreateAction", {"name": "a", "script": "s"}, "1")
BATCH = Call("WriteBatch", {"orders": []})
SHORT = Limits(connect=1, silence=0.3, one_try=0.6, total=1.5, size=100_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server for all tests of this module."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


# Ambiguous writes.


def test_creates_whose_answers_are_lost_make_no_duplicates_and_lose_no_secret(
    server: Server,
) -> None:
    """Four hundred creates; two of five requests come to harm on the way, or twice."""
    known = server.known
    refs = [a_ref(name=f"app{uuid.uuid4().hex}") for _ in range(200)]
    refs += [a_ref(Kind.ACTION, f"action{uuid.uuid4().hex}") for _ in range(200)]
    orders = [
        CreateOrder(ref, declared(ref).spec, uuid.uuid4().hex, known.organization, known.project)
        for ref in refs
    ]
    before = len(server.events())
    with (
        fault_proxy(server.address, at_random(11, 0.4)) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        results = [
            result
            for at in range(0, 400, 64)
            for result in client.write(orders[at : at + 64], CONTEXT)
        ]
    with http_client(server.address, server.token()) as plain:
        first_answers = list(plain.write(orders, CONTEXT))
        held = plain.observe(["acme"]).objects

    assert sum(proxy.done.values()) - proxy.done[""] > 120
    assert [result for result in results if not isinstance(result, Written)] == []
    assert results == first_answers, "what was delivered is what the service made"
    assert all(isinstance(result, Written) and result.client_secret for result in results[:200])
    assert {held[ref.key].id for ref in refs} == {r.id for r in results if isinstance(r, Written)}
    assert len(server.events()) == before + 400


def test_updates_and_deletes_whose_answers_are_lost_are_done_once(server: Server) -> None:
    """The second try meets an object that has moved on: by our own doing, so it is a success."""
    known = server.known
    ref = a_ref(Kind.ACTION, f"greet{uuid.uuid4().hex}")
    web = a_ref(name=f"web{uuid.uuid4().hex}")
    with http_client(server.address, server.token()) as plain:
        plain.write(
            [
                CreateOrder(ref, declared(ref).spec, uuid.uuid4().hex, known.organization),
                CreateOrder(
                    web, declared(web).spec, uuid.uuid4().hex, known.organization, known.project
                ),
            ],
            CONTEXT,
        )
        held = plain.observe(["acme"]).objects
        before = len(server.events())
        renamed = a_ref(name=f"new{uuid.uuid4().hex}")
        left = iter(["reset after", "half an answer", "garbage", "unavailable after"] * 10)
        with (
            fault_proxy(
                server.address, lambda first: next(left) if first[:3] == b"PUT" else ""
            ) as proxy,
            http_client(proxy.address, server.token()) as client,
        ):
            proxy.choose = once_each(b"PUT", b"DELETE")
            first, second = client.write(
                [
                    UpdateOrder(declared(ref, an_action(timeout="1s")), held[ref.key]),
                    UpdateOrder(declared(renamed, an_application(devMode=True)), held[web.key]),
                ],
                CONTEXT,
            )
            now = plain.observe(["acme"]).objects
            assert isinstance(first, Written)
            assert isinstance(second, Written)
            assert first.sequence == now[ref.key].sequence
            assert second.sequence == now[renamed.key].sequence
            assert len(server.events()) == before + 3
            proxy.choose = once_each(b"PUT", b"DELETE")
            gone = client.write([DeleteOrder(now[ref.key]), DeleteOrder(now[renamed.key])], CONTEXT)

    assert all(isinstance(result, Written) for result in gone), gone
    assert len(server.events()) == before + 5


def once_each(*verbs: bytes) -> Callable[[bytes], str]:
    """Return a choice that loses the first answer to each request, and no second one."""
    seen: set[bytes] = set()

    def choose(first: bytes) -> str:
        if first.split(b" ")[0] not in verbs or first in seen:
            return ""
        seen.add(first)
        return "reset after"

    return choose


def test_what_somebody_else_changed_is_still_a_conflict(server: Server) -> None:
    """An answer that was lost must not hide another writer."""
    known = server.known
    ref = a_ref(Kind.ACTION, f"greet{uuid.uuid4().hex}")
    with http_client(server.address, server.token()) as plain:
        plain.write(
            [CreateOrder(ref, declared(ref).spec, uuid.uuid4().hex, known.organization)], CONTEXT
        )
        stale = plain.observe(["acme"]).objects[ref.key]
        plain.write([UpdateOrder(declared(ref, an_action(timeout="9s")), stale)], CONTEXT)
    with (
        fault_proxy(server.address, once_each(b"PUT")) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        order = UpdateOrder(declared(ref, an_action(timeout="1s")), stale)
        (refused,) = client.write([order], CONTEXT)

    assert isinstance(refused, ServiceError)


def test_a_new_secret_is_made_once_however_often_its_answer_is_lost(server: Server) -> None:
    """The one that arrives is the one that counts."""
    known = server.known
    web = a_ref(name=f"web{uuid.uuid4().hex}")
    with http_client(server.address, server.token()) as plain:
        (made,) = plain.write(
            [
                CreateOrder(
                    web, declared(web).spec, uuid.uuid4().hex, known.organization, known.project
                )
            ],
            CONTEXT,
        )
    assert isinstance(made, Written)
    before = len(server.events())
    left = iter(["reset after", "half an answer", "garbage", "twice"])
    with (
        fault_proxy(server.address, lambda _: next(left, "")) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        order = SecretOrder(web, made.id, known.organization, known.project, made.client_id)
        (result,) = client.write([order], CONTEXT)

    assert isinstance(result, Written)
    assert result.client_secret is not None
    assert len(server.events()) == before + 1


def test_a_whole_run_through_a_bad_line_converges(tmp_path: Path) -> None:
    """Plan, apply, leases, and looking again: everything is asked until it is answered."""
    state = desired(
        *(declared(a_ref(name=f"app{index}")) for index in range(40)),
        *(declared(a_ref(Kind.ACTION, f"action{index}")) for index in range(40)),
    )
    everything = (b"GET", b"POST", b"PUT", b"DELETE")
    with (
        running_server(tmp_path) as server,
        fault_proxy(server.address, at_random(5, 0.3, verbs=everything)) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        client.acquire(["acme"])
        report = apply_with(client, state, tmp_path)
        client.release()

        assert report.remaining == 0
        assert plan_with(client, state).changes == ()
    assert len(list((tmp_path / "secrets").glob("*.json"))) == 40


def test_a_service_that_is_gone_ends_a_run_and_the_journal_stays_open(tmp_path: Path) -> None:
    """Nobody knows what became of the batch under way; the rest is not begun."""
    state = desired(*(declared(a_ref(name=f"app{index}")) for index in range(100)))
    with running_server(tmp_path) as server:
        with (
            fault_proxy(
                server.address, lambda first: "reset after" if b"/batch" in first else ""
            ) as proxy,
            http_client(
                proxy.address, server.token(), limits=Limits(one_try=1, total=1.5)
            ) as client,
        ):
            client.observe(["acme"])
            client.batch_size = 64
            report = apply_with(client, state, tmp_path)
        with http_client(server.address, server.token()) as client:
            client.acquire(["acme"])
            made = apply_with(client, state, tmp_path)
            client.release()
            assert made.remaining == 0

    assert report.count(Status.FAILED) == 64
    assert report.count(Status.NOT_TRIED) == 36
    assert {delivered.error for delivered in made.delivered} == {None}
    assert len(list((tmp_path / "secrets").glob("*.json"))) == 100


# Services that are strange.


class Strange:
    """An application that answers as it is told and counts what it is asked."""

    def __init__(self, *answers: tuple[int, Mapping[str, str], bytes]) -> None:
        self._answers = answers
        self.asked: list[tuple[float, str]] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        import asyncio

        number = len(self.asked)
        self.asked.append((time.monotonic(), f"{scope['method']} {scope['path']}"))
        self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        status, headers, body = self._answers[min(number, len(self._answers) - 1)]
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})


JSON = {"content-type": "application/json"}
FINE = (200, JSON, b'{"instance": "1", "product": "reconciler"}')


def asked_of(strange: Strange, *calls: Call, limits: Limits = SHORT) -> list[Answer | WireRefusal]:
    """Return what a strange service answers."""
    with listening(strange) as address, http_wire(address, CANARY, limits) as wire:
        return list(wire.send(calls))


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_service_is_asked_again(status: int) -> None:
    """A hiccup of a gateway is no reason to fail a whole run."""
    strange = Strange((status, {}, b""), (status, {}, b""), FINE)

    (reply,) = asked_of(strange, LOOK)

    assert isinstance(reply, Answer)
    assert len(strange.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 412, 500, 501])
def test_a_refusal_is_not_asked_again(status: int) -> None:
    """It would be refused again."""
    strange = Strange((status, {}, b""))

    (reply,) = asked_of(strange, LOOK)

    assert isinstance(reply, WireRefusal)
    assert str(status) in reply.message
    assert len(strange.asked) == 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_create_without_a_key_is_not_sent_twice(status: int) -> None:
    """Nobody knows if the first was carried out; the caller must look."""
    strange = Strange((status, {}, b""), FINE)

    (reply,) = asked_of(strange, MAKE)

    assert isinstance(reply, WireRefusal)
    assert reply.unsure
    assert len(strange.asked) == 1


def test_a_create_that_was_turned_away_may_be_sent_again() -> None:
    """Too many requests: that one was certainly not carried out."""
    strange = Strange((429, {}, b""), FINE)

    assert isinstance(asked_of(strange, MAKE)[0], Answer)


@pytest.mark.parametrize(
    ("told", "least"),
    [("1", 1.0), ("0", 0.0), ("-5", 0.0), ("soon", 0.0), ("", 0.0), ("date", 0.3)],
)
def test_a_service_is_given_the_time_it_asks_for(told: str, least: float) -> None:
    """Coming back earlier makes an overload last; nonsense is no reason to wait."""
    if told == "date":
        then = datetime.now(UTC) + timedelta(seconds=2)
        told = then.strftime("%a, %d %b %Y %H:%M:%S GMT")
    strange = Strange((503, {"retry-after": told}, b""), FINE)

    (reply,) = asked_of(strange, LOOK, limits=QUICK)

    assert isinstance(reply, Answer)
    waited = strange.asked[1][0] - strange.asked[0][0]
    assert least <= waited < 3.5


def test_a_service_that_asks_for_an_hour_is_not_waited_for() -> None:
    """The deadline of the whole comes first, and the last answer is told."""
    began = time.monotonic()
    strange = Strange((503, {"retry-after": "3600"}, b""))

    (reply,) = asked_of(strange, LOOK)

    assert isinstance(reply, WireRefusal)
    assert len(strange.asked) == 1
    assert time.monotonic() - began < 3


def test_a_batch_is_waited_for_as_long_as_all_tries_may_take() -> None:
    """Batches of one token wait for one another: a slow answer is no lost one."""
    strange = Strange(FINE)
    limits = replace(SHORT, silence=0.1, one_try=0.2, total=10)
    strange.seconds = 2 * limits.one_try

    replies = asked_of(strange, BATCH, BATCH, limits=limits)

    assert all(isinstance(reply, Answer) for reply in replies)
    assert len(strange.asked) == 2


def test_a_batch_that_is_not_answered_is_not_sent_twice() -> None:
    """The copy would wait for the first, which may be under way."""
    strange = Strange(FINE)
    strange.seconds = 0.8
    limits = replace(SHORT, silence=0.2, one_try=0.2, total=0.4, per_second=50)

    with listening(strange) as address, http_wire(address, CANARY, limits) as wire:
        began = time.monotonic()
        (first,) = wire.send([BATCH])
        waited = time.monotonic() - began
        (second,) = wire.send([BATCH])
        waited_again = time.monotonic() - began - waited

    assert [isinstance(reply, WireRefusal) and reply.unsure for reply in (first, second)] == [1, 1]
    assert len(strange.asked) == 2
    assert waited_again < waited, "a service that just fell silent is not waited for as long again"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """The token and the body would go wherever an answer says."""
    other = Strange(FINE)
    with listening(other) as elsewhere:
        strange = Strange((status, {"location": f"{elsewhere}/take-this"}, b""))
        replies = asked_of(strange, LOOK, MAKE)

    assert other.asked == []
    assert [isinstance(reply, WireRefusal) and reply.code for reply in replies] == [2, 2]
    told = " ".join(reply.message for reply in replies if isinstance(reply, WireRefusal))
    assert "redirect" in told
    assert elsewhere not in told
    assert CANARY not in told


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (JSON, b"{"),
        (JSON, b""),
        (JSON, b"[]"),
        (JSON, b'"text"'),
        (JSON, b'{"a": 1, "a": 2}'),
        (JSON, b'{"a": NaN}'),
        (JSON, b'{"a": 1e999}'),
        (JSON, b"\xff\xfe{}"),
        (JSON, b'{"a": "\\ud800"}'),
        (JSON, b'{"a": "\\u0000"}'),
        (JSON, b"[" * 50_000),
        (JSON, b'{"a": ' * 40 + b"1" + b"}" * 40),
        ({"content-type": "text/html"}, b"<html>log in here</html>"),
        ({}, b"{}"),
        ({**JSON, "content-encoding": "gzip"}, b"\x1f\x8b"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_not_taken_for_one(
    headers: Mapping[str, str], body: bytes
) -> None:
    """What a proxy or a stranger says must not become a plan."""
    (reply,) = asked_of(Strange((200, headers, body)), LOOK)

    assert isinstance(reply, WireRefusal)
    assert reply.unsure


OBJECTS: list[Any] = [
    {},
    {"objects": {}, "next": ""},
    {"objects": [1], "next": ""},
    {"objects": [], "next": 3},
    {"objects": []},
    {"objects": [{"id": "../../admin", "kind": "Action"}], "next": ""},
    {"objects": [{"id": "a/b", "kind": "Project", "name": "x"}], "next": ""},
    {"objects": [{"kind": "Action"}], "next": ""},
]


@pytest.mark.parametrize("page", OBJECTS, ids=json.dumps)
def test_a_listing_that_makes_no_sense_is_an_error(page: Any) -> None:
    """And nothing is planned from it."""

    async def strange(scope: Scope, receive: Receive, send: Send) -> None:
        answers = {
            "/reconciler/v1/service": {"instance": "i", "product": "reconciler"},
            "/admin/v1/orgs/_search": {"result": [{"id": "1", "name": "acme"}]},
        }
        body = json.dumps(answers.get(scope["path"], page)).encode()
        await Strange((200, JSON, body))(scope, receive, send)

    with (
        listening(strange) as address,
        http_client(address, CANARY) as client,
        pytest.raises(ServiceError, match="cannot be used"),
    ):
        client.observe(["acme"])


@pytest.mark.parametrize("instance", ["../../etc", "", None, 7, "a b", "x" * 300])
def test_an_instance_id_that_could_leave_a_folder_is_refused(instance: Any) -> None:
    """It becomes part of a file name here."""
    body = json.dumps({"instance": instance, "product": "reconciler"}).encode()
    with (
        listening(Strange((200, JSON, body))) as address,
        http_client(address, CANARY) as client,
        pytest.raises(ServiceError, match="cannot be used"),
    ):
        client.observe(["acme"])


# Far too much, and far too slow.


@contextmanager
def raw_service(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a service that speaks bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve_one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)
                ended.wait(5)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def says_it_is_huge(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"content-length: 2147483648\r\n\r\n{")


def never_ends(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")


def drips(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"content-length: 1000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def drips_its_head(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def says_nothing(connection: socket.socket) -> None:
    time.sleep(0.01)


def says_nonsense(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize(
    "answer",
    [says_it_is_huge, never_ends, drips, drips_its_head, says_nothing, says_nonsense],
)
def test_a_service_costs_neither_time_nor_memory_without_end(
    answer: Callable[[socket.socket], None],
) -> None:
    """Every limit holds for the whole of an answer, not just between two pieces of it."""
    began = time.monotonic()
    with raw_service(answer) as address, http_wire(address, CANARY, SHORT) as wire:
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert reply.unsure
    assert time.monotonic() - began < 4
    assert CANARY not in reply.message


def test_who_waited_in_vain_for_long_waits_for_one_more_answer_only() -> None:
    """A run has more to send after a write that failed: it would wait a minute for each."""
    tries = [0]

    def is_silent(connection: socket.socket) -> None:
        tries[-1] += 1
        if len(tries) == 3:
            connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        time.sleep(2 * SHORT.silence)

    with raw_service(is_silent) as address, http_wire(address, CANARY, SHORT) as wire:
        for _ in range(3):
            wire.send([LOOK])
            tries.append(0)

    assert tries[0] > 1
    assert tries[1:3] == [1, 1]


def test_a_service_that_is_not_there_is_given_up_soon() -> None:
    """A wrong port should be told at once, not after a minute."""
    began = time.monotonic()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with http_wire(f"http://127.0.0.1:{port}", CANARY) as wire:
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert (reply.code, reply.unsure) == (0, False)
    assert time.monotonic() - began < 3


def test_a_service_that_comes_back_is_waited_for(server: Server) -> None:
    """A restart in the middle of an apply must not end it."""
    down = threading.Event()
    with (
        fault_proxy(server.address, lambda _: "reset before" if down.is_set() else "") as proxy,
        http_wire(proxy.address, server.token()) as wire,
    ):
        assert isinstance(wire.send([LOOK])[0], Answer)
        down.set()
        threading.Timer(1.5, down.clear).start()
        assert isinstance(wire.send([LOOK])[0], Answer)


# Being a good guest.


def test_at_most_eight_requests_are_under_way() -> None:
    """Management calls share a service with logins."""
    strange = Strange(FINE)
    strange.seconds = 0.02

    replies = asked_of(strange, *[LOOK] * 50, limits=QUICK)

    assert all(isinstance(reply, Answer) for reply in replies)
    assert strange.most_at_once == 8


def test_a_rate_is_kept() -> None:
    """So many a second, and not in a burst."""
    strange = Strange(FINE)
    limits = Limits(per_second=10)

    asked_of(strange, *[LOOK] * 21, limits=limits)

    assert strange.asked[-1][0] - strange.asked[0][0] >= 1.8


def test_a_slow_rate_makes_small_batches_and_takes_nothing_from_the_deadline() -> None:
    """A batch must not outlast the lease, and waiting one's turn is no failure."""
    replies = asked_of(Strange(FINE), *[LOOK] * 8, limits=Limits(per_second=20, total=0.1))

    assert all(isinstance(reply, Answer) for reply in replies)
    with http_wire("http://127.0.0.1:1", CANARY) as wire:
        remotes = [
            RemoteService(wire, this_process(), "", "", Path(), rate) for rate in (0, 0.01, 2, 50)
        ]
    assert [remote.batch for remote in remotes] == [64, 1, 40, 64]


def test_nothing_in_the_environment_chooses_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull request that can set a variable must not see the token."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert isinstance(asked_of(Strange(FINE), LOOK)[0], Answer)


def test_every_call_carries_what_it_needs_and_nothing_else() -> None:
    """Both names of the organization, and no header that is empty."""
    strange = Strange(FINE)
    call = Call(
        "UpdateAction", {"id": "7", "name": "a"}, "1", 42, "key-1", "1.lease", '{"tree": "t"}'
    )

    asked_of(strange, call, LOOK)

    first, second = sorted(strange.headers, key=lambda headers: "if-match" not in headers)
    for name in ("host", "content-length", "user-agent", "accept", "connection"):
        first.pop(name, None)
        second.pop(name, None)
    assert first == {
        "accept-encoding": "identity",
        "authorization": f"Bearer {CANARY}",
        "x-service-orgid": "1",
        "x-zitadel-orgid": "1",
        "if-match": '"42"',
        "idempotency-key": "key-1",
        "x-reconciler-lease": "1.lease",
        "x-reconciler-context": '{"tree": "t"}',
        "content-type": "application/json",
    }
    assert second == {"accept-encoding": "identity", "authorization": f"Bearer {CANARY}"}


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """There is no switch for that, and the token never leaves."""
    certificate, key = self_signed(tmp_path)
    strange = Strange(FINE)
    with (
        listening(strange, certificate, key) as address,
        http_wire(address, CANARY, SHORT) as wire,
    ):
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert "certificate" in reply.message
    assert strange.asked == []


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for this machine, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return folder / "cert.pem", folder / "key.pem"


def test_errors_show_neither_token_nor_request(server: Server) -> None:
    """They go to logs that many may read."""
    with http_client(server.address, CANARY) as client:
        with pytest.raises(AccessDeniedError) as denied:
            client.observe(["acme"])
        order = CreateOrder(a_ref(), declared(a_ref()).spec, "k", server.known.organization, "1")
        (refused,) = client.write([order], CONTEXT)

    shown = repr((denied.value, denied.value.problem, denied.value.__cause__, refused))
    assert CANARY not in shown
    assert isinstance(refused, AccessDeniedError)
    assert not isinstance(refused, PreconditionFailedError | ServiceUnavailableError)


def test_what_may_have_been_done_is_not_forgotten_when_time_is_up() -> None:
    """The last pause may end after the deadline; the lost answer before it still counts."""
    calls = [Call("GetObjectHistory", {"id": str(number)}) for number in range(8)]
    for total in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
        strange = Strange((200, JSON, b"garbage"))

        replies = asked_of(strange, *calls, limits=Limits(one_try=5, total=total))

        tried = {path for _, path in strange.asked}
        unsure = [reply for reply in replies if isinstance(reply, WireRefusal) and reply.unsure]
        assert len(unsure) == len(tried)
