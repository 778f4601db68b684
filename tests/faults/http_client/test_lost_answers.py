"""Writes whose answers are lost are done once, and no secret is lost."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from reconciler.apply.changes import Status
from reconciler.errors import ServiceError
from reconciler.resources.ref import Kind
from reconciler.service_client.http_wire import Limits
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    SecretOrder,
    UpdateOrder,
    Written,
)
from tests.builders import a_ref, an_action, an_application, declared, desired
from tests.builders import held as held_object
from tests.fault_proxy import at_random, fault_proxy
from tests.faults.http_client.strange import CONTEXT
from tests.http_clients import apply_with, http_client, plan_with
from tests.running import Server, running_server

# Ambiguous writes.


def test_creates_whose_answers_are_lost_make_no_duplicates_and_lose_no_secret(
    server: Server,
) -> None:
    """Two hundred creates; two of five requests come to harm on the way, or twice."""
    known = server.known
    refs = [a_ref(name=f"app{uuid.uuid4().hex}") for _ in range(100)]
    refs += [a_ref(Kind.ACTION, f"action{uuid.uuid4().hex}") for _ in range(100)]
    orders = [CreateOrder(declared(ref), known.organization, known.project) for ref in refs]
    before = server.event_count()
    with (
        fault_proxy(server.address, at_random(11, 0.4)) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        results = [
            result
            for at in range(0, 200, 32)
            for result in client.write(orders[at : at + 32], CONTEXT)
        ]
    assert server.event_count() == before + 200
    with http_client(server.address, server.token()) as plain:
        plain.acquire(["acme"])
        seen = plain.observe(["acme"])
        ids = {result.id for result in results if isinstance(result, Written)}
        kept = plain.claim([owed for owed in seen.owed if owed.id in ids], CONTEXT)
        plain.release()

    assert sum(proxy.done.values()) - proxy.done[""] > 60
    assert [result for result in results if not isinstance(result, Written)] == []
    secrets = [each for each in results[:100] if isinstance(each, Written)]
    assert {each.id: each for each in kept if isinstance(each, Written)} == {
        each.id: each for each in secrets
    }, "what was answered is what the service made"
    assert all(each.client_secret for each in secrets)
    assert {seen.objects[ref.key].id for ref in refs} == ids


def test_updates_and_deletes_whose_answers_are_lost_are_done_once(server: Server) -> None:
    """The second try, under the key of the first one, gives the answer of the first one."""
    known = server.known
    ref = a_ref(Kind.ACTION, f"greet{uuid.uuid4().hex}")
    web = a_ref(name=f"web{uuid.uuid4().hex}")
    with http_client(server.address, server.token()) as plain:
        plain.write(
            [
                CreateOrder(declared(ref), known.organization),
                CreateOrder(declared(web), known.organization, known.project),
            ],
            CONTEXT,
        )
        held = plain.observe(["acme"]).objects
        before = server.event_count()
        renamed = a_ref(name=f"new{uuid.uuid4().hex}")
        with (
            fault_proxy(server.address, once_each(b"PUT", b"DELETE")) as proxy,
            http_client(proxy.address, server.token()) as client,
        ):
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
            assert server.event_count() == before + 3
            proxy.choose = once_each(b"PUT", b"DELETE")
            gone = client.write([DeleteOrder(now[ref.key]), DeleteOrder(now[renamed.key])], CONTEXT)

    assert all(isinstance(result, Written) for result in gone), gone
    assert server.event_count() == before + 5


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
        plain.write([CreateOrder(declared(ref), known.organization)], CONTEXT)
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
            [CreateOrder(declared(web), known.organization, known.project)],
            CONTEXT,
        )
    assert isinstance(made, Written)
    before = server.event_count()
    left = iter(["reset after", "half an answer", "garbage", "twice"])
    with (
        fault_proxy(server.address, lambda _: next(left, "")) as proxy,
        http_client(proxy.address, server.token()) as client,
    ):
        order = SecretOrder(
            held_object(
                web,
                object_id=made.id,
                organization_id=known.organization,
                project_id=known.project,
                client_id=made.client_id,
            )
        )
        (result,) = client.write([order], CONTEXT)

    assert isinstance(result, Written)
    assert result.client_secret is not None
    assert server.event_count() == before + 1


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


def test_a_service_that_is_gone_ends_a_run_and_the_next_one_ends_what_it_began(
    tmp_path: Path,
) -> None:
    """Nobody knows what became of the batch under way; the rest is not begun."""
    state = desired(*(declared(a_ref(name=f"app{index}")) for index in range(100)))
    with running_server(tmp_path) as server:
        with (
            fault_proxy(
                server.address, lambda first: "reset after" if b"/batch" in first else ""
            ) as proxy,
            http_client(proxy.address, server.token(), limits=Limits(one_try=5, total=5)) as client,
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
