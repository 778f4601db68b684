"""Projects: states."""

from __future__ import annotations

from tests.unit.service.asking import Asking


def test_a_project_is_switched_off_and_on(ask: Asking) -> None:
    ask("DeactivateProject", id=ask.project)
    assert ask("GetProjectByID", id=ask.project)["project"]["state"] == "PROJECT_STATE_INACTIVE"
    assert ask.refused("DeactivateProject", id=ask.project).code == 9
    ask("ReactivateProject", id=ask.project)
    assert ask("GetProjectByID", id=ask.project)["project"]["state"] == "PROJECT_STATE_ACTIVE"
