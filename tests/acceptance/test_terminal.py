"""Output on a real terminal: what is folded there, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Run, an_action, write
from tests.terminal import on_terminal

PLAIN = {"NO_COLOR": "1"}
HIDDEN = "+ 12 more creates without a risk (12 Action). Show them with --full."


@pytest.fixture
def many(tree: Path) -> Path:
    """Return the folder of a tree of 62 creates: an organization, a project, sixty actions."""
    actions = [an_action(f"a{each}") for each in range(60)]
    write(tree / "all.yaml", "\n---\n".join([ORGANIZATION, *actions]))
    return tree.parent


def test_a_long_plan_is_folded_on_a_terminal_and_nowhere_else(run: Run, many: Path) -> None:
    """What is approved, saved or sent on is whole."""
    saved = on_terminal(many, "plan", "--out", "plan.json", **PLAIN)
    full = on_terminal(many, "show", "plan.json", "--full", **PLAIN)
    piped = run("plan")

    assert HIDDEN in saved.out
    assert saved.out.count("\n+ Action") == 48
    assert full.out.count("\n+ Action") == 60
    assert piped.out.count("\n+ Action") == 60
    assert "--full" not in full.out + piped.out


def test_an_apply_that_asks_shows_everything(many: Path) -> None:
    """Nobody approves what they were not shown; the results are folded again."""
    refused = on_terminal(many, "apply", typed="no\n", **PLAIN)
    done = on_terminal(many, "apply", "--auto-approve", **PLAIN)

    assert refused.out.count("\n+ Action") == 60
    assert "Apply this plan? " in refused.out
    assert (done.code, HIDDEN in done.out) == (0, True)
    assert done.out.count("\ncreated  ") == 50
    assert "\nand 12 more. Show them with --full.\n\nApply complete! 62 created" in done.out


def test_an_approved_plan_is_not_shown_again(run: Run, small: Path) -> None:
    """Its summary says which it is; whoever approved it has read the rest."""
    run("plan", "--out", "plan.json")
    applied = run("apply", "plan.json")

    plan, _, results = applied.out.partition("\n\n")
    assert applied.code == 0
    assert plan.splitlines()[1].startswith("Plan: 6 to create, 0 to update, 0 to delete.")
    assert "Digest: sha256:" in plan
    assert "redirectUris" not in applied.out
    assert results.count("\ncreated  ") == 6
