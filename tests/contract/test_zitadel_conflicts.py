"""Conflicts that a ZITADEL reports as unknown errors: every kind of write outlasts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reconciler.apply.changes import Status
from reconciler.errors import InvalidArgumentError, PreconditionFailedError, ServiceUnavailableError
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from reconciler.service_client.zitadel.steps import TRIES
from reconciler.state import ObservedObject
from tests.builders import (
    TOKEN,
    a_jwt_config,
    a_public_application,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
)
from tests.http_clients import apply_with, zitadel_client
from tests.listening import listening
from tests.zitadel.stand_in import CONFLICT, GENERATIONS, IAM, NEWEST, OLDER, OLDEST, FakeZitadel

WEB, GREET = a_ref(), a_ref(Kind.ACTION, "greet")
PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")
WORDS = (
    CONFLICT,
    "ERROR: could not serialize access due to concurrent update (SQLSTATE 40001)",
    "ERROR: restart transaction (SQLSTATE CR000)",
)
AT_ONCE = ListDelays(settling=0.01, step=0.01, longest=1.0)


@pytest.fixture
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a stand-in, of the version that a test asks for, with the project shop."""
    fake = FakeZitadel(version=getattr(request, "param", NEWEST))
    fake.put("projects", name="shop")
    return fake


@pytest.fixture
def client(fake: FakeZitadel, tmp_path: Path) -> Iterator[ZitadelClient]:
    """Open a client that may do everything, and hardly waits."""
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, AT_ONCE) as one:
        yield one


def creates(fake: FakeZitadel) -> list[Order]:
    organization, project = fake.organization, fake.named("projects", "shop")[0]["id"]
    return [
        CreateOrder(declared(a_ref(Kind.ORGANIZATION, organization="globex"))),
        CreateOrder(declared(a_ref(Kind.PROJECT, "support")), organization),
        CreateOrder(declared(WEB), organization, project),
        CreateOrder(declared(GREET), organization),
        CreateOrder(declared(PARTNER), organization),
    ]


def held_of(client: ZitadelClient) -> list[ObservedObject]:
    objects = client.observe(["acme"]).objects
    return [objects[ref.key] for ref in (WEB, GREET, PARTNER)]


def updates(held: list[ObservedObject]) -> list[Order]:
    changed = (
        declared(WEB, an_application(devMode=True)),
        declared(GREET, an_action(timeout="3s")),
        declared(PARTNER, a_jwt_config(issuer="https://new.example.com")),
    )
    return [UpdateOrder(wanted, each) for wanted, each in zip(changed, held, strict=True)]


@pytest.mark.parametrize(
    ("fake", "words"),
    [*((NEWEST, words) for words in WORDS), (OLDER, CONFLICT), (OLDEST, CONFLICT)],
    indirect=["fake"],
    ids=["events2_pkey", "40001", "CR000", "3.x", "2.x"],
)
def test_every_kind_of_write_is_tried_again(
    client: ZitadelClient, fake: FakeZitadel, words: str
) -> None:
    """Creates after a look, the rest after a read; each is made once."""
    fake.conflict = words

    def write(orders: list[Order]) -> None:
        fake.conflicts = len(orders) + 1
        results = client.write(orders, {})
        assert all(isinstance(result, Written) for result in results), results
        assert fake.conflicts == 0

    write(creates(fake))
    counts = [len(fake.named(*each)) for each in (("apps", "storefront"), ("idps", "partner"))]
    assert counts == [1, 1]
    held = held_of(client)
    write(updates(held))
    web = held[0]
    write([SecretOrder(web)])
    write([DeleteOrder(each) for each in held_of(client)])
    assert not fake.held["apps"]
    assert not fake.held["actions"]


def test_what_the_other_writer_changed_is_not_written_over(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """A conflict may be about the very object: then the plan is old."""
    client.write(creates(fake), {})
    held = held_of(client)
    for each, kind in zip(held, ("apps", "actions", "idps"), strict=True):
        item = fake.held[kind][each.id]
        for order in (updates(held)[held.index(each)], DeleteOrder(each)):
            fake.conflicts = 1
            fake.rival = partial(fake.things.touch, kind, item)
            (refused,) = client.write([order], {})
            assert isinstance(refused, PreconditionFailedError), refused
        assert each.id in fake.held[kind]


def test_a_writer_that_is_always_quicker_is_told(client: ZitadelClient, fake: FakeZitadel) -> None:
    """After many tries the run ends, and says what to do."""
    client.write(creates(fake), {})
    fake.conflicts = 1000

    (refused,) = client.write([updates(held_of(client))[0]], {})

    assert isinstance(refused, ServiceUnavailableError)
    assert f"another writer was quicker {TRIES} times in a row" in refused.problem
    assert "Run the command again" in refused.remedy
    assert 1000 - fake.conflicts == TRIES


@pytest.mark.parametrize("fake", ["4.12.0"], indirect=True)
def test_a_refusal_that_is_told_as_an_unknown_error_is_one(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """Some servers hide the code in the sentence; nothing is asked twice."""
    client.write(creates(fake), {})
    held = held_of(client)
    too_long = declared(GREET, an_action(timeout="30s"))
    orders: list[Order] = [
        CreateOrder(replace(too_long, ref=a_ref(Kind.ACTION, "other")), fake.organization),
        UpdateOrder(too_long, held[1]),
    ]
    asked = dict(fake.calls)

    results = client.write(orders, {})

    assert [type(result) for result in results] == [InvalidArgumentError] * 2, results
    assert all("invalid" in str(result) and "rpc error" not in str(result) for result in results)
    assert fake.calls == {**asked, "GetAction": asked.get("GetAction", 0) + 1}


@pytest.mark.parametrize("fake", GENERATIONS, indirect=True)
def test_projects_flows_and_states_outlast_conflicts_too(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """An apply that meets a few of them writes everything, and nothing is left."""
    shop, web = a_ref(Kind.PROJECT, "shop"), a_public_application()
    greet = declared(GREET)
    trees = [
        desired(declared(shop), greet, declared(WEB, web), declared(TOKEN)),
        desired(
            declared(shop, {"hasProjectCheck": True}),
            greet,
            replace(declared(WEB, web), active=False),
            declared(TOKEN, {"PRE_ACCESS_TOKEN_CREATION": ["greet"]}),
        ),
        desired(declared(shop), greet, replace(declared(WEB, web), active=True)),
    ]
    for wanted in trees:
        fake.conflicts = 4
        report = apply_with(client, wanted, tmp_path, Scope(prune_unmanaged=True))
        assert report.remaining == 0, report
        assert {outcome.status for outcome in report.outcomes} == {Status.MADE}, report
        assert fake.conflicts == 0
