"""The client as a guest: few requests at a time, at a rate, with the headers that they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import (
    AccessDeniedError,
    PreconditionFailedError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.service_client.client import RemoteService
from reconciler.service_client.http_wire import Limits
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import (
    CreateOrder,
)
from reconciler.service_client.wire import Answer, WireRefusal
from tests.builders import a_ref, declared
from tests.certificates import a_certificate
from tests.faults.http_client.strange import (
    CANARY,
    CONTEXT,
    FINE,
    JSON,
    LOOK,
    SHORT,
    Strange,
    asked_of,
)
from tests.http_clients import QUICK, http_client, http_wire
from tests.listening import listening
from tests.running import Server

# Being a good guest.


def test_at_most_eight_requests_are_under_way() -> None:
    """Management calls share a service with logins."""
    strange = Strange(FINE)
    strange.seconds = 0.1

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
    certificate, key = a_certificate(tmp_path)
    strange = Strange(FINE)
    with (
        listening(strange, certificate, key) as address,
        http_wire(address, CANARY, SHORT) as wire,
    ):
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert "certificate" in reply.message
    assert strange.asked == []


def test_errors_show_neither_token_nor_request(server: Server) -> None:
    """They go to logs that many may read."""
    with http_client(server.address, CANARY) as client:
        with pytest.raises(AccessDeniedError) as denied:
            client.observe(["acme"])
        order = CreateOrder(declared(a_ref()), server.known.organization, "1")
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
