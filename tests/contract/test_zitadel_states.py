"""Inactive objects of a ZITADEL: seen, left, switched by its calls, and refused where none is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.changes import Status
from reconciler.errors import InvalidManifestsError
from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from reconciler.state import DesiredState
from tests.builders import (
    ACME,
    GREET,
    PARTNER,
    SHOP,
    WEB,
    a_jwt_config,
    an_action,
    an_application,
    declared,
    desired,
)
from tests.http_clients import apply_with, plan_with, zitadel_client
from tests.listening import listening
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, OLDEST, FakeZitadel

SWITCHED = {Kind.PROJECT, Kind.OIDC_APPLICATION, Kind.ACTION}


@pytest.fixture(params=[NEWEST, OLDER, OLDEST])
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a service of each generation, and one without template calls."""
    return FakeZitadel(version=request.param)


@pytest.fixture
def client(fake: FakeZitadel, tmp_path: Path) -> Iterator[ZitadelClient]:
    """Open a client that may do everything."""
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        yield client


def tree(*, active: bool | None, provider: bool | None = None) -> DesiredState:
    """Declare an object of each kind; all but the provider with one state."""
    each = [
        declared(ACME),
        declared(SHOP),
        declared(WEB, an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_NONE")),
        declared(GREET, an_action()),
        declared(PARTNER, a_jwt_config()),
    ]
    states = dict.fromkeys(SWITCHED, active) | {Kind.IDP_JWT_CONFIG: provider}
    return desired(*(replace(one, active=states.get(one.ref.kind)) for one in each))


def states_of(fake: FakeZitadel) -> set[str]:
    """Return the states of everything but the provider."""
    kinds = ("projects", "apps", "actions")
    return {item["state"].rpartition("_")[2] for kind in kinds for item in fake.held[kind].values()}


def inactive(client: ZitadelClient, declared: DesiredState) -> set[Kind]:
    """Return the kinds of what a plan without changes lists as inactive."""
    plan = plan_with(client, declared)
    assert plan.changes == ()
    return {ref.kind for ref in plan.inactive}


def test_objects_are_made_inactive_left_so_and_reactivated(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """One apply does both writes; what another tool switched since is a success."""
    report = apply_with(client, tree(active=False), tmp_path)
    assert (report.remaining, report.count(Status.FAILED)) == (0, 0)
    assert states_of(fake) == {"INACTIVE"}
    assert plan_with(client, tree(active=False)).changes == ()
    assert inactive(client, tree(active=None)) == SWITCHED

    report = apply_with(client, tree(active=True), tmp_path)
    assert (report.remaining, states_of(fake)) == (0, {"ACTIVE"})
    assert inactive(client, tree(active=None)) == set()


def test_lists_that_lag_are_waited_for(tmp_path: Path) -> None:
    """A new action cannot be read yet when it is deactivated; its state shows later."""
    fake = FakeZitadel(lag=0.2)
    delays = ListDelays(settling=0.3, step=0.05, longest=5.0)
    with (
        listening(fake.app()) as address,
        zitadel_client(address, IAM, tmp_path, delays) as client,
    ):
        report = apply_with(client, tree(active=False), tmp_path)
        assert (report.remaining, report.count(Status.FAILED), states_of(fake)) == (
            0,
            0,
            {"INACTIVE"},
        )


def test_a_provider_of_an_old_call_is_switched_and_its_state_is_seen(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """Only the old list tells its state, and its present sequence stands still."""
    held = fake.put_old_provider("partner", **a_jwt_config())
    apply_with(client, tree(active=None), tmp_path)

    for active, word in ((False, "INACTIVE"), (True, "ACTIVE")):
        report = apply_with(client, tree(active=None, provider=active), tmp_path)
        assert (report.remaining, report.count(Status.FAILED)) == (0, 0)
        assert fake.held["oldIdps"][held["id"]]["state"] == f"IDP_STATE_{word}"

    fake.deactivate("oldIdps", held["id"])
    assert inactive(client, tree(active=None)) == {Kind.IDP_JWT_CONFIG}
    changed = desired(replace(declared(PARTNER, a_jwt_config(issuer="i")), active=True))
    report = apply_with(client, changed, tmp_path)
    assert (report.remaining, report.count(Status.FAILED)) == (0, 0)
    assert inactive(client, changed) == set()


def test_what_no_call_deactivates_is_refused_before_anything_is_written(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """A provider of the present calls has no state, whether it is there or would be made."""
    fake.put("projects", name="shop")
    written: dict[str, Any] = dict(fake.calls)
    off = tree(active=None, provider=False)
    if fake.has_templates:
        for is_held in (False, True):
            if is_held:
                fake.put_provider("partner", **a_jwt_config())
            with pytest.raises(InvalidManifestsError) as refused:
                plan_with(client, off)
            (finding,) = refused.value.diagnostics
            assert finding.code == "PLAN-NOT-DEACTIVATABLE"
            assert finding.ref == PARTNER
    else:
        assert apply_with(client, off, tmp_path).remaining == 0
        assert [item["state"] for item in fake.named("oldIdps", "partner")] == [
            "IDP_STATE_INACTIVE"
        ]
    assert written == {}
