"""Fields of a newer service, in a plan."""

from __future__ import annotations

from reconciler.plan.diff import carried_fields
from reconciler.plan.model import Create, Delete, Update
from reconciler.report.plan_json import change_as_json
from reconciler.report.plan_text import change_as_text
from tests.builders import WEB, a_plan, an_application, declared, held


def test_what_an_update_sends_back_unseen_is_told() -> None:
    """Nobody here knows what it means, so a reader should know that it is there."""
    found = held(WEB, an_application(devMode=True), carried={"newer": 1, "later": {}})
    update = Update(declared(WEB), found)

    assert carried_fields(update) == ("later", "newer")
    assert "later, newer" in change_as_text(update)
    assert change_as_json(a_plan(update), update)["carried"] == ["later", "newer"]
    assert carried_fields(Delete(found)) == carried_fields(Create(declared(WEB))) == ()
