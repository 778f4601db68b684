"""Variables, Defaults and overlays through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import (
    Place,
    Run,
    an_action,
    an_application,
    write,
)

STAGING = ("--env", "staging")
URI = "https://${host}/cb"


def a_configuration(folder: Path, service: str = "", **fields: Any) -> Path:
    """Write a ``reconciler.yaml`` with one environment that has an overlay and variables."""
    staging = {
        "overlay": "environments/staging",
        "variables": {"host": "staging.example.com"},
        **({"service": service} if service else {}),
    }
    content = {
        "apiVersion": "reconciler/v1",
        "kind": "Configuration",
        "variables": {"host": {"type": "string"}, "logouts": {"type": "list", "default": []}},
        "environments": {"staging": staging},
        **fields,
    }
    return write(folder / "reconciler.yaml", json.dumps(content, indent=1))


def a_patch(text: str, metadata: dict[str, Any] | None = None, **spec: Any) -> str:
    """Return a document about the resource of another one, with other fields."""
    document = json.loads(text)
    document["metadata"] |= metadata or {}
    return json.dumps({**document, "spec": spec})


def the_defaults(organization: str = "acme", **spec: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "Defaults",
            "metadata": {"organization": organization},
            "spec": spec,
        }
    )


def without_organization(text: str) -> str:
    return text.replace('"organization": "acme", ', "")


def test_a_tree_in_layers_is_planned_applied_and_in_step(place: Place) -> None:
    """What is held is what the layers give; another way to write it changes nothing."""
    folder, manifests = place.folder, place.manifests
    a_configuration(folder, place.address)
    overlay = folder / "environments" / "staging"
    web = an_application("web", redirectUris=[URI], postLogoutRedirectUris="${logouts}")
    write(manifests / "web.yaml", web)
    write(overlay / "web.yaml", a_patch(web, clockSkew="2s"))
    write(overlay / "spa.yaml", a_patch(an_application("spa"), {"absent": True}))
    write(overlay / "more.yaml", an_action("more"))

    made = place.run("apply", *STAGING, "--auto-approve")
    left = place.run("plan", *STAGING, "--format", "json").json["changes"]
    write(manifests / "defaults.yaml", the_defaults(OidcApplication={"clockSkew": "2s"}))
    write(manifests / "web.yaml", without_organization(web))
    (overlay / "web.yaml").unlink()
    write(manifests / "spa.yaml", a_patch(an_application("spa"), clockSkew="0s"))
    again = place.run("plan", *STAGING, "--detailed-exitcode")

    assert made.code == 0, made.all
    assert left == []
    assert again.code == 0, again.all
    exported = place.run("export", *STAGING).out
    assert "https://staging.example.com/cb" in exported
    assert "clockSkew: 2s" in exported
    assert "name: more" in exported
    assert "name: spa" not in exported


def test_a_folder_of_an_overlay_that_is_not_there_is_told_where_it_is_named(
    run: Run, small: Path
) -> None:
    """The path was typed in ``reconciler.yaml``, and nowhere on the command line."""
    write(small.parent / "environments" / "staging" / "more.yaml", an_action("more"))
    (small.parent / "environments" / "empty").mkdir()
    missing, hint = "does not exist", "Did you mean environments/staging? "
    for written, problem, remedy in (
        ("environments/stagin", missing, hint),
        ("environment/staging", missing, hint),
        ("elsewhere", missing, "Write a folder with .yaml files, or leave overlay out."),
        ("environments/empty", "holds no documents", "Write a folder with .yaml files"),
    ):
        a_configuration(small.parent, variables={}, environments={"staging": {"overlay": written}})
        lines = (small.parent / "reconciler.yaml").read_text().splitlines()
        (line,) = [number for number, text in enumerate(lines, 1) if '"overlay"' in text]

        for command in ("plan", "validate"):
            told = run(command, "--env", "staging")

            assert told.code == 1, told.all
            assert f"reconciler.yaml:{line}:" in told.all
            assert f"the folder of the overlay {problem}" in told.all
            assert remedy in told.all


def test_a_plan_names_the_file_of_the_overlay(run: Run, small: Path) -> None:
    """A warning about a value leads to where this environment has it from."""
    a_configuration(small.parent, variables={}, environments={"staging": {"overlay": "over"}})
    write(small.parent / "over" / "web.yaml", a_patch(an_application("web"), devMode=True))

    plan = run("plan", *STAGING, "--format", "json").json

    assert ("OIDC-DEV-MODE", "over/web.yaml", 1) in {
        (each["code"], each["file"], each["line"]) for each in plan["diagnostics"]
    }


def test_what_an_overlay_takes_out_is_pruned(run: Run, small: Path) -> None:
    """It is declared in the base, which this environment does not have whole."""
    a_configuration(small.parent, variables={}, environments={"staging": {"overlay": "over"}})
    write(small.parent / "over" / "greet.yaml", a_patch(an_action(), timeout="1s"))
    assert run("apply", *STAGING, "--auto-approve").code == 0
    write(small.parent / "over" / "greet.yaml", a_patch(an_action(), {"absent": True}))

    plan = run("plan", *STAGING, "--prune", "--format", "json").json

    assert [(each["change"], each["ref"]["name"]) for each in plan["changes"]] == [
        ("delete", "greet")
    ]


def test_a_prune_by_a_part_of_the_tree_spares_what_the_overlay_adds(run: Run, small: Path) -> None:
    """The part is a folder with nothing above it, and yet not all of this environment."""
    a_configuration(small.parent, variables={}, environments={"staging": {"overlay": "over"}})
    write(small.parent / "over" / "more.yaml", an_action("more"))
    (small / "acme").mkdir()
    for file in small.glob("*.yaml"):
        file.rename(small / "acme" / file.name)
    part = ("plan", *STAGING, "manifests/acme", "--format", "json")
    assert run("apply", *STAGING, "--auto-approve").code == 0

    pruned = run(*part, "--prune")
    write(small.parent / ".git" / "HEAD", "")
    in_git = run(*part, "--prune")

    for told in (pruned, in_git):
        blocks = [each for each in told.json["diagnostics"] if each["severity"] == "error"]
        assert {each["code"] for each in blocks} == {"GUARD-PARTIAL-TREE"}
        assert "over/more.yaml" in {each["file"] for each in blocks}


def test_findings_lead_through_layers_to_the_column(run: Run, small: Path) -> None:
    """A variable, Defaults and an overlay: each with the place where its value is written."""
    a_configuration(small.parent, variables={"host": {"type": "string", "default": "a b"}},
                    environments={"staging": {"overlay": "over"}})  # fmt: skip
    write(small / "web.yaml", an_application("web", redirectUris=[URI]))
    write(small / "d.yaml", the_defaults(Action={"timeout": "1h"}, Acton={}))
    write(small.parent / "over" / "spa.yaml", a_patch(an_application("spa"), devMode=1, x=2))

    told = run("validate", *STAGING, "--format", "json").json["diagnostics"]
    text = run("validate", *STAGING).out
    forms = [
        run("validate", *STAGING, "--format", each).out for each in ("github", "sarif", "junit")
    ]

    spots = {
        (each["code"], each["file"], each["line"], each["column"], each.get("value_from"))
        for each in told
        if each["severity"] == "error"
    }
    source = "host from reconciler.yaml:7:15"
    web, spa = (
        an_application("web", redirectUris=[URI]),
        a_patch(an_application("spa"), devMode=1, x=2),
    )
    defaults = the_defaults(Action={"timeout": "1h"}, Acton={})
    assert spots == {
        ("URI-CHARACTER", "manifests/web.yaml", 1, web.index('"https') + 1, source),
        ("SCHEMA-DURATION", "manifests/d.yaml", 1, defaults.index('"1h"') + 1, None),
        ("SCHEMA-UNKNOWN-FIELD", "manifests/d.yaml", 1, defaults.index('"Acton"') + 1, None),
        ("SCHEMA-TYPE", "over/spa.yaml", 1, spa.index('1, "x"') + 1, None),
        ("SCHEMA-UNKNOWN-FIELD", "over/spa.yaml", 1, spa.index('"x"') + 1, None),
    }
    assert text.count(f"({source})") == 1
    assert all(f"({source})" in form for form in forms)
