"""When a round has nothing to look at: by the heads of the organizations that count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.cli.run.controller import Controller
from reconciler.cli.run.form import RunForm
from reconciler.cli.run.memory import Purpose
from reconciler.continuous.decision import Mode
from reconciler.continuous.pace import EVERYTHING_SECONDS, Tries
from reconciler.state import Applied, Head, Heads, Pause
from tests.rows import each_row

TIP, OTHER = "a" * 40, "b" * 40
ACME = Head("1", "acme", 100, 0, (), ())
GLOBEX = Head("2", "globex", 50, 0, (), ())
HEADS = Heads("one", {"acme": ACME, "globex": GLOBEX})
PAUSE = Pause("default", "incident", "later", "now", "ana")
RECORD = Applied("default", OTHER, "now", "ci")


@pytest.fixture
def controller() -> Controller:
    """Return a controller that looked at acme at the time 1000, and found the tip."""
    nothing: Any = None
    purpose = Purpose("/srv/a.git", "refs/heads/main", "https://id.example.com", "", "")
    given: dict[str, Any] = {**dict.fromkeys(RunForm._fields), "mode": Mode.APPLY}
    made = Controller(purpose, RunForm(**given), nothing, nothing, nothing, nothing)
    made._scope, made._tip, made._looked = ["acme"], TIP, 1000.0
    made._heads = made._within(HEADS)
    return made


def test_nothing_happened_where_heads_and_ref_are_the_same(controller: Controller) -> None:
    """Other organizations that the token sees may move as they like."""
    elsewhere = Heads("one", {"acme": ACME, "globex": replace(GLOBEX, sequence=51)})

    assert controller._is_idle(TIP, HEADS, 1001.0)
    assert controller._is_idle(TIP, elsewhere, 1001.0)
    assert controller._is_idle(TIP, HEADS, 1000.0 + EVERYTHING_SECONDS - 1)


@each_row(
    ("what", "heads", "tip", "now"),
    [
        ("an event", Heads("one", {"acme": replace(ACME, sequence=101)}), TIP, 1001.0),
        ("a restore", Heads("one", {"acme": replace(ACME, sequence=99)}), TIP, 1001.0),
        ("another service", Heads("two", {"acme": ACME}), TIP, 1001.0),
        ("a secret owed", Heads("one", {"acme": replace(ACME, owed=1)}), TIP, 1001.0),
        ("a pause", Heads("one", {"acme": replace(ACME, pauses=(PAUSE,))}), TIP, 1001.0),
        ("a record", Heads("one", {"acme": replace(ACME, applied=(RECORD,))}), TIP, 1001.0),
        ("it is gone", Heads("one", {"globex": GLOBEX}), TIP, 1001.0),
        ("a push", HEADS, OTHER, 1001.0),
        ("ten minutes", HEADS, TIP, 1000.0 + EVERYTHING_SECONDS),
        ("no feed", None, TIP, 1001.0),
    ],
)
def test_what_makes_a_round_look(
    controller: Controller, what: str, heads: Heads | None, tip: str, now: float
) -> None:
    assert not controller._is_idle(tip, heads, now), what


def test_a_commit_that_is_due_is_looked_at(controller: Controller) -> None:
    """It failed before, and the time to try it again has come."""
    controller._tries = Tries(TIP, 1, 1010.0)

    assert controller._is_idle(TIP, HEADS, 1009.0)
    assert not controller._is_idle(TIP, HEADS, 1010.0)
