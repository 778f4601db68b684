"""Lists of a ZITADEL that lag: how long a run waits, what it says then, and what the next does."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.apply.changes import ApplyReport, Status
from reconciler.diagnostics import Diagnostic
from reconciler.errors import AlreadyExistsError, NotListedError
from reconciler.plan.model import Create
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, Written
from reconciler.service_client.zitadel.client import ListDelays
from tests.builders import a_ref, an_action, declared, desired
from tests.http_clients import apply_with, plan_with, zitadel_client
from tests.listening import listening
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, FakeZitadel

WEB, GREET = a_ref(), a_ref(Kind.ACTION, "greet")
PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")
SHOP = declared(a_ref(Kind.PROJECT, "shop"))
FOREVER = 1000.0
IMPATIENT = ListDelays(settling=0.01, step=0.01, longest=0.03)


def a_fake(version: str = NEWEST) -> FakeZitadel:
    fake = FakeZitadel(version=version, lag=FOREVER)
    fake.put("projects", name="shop")
    fake.things.catch_up(float("inf"))
    return fake


def test_the_wait_grows_and_ends_with_the_limit(tmp_path: Path) -> None:
    """A look reads every list, so the looks get rarer."""
    fake, slept = a_fake(), list[float]()
    patience = ListDelays(settling=0, step=0.5, longest=60, sleep=slept.append)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, patience) as one:
        one.write([CreateOrder(declared(GREET), fake.organization)], {})
        slept.clear()
        state = one.observe(["acme"])

    assert state.unshown == (GREET.key,)
    assert sum(slept) == pytest.approx(60)
    assert len(slept) < 20
    assert max(slept) == 5.0


def test_it_ends_early_when_the_lists_agree(tmp_path: Path) -> None:
    """The limit costs nothing where it is not needed."""
    fake, slept = a_fake(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            fake.things.catch_up(float("inf"))

    patience = ListDelays(settling=0, step=0.5, longest=60, sleep=sleep)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, patience) as one:
        one.write([CreateOrder(declared(GREET), fake.organization)], {})
        slept.clear()
        state = one.observe(["acme"])

    assert state.unshown == ()
    assert len(slept) == 3


@pytest.mark.parametrize("version", [NEWEST, OLDER])
def test_after_a_longer_lag_the_next_run_looks_before_it_creates(
    version: str, tmp_path: Path
) -> None:
    """The plan wants to create again; nothing is made twice, and nothing is left."""
    fake = a_fake(version)
    house = desired(SHOP, declared(WEB), declared(PARTNER))
    with listening(fake.app()) as address:
        with zitadel_client(address, IAM, tmp_path, IMPATIENT) as one:
            first = apply_with(one, house, tmp_path)
        with zitadel_client(address, IAM, tmp_path, IMPATIENT) as other:
            planned = plan_with(other, house)
            again = apply_with(other, house, tmp_path)

    (note,) = not_shown(first)
    assert note.is_error
    assert "IdpJwtConfig acme/partner and 1 more" in note.summary
    assert "--settle" in note.remedy
    assert {type(change) for change in planned.changes} == {Create}
    assert {outcome.status for outcome in again.outcomes} == {Status.MADE}, again
    assert (again.remaining, not_shown(again)) == (0, [])
    assert [len(fake.named("apps", "storefront")), len(fake.named("idps", "partner"))] == [1, 1]
    assert fake.replaced == 0


@pytest.mark.parametrize("is_late", [True, False])
def test_a_taken_name_that_no_list_shows_is_waited_for(*, is_late: bool, tmp_path: Path) -> None:
    """Another run may have made it a moment ago; what does not show in time is lost."""
    fake, slept = a_fake(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if is_late and len(slept) == 3:
            fake.things.catch_up(float("inf"))

    patience = ListDelays(settling=0, step=0.5, longest=60, sleep=sleep)
    fake.put("actions", name="greet", script="function greet() {}", timeout="20s")
    order = CreateOrder(declared(GREET), fake.organization)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, patience) as one:
        (refused,) = one.write([order], {})
        slept.clear()
        state = one.observe(["acme"])

    assert isinstance(refused, NotListedError)
    assert (state.unlisted, state.unshown) == (() if is_late else (GREET.key,), ())
    assert sum(slept) == pytest.approx(60) if not is_late else len(slept) == 3


def not_shown(report: ApplyReport) -> list[Diagnostic]:
    return [note for note in report.notes if note.code == "APPLY-NOT-SHOWN"]


def test_a_name_that_is_taken_by_something_unseen_is_told_so(tmp_path: Path) -> None:
    """Nothing brings the list of actions up to date, so nothing is claimed."""
    fake = a_fake()
    order = CreateOrder(declared(GREET), fake.organization)
    other = CreateOrder(declared(GREET, an_action(timeout="1s")), order.organization_id)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, IMPATIENT) as one:
        (made,) = one.write([order], {})
        (refused,) = one.write([order], {})
        fake.things.catch_up(float("inf"))
        (same,) = one.write([order], {})
        (different,) = one.write([other], {})

    assert isinstance(made, Written)
    assert isinstance(refused, AlreadyExistsError)
    assert "do not show it" in refused.problem
    assert isinstance(same, Written)
    assert same.id == made.id
    assert isinstance(refused, NotListedError)
    assert isinstance(different, AlreadyExistsError)
    assert "not as declared" in different.problem
