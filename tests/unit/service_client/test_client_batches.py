"""Writes that go together: in batches where the service has them, otherwise as ever."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service_client.client import OperationsClient
from reconciler.service_client.port import CreateOrder, Written
from reconciler.service_client.wire import Answer
from tests.builders import (
    GREET,
)
from tests.unit.service_client.fake_wire import CONTEXT, HERE, FakeWire, done, operations_of

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
    orders = [CreateOrder(GREET, {}, key) for key in "ab"]

    results = client.write(orders, CONTEXT)

    assert results == [Written("3", 7), Written("4", 7)]
    assert operations_of(wire) == [["WriteBatch"]]
    assert client.batch_size == 500


@pytest.mark.parametrize("batch", [None, 0, 1, -5, True, "500"])
def test_a_service_that_has_no_batches_is_called_as_ever(batch: object) -> None:
    """An older one does not tell; what is no number is none."""
    wire, client = packing(**{**INFO, "batch": batch})

    client.write([CreateOrder(GREET, {}, key) for key in "ab"], CONTEXT)

    assert operations_of(wire) == [["CreateAction", "CreateAction"]]
    assert client.batch_size == 64


def test_a_service_may_take_more_than_a_lock_lasts() -> None:
    """Signals and the lease are looked after between batches."""
    _, client = packing(**{**INFO, "batch": 10**9})

    assert client.batch_size == 500


def test_in_process_a_batch_is_one_commit_already() -> None:
    wire = FakeWire(GetServiceInfo=Answer(INFO), CreateAction=done(7, id="3"))
    client = OperationsClient(wire, HERE)
    client.instance()

    client.write([CreateOrder(GREET, {}, key) for key in "ab"], CONTEXT)

    assert operations_of(wire)[1:] == [["CreateAction", "CreateAction"]]
