"""Facts about operations that the transports and the engine read."""

from __future__ import annotations

import pytest

from reconciler.kinds.addresses import ADDRESSES
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.form import Asked
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.table import operations
from tests.rows import each_row


@each_row("name", operations())
def test_an_operation_has_the_addresses_and_effects_of_its_row(name: str) -> None:
    operation = operations()[name]

    assert operation.http == ADDRESSES[name]
    assert operation.writes is (operation.effect is not Effect.READS)
    assert not operation.is_of_an_object or operation.writes


def test_a_request_is_read_of_its_fields() -> None:
    by_hand = Operation("ListTrees", "", Effect.READS, lambda *_: {}, Fields)
    operation = operations()["CreateAction"]

    assert isinstance(by_hand.read({"a": 1}), Fields)
    assert isinstance(operation.read({"name": "a", "script": "x"}), Asked)
    with pytest.raises(Refusal, match="script"):
        operation.read({"name": "a"})
