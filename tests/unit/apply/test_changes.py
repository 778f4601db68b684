"""One change of a plan: its intent, its orders and its outcome."""

from __future__ import annotations

import pytest

from reconciler.apply.changes import (
    ApplyReport,
    Outcome,
    Status,
    intent_of,
    order_of,
    secret_order,
)
from reconciler.plan.model import Adopt, Change, Create, Delete, Update
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, UpdateOrder
from tests.builders import (
    ACME,
    GREET,
    NONE,
    SHOP,
    WEB,
    an_application,
    declared,
    held,
    id_of,
)
from tests.rows import each_row

IDS = {ref.key: id_of(ref) for ref in (ACME, SHOP)}
PUBLIC = an_application(authMethodType=NONE)
HELD = held(WEB)


@each_row(
    ("change", "order"),
    [
        (Update(declared(), HELD), UpdateOrder(declared(), HELD)),
        (Adopt(declared(), HELD), UpdateOrder(declared(), HELD)),
        (Delete(HELD), DeleteOrder(HELD)),
        (Create(declared(ACME)), CreateOrder(ACME, declared(ACME).spec, "")),
        (Create(declared(SHOP)), CreateOrder(SHOP, declared(SHOP).spec, "", id_of(ACME))),
        (Create(declared(GREET)), CreateOrder(GREET, declared(GREET).spec, "", id_of(ACME))),
        (Create(declared()), CreateOrder(WEB, declared().spec, "", id_of(ACME), id_of(SHOP))),
    ],
)
def test_a_change_is_one_order_that_names_its_owners(change: Change, order: Order) -> None:
    assert order_of(change, None, IDS) == order


def test_a_create_is_sent_under_the_key_of_its_intent() -> None:
    change = Create(declared(prevent_delete=True, critical=True))
    intent = intent_of(change, "run-1")
    assert intent is not None

    order = order_of(change, intent, IDS)

    assert isinstance(order, CreateOrder)
    assert (order.key, order.prevent_delete, order.critical) == (intent.key, True, True)
    assert (intent.ref, intent.spec, intent.run) == (WEB, declared().spec, "run-1")
    assert (intent.prevent_delete, intent.critical) == (True, True)


@each_row(
    ("change", "purpose", "owes"),
    [
        (Create(declared()), "create", True),
        (Create(declared(WEB, PUBLIC)), "create", False),
        (Create(declared(GREET)), "create", False),
        (Update(declared(), held(WEB, PUBLIC)), "secret", True),
        (Update(declared(), HELD, new_secret=True), "secret", True),
        (Update(declared(), held(WEB, an_application(devMode=True))), "", False),
        (Delete(HELD), "", False),
    ],
)
def test_the_journal_records_what_is_made_and_what_is_owed(
    change: Change, purpose: str, *, owes: bool
) -> None:
    """Only a create and a new secret could be made twice, or lost."""
    intent = intent_of(change, "run-1")

    assert (intent.purpose if intent else "") == purpose
    assert (intent is not None and intent.owes_secret) is owes


def test_no_two_intents_have_the_same_key() -> None:
    intents = [intent_of(Create(declared()), "run-1") for _ in range(3)]

    assert len({intent.key for intent in intents if intent}) == 3


def test_a_new_secret_is_ordered_for_what_is_held() -> None:
    order = secret_order(HELD)

    assert (order.ref, order.id, order.client_id) == (WEB, HELD.id, HELD.client_id)
    assert (order.organization_id, order.project_id) == (HELD.organization_id, HELD.project_id)


CHANGE = Create(declared())


@pytest.mark.parametrize("status", Status)
def test_outcomes_are_counted_by_their_status(status: Status) -> None:
    others = [Outcome(CHANGE, each) for each in Status]

    report = ApplyReport((Outcome(CHANGE, status), *others))

    assert report.count(status) == 2


def test_what_remains_is_unknown_until_it_was_looked_for() -> None:
    assert ApplyReport(()).remaining is None
