"""The calls of states: one suite over our service, in process and over HTTP, and two ZITADELs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.test_flow_calls import SERVICES, Party, a_service
from tests.examples import JWT

NOUNS = ("Project", "OrgIDP", "App", "Action")


@pytest.fixture(scope="module", params=SERVICES)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Party]:
    """Run one service."""
    with a_service(request.param, tmp_path_factory.mktemp("server")) as party:
        yield party


@pytest.fixture
def ask(service: Party) -> Party:
    """Make an organization of this test alone."""
    return service.another()


def target_of(ask: Party, noun: str) -> dict[str, Any]:
    """Make an object; return the fields that name it."""
    if noun == "OrgIDP":
        return {"idpId": ask("AddOrgJWTIDP", name="partner", **JWT)["idpId"]}
    if noun == "Action":
        return {"id": ask.action("greet")}
    project = ask("AddProject", name="shop")["id"]
    if noun == "Project":
        return {"id": project}
    return {
        "projectId": project,
        "appId": ask("AddOIDCApp", projectId=project, name="web")["appId"],
    }


def state_of(ask: Party, noun: str, target: dict[str, Any]) -> str:
    """Return the state that the old read of an object tells."""
    if noun == "OrgIDP":
        return str(ask("GetOrgIDPByID", id=target["idpId"])["idp"]["state"])
    read, member = {
        "Project": ("GetProjectByID", "project"),
        "App": ("GetAppByID", "app"),
        "Action": ("GetAction", "action"),
    }[noun]
    return str(ask(read, **target)[member]["state"])


@pytest.mark.parametrize("noun", NOUNS)
def test_an_object_is_switched_off_and_on_and_each_only_once(ask: Party, noun: str) -> None:
    """A second call of the same way is a failed precondition; each change has a sequence."""
    target = target_of(ask, noun)
    sequences = []
    for verb, word in (("Deactivate", "INACTIVE"), ("Reactivate", "ACTIVE")):
        details = ask(f"{verb}{noun}", **target)["details"]
        assert details["resourceOwner"] == ask.organization
        sequences.append(int(details["sequence"]))
        assert state_of(ask, noun, target).rpartition("_STATE_")[2] == word
        assert ask.code(f"{verb}{noun}", **target) == 9

    assert sequences == sorted(set(sequences))


@pytest.mark.parametrize("noun", ["Project", "App", "Action"])
def test_a_missing_object_has_no_state(ask: Party, noun: str) -> None:
    """Not found, whichever way. A ZITADEL tells nothing of the kind of a provider."""
    target = dict.fromkeys(target_of(ask, noun), "404")

    assert {ask.code(f"{verb}{noun}", **target) for verb in ("Deactivate", "Reactivate")} == {5}


def test_an_inactive_action_is_updated_and_stays_so(ask: Party) -> None:
    """An update is about the fields alone."""
    action = ask.action("greet")
    ask("DeactivateAction", id=action)
    ask("UpdateAction", id=action, name="hello", script="function hello() {}")

    found = ask("GetAction", id=action)["action"]
    assert (found["name"], found["state"]) == ("hello", "ACTION_STATE_INACTIVE")
