"""Service users of a ZITADEL through the command line: what works, and what exit code 7 says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Run, an_action, write
from tests.listening import listening
from tests.zitadel.roles import Membership, User
from tests.zitadel.stand_in import NEWEST, OLDER, FakeZitadel

ROBOTS = {
    "home": ("acme", "ORG_OWNER", "acme"),
    "away": ("elsewhere", "ORG_OWNER", "acme"),
    "owner": ("elsewhere", "IAM_OWNER", ""),
    "manager": ("elsewhere", "IAM_ORG_MANAGER", ""),
    "project": ("acme", "PROJECT_OWNER", "shop"),
}


@pytest.mark.parametrize("version", [NEWEST, OLDER])
def test_each_robot_works_or_is_told_its_missing_role(run: Run, tree: Path, version: str) -> None:
    """The same manifests for all of them; the first one applies, the others find nothing to do."""
    write(tree / "acme.yaml", ORGANIZATION)
    write(tree / "greet.yaml", an_action())
    fake = FakeZitadel(version=version)
    places = {"": "", "acme": fake.organization, "shop": fake.put("projects", name="shop")["id"]}
    for name, (home, role, place) in ROBOTS.items():
        (lives,) = fake.named("orgs", home)
        fake.users[name] = User(lives["id"], (Membership(role, places[place]),))
    with listening(fake.app()) as address:
        of = {n: {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": n} for n in ROBOTS}
        applied = run("apply", "--auto-approve", **of["away"])
        assert (applied.code, len(fake.held["actions"])) == (0, 1), applied.all
        planned = {name: run("plan", "--detailed-exitcode", **of[name]) for name in ROBOTS}
        exported = run("export", **of["project"])
        unseen = run("export", "--organization", "initech", **of["home"])
        absent = run("export", "--organization", "initech", **of["owner"])
        to = {"RECONCILER_SECRETS_TO": "file:s", **of["home"]}
        rotated = run("secret", "rotate", "initech/shop/web", "--auto-approve", **to)

    refused = planned.pop("project")
    assert {name: ran.code for name, ran in planned.items()} == dict.fromkeys(planned, 0)
    assert (refused.code, exported.code) == (7, 7), refused.all + exported.all
    assert (unseen.code, absent.code) == (7, 1), unseen.all + absent.all
    assert rotated.code == 7, rotated.all
    for ran in (unseen, rotated):
        assert "ORG_OWNER of the organization initech" in ran.err
    assert "the organization acme exists, and this token may not read it" in refused.err
    assert "Its user has the roles: PROJECT_OWNER of the project shop." in refused.err
    assert "Give the user of this token ORG_OWNER of the organization acme" in refused.err
