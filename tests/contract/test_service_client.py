"""One client, two wires: in process and over HTTP to a server that listens. No difference."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from reconciler.apply.delivery import acknowledged, deliver_held
from reconciler.apply.sink import Delivery, Kept, NotGivenError, Stops, never
from reconciler.cli.embedded import InProcessWire
from reconciler.errors import (
    AccessDeniedError,
    LocalFileError,
    LockHeldError,
    ObjectNotFoundError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from reconciler.service_client.locks import ProcessIdentity, this_process
from reconciler.service_client.port import (
    CreateOrder,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.read_only import OperationsReader, ReadOnlyWire
from reconciler.service_client.wire import Answer
from tests.builders import (
    FakeSink,
    a_public_application,
    a_ref,
    an_application,
    declared,
)
from tests.contract.houses import CONTEXT, IN_PROCESS, OVER_HTTP, House
from tests.http_clients import http_client, http_wire
from tests.memory_store import open_memory
from tests.running import Server

OTHER = ProcessIdentity("ben", "build-7", "b", 42, "s", "n")


@pytest.fixture(params=[IN_PROCESS, OVER_HTTP])
def service_kind(request: pytest.FixtureRequest) -> str:
    """Return the wire to the service."""
    return str(request.param)


def test_an_update_renames_and_configures(house: House) -> None:
    """Two calls, and the second expects what the first one left behind."""
    order = house.create(Kind.OIDC_APPLICATION, "web")
    wanted = declared(house.ref(Kind.OIDC_APPLICATION, "shop"), an_application(devMode=True))

    (result,) = house.write(UpdateOrder(wanted, house.made(order)))

    held = house.held(wanted.ref)
    assert isinstance(result, Written)
    assert (held.spec, held.sequence) == (wanted.spec, result.sequence)


def test_one_writer_at_a_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes second is told by whom the organization is held."""
    monkeypatch.setattr("reconciler.service_client.locks.RENEW_AFTER_SECONDS", 0)
    with house.open(OTHER) as other:
        other.acquire([house.organization])
        with pytest.raises(LockHeldError, match="ben on build-7"):
            house.client.acquire([house.organization])
        other.renew()
        other.release()
        house.client.acquire([house.organization])
        assert isinstance(house.write(house.create(Kind.ACTION, "greet"))[0], Written)
        house.client.release()


def test_who_lost_the_lock_writes_nothing(house: House) -> None:
    """A run that was cut off for minutes must not write over the one that followed it."""
    dead = replace(this_process(), process=2**22 + 1)
    order = house.create(Kind.ACTION, "greet")
    with house.open(dead) as other:
        other.acquire([house.organization])
        house.client.acquire([house.organization])

        (refused,) = other.write([order], CONTEXT)

    house.client.release()
    assert isinstance(refused, ServiceUnavailableError)
    assert order.ref.key not in house.client.observe([house.organization]).objects


# What HTTP alone has.


@pytest.mark.parametrize("name", ["viewer", "stranger"])
def test_who_may_not_write_is_told_so(server: Server, name: str) -> None:
    """Exit code 7 hangs on this, and what to do about it."""
    order = CreateOrder(declared(a_ref(Kind.ACTION, "hello")), server.known.organization)
    with http_client(server.address, server.token(name)) as client:
        (refused,) = client.write([order], CONTEXT)

    kind = AccessDeniedError if name == "viewer" else ObjectNotFoundError
    assert isinstance(refused, kind)


def owed_by(house: House) -> list[tuple[str, bool]]:
    return [(owed.ref.name, owed.lost) for owed in house.client.observe([house.organization]).owed]


def test_a_secret_is_owed_until_it_is_acknowledged(house: House) -> None:
    """Another client, which knows nothing but the address, has the same secret again."""
    order = house.create(Kind.OIDC_APPLICATION, "web")
    spa = house.create(Kind.OIDC_APPLICATION, "spa", a_public_application())
    made, _ = house.write(order, spa)
    assert isinstance(made, Written)
    assert made.client_secret is not None

    with house.open(OTHER) as later:
        state = later.observe([house.organization])
        (owed,) = state.owed
        assert state.custody
        assert (owed.ref, owed.id, owed.made_at) == (order.ref, made.id, made.sequence)
        assert (owed.tree, owed.client_id, owed.lost) == ("default", made.client_id, False)
        assert owed.by
        assert len(owed.run) == 32
        later.acquire([house.organization])
        (claimed,) = later.claim([owed], CONTEXT)
        (refused,) = later.claim([replace(owed, made_at=owed.made_at - 1)], CONTEXT)
        later.release()
        assert claimed == Written(made.id, made.sequence, made.client_id, made.client_secret)
        assert isinstance(refused, ServiceError)
        assert "newer secret" in refused.problem
        later.acknowledge([claimed])
    assert owed_by(house) == []
    house.client.acknowledge([made])


def test_what_was_just_made_is_acknowledged_at_once(house: House) -> None:
    """That is each batch of an apply: no listing in between, one call per organization."""
    orders = [house.create(Kind.OIDC_APPLICATION, name) for name in ("a", "b")]
    made = [result for result in house.write(*orders) if isinstance(result, Written)]
    held = house.held(orders[0].ref)
    (newer,) = house.write(SecretOrder(held))
    assert isinstance(newer, Written)
    assert [name for name, _ in owed_by(house)] == ["a", "b"]

    house.client.acknowledge(made)

    assert [name for name, _ in owed_by(house)] == ["a"], "its newer secret was not delivered"
    house.client.acknowledge([newer])
    assert owed_by(house) == []


DEAD = replace(this_process(), process=2**22 + 1)
"""A holder that is known to be gone: this process takes its lock over at once."""


class SlowSink(FakeSink):
    """A sink that takes so long for the first secret that another run does something meanwhile."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        first = super().deliver(deliveries[:1])
        self._meanwhile()
        late = NotGivenError("it was to stop", remedy="r")
        rest = deliveries[1:]
        return [*first, *([late for _ in rest] if stops() else super().deliver(rest))]


def replaced_by_another_run(house: House, order: CreateOrder) -> None:
    """Take the lock over, give an application a new secret, and deliver it."""
    house.client.acquire([house.organization])
    (made,) = house.write(SecretOrder(house.held(order.ref)))
    assert isinstance(made, Written)
    assert acknowledged(house.client, {order.ref: made}) == ()


@pytest.mark.parametrize("seen", [True, False], ids=["renewed between", "young"])
def test_a_run_that_lost_its_lease_in_a_slow_sink_delivers_nothing_older(
    house: House, monkeypatch: pytest.MonkeyPatch, seen: object
) -> None:
    """The last to reach a sink is the present secret; where that is not sure, it is told."""
    if seen:
        monkeypatch.setattr("reconciler.service_client.locks.RENEW_AFTER_SECONDS", 0)
    slow, web = (house.create(Kind.OIDC_APPLICATION, name) for name in ("slow", "web"))
    with house.open(DEAD) as late:
        late.acquire([house.organization])
        made = [one for one in late.write([slow, web], CONTEXT) if isinstance(one, Written)]
        deliveries = [
            Delivery(order.ref, one.client_id, one.client_secret)
            for order, one in zip((slow, web), made, strict=True)
            if one.client_secret
        ]
        sink = SlowSink(lambda: replaced_by_another_run(house, web))

        first, second = deliver_held(sink, deliveries, late, never)
        notes = acknowledged(late, {slow.ref: made[0]})

    assert isinstance(first, Kept)
    assert isinstance(second, LockHeldError if seen else Kept)
    assert [(note.code, note.ref, note.is_error) for note in notes] == [
        ("SECRET-DELIVERED-LATE", slow.ref, True)
    ]
    assert owed_by(house) == [("slow", False)]


def test_a_lock_that_was_lost_before_the_sink_gives_it_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays owed: the next run delivers what counts then."""
    monkeypatch.setattr("reconciler.service_client.locks.RENEW_AFTER_SECONDS", 0)
    web = house.create(Kind.OIDC_APPLICATION, "web")
    sink = FakeSink()
    with house.open(DEAD) as late:
        late.acquire([house.organization])
        (made,) = late.write([web], CONTEXT)
        assert isinstance(made, Written)
        assert made.client_secret
        house.client.acquire([house.organization])

        (lost,) = deliver_held(
            sink, [Delivery(web.ref, made.client_id, made.client_secret)], late, never
        )

    assert isinstance(lost, LockHeldError)
    assert sink.kept == {}
    assert owed_by(house) == [("web", False)]


def test_a_claim_without_the_lease_is_refused(house: House) -> None:
    """Only the one writer of an organization delivers its secrets."""
    house.made(house.create(Kind.OIDC_APPLICATION, "web"))
    owed = house.client.observe([house.organization]).owed

    with pytest.raises(ServiceUnavailableError, match="lease"):
        house.client.claim(owed, CONTEXT)


def test_owner_and_secret_of_an_object_are_observed(house: House) -> None:
    """A new secret makes nobody an owner; an update does, and so does a recorded context."""
    order = house.create(Kind.OIDC_APPLICATION, "web")
    held = house.made(order)
    assert (held.owner, held.has_secret, held.prevent_delete) == ("default", True, False)
    secret = SecretOrder(held)
    house.client.write([secret], {"tree": "rotator"})
    held = house.held(order.ref)
    assert (held.owner, held.trees) == ("default", frozenset({"default"}))

    house.client.write([UpdateOrder(declared(order.ref), held)], {"tree": "team-b"})

    held = house.held(order.ref)
    assert (held.owner, held.trees) == ("team-b", frozenset({"default", "team-b"}))
    public = declared(order.ref, a_public_application())
    house.client.write([UpdateOrder(public, held)], {"tree": "default"})
    held = house.held(order.ref)
    assert (held.owner, held.has_secret) == ("default", False)


def test_every_organization_is_found_where_there_are_more_than_a_list_has() -> None:
    """An export of a service with a thousand and one organizations leaves none out."""
    service = open_memory()
    names = [f"org-{number:04}" for number in range(1001)]
    service.call_many([Request("AddOrg", {"name": name}, caller=EMBEDDED) for name in names])
    wire = InProcessWire(service)

    assert OperationsReader(ReadOnlyWire(wire)).organizations() == names


def test_a_request_looks_for_no_module(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library imports in each request is looked for once, also where it is not installed."""
    looked_for: list[str] = []

    class Watching:
        def find_spec(self, name: str, *_: object) -> None:
            looked_for.append(name)

    with http_wire(server.address, server.token()) as wire:
        wire.send([Call("GetServiceInfo")])
        monkeypatch.setattr(sys, "meta_path", [Watching(), *sys.meta_path])
        (reply,) = wire.send([Call("GetServiceInfo")])

    assert isinstance(reply, Answer)
    assert looked_for == []
