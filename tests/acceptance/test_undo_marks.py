"""It stays undone: what a plan would bring back is blocked, whatever was there before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.acceptance.conftest import Place, an_action, an_application, an_idp, write
from tests.acceptance.test_action_flows import ACCESS_TOKEN, USERINFO, a_flow
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_project_roles import a_role
from tests.acceptance.test_undo import undone
from tests.acceptance.test_undo_cases import ours, run_of, with_metadata
from tests.acceptance.ways import on_two_ways

__all__ = ["ours"]

OPTIONAL: Mapping[str, Mapping[str, Any]] = {
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


def manifests(said: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
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


@on_two_ways
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


@on_two_ways
def test_marks_of_one_undo_after_the_other_are_kept_together(ours: Place) -> None:
    """The later undo does not end what the earlier one keeps undone."""
    one = an_action(timeout="7s")
    first = run_of(applied(ours.run, ours.manifests, greet=one))
    both = an_action(timeout="7s", allowedToFail=True)
    second = run_of(applied(ours.run, ours.manifests, greet=both))
    undone(ours.run, second)
    undone(ours.run, first)

    whole = ours.run("plan", "--detailed-exitcode")
    write(ours.manifests / "greet.yaml", an_action(allowedToFail=True))
    later = ours.run("plan", "--detailed-exitcode")
    write(ours.manifests / "greet.yaml", one)
    earlier = ours.run("plan", "--detailed-exitcode")
    write(ours.manifests / "greet.yaml", an_action(timeout="8s"))
    other = ours.run("plan", "--detailed-exitcode")

    assert (whole.code, later.code, earlier.code) == (3, 3, 3), whole.all + later.all + earlier.all
    assert "timeout, allowedToFail" in whole.err
    assert first in whole.err
    assert second in whole.err
    assert other.code == 2, other.all


def test_a_name_that_an_undo_took_back_is_not_given_to_a_new_object(ours: Place) -> None:
    """Without metadata.id the rename is a create; the old name in another manifest is no rename."""
    held = ours.direct.objects()["greet"]["id"]
    before = (ours.manifests / "greet.yaml").read_text()
    renamed = an_action("welcome")
    pinned = with_metadata(renamed, id=held)
    undone(ours.run, run_of(applied(ours.run, ours.manifests, greet=pinned)))

    again = ours.run("plan", "--detailed-exitcode")
    write(ours.manifests / "greet.yaml", renamed)
    made = ours.run("plan", "--detailed-exitcode")
    pruned = ours.run("plan", "--detailed-exitcode", "--prune", "--allow-deletes", "9")
    redo = ours.run("plan", "--detailed-exitcode", "--redo", "Action/acme/welcome")
    old = ours.run("plan", "--detailed-exitcode", "--redo", "Action/acme/greet")
    write(ours.manifests / "greet.yaml", before + "\n---\n" + renamed)
    beside = ours.run("plan", "--detailed-exitcode")

    assert again.code == 3, again.all
    for blocked in (made, pruned):
        assert blocked.code == 3, blocked.all
        assert "GUARD-UNDONE" in blocked.err
        assert "--redo Action/acme/welcome" in blocked.err
        assert "logins failed" in blocked.err
    assert (redo.code, old.code, beside.code) == (2, 2, 2), redo.all + old.all + beside.all


def test_a_flow_that_an_undo_brought_back_is_not_emptied_again(ours: Place) -> None:
    """Nor is one made again that an undo removed."""
    full = a_flow({USERINFO: ["greet"]})
    made = run_of(applied(ours.run, ours.manifests, token=full))
    gone = run_of(applied(ours.run, ours.manifests, token=a_flow({})))
    second = undone(ours.run, gone)

    emptied = ours.run("plan", "--detailed-exitcode")
    undone(ours.run, undone(ours.run, second))
    assert "COMPLEMENT_TOKEN" in exported(ours.run)
    undone(ours.run, made)
    write(ours.manifests / "token.yaml", full)
    again = ours.run("plan", "--detailed-exitcode")

    for blocked in (emptied, again):
        assert blocked.code == 3, blocked.all
        assert "GUARD-UNDONE" in blocked.err
        assert "--redo ActionFlow/acme/COMPLEMENT_TOKEN" in blocked.err
