"""Batches of writes over a real port: carried out, told to operators, and asked for again."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from reconciler.resources.secret import Secret
from reconciler.service.build import open_sqlite
from reconciler.service.domain.client_secret import hash_of
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.dispatch import Incoming
from tests.raw_http import Raw, exchange, read_response, request
from tests.running import STOP_WITHIN, Server, dying_server, prepare, running_server

KILLED_AT = 280  # of 300 orders; a commit has 256 at most


def sent(port: int, token: str, orders: Sequence[Mapping[str, Any]]) -> Raw | None:
    """Send a batch, and return what is answered."""
    return exchange(port, batch_of(token, orders))


def batch_of(token: str, orders: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the request of a batch, as bytes."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    body = json.dumps({"orders": orders}).encode()
    return request("POST", "/reconciler/v1/batch", headers, body)


def test_a_batch_is_carried_out_and_told_in_one_record(tmp_path: Path) -> None:
    """With how many failed, and nothing of what is in them."""
    action = {"operation": "CreateAction", "fields": {"name": "greet", "script": "x"}}
    with running_server(tmp_path) as server:
        app = {"projectId": server.known.project, "name": "web"}
        orders = [
            action,
            action,
            {"operation": "DeleteAction", "from": {"id": 1}},
            {"operation": "AddOIDCApp", "fields": app, "context": {"reason": "CANARY"}},
        ]
        answer = sent(server.port, server.token(), orders)
        viewer = sent(server.port, server.token("viewer"), orders)

    assert answer is not None
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    made, taken, not_tried, with_secret = answer.json["answers"]
    assert made["answer"]["details"]["resourceOwner"] == server.known.organization
    assert taken["error"]["details"][0]["id"] == "name.taken"
    assert not_tried == {"notTried": 1}
    told = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    assert "operation=WriteBatch organization=- caller=editor " in told
    assert " code=0 status=200 orders=4 failed=2\n" in told
    assert not any(word in told for word in ("CANARY", with_secret["answer"]["clientSecret"]))
    assert viewer is not None
    assert viewer.status == 403


def test_a_server_that_is_told_to_stop_answers_what_it_committed(tmp_path: Path) -> None:
    """And that the rest is to be asked for again."""
    orders = [
        {"operation": "CreateAction", "fields": {"name": f"n{number}", "script": "x"}}
        for number in range(500)
    ]
    with running_server(tmp_path) as server, ThreadPoolExecutor(1) as thread:
        known = server.event_count()
        asked = thread.submit(sent, server.port, server.token(), orders)
        while server.event_count() == known and not asked.done():
            pass  # until the first commit
        server.process.terminate()
        answer = asked.result()
        server.process.wait(STOP_WITHIN)
        committed = server.event_count() - known

    assert answer is not None
    assert answer.status == 200
    answers = answer.json["answers"]
    assert committed > 0
    assert ["answer" in each for each in answers] == [at < committed for at in range(500)]
    assert all(each["error"]["code"] == 14 for each in answers[committed:])


def _committed_of_three(server: Server, attempt: int) -> int:
    """Return how many of three batches were committed whose second caller hung up while it waited.

    It waits for the first, which waits for the lock of the store.
    """
    first, left, last = (
        [{"operation": "CreateAction", "fields": {"name": f"{name}{attempt}", "script": "x"}}]
        for name in ("first", "left", "last")
    )
    healthy = request("GET", "/healthz")
    with (
        closing(sqlite3.connect(server.store, isolation_level=None)) as other,
        socket.create_connection(("127.0.0.1", server.port), STOP_WITHIN) as waiting,
        waiting.makefile("rb") as stream,
    ):
        known = server.event_count()
        other.execute("BEGIN IMMEDIATE")
        waiting.sendall(batch_of(server.token(), first))
        assert exchange(server.port, healthy) is not None  # the batch has come, too
        with socket.create_connection(("127.0.0.1", server.port), STOP_WITHIN) as leaving:
            leaving.sendall(batch_of(server.token(), left))
            assert exchange(server.port, healthy) is not None
        assert exchange(server.port, healthy) is not None
        other.execute("ROLLBACK")
        for answer in (read_response(stream), sent(server.port, server.token(), last)):
            assert answer is not None
            assert "answer" in answer.json["answers"][0]
        return server.event_count() - known


def test_a_batch_whose_caller_hung_up_is_not_carried_out(tmp_path: Path) -> None:
    """While it waits: its caller sends it again, and the copy would only wait behind it."""
    with running_server(tmp_path) as server:
        # Threads read the batches, so now and then the second overtakes the first and is begun.
        attempts = (_committed_of_three(server, attempt) for attempt in range(5))
        assert 2 in attempts
    told = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    assert told.count(" orders=1 failed=1\n") == 1


def test_a_batch_of_a_server_that_was_killed_is_asked_for_again_whole(tmp_path: Path) -> None:
    """What was committed is answered again, its secrets too; nothing is made twice."""
    store = tmp_path / "identity.db"
    known = prepare(store)
    orders = [
        {
            "operation": "AddOIDCApp",
            "fields": {"projectId": known.project, "name": f"app-{number}"},
            "idempotencyKey": f"key-{number}",
        }
        for number in range(300)
    ]
    point = f"S5:{KILLED_AT}"
    with dying_server(tmp_path, f"sqlite:{store}", point) as (address, _), suppress(OSError):
        assert sent(int(address.rpartition(":")[2]), known.tokens["editor"], orders) is None

    with closing(open_sqlite(store)) as service:
        with service.store.snapshot() as view:
            committed = {row.name: row.id for row in view.all_objects() if row.client_id}
        headers = {"authorization": [f"Bearer {known.tokens['editor']}"]}
        again = service.dispatcher.take_batch(Incoming("WriteBatch", {"orders": orders}, headers))
        assert isinstance(again, Orders)
        while not again.are_done:
            service.dispatcher.carry_out(again)
        with service.store.snapshot() as view:
            held = {row.id: row for row in view.all_objects() if row.client_id}

    answers = [each["answer"] for each in again.answer()["answers"]]
    assert 0 < len(committed) < KILLED_AT
    assert [answer["appId"] for answer in answers[: len(committed)]] == list(committed.values())
    assert [held[answer["appId"]].secret_hash for answer in answers] == [
        hash_of(Secret(answer["clientSecret"])) for answer in answers
    ]
    assert len(held) == 300
