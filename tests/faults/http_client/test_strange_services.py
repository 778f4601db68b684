"""Services that are busy, refuse, redirect, or answer nonsense."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from reconciler.errors import (
    ServiceError,
)
from reconciler.resources.call import Code
from reconciler.service_client.wire import Answer, WireRefusal
from tests.faults.http_client.strange import (
    BATCH,
    CANARY,
    FINE,
    JSON,
    LOOK,
    MAKE,
    SHORT,
    Strange,
    asked_of,
)
from tests.http_clients import QUICK, http_client, http_wire
from tests.listening import listening


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


def test_a_look_that_is_refused_after_a_lost_try_is_surely_refused() -> None:
    """A look writes nothing, so the lost try left nothing behind. A 404 tells a ZITADEL."""
    strange = Strange((503, {}, b""), (404, {}, b""))

    (reply,) = asked_of(strange, LOOK)

    assert isinstance(reply, WireRefusal)
    assert (reply.code, reply.unsure, len(strange.asked)) == (Code.NOT_FOUND, False, 2)


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
    assert f"redirects to {elsewhere}/take-this" in told
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
