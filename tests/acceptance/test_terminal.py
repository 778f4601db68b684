"""Output on a real terminal: what is folded there, and what never is; colour, -v and --quiet."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Place, Run, an_action, write
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


def test_colour_quiet_and_verbose_are_options_of_every_command(run: Run, small: Path) -> None:
    """The flag wins over the environment; it is read before and after the command."""
    always = run("plan", "--color", "always", "--quiet", "--out", "plan.json", NO_COLOR="1")
    before = run("--color", "always", "validate", NO_COLOR="1")
    never = on_terminal(small.parent, "validate", "--color", "never")
    both = run("plan", "-v", "-q")

    assert "\x1b[" in always.out
    assert always.err == ""
    assert before.out == "\x1b[32;1mValid:\x1b[0m 6 manifests are right.\n"
    assert never.out == "Valid: 6 manifests are right.\n"
    assert (both.code, "contradict each other" in both.err) == (1, True)


def test_what_is_not_read_is_noted_and_quiet_leaves_notes_out(run: Run, small: Path) -> None:
    """In validate and in plan; a note changes no exit code."""
    write(small / "LOST.YAML", an_action("lost"))
    write(small / "crlf.yaml", an_action("crlf", script="function crlf() {}\r\n"))
    found, planned, quiet = run("validate"), run("plan"), run("validate", "-q")

    skipped = (
        "manifests/LOST.YAML: note FILE-SKIPPED: this looks like a manifest, and it is not read\n"
        "    Rename it so that it ends in .yaml or .yml, or move it elsewhere.\n"
    )
    assert skipped in found.out
    assert skipped in planned.err
    assert "note SCRIPT-CRLF: the script has Windows line ends (CRLF)\n" in found.out
    assert "\n2 notes\nValid: 7 manifests are right.\n" in found.out
    assert (found.code, planned.code) == (0, 0)
    assert quiet.out == "Valid: 7 manifests are right.\n"


def test_verbose_tells_requests_and_timings_and_no_secret(place: Place) -> None:
    """On stderr; the result on stdout stays as it is."""
    applied = place.run("apply", "--auto-approve", "-v")
    planned = place.run("plan", "-v")

    folder = place.folder / ".reconciler" / "secrets"
    secrets = [json.loads(file.read_text())["client_secret"] for file in folder.glob("*.json")]
    token = place.run.keywords.get("RECONCILER_TOKEN") if isinstance(place.run, partial) else None
    assert applied.code == planned.code == 0
    assert secrets
    assert [word for word in (*secrets, token) if word and word in applied.err] == []
    assert "authorization" not in applied.err.lower()
    assert re.search(r"^apply and observe again: [0-9.]+ s$", applied.err, re.MULTILINE)
    assert re.search(r"^observe and plan: [0-9.]+ s$", planned.err, re.MULTILINE)
    request = (
        r"POST http://127\.0\.0\.1:[0-9]+/\S+: 200, [0-9]+ bytes, [0-9]+ ms"
        if token
        else r"1 AddProject: [0-9.]+ s"
    )
    assert re.search(f"^{request}$", applied.err, re.MULTILINE), applied.err
    assert planned.out.endswith("No changes. The service holds what the manifests declare.\n")
