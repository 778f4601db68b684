"""The script that turns a Terraform state into manifests, on a recorded state."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.terraform.to_manifests import StateError, manifests_of, seconds
from tests.acceptance.zitadel import a_zitadel
from tests.program import ROOT, Ran, program
from tests.zitadel.stand_in import GENERATIONS

STATE = Path(__file__).parent / "terraform" / "state.json"
NEWER = STATE.with_name("newer.json")
NEWER_CONFIG = {
    "clientId": "320478310452265231",
    "redirectUris": ["https://shop.example.com/callback"],
    "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
    "accessTokenType": "OIDC_TOKEN_TYPE_JWT",
    "accessTokenRoleAssertion": True,
}
NEWER_CONFIGS: dict[str, dict[str, object]] = {
    "web": {"clockSkew": "1s", "loginVersion": {"loginV2": {"baseUri": ""}}},
    "admin": {
        "backChannelLogoutUri": "https://admin.example.com/out",
        "loginVersion": {"loginV1": {}},
    },
}
SCRIPT = ROOT / "docs" / "terraform" / "to_manifests.py"


def convert(folder: Path, *arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-IS", SCRIPT, *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def texts(folder: Path) -> Iterator[str]:
    return (path.read_text(encoding="utf-8") for path in folder.rglob("*.yaml"))


def test_the_manifests_are_valid_and_hold_no_secret(tmp_path: Path) -> None:
    """What the tool does not manage is named; nothing sensitive leaves the state."""
    done = convert(tmp_path, str(STATE), "manifests")
    judged = program(tmp_path)("validate", "--format", "json")

    assert done.code == 0, done.all
    assert done.err == "left to Terraform: zitadel_human_user.ana\n"
    assert judged.json["manifests"] == 5
    assert {one["code"] for one in judged.json["diagnostics"]} <= {"REF-UNDECLARED"}
    written = "".join(texts(tmp_path / "manifests"))
    assert "never-to-be-written" not in written
    assert "Secret-Password-1" not in written


def test_what_terraform_made_is_found_by_name(tmp_path: Path) -> None:
    """Nothing is made a second time: what Terraform applied is in step."""
    convert(tmp_path, str(STATE), "manifests")
    (application,) = resources("zitadel_application_oidc")
    (action,) = resources("zitadel_action")
    with a_zitadel() as (fake, here):
        project = fake.named("projects", "shop")[0]["id"]
        config = {
            "clientId": application["client_id"],
            "redirectUris": application["redirect_uris"],
            "grantTypes": application["grant_types"],
            "accessTokenType": application["access_token_type"],
            "accessTokenRoleAssertion": True,
            "clockSkew": "0.5s",
        }
        fake.put("apps", name="store front", project=project, oidcConfig=config)
        fields = {"script": action["script"], "timeout": "10s", "allowedToFail": True}
        greet = fake.put("actions", name="greet", **fields)["id"]
        for trigger in ("4", "5"):
            asked = {"flowType": "2", "triggerType": trigger, "actionIds": [greet]}
            fake.flows.set(asked, fake.organization)
        planned = program(tmp_path)("plan", "--format", "json", **here)

    assert planned.json["summary"]["in_step"] >= 4, planned.all
    assert [change["ref"]["name"] for change in planned.json["changes"]] == ["partner"]


@pytest.mark.parametrize("version", GENERATIONS)
def test_the_newer_resources_are_found_by_name_as_well(tmp_path: Path, version: str) -> None:
    """Those of version 2: one block has the configuration, and an API application stays."""
    done = convert(tmp_path, str(NEWER), "manifests")
    with a_zitadel(version=version) as (fake, here):
        project = fake.named("projects", "shop")[0]
        fake.projects.update({"id": project["id"], "name": "shop", "projectRoleAssertion": True,
                              **dict.fromkeys(("projectRoleCheck", "hasProjectCheck"), False),
                              "privateLabelingSetting": "PRIVATE_LABELING_SETTING_UNSPECIFIED"},
                             fake.organization)  # fmt: skip
        for name, more in NEWER_CONFIGS.items():
            config = {**NEWER_CONFIG, **more}
            fake.put("apps", name=name, project=project["id"], oidcConfig=config)
        fake.put("apps", name="backend", project=project["id"], apiConfig={"clientId": "1"})
        planned = program(tmp_path)("plan", "--format", "json", "--detailed-exitcode", **here)

    assert done.code == 0, done.all
    assert done.err == "left to Terraform: zitadel_application_v2.backend\n"
    written = "".join(texts(tmp_path / "manifests"))
    assert "never-to-be-written" not in written
    assert "projectRoleAssertion: true" in written
    assert planned.code == 0, planned.all
    assert planned.json["summary"]["in_step"] == 4


@pytest.mark.parametrize("resources", [[], ["zitadel_application_v2.backend"]])
def test_where_nothing_can_be_written_the_script_fails(
    tmp_path: Path, resources: list[str]
) -> None:
    """A script that goes on with an empty folder would prune by it."""
    state = json.loads(NEWER.read_text(encoding="utf-8"))
    root = state["values"]["root_module"]
    root["resources"] = [one for one in root["resources"] if one["address"] in resources]
    (tmp_path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    done = convert(tmp_path, "state.json", "manifests")

    assert done.code == 1
    assert [f"left to Terraform: {address}" for address in resources] == done.err.splitlines()[:-1]
    assert done.err.splitlines()[-1].startswith("Error: nothing was written: ")
    assert not (tmp_path / "manifests").exists()


def resources(kind: str) -> list[dict[str, object]]:
    root = json.loads(STATE.read_text(encoding="utf-8"))["values"]["root_module"]
    every = [*root["resources"], *root["child_modules"][0]["resources"]]
    return [one["values"] for one in every if one["type"] == kind]


def test_an_organization_that_the_state_does_not_name_is_asked_for() -> None:
    """A manifest names its organization; the state may know only an id."""
    state = json.loads(STATE.read_text(encoding="utf-8"))
    del state["values"]["root_module"]["resources"][0]

    with pytest.raises(StateError, match="--organization 320478310452265220=NAME"):
        manifests_of(state, {})
    files, _ = manifests_of(state, {"320478310452265220": "acme"})
    assert "acme/projects/shop/applications/store-front.yaml" in files


def test_an_action_that_the_state_does_not_name_is_asked_for() -> None:
    """A flow names its actions; the state may know only ids."""
    state = json.loads(STATE.read_text(encoding="utf-8"))
    found = state["values"]["root_module"]["resources"]
    state["values"]["root_module"]["resources"] = [
        one for one in found if one["address"] != "zitadel_action.greet"
    ]

    with pytest.raises(StateError, match="userinfo: the state has no name for the action 3204"):
        manifests_of(state, {})


@pytest.mark.parametrize(
    ("state", "problem"), [("{", "is not the output of terraform show -json"), (None, "No such")]
)
def test_what_is_no_state_is_refused(tmp_path: Path, state: str | None, problem: str) -> None:
    """Nothing is written."""
    if state is not None:
        (tmp_path / "state.json").write_text(state, encoding="utf-8")
    done = convert(tmp_path, "state.json", "manifests")

    assert done.code == 1
    assert problem in done.err
    assert not (tmp_path / "manifests").exists()


@pytest.mark.parametrize(
    ("terraform", "manifest"),
    [("10s", "10s"), ("500ms", "0.5s"), ("1m0s", "60s"), ("1.5s", "1.5s"), ("soon", "soon")],
)
def test_durations_are_written_in_seconds(terraform: str, manifest: str) -> None:
    """One that cannot be read is left as it is, for validate to name."""
    assert seconds(terraform) == manifest


def test_a_role_is_written_by_its_key() -> None:
    """In the folder of its project."""
    (project,) = resources("zitadel_project")
    values = {
        "id": "9", "org_id": project["org_id"], "project_id": project["id"],
        "role_key": "orders/manage", "display_name": "Order manager", "group": "",
    }  # fmt: skip
    state = json.loads(STATE.read_text(encoding="utf-8"))
    role = {"address": "zitadel_project_role.m", "type": "zitadel_project_role", "values": values}
    state["values"]["root_module"]["resources"].append(role)

    files, left_out = manifests_of(state, {})

    (text,) = [text for path, text in files.items() if path.endswith("roles/orders-manage.yaml")]
    assert role["address"] not in left_out
    assert text.endswith('name: "orders/manage"\nspec:\n  displayName: "Order manager"\n')


def test_flags_of_a_project_are_written_where_they_are_on() -> None:
    state = json.loads(STATE.read_text(encoding="utf-8"))
    (project,) = [
        one
        for one in state["values"]["root_module"]["resources"]
        if one["type"] == "zitadel_project"
    ]
    off, _ = manifests_of(state, {})
    project["values"]["project_role_check"] = True

    on, _ = manifests_of(state, {})

    (path,) = [path for path in on if path.endswith("project.yaml")]
    assert "spec" not in off[path]
    assert on[path] == f"{off[path]}spec:\n  projectRoleCheck: true\n"
