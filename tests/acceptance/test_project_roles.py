"""Roles of projects through the command line: planned, applied, exported, removed by name only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import ORGANIZATION, Place, Run, write
from tests.acceptance.zitadel import a_zitadel
from tests.zitadel.stand_in import GENERATIONS, FakeZitadel

ODD_KEYS = ("a/b", "100%", "a=b", "Sales Manager", "Käufer", ".hidden", "Admin", "ü" * 200)
PRUNE = ("--prune", "--allow-deletes", "9")


def a_role(key: str, **spec: Any) -> str:
    """Return the manifest of a role."""
    metadata = {"organization": "acme", "project": "shop", "name": key}
    said = {"displayName": "Manager", **spec}
    return json.dumps(
        {"apiVersion": "reconciler/v1", "kind": "ProjectRole", "metadata": metadata, "spec": said}
    )


def roles(*keys: str, **spec: Any) -> str:
    return "\n---\n".join(a_role(key, **spec) for key in keys)


def address(key: str) -> str:
    escaped = key.replace("%", "%25").replace("/", "%2F").replace("=", "%3D")
    return f"ProjectRole/acme/shop/{escaped}"


@pytest.fixture
def manifest(place: Place) -> Path:
    """Return the file of the roles, beside an organization and a project."""
    for file in place.manifests.glob("*.yaml"):
        file.unlink()
    write(place.manifests / "organization.yaml", ORGANIZATION)
    return place.manifests / "roles.yaml"


def test_keys_of_any_form_are_applied_exported_and_removed(manifest: Path, place: Place) -> None:
    """A plan of the export is empty; each is removed by its own address."""
    run, keys = place.run, (*ODD_KEYS, "admin")
    write(manifest, roles(*keys))
    made = run("apply", "--auto-approve")
    again = run("plan", "--detailed-exitcode")
    exported = run("export", "--out", "exported")
    files = sorted((place.folder / "exported").rglob("roles/*.yaml"))
    planned = run("plan", "exported", "--detailed-exitcode")
    write(manifest, roles(*keys, group="Shop"))
    changed = run("apply", "--auto-approve", "--allow-updates", "99")
    histories = [run("history", address(key)) for key in keys]
    manifest.unlink()
    blocked = run("apply", "--auto-approve", *PRUNE)
    flags = [f"--break-glass={address(key)}=not used" for key in keys]
    removed = run("apply", "--auto-approve", *PRUNE, *flags)
    after = run("plan", *PRUNE, "--detailed-exitcode")

    assert made.code == 0, made.all
    assert "created  ProjectRole acme/shop/a%2Fb" in made.out
    assert (again.code, exported.code, planned.code) == (0, 0, 0), exported.all + planned.all
    assert len({file.name.lower() for file in files}) == len(keys)
    assert changed.code == 0, changed.all
    assert all("Shop" in each.out for each in histories), [each.all for each in histories]
    assert blocked.code == 3
    assert blocked.all.count("GUARD-ROLE-REMOVED") >= len(keys)
    assert removed.code == 0, removed.all
    assert after.code == 0, after.all


def test_the_case_of_a_key_counts(manifest: Path, place: Place) -> None:
    """In --break-glass, in selection and in what a plan compares."""
    run = place.run
    write(manifest, roles("admin", "Admin"))
    assert run("apply", "--auto-approve").code == 0
    write(manifest, roles("admin"))

    other = run("plan", *PRUNE, "--break-glass", f"{address('admin')}=x", "--detailed-exitcode")
    right = run("plan", *PRUNE, "--break-glass", f"{address('Admin')}=x", "--detailed-exitcode")

    assert other.code == 3, other.all
    assert "--break-glass names what this plan does not touch" in other.all
    assert right.code == 2, right.all
    assert "- ProjectRole acme/shop/Admin" in right.out


def test_drift_overlay_and_explain(manifest: Path, place: Place) -> None:
    """A role is a kind like the others."""
    run = place.run
    write(manifest, roles("admin"))
    assert run("apply", "--auto-approve").code == 0
    organization = place.direct.objects()["shop"]["organizationId"]
    project = place.direct.objects()["shop"]["id"]
    fields = {"projectId": project, "roleKey": "admin", "displayName": "Root"}
    place.direct("UpdateProjectRole", organization, **fields)

    drift = run("drift", "--detailed-exitcode")
    healed = run("apply", "--auto-approve")
    explained = run("explain", "ProjectRole.displayName")
    pinned = json.loads(a_role("admin"))
    pinned["metadata"]["id"] = "1"
    write(manifest, json.dumps(pinned))
    refused = run("validate")

    assert drift.code == 2, drift.all
    assert "displayName" in drift.out
    assert healed.code == 0, healed.all
    assert "Name of the role for people." in explained.out
    assert refused.code == 1
    assert "id" in refused.all


@pytest.fixture(params=GENERATIONS)
def zitadel(
    run: Run, tree: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[FakeZitadel, Any]]:
    """Return a stand-in, and what runs the program against it."""
    write(tree / "organization.yaml", ORGANIZATION)
    with a_zitadel(version=request.param) as (fake, known):
        yield fake, lambda *arguments: run(*arguments, **known)


def test_roles_of_a_zitadel(zitadel: tuple[FakeZitadel, Any], tree: Path) -> None:
    """Keys of any form; one that differs in case only is warned of, and refused there."""
    fake, run = zitadel
    manifest = write(tree / "roles.yaml", roles(*ODD_KEYS))
    made = run("apply", "--auto-approve")
    again = run("plan", "--detailed-exitcode")
    exported = run("export", "--out", "exported")
    planned = run("plan", "exported", "--detailed-exitcode")
    write(manifest, roles(*ODD_KEYS, group="Shop"))
    changed = run("apply", "--auto-approve", "--allow-updates", "99")
    write(manifest, roles(*ODD_KEYS, "admin", group="Shop"))
    warned = run("plan", "--detailed-exitcode")
    refused = run("apply", "--auto-approve", "--settle", "5s")
    manifest.unlink()
    flags = [f"--break-glass={address(key)}=not used" for key in ODD_KEYS]
    gone = ("--prune-unmanaged", "--allow-deletes", "9")
    blocked = run("apply", "--auto-approve", *gone)
    held = {role["key"]: role["group"] for role in fake.held["roles"].values()}
    removed = run("apply", "--auto-approve", *gone, *flags)

    assert made.code == 0, made.all
    assert (again.code, exported.code, planned.code) == (0, 0, 0), again.all + planned.all
    assert changed.code == 0, changed.all
    assert held == dict.fromkeys(ODD_KEYS, "Shop")
    assert "PLAN-ROLE-CASE" in warned.all
    assert refused.code == 1, refused.all
    assert "beside a role whose key differs in case: 'Admin'" in refused.all
    assert blocked.code == 3, blocked.all
    assert removed.code == 0, removed.all
    assert fake.held["roles"] == {}


def test_a_key_that_a_proxy_could_rewrite_is_refused_in_the_plan(
    zitadel: tuple[FakeZitadel, Any], tree: Path
) -> None:
    """Behind many proxies the request that removes it would remove the project."""
    fake, run = zitadel
    (project,) = fake.held["projects"]
    key = f"../../{project}"
    manifest = write(tree / "roles.yaml", roles("admin", key))
    blocked = run("apply", "--auto-approve")
    after = dict(fake.held["roles"])
    write(manifest, roles("admin"))
    made = run("apply", "--auto-approve")
    asked = {"projectId": project, "roleKey": key, "displayName": "Manager", "group": ""}
    fake.roles.add(asked, fake.organization)
    unmanaged = ("--prune-unmanaged", "--allow-deletes", "9")
    kept = run("apply", "--auto-approve", *unmanaged, f"--break-glass={address(key)}=not used")
    exported = run("export", address(key), "--out", str(tree))
    in_step = run("plan", *unmanaged, "--detailed-exitcode")

    assert blocked.code == 3, blocked.all
    assert "roles.yaml:" in blocked.all
    assert "GUARD-ROLE-KEY" in blocked.all
    assert after == {}
    assert made.code == 0, made.all
    assert kept.code == 3, kept.all
    assert f"reconciler export {address(key)}" in kept.all
    assert exported.code == 0, exported.all
    assert in_step.code == 0, in_step.all
    assert len(fake.held["roles"]) == 2
