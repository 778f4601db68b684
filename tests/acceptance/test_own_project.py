"""The project of a ZITADEL's own console: left out of exports and never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from tests.acceptance.conftest import Run, write
from tests.listening import listening
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, FakeZitadel

REFUSED = JSONResponse({"code": 5, "message": "Not Found"}, 404)
ACME = "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: acme}\n"


@pytest.fixture(params=[NEWEST, OLDER])
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a server of each generation, with its console and a project of somebody."""
    fake = FakeZitadel(version=request.param)
    own = fake.put("projects", name="ZITADEL")
    fake.console = own["id"]
    config = {"clientId": "7", "redirectUris": ["https://id.example.com/ui/console/auth/callback"]}
    fake.put("apps", name="Management Console", project=own["id"], oidcConfig=config)
    fake.put("apps", name="Auth-API", project=own["id"], apiConfig={"clientId": "8"})
    shop = fake.put("projects", name="shop")
    config = {"clientId": "9", "redirectUris": ["https://web.example.com/cb"]}
    fake.put("apps", name="web", project=shop["id"], oidcConfig=config)
    return fake


@pytest.fixture
def here(fake: FakeZitadel) -> Iterator[dict[str, str]]:
    """Serve it, and return the environment that names it."""
    with listening(fake.app()) as address:
        yield {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}


def test_an_export_leaves_the_console_out_unless_asked(
    run: Run, tmp_path: Path, here: dict[str, str]
) -> None:
    """What was left out is said, and a plan of the rest is empty."""
    exported = run("export", "--organization", "acme", "--out", "manifests", **here)
    planned = run("plan", "--detailed-exitcode", **here)
    whole = run("export", "--organization", "acme", "--with-console", **here)

    assert exported.code == 0, exported.all
    told = "Project acme/ZITADEL and its applications: the service's own console (--with-console"
    assert f"not exported: {told}" in exported.err
    assert told in (tmp_path / "manifests" / "NOT-EXPORTED.txt").read_text(encoding="utf-8")
    assert "Auth-API" not in exported.all
    assert "name: web" in "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.yaml"))
    assert planned.code == 0, planned.all
    assert "ZITADEL" not in planned.out.replace("zitadel", "")
    assert "name: Management Console" in whole.out


def test_nothing_of_the_console_is_ever_deleted(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str]
) -> None:
    """Not declared, it is neither deleted nor shown as unmanaged."""
    write(tree / "acme.yaml", ACME)
    planned = run("plan", "--prune-unmanaged", "--format", "json", **here).json
    applied = run("apply", "--auto-approve", "--prune-unmanaged", **here)

    assert [change["ref"]["name"] for change in planned["changes"]] == ["web"]
    assert [each["name"] for each in planned["unmanaged"]] == ["shop"]
    assert applied.code == 0, applied.all
    assert {app["name"] for app in fake.held["apps"].values()} == {"Management Console", "Auth-API"}


def test_a_service_that_does_not_tell_its_id_is_said_once(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str]
) -> None:
    """A plan goes on, and deletes no application, since any may be the console's."""
    write(tree / "acme.yaml", ACME)
    fake.strays["GetIAM"] = [REFUSED] * 10
    planned = run("plan", "--detailed-exitcode", **here)
    pruned = run("plan", "--prune-unmanaged", "--detailed-exitcode", **here)
    drifted = run("drift", **here)
    exported = run("export", **here)
    outputs = run("outputs", **here)
    to = {"RECONCILER_SECRETS_TO": "file:s", **here}
    rotated = run("secret", "rotate", "acme/shop/web", "--auto-approve", **to)

    assert (planned.code, pruned.code, drifted.code) == (0, 3, 0), planned.all + pruned.all
    assert rotated.code == 0, rotated.all
    for ran in (planned, pruned, drifted, exported, outputs, rotated):
        assert ran.all.count("SERVICE-NOT-IDENTIFIED") == 1, ran.all
    assert "It refused: Not Found." in planned.err
    assert "journals and locks" in planned.err
    assert "GUARD-OWN-PROJECT" in pruned.err
    assert "name: Management Console" in exported.out


def test_a_plan_that_was_saved_before_says_what_to_let_through(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str]
) -> None:
    """The address is the same one, so to give it again would not help."""
    write(tree / "acme.yaml", ACME)
    saved = run("plan", "--out", "plan.json", **here)
    fake.strays["GetIAM"] = [REFUSED]
    refused = run("apply", "plan.json", **here)

    assert (saved.code, refused.code) == (0, 4), refused.all
    assert "Let GET /management/v1/iam through to the service: it does not report" in refused.err


def test_a_plan_that_was_saved_without_an_id_says_to_plan_again(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str]
) -> None:
    """The address is the same one here, too, and nothing is left to be let through."""
    write(tree / "acme.yaml", ACME)
    fake.strays["GetIAM"] = [REFUSED]
    saved = run("plan", "--out", "plan.json", **here)
    refused = run("apply", "plan.json", **here)

    assert (saved.code, refused.code) == (0, 4), refused.all
    assert "made while its service did not report its id, and this is zitadel-" in refused.err
    same = f"It was made at {here['RECONCILER_SERVICE']}, which may be the same one."
    assert f"{same} Run `reconciler plan` again" in refused.err
    assert "Let GET" not in refused.err


def test_a_plan_for_another_address_names_the_one_it_was_made_for(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str]
) -> None:
    """Neither run was told an id: to let one through helps no more, as the plan would not fit."""
    write(tree / "acme.yaml", ACME)
    fake.strays["GetIAM"] = [REFUSED] * 2
    saved = run("plan", "--out", "plan.json", **here)
    elsewhere = here["RECONCILER_SERVICE"].replace("127.0.0.1", "localhost")
    refused = run("apply", "plan.json", **{**here, "RECONCILER_SERVICE": elsewhere})

    assert (saved.code, refused.code) == (0, 4), refused.all
    assert f"Give the --service it was made for ({here['RECONCILER_SERVICE']})" in refused.err
    assert "Let GET" not in refused.err


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (JSONResponse({"code": 2, "message": "database"}, 500), 0),
        (JSONResponse({"code": 16, "message": "no"}, 401), 7),
    ],
    ids=["one failure", "no answer"],
)
def test_a_service_that_does_not_answer_gets_no_other_id(
    run: Run, tree: Path, fake: FakeZitadel, here: dict[str, str], answer: JSONResponse, code: int
) -> None:
    """An id that is made of the address would hide the journal of an earlier run."""
    write(tree / "acme.yaml", ACME)
    fake.strays["GetIAM"] = [answer]
    planned = run("plan", **here)

    assert planned.code == code, planned.all
    assert "SERVICE-NOT-IDENTIFIED" not in planned.all
