"""Actions: updates and states."""

from __future__ import annotations

from tests.unit.service.asking import Asking


def test_an_update_resets_what_it_leaves_out(ask: Asking) -> None:
    action = ask.an_action(timeout="1s", allowedToFail=True)

    ask("UpdateAction", id=action["id"], name="greet", script="x")

    held = ask("GetAction", id=action["id"])["action"]
    assert (held["script"], held["timeout"], held["allowedToFail"]) == ("x", "20s", False)


def test_an_action_is_switched_off_once_and_on_again(ask: Asking) -> None:
    action = ask.an_action()["id"]

    ask("DeactivateAction", id=action)
    assert ask("GetAction", id=action)["action"]["state"] == "ACTION_STATE_INACTIVE"
    assert ask.refused("DeactivateAction", id=action).code == 9
    ask("ReactivateAction", id=action)
    assert ask("GetAction", id=action)["action"]["state"] == "ACTION_STATE_ACTIVE"
