"""Flags of projects: what a manifest says is held, and what it does not say is left alone.

One suite over every service: embedded, served, and the stand-ins of two generations of ZITADEL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind
from tests.acceptance.conftest import ORGANIZATION, Ran, Run, write
from tests.direct import Direct
from tests.listening import listening
from tests.running import running_server
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, FakeZitadel

OFF = dict(LEFT_AS_HELD[Kind.PROJECT])
LABELLED = "PRIVATE_LABELING_SETTING_ALLOW_LOGIN_USER_RESOURCE_OWNER_POLICY"


@dataclass(frozen=True)
class Place:
    """A service, with or without the project, and an empty folder of manifests.

    Attributes:
        held: Returns the project of the service: name, id and flags.
        update: Updates it with flags as another tool does.
    """

    run: Run
    manifests: Path
    held: Callable[[], dict[str, Any]]
    update: Callable[..., object]

    def declare(self, **flags: Any) -> None:
        organization, project = ORGANIZATION.split("---\n")
        spec = f"spec: {json.dumps(flags)}\n" if flags else ""
        write(self.manifests / "organization.yaml", organization)
        write(self.manifests / "project.yaml", project + spec)

    def flags(self) -> dict[str, Any]:
        return {**OFF, **{name: value for name, value in self.held().items() if name in OFF}}

    def set_by_another_tool(self, **flags: Any) -> None:
        held = self.held()
        self.update(id=held["id"], name="shop", **{**self.flags(), **flags})

    def apply(self) -> Ran:
        applied = self.run("apply", "--auto-approve")
        assert applied.code == 0, applied.all
        return applied


def _of_ours(run: Run, tree: Path, direct: Direct) -> Place:
    def held() -> dict[str, Any]:
        found = direct.objects()["shop"]
        return {**found["spec"], "id": found["id"]}

    return Place(run, tree, held, partial(direct, "UpdateProject"))


@pytest.fixture(params=["embedded", "served", NEWEST, OLDER])
def place(
    run: Run, tree: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """Open each service."""
    if request.param == "embedded":
        yield _of_ours(run, tree, Direct(tree.parent / ".reconciler" / "identity.db"))
    elif request.param == "served":
        with running_server(tmp_path_factory.mktemp("server")) as server:
            known = {
                "RECONCILER_SERVICE": server.address,
                "RECONCILER_TOKEN": server.token("admin"),
            }
            yield _of_ours(partial(run, **known), tree, Direct(server.store))
    else:
        fake = FakeZitadel(version=request.param)
        with listening(fake.app()) as address:
            known = {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}
            yield Place(
                partial(run, **known),
                tree,
                lambda: fake.named("projects", "shop")[0],
                lambda **asked: fake.projects.update(asked, fake.organization),
            )


def test_what_is_said_is_held_and_what_is_not_said_is_left_alone(place: Place) -> None:
    """The flags that another tool set survive every update that is about something else."""
    place.declare(projectRoleCheck=True)
    place.apply()
    assert place.flags() == {**OFF, "projectRoleCheck": True}

    place.set_by_another_tool(hasProjectCheck=True, privateLabelingSetting=LABELLED)
    assert "No changes." in place.run("plan").out

    place.declare(projectRoleCheck=False, projectRoleAssertion=True)
    applied = place.apply()

    assert place.flags() == {
        "projectRoleAssertion": True,
        "projectRoleCheck": False,
        "hasProjectCheck": True,
        "privateLabelingSetting": LABELLED,
    }
    assert "projectRoleCheck: true -> false" in applied.out
    assert "hasProjectCheck" not in applied.out
    place.declare()
    assert "No changes." in place.run("plan").out


def test_an_export_says_the_flags_that_are_set(place: Place) -> None:
    """Its plan is empty."""
    place.declare(
        hasProjectCheck=True, privateLabelingSetting="ENFORCE_PROJECT_RESOURCE_OWNER_POLICY"
    )
    place.apply()

    exported = place.run("export", "--out", "exported", "--organization", "acme")

    assert exported.code == 0, exported.all
    (manifest,) = (place.manifests.parent / "exported").rglob("project.yaml")
    assert manifest.read_text(encoding="utf-8").partition("spec:\n")[2].split() == [
        "hasProjectCheck:", "true",
        "privateLabelingSetting:", "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY",
    ]  # fmt: skip
    assert "No changes." in place.run("plan", "exported").out
