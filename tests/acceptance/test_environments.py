"""One tree, several services: ``reconciler.yaml`` chooses service, tree and values by ``--env``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run, an_application, write
from tests.running import Server, running_server

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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server for the tests of a service elsewhere."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def remote(small: Path, server: Server) -> Path:
    """Return the folder of a small tree with an environment on a server."""
    a_configuration(small.parent, environments={"live": {"service": server.address}})
    return small.parent


def test_an_address_that_only_the_file_names_gets_no_token(
    run: Run, remote: Path, server: Server
) -> None:
    """A pull request can write any address there."""
    token = server.token("admin")
    write(remote / "token", token).chmod(0o600)
    known = {"RECONCILER_TOKEN": token}
    refused = run("plan", "--env", "live", **known)
    other = run("plan", "--env", "live", "--service", "http://127.0.0.1:9", **known)

    assert (refused.code, refused.out) == (7, "")
    assert refused.err.startswith("Error: only reconciler.yaml names the service of environment")
    assert f"Give --service {server.address}, or set RECONCILER_SERVICE to it" in refused.err
    assert (other.code, other.out) == (1, "")
    assert other.err.startswith("Error: --service http://127.0.0.1:9 is not the service of")

    settings = {"XDG_CONFIG_HOME": str(remote / "settings")}
    assert run("login", server.address, stdin=token, **settings).code == 0
    stored = run("plan", "--env", "live", **settings, RECONCILER_TOKEN=token[::-1])
    file = run("plan", "--env", "live", "--token-file", "token", **settings)

    assert stored.code == 0, stored.all
    assert file.code == 7
    assert "where --token-file goes" in file.err


def test_a_service_elsewhere_is_used_where_it_is_also_named_outside(
    run: Run, remote: Path, server: Server
) -> None:
    """Every report names the environment; journal and default state are in its folder."""
    known = {
        "RECONCILER_ENV": "live",
        "RECONCILER_SERVICE": server.address,
        "RECONCILER_TOKEN": server.token("admin"),
    }
    head = f"Environment live: service {server.address} (instance"
    applied = run("apply", "--auto-approve", "--secrets-to", "file:kept", **known)
    drift = run("drift", "--format", "json", **known).json
    comment = run("plan", "--format", "markdown", **known).out
    page = run("plan", "--format", "html", **known).out

    assert applied.code == 0, applied.all
    assert applied.out.count(head) == 2
    assert len(list((remote / ".reconciler" / "live").glob("apply-*.jsonl"))) == 1
    assert drift["environment"] == "live"
    assert comment.startswith("<!-- reconciler-plan environment=live service=http")
    assert f"`{head}" in comment
    assert "<dt>Environment</dt><dd>live</dd>" in page
    assert "client id" in run("outputs", **known).out
    assert run("history", "Project/acme/shop", **known).code == 0
    assert "kind: Project" in run("export", **known).out
