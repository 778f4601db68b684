"""Output on a real terminal: what is folded there, and what never is; colour, -v and --quiet."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Place, Run, an_action, an_application, write
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


def test_an_apply_that_asks_shows_what_a_plan_shows(many: Path) -> None:
    """And how to see the whole of it, just above the question; the results are folded again."""
    refused = on_terminal(many, "apply", typed="no\n", **PLAIN)
    whole = on_terminal(many, "apply", "--full", typed="no\n", **PLAIN)
    done = on_terminal(many, "apply", "--auto-approve", **PLAIN)

    shown, _, question = refused.out.partition("Plan: 62 to create, 0 to update, 0 to delete.\n")
    assert shown.count("\n+ Action") == 48
    assert HIDDEN in shown
    assert re.fullmatch(
        r"Digest: sha256:[0-9a-f]{64}\n"
        r"Shown in short: 12 of 62 changes\. Give --full to see each\.\n\n"
        r"Service .*\nApply this plan\? .*",
        question,
        re.DOTALL,
    )
    assert whole.out.count("\n+ Action") == 60
    assert "--full" not in whole.out
    assert (done.code, HIDDEN in done.out) == (0, True)
    assert done.out.count("\ncreated  ") == 50
    assert "\nand 12 more. Show them with --full.\n\nApply complete! 62 created" in done.out


def test_a_long_plan_ends_with_what_decides(run: Run, tree: Path) -> None:
    """Of two hundred equal changes; with the flag that the guard names, it ends with what to do."""
    applications = [an_application(f"w{at:03}") for at in range(200)]
    write(tree / "all.yaml", "\n---\n".join([ORGANIZATION, *applications]))
    run("apply", "--auto-approve", "--secrets-to", "file:.reconciler/secrets")
    changed = [an_application(f"w{at:03}", clockSkew="1s", devMode=True) for at in range(200)]
    write(tree / "all.yaml", "\n---\n".join([ORGANIZATION, *changed]))

    blocked = on_terminal(tree.parent, "plan", **PLAIN)
    allowed = on_terminal(tree.parent, "plan", "--allow-updates", "200", **PLAIN)
    piped = run("plan")
    asked = on_terminal(tree.parent, "apply", "--allow-updates", "200", typed="no\n", **PLAIN)

    assert GROUP in blocked.out
    assert BLOCKED.fullmatch(ending(blocked.out))
    assert ALLOWED.fullmatch(ending(allowed.out))
    assert piped.out.count("\n~ OidcApplication") == 200
    assert ending(piped.out).endswith("\nBlocked by 1 guard: apply refuses this plan.\n")
    assert "--full" not in piped.out
    assert GROUP in asked.out
    assert "Give --full to see each.\n\nService " in asked.out
    assert "Next: " not in asked.out


GROUP = """
~ 200 applications:
    # declared differently since it was last applied
    devMode: false -> true
    clockSkew: "0s" -> "1s"
    ! dev-mode-on (devMode): checks of the OIDC specification are not performed
    acme/shop/w000, acme/shop/w001, acme/shop/w002 and 197 more

"""
COUNTS = "Plan: 0 to create, 200 to update, 0 to delete\\.\n"
DECIDES = """\
Risks: 200 dev-mode-on\\.
Digest: (sha256:[0-9a-f]{64})
Shown in short: 200 of 200 changes\\. Give --full to see each\\.
"""
BLOCKED = re.compile(
    COUNTS
    + r"""Guards:
  error GUARD-MANY-UPDATES: too many applications would be updated
    200 of 200 applications \(100%\) .*\n    .*--allow-updates 200\.
"""
    + DECIDES
    + r"""Next: Change the manifests, or allow what each guard names, and plan again\.
Blocked by 1 guard: apply refuses this plan\.
"""
)
ALLOWED = re.compile(
    COUNTS
    + DECIDES
    + r"""Next: Review the changes\. After approval, .*
  .*, or nothing\.
  reconciler apply --digest \1
"""
)


def ending(text: str) -> str:
    """Return the last lines of a plan, from its counts on."""
    return text[text.rindex("Plan: ") :]


def test_a_blocked_plan_says_so_in_its_last_line(run: Run, tree: Path) -> None:
    """However short it is: its findings are above, perhaps in another stream."""
    write(tree / "all.yaml", f"{ORGANIZATION}\n---\n{an_action()}")
    run("apply", "--auto-approve")
    write(tree / "all.yaml", ORGANIZATION)

    plan = run("plan", "--prune")
    run("plan", "--prune", "--out", "plan.json")
    shown = run("show", "plan.json")

    last = "Blocked by 1 guard: apply refuses this plan."
    assert [each.out.splitlines()[-1] for each in (plan, shown)] == [last, last]
    assert "Next: " not in plan.out


@pytest.mark.parametrize(
    ("command", "last"),
    [
        (["validate"], "Valid: 42 manifests are right.\n"),
        (["plan"], "No changes. The service holds what the manifests declare.\n"),
    ],
)
def test_many_findings_of_one_code_are_counted_on_a_terminal(
    run: Run, tree: Path, command: list[str], last: str
) -> None:
    """Machines, files and ``--full`` get all of them."""
    applications = [an_application(f"w{at}", devMode=True) for at in range(40)]
    write(tree / "all.yaml", "\n---\n".join([ORGANIZATION, *applications]))
    run("apply", "--auto-approve", "--secrets-to", "file:.reconciler/secrets")

    short = on_terminal(tree.parent, *command, **PLAIN)
    full = on_terminal(tree.parent, *command, "--full", **PLAIN)
    piped = run(*command)
    whole = json.loads(run(*command, "--format", "json").out)

    finding = "warning OIDC-DEV-MODE"
    assert short.out.count(finding) == 3
    assert "\nand 37 more of OIDC-DEV-MODE. Show them with --full.\n40 warnings\n" in short.out
    assert short.out.endswith(last)
    assert [each.all.count(finding) for each in (full, piped)] == [40, 40]
    assert len(whole["diagnostics"]) == 40


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


def test_verbose_shows_each_setting_and_where_it_is_from(run: Run, small: Path) -> None:
    """The flag, the variable, the place in the file or the default; values of variables stay."""
    document = {
        "apiVersion": "reconciler/v1", "kind": "Configuration", "tree": "shared",
        "variables": {"host": {"type": "string", "default": "x"}}, "environments": {"live": {}},
    }  # fmt: skip
    plain = run("plan", "-v", "--secrets-to", "exec:./sink --key=geheim")
    written = write(small.parent / "reconciler.yaml", json.dumps(document)).read_text()
    live, shared = (written.index(f'"{word}"') + 1 for word in ("live", "shared"))
    shown = run("plan", "--verbose", "--env", "live", RECONCILER_PRUNE="1",
                RECONCILER_VAR_host="geheim")  # fmt: skip

    assert plain.err.splitlines()[:3] == [
        "service sqlite:.reconciler/identity.db from the default",
        "tree default from the default",
        "secrets-to exec:... from --secrets-to",
    ]
    assert shown.err.splitlines()[:5] == [
        "env live from --env",
        f"service sqlite:.reconciler/live/identity.db from reconciler.yaml:1:{live}",
        f"tree shared from reconciler.yaml:1:{shared}",
        "prune True from RECONCILER_PRUNE",
        "variable host from RECONCILER_VAR_host",
    ]
    assert "geheim" not in plain.err + shown.err


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
