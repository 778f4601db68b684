"""What services take beyond the source document: judged offline by a name, else by the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    ORGANIZATION,
    Place,
    Run,
    an_action,
    an_application,
    an_idp,
    write,
)

LONG = f"function greet(ctx, api) {{}} // {'x' * 3000}"
BOTH = ["SCHEMA-TOO-LONG", "CAPABILITY-VALUE"]


@pytest.fixture
def beyond(tree: Path) -> Path:
    """Return the folder of a tree with a script and a grant that only a ZITADEL takes."""
    write(tree / "owners.yaml", ORGANIZATION)
    write(tree / "greet.yaml", an_action(script=LONG))
    write(tree / "web.yaml", an_application(grantTypes=["AUTHORIZATION_CODE", "TOKEN_EXCHANGE"]))
    return tree


def configure(folder: Path, **environments: dict[str, Any]) -> None:
    """Write a ``reconciler.yaml`` with these environments."""
    fields = {"apiVersion": "reconciler/v1", "kind": "Configuration", "environments": environments}
    write(folder / "reconciler.yaml", json.dumps(fields))


def codes(found: Any) -> list[str]:
    return [each["code"] for each in found["diagnostics"] if each["severity"] == "error"]


def test_a_name_chooses_what_manifests_are_judged_by(run: Run, beyond: Path) -> None:
    plain = run("validate", "--format", "json")
    by_flag = run("validate", "--capabilities", "zitadel-3")
    by_variable = run("validate", RECONCILER_CAPABILITIES="zitadel-4")
    flag_wins = run(
        "validate", "--format", "json", "--capabilities", "source",
        RECONCILER_CAPABILITIES="zitadel-4",
    )  # fmt: skip

    assert (plain.code, codes(plain.json)) == (1, BOTH)
    assert (by_flag.code, by_variable.code) == (0, 0), by_flag.all
    assert codes(flag_wins.json) == BOTH
    [long, value] = [each for each in plain.json["diagnostics"] if each["severity"] == "error"]
    assert long["file"].endswith("greet.yaml")
    assert "zitadel-3 or zitadel-4 takes it" in value["remedy"]
    text = (beyond / "web.yaml").read_text()
    assert (value["line"], value["column"]) == (1, text.index('"TOKEN_EXCHANGE"') + 1)


def test_each_environment_is_judged_by_its_own_capabilities(run: Run, beyond: Path) -> None:
    configure(beyond.parent, staging={"capabilities": "zitadel-4"}, production={})

    every = run("validate", "--format", "json").json
    staging = run("validate", "--env", "staging")
    overruled = run("validate", "--env", "staging", "--capabilities", "source", "--format", "json")
    told = run("explain", "--env", "staging")
    compared = run("compare", "staging", "production", "--capabilities", "zitadel-4")

    assert [each["environments"] for each in every["diagnostics"]] == [["production"]] * 2
    assert staging.code == 0, staging.all
    assert codes(overruled.json) == BOTH
    assert told.out.startswith("Environment staging: ")
    assert "capabilities zitadel-4" in told.out.splitlines()[0]
    assert compared.code == 0, compared.all


def test_an_unknown_name_is_refused_with_the_names_there_are(run: Run, beyond: Path) -> None:
    flag = run("validate", "--capabilities", "zitadel-5")
    configure(beyond.parent, staging={"capabilities": "zitadel-5"})
    field = run("validate")

    assert flag.code == 1
    assert "'source', 'zitadel-3', 'zitadel-4'" in flag.err
    assert field.code == 1
    assert "capabilities cannot be zitadel-5" in field.all
    assert "Write source, zitadel-3 or zitadel-4." in field.all


def test_our_service_refuses_it_at_its_place_before_anything_is_written(
    run: Run, beyond: Path
) -> None:
    """What was chosen for offline checks does not change what the service takes."""
    configure(beyond.parent, staging={"capabilities": "zitadel-4"})

    planned = run("plan", "--env", "staging")
    applied = run("apply", "--env", "staging", "--auto-approve")

    for ran in (planned, applied):
        assert ran.code == 1, ran.all
        assert "greet.yaml:1:" in ran.err
        assert "SCHEMA-TOO-LONG: script is longer than 2000 characters" in ran.err
        assert "this project's own service does not take OIDC_GRANT_TYPE_TOKEN_EXCHANGE" in ran.err
        assert "A service with the capabilities zitadel-3 or zitadel-4 takes it." in ran.err
    assert not (beyond.parent / ".reconciler" / "staging" / "identity.db").exists()


def test_our_service_takes_an_empty_header_name(place: Place) -> None:
    """The source lets it be empty; that a ZITADEL refuses it concerns nobody else."""
    write(place.manifests / "partner.yaml", an_idp(headerName=""))
    applied = place.run("apply", "--auto-approve", "--secrets-to", "file:s")
    exported = place.run("export", "--out", "out")
    same = place.run("plan", "out", "--detailed-exitcode")

    assert (applied.code, exported.code, same.code) == (0, 0, 0), applied.all + same.all
    assert "--capabilities" not in exported.err


def test_a_plan_says_where_the_service_is_not_what_was_chosen(run: Run, tree: Path) -> None:
    write(tree / "owners.yaml", ORGANIZATION)
    made = run("apply", "--auto-approve")

    other = run("plan", "--format", "json", RECONCILER_CAPABILITIES="zitadel-4").json
    same = run("plan", "--format", "json", "--capabilities", "source").json

    assert made.code == 0, made.all
    assert [each["code"] for each in other["diagnostics"]] == ["PLAN-CAPABILITIES"]
    assert "zitadel-4" in other["diagnostics"][0]["summary"]
    assert same["diagnostics"] == []
    assert other["digest"] == same["digest"]
