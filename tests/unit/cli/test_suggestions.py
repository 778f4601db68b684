"""A command line that cannot be read gets a sentence that says what to write.

No hint leads to what deletes, approves or overrides.
"""

from __future__ import annotations

import re

import pytest

from reconciler.cli.main import COMMANDS as OURS
from reconciler.cli.main import cli, run
from reconciler.cli.suggestions import COMMANDS, HARMFUL, OPTIONS, near
from tests.architecture.test_house_rules import variables_of

ALL_OPTIONS = {name.removeprefix("RECONCILER_").lower() for name in variables_of(cli)}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 1
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("plan --dry-run", "`reconciler plan` shows what `reconciler apply` would do"),
        ("apply --yes", "`reconciler apply` asks before it writes."),
        ("apply -y", "`reconciler apply` asks before it writes."),
        ("apply -auto-approve", "Options have two dashes here: --auto-approve."),
        ("plan -target=acme", "take --target REF for an object and what it needs"),
        ("apply --skip acme", "take --exclude REF"),
        ("plan --set a=b", "--var NAME=VALUE"),
        ("plan -var a=b", "--var NAME=VALUE"),
        ("workspace", "--env NAME chooses one"),
        ("plan --no-color", "NO_COLOR=1"),
        ("plan -out=plan.json", "--out FILE"),
        ("plan --token hunter2", "No option takes a secret"),
        ("import", "an object that has the name of a manifest is adopted"),
        ("lint", "`reconciler validate` checks manifests."),
        ("diff", "`reconciler plan` shows what would change."),
        ("destroy", "No command deletes everything."),
        ("fmt", "any YAML formatter"),
        ("sync", "`reconciler apply` makes the service as the manifests say"),
        ("force-unlock", "--lock-timeout"),
        ("plan --servce x", "Did you mean --service?"),
        ("token creat", "Did you mean create?"),
        ("aply", "Did you mean apply?"),
        ("store rm", "There are backup, rebuild, restore, verify."),
        ("token revok", "There are create, list, revoke."),
    ],
)
def test_what_other_tools_have_gets_a_sentence_of_its_own(
    typed: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = said(capsys, *typed.split())

    assert sentence.startswith("Error: There is no ")
    assert hint in sentence
    assert "hunter2" not in sentence


@pytest.mark.parametrize("name", sorted(HARMFUL & ALL_OPTIONS | {"prune-unmanaged"}))
def test_a_misspelt_option_that_does_harm_is_not_suggested(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever deletes, approves or overrides writes it on purpose, to the letter."""
    assert said(capsys, "apply", f"--{name[:-2]}{name[-1]}") == (
        f"Error: There is no option --{name[:-2]}{name[-1]}."
    )


def test_harmful_names_are_names_of_this_program() -> None:
    """An option that was renamed would be suggested again."""
    options = {name.replace("_", "-") for name in ALL_OPTIONS}
    inside = {"revoke", "rotate", "restore", "rebuild"}

    assert options | inside >= HARMFUL
    assert {name for name in options if re.match("allow|prune|auto", name)} <= HARMFUL


def test_no_word_of_another_tool_is_one_of_ours() -> None:
    """A sentence for a command that exists would never be shown."""
    assert not COMMANDS.keys() & OURS.keys()
    assert not {word.lstrip("-").replace("-", "_") for word in OPTIONS} & ALL_OPTIONS - {
        "auto_approve",
        "detailed_exitcode",
        "dry_run",
        "exclude",
        "issuer",
        "target",
        "lock_timeout",
        "out",
        "state",
    }


def test_a_name_is_suggested_only_where_it_is_nearly_the_same() -> None:
    assert near("--formt", ["--format", "--force"]) == "Did you mean --format?"
    assert near("--dry-run", ["--prune", "--tree"]) == ""
    assert near("--prun", ["--prune"]) == ""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("yaml-duplicate-key", "YAML-DUPLICATE-KEY\nA key that is written twice."),
        ("plain-http", "plain-http\nIt is sent unencrypted"),
        ("Application.OIDC.V1.NoRedirectUris", "At least one redirect URI"),
        ("Action.timeout", "Action.timeout"),
    ],
)
def test_explain_takes_codes_beside_kinds_and_fields(
    written: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", written]) == 0
    assert shown in capsys.readouterr().out


def test_explain_names_the_code_that_was_probably_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean YAML-SYNTAX?" in said(capsys, "explain", "YAML-SNTAX")
