"""What is looked up before a batch: what its calls name, as far as a store could hold it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.prefetch import expected_lookups
from reconciler.service.operations.request import Request

CI = Caller("ci", Role.EDITOR, frozenset({"1"}))


def a_call(fields: dict[str, Any], **beside: Any) -> Request:
    return Request("UpdateAction", fields, caller=CI, **beside)


@pytest.mark.parametrize(
    ("fields", "objects", "names"),
    [
        ({"projectId": "2", "name": "Shop"}, {"1", "2"}, {"shop"}),
        ({"projectId": "2", "appId": "3"}, {"1", "2", "3"}, set()),
        ({"idpId": "3"}, {"1", "3"}, set()),
        ({"id": "3", "name": "É"}, {"1", "3"}, {"é"}),
        ({"id": 3, "name": None}, {"1"}, set()),
        ({"id": "a\0b", "name": "\ud800"}, {"1"}, set()),
        ({"id": "x" * 301, "name": ""}, {"1"}, set()),
    ],
)
def test_objects_and_names_that_calls_name_are_looked_up(
    fields: dict[str, Any], objects: set[str], names: set[str]
) -> None:
    """What no store could hold is left out; it is refused later, in words."""
    expected = expected_lookups([a_call(fields)])

    assert (set(expected.objects), set(expected.names)) == (objects, names)


def test_keys_are_looked_up_for_each_caller() -> None:
    expected = expected_lookups([a_call({}, idempotency_key=key) for key in ("a", "", "b", "\0")])

    assert expected.records == {(CI.account, "a"), (CI.account, "b")}
    assert expected.events == 4
