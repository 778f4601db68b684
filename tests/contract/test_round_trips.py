"""How often a batch waits for PostgreSQL: a number of times that its length does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.eventstore.postgres_connection import BoundedConnection
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from tests.faults.writers import call
from tests.postgres_server import PostgresServer

ORDERS = 60
WAITS = 30  # some two for each statement that is sent
Order = Mapping[str, Any]


class House:
    """A service on PostgreSQL with two organizations, and what its batches are made of."""

    def __init__(self, service: IdentityService) -> None:
        self.service = service
        self.owners = [str(service.call(call("AddOrg", name=name))["id"]) for name in "ab"]
        self.actions = [
            service.call(call("CreateAction", self.owners[0], name=f"held{n}", script="x"))["id"]
            for n in range(ORDERS)
        ]

    def order(self, operation: str, owner: int = 0, **fields: Any) -> Order:
        return {"operation": operation, "organizationId": self.owners[owner], "fields": fields}

    def run(self, orders: Sequence[Order]) -> list[dict[str, Any]]:
        request = Request("WriteBatch", {"orders": orders}, caller=EMBEDDED)
        answers: list[dict[str, Any]] = self.service.call(request)["answers"]
        return answers


@pytest.fixture
def house(postgres: PostgresServer, tmp_path: Path) -> Iterator[House]:
    with (
        postgres.empty_store() as address,
        closing(open_postgres(address, seal_key_file=tmp_path / "key", create=True)) as service,
    ):
        yield House(service)


def creates(house: House) -> list[Order]:
    return [house.order("CreateAction", name=f"n{n}", script="x") for n in range(ORDERS)]


def creates_in_turns(house: House) -> list[Order]:
    return [house.order("CreateAction", n % 2, name=f"n{n}", script="x") for n in range(ORDERS)]


def updates(house: House) -> list[Order]:
    return [
        house.order("UpdateAction", id=action, name=f"held{n}", script="y")
        for n, action in enumerate(house.actions)
    ]


def deletes(house: House) -> list[Order]:
    return [house.order("DeleteAction", id=action) for action in house.actions]


def organizations(_: House) -> list[Order]:
    return [{"operation": "AddOrg", "fields": {"name": f"o{n}"}} for n in range(ORDERS)]


def a_new_project_and_its_applications(house: House) -> list[Order]:
    applications = (
        {**house.order("AddOIDCApp", name=f"n{n}"), "from": {"projectId": 0}}
        for n in range(ORDERS - 1)
    )
    return [house.order("AddProject", name="new"), *applications]


@pytest.mark.parametrize(
    "orders",
    [
        creates,
        creates_in_turns,
        updates,
        deletes,
        organizations,
        a_new_project_and_its_applications,
    ],
)
def test_a_batch_waits_no_oftener_for_many_orders_than_for_few(
    house: House, monkeypatch: pytest.MonkeyPatch, orders: Callable[[House], list[Order]]
) -> None:
    """An organization for each order once took 25 statements for each."""
    monkeypatch.setattr("reconciler.service.operations.engine.HELD_SECONDS", 60.0)
    waits: list[None] = []
    wait = BoundedConnection.wait

    def counted(*arguments: Any) -> Any:
        waits.append(None)
        return wait(*arguments)

    made = orders(house)
    monkeypatch.setattr(BoundedConnection, "wait", counted)
    answers = house.run(made)

    assert [answer for answer in answers if "answer" not in answer] == []
    assert len(waits) <= WAITS
