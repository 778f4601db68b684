"""A call whose answer was lost counts as carried out only where everything is as it asked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.resources.call import Call
from reconciler.service_client.orders import confirmed_result
from reconciler.service_client.port import UpdateOrder
from reconciler.state import ObservedObject
from tests.builders import WEB, declared, held

CONTEXT = json.dumps({"tree": "default"})
BEFORE = held(WEB, sequence=1)
RENAMED = WEB._replace(name="shopfront")


def after(ref: Any = WEB, said: Any = None, **more: Any) -> ObservedObject:
    """Return the application as it is found after a call whose answer was lost."""
    return held(ref, said, **{"object_id": BEFORE.id, "sequence": 2, "owner": "default", **more})


@pytest.mark.parametrize(
    ("operation", "wanted", "now", "done"),
    [
        ("RecordContext", declared(WEB, critical=True), after(critical=True), True),
        ("RecordContext", declared(WEB, critical=True), after(), False),
        ("RecordContext", declared(WEB, prevent_delete=True), after(), False),
        ("RecordContext", declared(WEB), after(), True),
        ("RecordContext", declared(WEB), after(owner="b"), False),
        ("RecordContext", declared(WEB), after(owner=None), True),
        ("UpdateOIDCAppConfig", declared(WEB, {"devMode": True}), after(), False),
        (
            "UpdateOIDCAppConfig",
            declared(WEB, {"devMode": True}, critical=True),
            after(said={"devMode": True}),
            False,
        ),
        (
            "UpdateOIDCAppConfig",
            declared(WEB, {"devMode": True}),
            after(said={"devMode": True}),
            True,
        ),
        ("UpdateApp", declared(RENAMED, {"devMode": True}), after(RENAMED), True),
        ("UpdateApp", declared(RENAMED, {"devMode": True}), after(), False),
        ("UpdateApp", declared(RENAMED, critical=True), after(RENAMED), False),
    ],
)
def test_an_update_came_true_only_where_all_of_it_did(
    operation: str, wanted: Any, now: ObservedObject, *, done: bool
) -> None:
    """Marks and owner included; the first of two calls sends no fields yet."""
    order = UpdateOrder(wanted, replace(BEFORE, owner="b"))

    written = confirmed_result(order, Call(operation, context=CONTEXT), {now.id: now})

    assert (written is not None) is done
