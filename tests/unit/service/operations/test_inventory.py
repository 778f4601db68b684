"""Our own reads: the service, what an organization holds, and a take-over without a change."""

from __future__ import annotations

from reconciler import __version__
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.callers import Caller, Role
from tests.unit.service.asking import Asking


def test_the_service_says_what_it_is(ask: Asking) -> None:
    info = ask("GetServiceInfo")

    assert (info["product"], info["version"], info["batch"]) == (
        "reconciler", __version__, MAX_ORDERS,
    )  # fmt: skip
    assert info["custody"] is True
    assert info["instance"] == ask("GetServiceInfo")["instance"]
    assert ask("GetIAM") == {
        "globalOrgId": "", "iamProjectId": info["instance"], "defaultOrgId": "",
    }  # fmt: skip


def test_a_caller_of_some_organizations_does_not_see_all(ask: Asking) -> None:
    bound = Caller("ci", Role.VIEWER, frozenset({ask.organization}))

    assert ask("GetServiceInfo")["allOrganizations"] is True
    assert ask("GetServiceInfo", by=bound)["allOrganizations"] is False
    assert ask("GetMyOrg", by=bound)["org"]["name"] == "acme"


def test_a_take_over_changes_the_sequence_and_the_trees_alone(ask: Asking) -> None:
    made = ask.an_action(context='{"tree": "one"}')
    (before,) = ask.objects()

    ask("RecordContext", id=made["id"], context='{"tree": "two"}')

    (after,) = ask.objects()
    assert (after["name"], after["spec"]) == (before["name"], before["spec"])
    assert int(after["details"]["sequence"]) > int(before["details"]["sequence"])
    assert sorted(after["trees"]) == ["one", "two"]


def test_health_says_nothing(ask: Asking) -> None:
    assert ask("Healthz") == {}
    assert ask.refused("Healthz", x=1).code == 3
