"""One tree, several services: ``reconciler.yaml`` chooses service, tree and values by ``--env``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run, an_application, write

Fields = dict[str, Any]


def a_configuration(folder: Path, **fields: Any) -> Path:
    """Write a ``reconciler.yaml`` with two environments on stores of their own."""
    environments = {"staging": {}, "production": {"tree": "live", "protected": True}}
    known = {"apiVersion": "reconciler/v1", "kind": "Configuration", "environments": environments}
    return write(folder / "reconciler.yaml", json.dumps({**known, **fields}))


@pytest.fixture
def configured(small: Path) -> Path:
    """Return the folder of a small tree with two environments."""
    a_configuration(small.parent)
    return small.parent


def test_an_environment_is_planned_and_applied_in_its_own_place(run: Run, configured: Path) -> None:
    """Store, journal and secrets of one environment are in its own folder, and named in reports."""
    planned, applied = run("plan", "--env", "staging"), run("apply", "--env", "staging",
                                                            "--auto-approve")  # fmt: skip
    again = run("plan", "--detailed-exitcode", RECONCILER_ENV="staging")
    other = run("plan", "--env", "production", "--format", "json").json

    head = "Environment staging: service sqlite:.reconciler/staging/identity.db"
    assert planned.out.startswith(f"{head} (new: there is no store yet), tree default\n")
    assert (applied.code, again.code) == (0, 0), applied.all
    assert applied.out.count(head) == 2
    state = configured / ".reconciler" / "staging"
    assert {each.name.partition("-")[0] for each in state.iterdir()} == {
        ".gitignore", "apply", "identity.db", "identity.db.seal", "secrets",
    }  # fmt: skip
    assert (other["environment"], other["tree"], other["new_service"]) == (
        "production",
        "live",
        True,
    )
    assert not (configured / ".reconciler" / "production").exists()


@pytest.mark.parametrize("command", ["plan", "apply", "drift", "outputs", "export"])
def test_without_a_choice_the_environments_are_listed(
    run: Run, configured: Path, command: str
) -> None:
    """A default would be one of them, and perhaps not the one that is meant."""
    told = run(command)

    assert (told.code, told.out) == (1, "")
    assert told.err == (
        "Error: no environment is chosen, and reconciler.yaml has some\n"
        "  Give --env NAME or set RECONCILER_ENV. The environments are staging, production.\n"
    )


def test_all_environments_are_judged_and_a_finding_names_where_it_was_found(
    run: Run, configured: Path
) -> None:
    """Once for each place: what is wrong everywhere names no environment."""
    right = run("validate")
    a_configuration(
        configured,
        variables={"host": {"type": "string"}},
        environments={
            "staging": {"variables": {"host": "https://staging.example.com/cb"}},
            "production": {"variables": {"host": "not an address"}},
        },
    )
    write(configured / "manifests" / "web.yaml", an_application(redirectUris=["${host}"], x=1))

    told = run("validate")
    one = run("validate", "--env", "staging")

    assert right.out == "Valid: 6 manifests are right in environments staging, production.\n"
    assert (told.code, one.code) == (1, 1)
    assert told.out.count("unknown field x") == 1


def test_a_protected_environment_takes_an_approved_plan_only(run: Run, configured: Path) -> None:
    """A plan file or a digest; neither the flag nor its variable stands for a review."""
    chosen = ("--env", "production")
    flag = run("apply", *chosen, "--auto-approve")
    variable = run("apply", *chosen, RECONCILER_AUTO_APPROVE="1")
    asked = run("apply", *chosen)
    rotated = run("secret", "rotate", "acme/shop/web", *chosen, "--auto-approve")
    assert run("plan", *chosen, "--out", "p.plan").code == 0
    both = run("apply", "p.plan", *chosen, "--auto-approve")
    other = run("apply", "p.plan", "--env", "staging")
    made = run("apply", "p.plan", *chosen)

    for refused in (flag, variable, rotated, both):
        assert refused.code == 1
        assert refused.err.startswith("Error: environment production is protected, and --auto-")
    assert asked.err.startswith("Error: environment production is protected: it takes an approved")
    assert other.code == 4
    assert other.err.startswith(
        "Error: the plan was made for environment production, and staging is chosen\n"
        "  Give --env production to apply it."
    )
    assert made.code == 0, made.all
    digest = run("plan", *chosen, "--format", "json").json["digest"]
    assert run("apply", *chosen, "--digest", digest).code == 0
