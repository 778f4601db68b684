"""One change of a plan: its intent, its orders and its outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.apply.changes import ApplyReport, Outcome, Status, intents_of, order_of
from reconciler.apply.journal import Intent
from reconciler.plan.model import Adopt, Change, Create, Delete, Update
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, SecretOrder, UpdateOrder
from tests.builders import (
    ACME,
    GREET,
    NONE,
    SHOP,
    WEB,
    a_ref,
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
        (Create(declared(ACME)), CreateOrder(declared(ACME))),
        (Create(declared(SHOP)), CreateOrder(declared(SHOP), id_of(ACME))),
        (Create(declared(GREET)), CreateOrder(declared(GREET), id_of(ACME))),
        (Create(declared()), CreateOrder(declared(), id_of(ACME), id_of(SHOP))),
    ],
)
def test_a_change_is_one_order_that_names_its_owners(change: Change, order: Order) -> None:
    assert order_of(change, IDS) == order


def test_a_create_is_sent_with_its_marks() -> None:
    order = order_of(Create(declared(prevent_delete=True, critical=True)), IDS)

    assert isinstance(order, CreateOrder)
    assert (order.resource.prevent_delete, order.resource.critical) == (True, True)


OFF = Create(replace(declared(GREET), active=False))
ON = Create(replace(declared(GREET), active=True))
OFF_WITH_SECRET = Create(replace(declared(), active=False))
NEW_SECRET = Update(declared(), HELD, new_secret=True)
RENAMED = Update(declared(a_ref(name="portal")), HELD)


@each_row(
    ("change", "with_custody", "without"),
    [
        (Create(declared()), [], ["secret"]),
        (Create(declared(WEB, PUBLIC)), [], []),
        (Create(declared(GREET)), [], []),
        (OFF, ["inactive"], ["inactive"]),
        (ON, [], []),
        (OFF_WITH_SECRET, ["inactive"], ["secret", "inactive"]),
        (Update(declared(), held(WEB, PUBLIC)), [], ["secret"]),
        (NEW_SECRET, [], ["secret"]),
        (replace(NEW_SECRET, resource=RENAMED.resource), ["rename"], ["secret", "rename"]),
        (Update(declared(), held(WEB, an_application(devMode=True))), [], []),
        (RENAMED, ["rename"], ["rename"]),
        (Delete(HELD), ["delete"], ["delete"]),
        (Delete(held(GREET)), [], []),
    ],
)
def test_the_journal_records_what_nobody_else_knows_after_a_crash(
    change: Change, with_custody: list[str], without: list[str]
) -> None:
    """A service with custody knows every secret that it made, and lists every object."""
    for custody, purposes in ((True, with_custody), (False, without)):
        found = [*intents_of(change, custody=custody, has_sink=True)]
        assert [intent.purpose for intent in found] == purposes

        nowhere = intents_of(change, custody=custody, has_sink=False)
        of_sink = {"rename", "delete"}
        assert [intent.purpose for intent in nowhere] == [p for p in purposes if p not in of_sink]


def test_an_intent_says_what_the_run_after_a_crash_needs() -> None:
    """A secret of a create has no id yet; a rename has the names before it."""
    made, off = intents_of(OFF_WITH_SECRET, custody=False, has_sink=True)
    renewed, renamed = intents_of(
        replace(NEW_SECRET, resource=RENAMED.resource), custody=False, has_sink=True
    )

    assert made == Intent("secret", made.key, WEB)
    assert off == Intent("inactive", off.key, WEB, spec=declared().spec)
    assert renewed == Intent("secret", renewed.key, RENAMED.resource.ref, HELD.id)
    assert renamed == Intent("rename", renamed.key, WEB, HELD.id, HELD.client_id)
    assert len({each.key for each in (made, off, renewed, renamed)}) == 4


def test_a_new_secret_is_ordered_for_what_is_held() -> None:
    order = SecretOrder(HELD)

    assert (order.ref, order.held.id, order.held.client_id) == (WEB, HELD.id, HELD.client_id)
    assert (order.organization_id, order.held.project_id) == (HELD.organization_id, HELD.project_id)


CHANGE = Create(declared())


@pytest.mark.parametrize("status", Status)
def test_outcomes_are_counted_by_their_status(status: Status) -> None:
    others = [Outcome(CHANGE, each) for each in Status]

    report = ApplyReport((Outcome(CHANGE, status), *others))

    assert report.count(status) == 2


def test_what_remains_is_unknown_until_it_was_looked_for() -> None:
    assert ApplyReport(()).remaining is None
