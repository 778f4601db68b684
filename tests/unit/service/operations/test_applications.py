"""Organizations, projects and applications: secrets, states and the project in the path."""

from __future__ import annotations

import pytest

from reconciler.service.operations.callers import Caller, Role
from tests.unit.service.asking import Asking


@pytest.mark.parametrize(
    ("method", "has_secret"),
    [
        ("OIDC_AUTH_METHOD_TYPE_BASIC", True),
        ("OIDC_AUTH_METHOD_TYPE_POST", True),
        ("OIDC_AUTH_METHOD_TYPE_NONE", False),
    ],
)
def test_a_secret_is_answered_where_the_application_signs_in_with_one(
    ask: Asking, method: str, *, has_secret: bool
) -> None:
    assert ("clientSecret" in ask.an_app(authMethodType=method)) is has_secret


def test_a_new_secret_replaces_the_one_before(ask: Asking) -> None:
    app = ask.an_app()
    place = {"projectId": ask.project, "appId": app["appId"]}

    made = ask("RegenerateOIDCClientSecret", **place)

    assert made["clientSecret"] != app["clientSecret"]
    assert int(made["details"]["sequence"]) > int(app["details"]["sequence"])


@pytest.mark.parametrize("operation", ["GetAppByID", "RemoveApp", "DeactivateApp", "ReactivateApp"])
def test_an_application_is_not_found_in_another_project(ask: Asking, operation: str) -> None:
    other = ask("AddProject", organization=ask.organization, name="other")["id"]
    app = ask.an_app()["appId"]

    assert ask.refused(operation, projectId=other, appId=app).code == 5


def test_projects_and_applications_are_switched_off_and_on(ask: Asking) -> None:
    app = {"projectId": ask.project, "appId": ask.an_app()["appId"]}

    ask("DeactivateApp", **app)
    ask("DeactivateProject", id=ask.project)
    assert ask("GetAppByID", **app)["app"]["state"] == "APP_STATE_INACTIVE"
    assert ask("GetProjectByID", id=ask.project)["project"]["state"] == "PROJECT_STATE_INACTIVE"
    ask("ReactivateApp", **app)
    ask("ReactivateProject", id=ask.project)
    assert ask.refused("ReactivateApp", **app).code == 9
    assert ask("GetProjectByID", id=ask.project)["project"]["state"] == "PROJECT_STATE_ACTIVE"


def test_an_organization_is_made_only_by_a_caller_who_would_see_it(ask: Asking) -> None:
    bound = Caller("ci", Role.ADMIN, frozenset({ask.organization}))

    assert ask.refused("AddOrg", by=bound, name="globex").code == 7
