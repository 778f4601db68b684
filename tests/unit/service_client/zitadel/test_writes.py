"""Writes to a ZITADEL: an object is read before each, and what changes nothing is a success."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.errors import ObjectNotFoundError, PreconditionFailedError, ServiceError
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import Answer, Reply, WireRefusal
from reconciler.service_client.zitadel.writes import serial_key_of, steps_of
from tests.builders import ACME, GREET, PARTNER, SHOP, TOKEN, WEB, an_action, declared, held
from tests.rows import each_row
from tests.unit.service_client.zitadel.driven import driven, operations

MINE: dict[str, Any] = {"object_id": "7", "organization_id": "1", "sequence": 9}
HELD = held(GREET, **MINE)
UPDATE = UpdateOrder(declared(GREET, an_action(timeout="1s")), HELD)
SLUG = WireRefusal(9, "no", {"slug": "s"})
GONE = WireRefusal(5, "no such object", {"id": "A-1"})


def read(sequence: int = 9, **more: Any) -> Answer:
    return Answer({"action": {"id": "7", "name": "greet", "details": at(sequence), **more}})


def at(sequence: int) -> JsonObject:
    return {"sequence": str(sequence), "resourceOwner": "1"}


def done(sequence: int = 10) -> Answer:
    return Answer({"details": at(sequence)})


@each_row(
    ("order", "key"),
    [
        (CreateOrder(declared(ACME)), "new 3"),
        (CreateOrder(declared(SHOP), "1"), "new 3"),
        (CreateOrder(declared(GREET), "1"), "new 3"),
        (CreateOrder(declared(WEB), "1", "2"), "2"),
        (CreateOrder(declared(PARTNER), "1"), "1"),
        (CreateOrder(declared(TOKEN), "1"), "1"),
        (
            SecretOrder(
                held(WEB, object_id="7", organization_id="1", project_id="2", client_id="c")
            ),
            "2",
        ),
        (DeleteOrder(HELD), "7"),
        (DeleteOrder(held(SHOP, **MINE)), "7"),
        (DeleteOrder(held(PARTNER, **MINE)), "1"),
        (UpdateOrder(declared(WEB), held(WEB, project_id="2", **MINE)), "2"),
    ],
)
def test_writes_that_would_conflict_share_a_key(order: Order, key: str) -> None:
    """ZITADEL counts the events of a project and of an organization."""
    assert serial_key_of(order, 3) == key


@each_row(
    ("order", "replies", "result", "calls"),
    [
        pytest.param(UPDATE, [read(), done()], Written("7", 10), 2, id="as planned"),
        pytest.param(UPDATE, [read(10)], PreconditionFailedError, 1, id="changed"),
        pytest.param(UPDATE, [GONE], ObjectNotFoundError, 1, id="gone"),
        pytest.param(UPDATE, [Answer({})], ServiceError, 1, id="no details"),
        pytest.param(replace(UPDATE, is_new=True), [done()], Written("7", 10), 1, id="just made"),
        pytest.param(
            UPDATE,
            [read(), WireRefusal(9, "no (ACTION-dg4t2)")],
            Written("7", 9),
            2,
            id="no change",
        ),
        pytest.param(
            UPDATE,
            [read(), SLUG, read(**UPDATE.resource.spec)],
            Written("7", 9),
            3,
            id="no change, told by a slug",
        ),
        pytest.param(
            UPDATE, [read(), SLUG, read(**HELD.spec)], PreconditionFailedError, 3, id="a slug"
        ),
        pytest.param(DeleteOrder(HELD), [read(), done()], Written("7", 9), 2, id="a delete"),
        pytest.param(DeleteOrder(HELD), [read(), GONE], ObjectNotFoundError, 2, id="deleted"),
    ],
)
def test_an_object_is_read_before_it_is_written_to(
    order: Order, replies: list[Reply], result: Written | type[ServiceError], calls: int
) -> None:
    """What somebody else changed meanwhile would be lost without a word."""
    made, steps = driven(steps_of(order, ZITADEL[order.ref.kind]), *replies)

    assert (made if isinstance(made, Written) else type(made)) == result
    assert len(steps) == calls
    assert operations(steps)[: not getattr(order, "is_new", False)] in ([], ["GetAction"])


@pytest.mark.parametrize(
    ("ref", "read_by", "name"),
    [
        (SHOP, "GetProjectByID", "project"),
        (WEB, "GetAppByID", "app"),
        (PARTNER, "GetProviderByID", "idp"),
    ],
)
def test_each_kind_has_its_own_read(ref: ResourceRef, read_by: str, name: str) -> None:
    answer = Answer({name: {"id": "7", "details": at(10)}})

    result, steps = driven(steps_of(DeleteOrder(held(ref, **MINE)), ZITADEL[ref.kind]), answer)

    assert isinstance(result, PreconditionFailedError)
    assert operations(steps) == [read_by]


def test_a_secret_without_its_answer_is_not_known() -> None:
    order = SecretOrder(
        held(WEB, object_id="7", organization_id="1", project_id="2", client_id="c")
    )

    made, _ = driven(
        steps_of(order, ZITADEL[order.ref.kind]), Answer({**done().fields, "clientSecret": "s"})
    )
    lost, _ = driven(steps_of(order, ZITADEL[order.ref.kind]), done())

    assert isinstance(made, Written)
    assert made.client_secret is not None
    assert isinstance(lost, ServiceError)
