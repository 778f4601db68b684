"""Facts about operations that the transports and the engine read."""

from __future__ import annotations

import pytest

from reconciler.kinds.addresses import ADDRESSES
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.form import Asked
from reconciler.service.operations.operation import Effect, Operation, without_null
from reconciler.service.operations.request import Fields
from reconciler.service.operations.table import operations
from tests.rows import each_row


@each_row("name", operations())
def test_an_operation_has_the_addresses_and_effects_of_its_row(name: str) -> None:
    operation = operations()[name]

    assert operation.http == ADDRESSES[name]
    assert operation.writes is (operation.effect is not Effect.READS)
    assert not operation.is_of_an_object or operation.writes


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"name": "a", "timeout": None}, {"name": "a"}),
        ({"name": "a", "tiemout": None}, {"name": "a", "tiemout": None}),
        ({"name": None}, {}),
        ({"name": "a"}, {"name": "a"}),
    ],
)
def test_null_is_a_field_left_out_unless_it_is_unknown(
    fields: dict[str, object], kept: dict[str, object]
) -> None:
    assert without_null(operations()["CreateAction"], fields) == kept


def test_fields_that_a_handler_reads_itself_stay_as_they_are() -> None:
    by_hand = Operation("ListTrees", "", Effect.READS, lambda *_: {}, Fields)

    assert without_null(by_hand, {"a": None}) == {"a": None}
    assert isinstance(by_hand.read({"a": 1}), Fields)


def test_a_request_is_read_of_its_fields() -> None:
    operation = operations()["CreateAction"]

    assert isinstance(operation.read({"name": "a", "script": "x"}), Asked)
    with pytest.raises(Refusal, match="script"):
        operation.read({"name": "a"})
