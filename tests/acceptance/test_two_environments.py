"""The organization in two environments that ``init`` writes: the smallest tree with every layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run


@pytest.fixture
def begun(run: Run, tmp_path: Path) -> Path:
    assert run("init", "--environments").code == 0
    return tmp_path


def uris(plan: dict[str, Any]) -> dict[str, list[str]]:
    """Return the redirect URIs of a plan of creates, by the name of the application."""
    return {
        change["ref"]["name"]: field["after"]
        for change in plan["changes"]
        for field in change["fields"]
        if field["name"] == "redirectUris"
    }


def test_each_environment_is_planned_with_its_values_and_its_overlay(run: Run, begun: Path) -> None:
    valid = run("validate")
    staging = run("plan", "--env", "staging", "--format", "json").json
    production = run("plan", "--env", "production", "--format", "json").json

    assert valid.code == 0
    assert valid.all == "Valid: 5 manifests are right in environments staging, production.\n"
    assert uris(staging) == {
        "previews": [f"https://pr-{at}.shop.example.com/signin" for at in (1, 2)],
        "storefront": ["https://staging.shop.example.com/signin", "https://localhost:3000/signin"],
    }
    assert uris(production) == {"storefront": ["https://shop.example.com/signin"]}
    assert {plan["environment"] for plan in (staging, production)} == {"staging", "production"}
    assert (begun / ".schemas" / "configuration.schema.json").is_file()


def test_one_is_applied_at_once_and_the_protected_one_by_a_plan_file(run: Run, begun: Path) -> None:
    staging = run("apply", "--env", "staging", "--auto-approve")
    refused = run("apply", "--env", "production", "--auto-approve")
    planned = run("plan", "--env", "production", "--out", "plan.json")
    *_, command = planned.err.splitlines()
    applied = run(*command.split()[1:])

    assert command == "  reconciler apply plan.json --env production"
    assert (staging.code, refused.code, planned.code, applied.code) == (0, 1, 0, 0), applied.all
    assert "production is protected" in refused.err
    for name in ("staging", "production"):
        assert run("plan", "--env", name, "--detailed-exitcode").code == 0


def test_nothing_is_written_over(run: Run, begun: Path) -> None:
    again = run("init", "--environments")

    assert again.code == 1
    assert "is there already" in again.err
