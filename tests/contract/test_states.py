"""The state of objects: switched off and on, told by every read, kept by the log."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.projections.maintenance import rebuild, verify
from tests.unit.service.asking import Asking

KINDS = ("Project", "OrgIDP", "App", "Action")


def target_of(ask: Asking, noun: str) -> dict[str, Any]:
    """Make an object of a kind; return the fields that name it."""
    match noun:
        case "Project":
            return {"id": ask.project}
        case "OrgIDP":
            return {"idpId": ask.an_idp()["idpId"]}
        case "App":
            return {"projectId": ask.project, "appId": ask.an_app()["appId"]}
        case _:
            return {"id": ask.an_action()["id"]}


def states_of(ask: Asking, noun: str, target: dict[str, Any]) -> set[str]:
    """Return the state that every read of an object tells."""
    reads = {
        "Project": [("GetProjectByID", "project", target)],
        "App": [("GetAppByID", "app", target)],
        "Action": [("GetAction", "action", target)],
        "OrgIDP": [
            ("GetOrgIDPByID", "idp", {"id": target.get("idpId")}),
            ("GetProviderByID", "idp", {"id": target.get("idpId")}),
        ],
    }[noun]
    object_id = target.get("appId") or target.get("idpId") or target.get("id")
    owner = ask.organization
    found = ask("ListObjects", organizationId=owner)["objects"]
    lists = {
        "Project": ("ListProjects", {}), "App": ("ListApps", {"projectId": ask.project}),
        "Action": ("ListActions", {}), "OrgIDP": ("ListProviders", {}),
    }  # fmt: skip
    operation, fields = lists[noun]
    listed = ask(operation, organization=owner, **fields)["result"]
    told = [each["state"] for each in [*found, *listed] if each["id"] == object_id]
    told += [ask(name, **fields)[member]["state"] for name, member, fields in reads]
    return {state.rpartition("_")[2] for state in told}


@pytest.mark.parametrize("noun", KINDS)
def test_an_object_is_switched_off_and_on(ask: Asking, noun: str) -> None:
    """Every read tells it; the other state alone is refused, with 9, and writes nothing."""
    target = target_of(ask, noun)
    assert states_of(ask, noun, target) == {"ACTIVE"}

    off = ask(f"Deactivate{noun}", **target)
    assert states_of(ask, noun, target) == {"INACTIVE"}
    before = ask.event_count()
    assert ask.refused(f"Deactivate{noun}", **target).code == 9
    assert ask.event_count() == before

    sequence = int(off["details"]["sequence"])
    assert ask.refused(f"Reactivate{noun}", expected_sequence=sequence - 1, **target).code == 9
    ask(f"Reactivate{noun}", expected_sequence=sequence, **target)
    assert states_of(ask, noun, target) == {"ACTIVE"}
    assert ask.refused(f"Reactivate{noun}", **target).code == 9


def test_a_state_outlives_updates_and_is_that_of_the_log(ask: Asking) -> None:
    """An update of an inactive object leaves it so, and a rebuild finds the same."""
    app = target_of(ask, "App")
    ask("DeactivateApp", **app)
    ask("UpdateApp", **app, name="other", context='{"tree":"t","critical":true}')

    (held,) = [each for each in ask.objects() if each["id"] == app["appId"]]
    assert (held["state"], held["critical"], held["trees"]) == ("INACTIVE", True, ["t"])
    assert verify(ask.service.store) == []
    rebuild(ask.service.store)
    assert states_of(ask, "App", app) == {"INACTIVE"}


def test_the_same_key_answers_the_first_answer_again(ask: Asking) -> None:
    """A repeated deactivation is no refusal where it is the same request."""
    app = target_of(ask, "App")
    first = ask("DeactivateApp", **app, idempotency_key="k")
    assert ask("DeactivateApp", **app, idempotency_key="k") == first


def test_actions_are_listed_by_their_state(ask: Asking) -> None:
    """As the interface has it; a name that looks like the mark of a state is none."""
    odd = ask.an_action(name='"inactive":true')["id"]
    off = ask.an_action(name="off")["id"]
    ask("DeactivateAction", id=off, context='{"tree":"\\"inactive\\":true"}')
    ask("RecordContext", id=odd, context='{"tree":"\\"inactive\\":true"}')

    def listed(state: str) -> list[str]:
        query = {"actionStateQuery": {"state": f"ACTION_STATE_{state}"}}
        found = ask("ListActions", organization=ask.organization, queries=[query])
        assert found["details"]["totalResult"] == str(len(found["result"]))
        return [each["id"] for each in found["result"]]

    assert (listed("ACTIVE"), listed("INACTIVE"), listed("UNSPECIFIED")) == ([odd], [off], [])
