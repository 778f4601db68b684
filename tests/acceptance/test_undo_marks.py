"""It stays undone: what a plan would bring back is blocked, whatever was there before."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.acceptance.conftest import Place, an_action, an_application, an_idp, write
from tests.acceptance.test_action_flows import ACCESS_TOKEN, USERINFO, a_flow
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_project_roles import a_role
from tests.acceptance.test_undo_cases import ours, run_of, undone, with_metadata

__all__ = ["ours"]

OPTIONAL: Mapping[str, Mapping[str, object]] = {
    "web": {
        "postLogoutRedirectUris": ["https://web.example.com/bye"],
        "additionalOrigins": ["https://other.example.com"],
        "devMode": True,
        "clockSkew": "2s",
        "accessTokenRoleAssertion": True,
        "idTokenRoleAssertion": True,
        "idTokenUserinfoAssertion": True,
        "skipNativeAppSuccessPage": True,
        "accessTokenType": "JWT",
    },
    "greet": {"timeout": "7s", "allowedToFail": True},
    "partner": {"audience": "https://acme.example.com"},
    "role": {"group": "Orders"},
    "token": {USERINFO: ["greet"]},
}


ADDRESSES = (
    "OidcApplication/acme/shop/web",
    "Action/acme/greet",
    "IdpJwtConfig/acme/partner",
    "ProjectRole/acme/shop/staff",
    "ActionFlow/acme/COMPLEMENT_TOKEN",
)


def manifests(said: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Return manifests with the optional fields that are said and no others."""
    return {
        "web": an_application("web", **said.get("web", {})),
        "greet": an_action(**said.get("greet", {})),
        "partner": without("audience", an_idp(**said.get("partner", {}))),
        "role": a_role("staff", **said.get("role", {})),
        "token": a_flow({ACCESS_TOKEN: ["greet"], **said.get("token", {})}),
    }


def without(field: str, text: str) -> str:
    value = json.loads(text)
    if value["spec"][field] == "https://login.acme.example.com":
        del value["spec"][field]
    return json.dumps(value)


def test_a_field_that_was_absent_or_is_absent_again_stays_undone(ours: Place) -> None:
    """Both ways, for every field that a manifest may leave out."""
    applied(ours.run, ours.manifests, **manifests({}))
    bare = exported(ours.run)
    said = run_of(applied(ours.run, ours.manifests, **manifests(OPTIONAL)))
    full = exported(ours.run)
    second = undone(ours.run, said)
    assert exported(ours.run) == bare

    back = ours.run("plan", "--detailed-exitcode")

    assert back.code == 3, back.all
    for named in OPTIONAL.values():
        assert all(name in back.err for name in named), back.err
    undone(ours.run, second)
    assert exported(ours.run) == full
    for name, text in manifests({}).items():
        write(ours.manifests / f"{name}.yaml", text)
    redone = [f"--redo={address}" for address in ADDRESSES]
    unsaid = ours.run("apply", "--auto-approve", "--format", "json", *redone)
    assert unsaid.code == 0, unsaid.all
    undone(ours.run, run_of(unsaid))
    assert exported(ours.run) == full
    again = ours.run("plan", "--detailed-exitcode")
    assert again.code == 3, again.all
    for named in OPTIONAL.values():
        assert all(name in again.err for name in named), again.err
