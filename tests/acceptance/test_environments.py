"""One tree, several services: ``reconciler.yaml`` chooses service, tree and values by ``--env``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.program import program
from tests.running import Server, running_server


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
def test_a_store_in_a_home_folder_is_refused_as_on_the_command_line(
    run: Run, small: Path, command: str
) -> None:
    """A folder with the name ~ in the repository is dangerous to remove."""
    a_configuration(small.parent, environments={"staging": {"service": "sqlite:~/x.db"}})

    by_file = run(command, "--env", "staging")
    (small.parent / "reconciler.yaml").unlink()
    by_flag = run(command, "--service", "sqlite:~/x.db")

    assert by_file.code == by_flag.code == 1
    assert "reconciler.yaml:1:" in by_file.err
    for told in (by_file, by_flag):
        assert "~ is not the home folder here" in told.err


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
    write(configured / "manifests" / "web.yaml", an_application(redirectUris=["${host}"]))
    write(configured / "manifests" / "greet.yaml", an_action(x=1))

    told = run("validate")
    one = run("validate", "--env", "staging")

    assert right.out == "Valid: 6 manifests are right in environments staging, production.\n"
    assert (told.code, one.code) == (1, 1)
    assert told.out.count("unknown field x") == 1
    assert "unknown field x\n" in told.out
    assert "(environment production; host from reconciler.yaml:1:" in told.out
    assert "environment staging" not in told.out
    assert "environment" not in one.out


def test_a_protected_environment_takes_an_approved_plan_only(run: Run, configured: Path) -> None:
    """A plan file or a digest; neither the flag nor its variable stands for a review."""
    chosen = ("--env", "production")
    flag = run("apply", *chosen, "--auto-approve")
    variable = run("apply", *chosen, RECONCILER_AUTO_APPROVE="1")
    asked = run("apply", *chosen)
    rotated = run("secret", "rotate", "acme/shop/web", *chosen, "--auto-approve")
    service = ("--service", "sqlite:.reconciler/production/identity.db")
    unchosen = run("secret", "rotate", "acme/shop/web", *service, "--auto-approve")
    assert run("plan", *chosen, "--out", "p.plan").code == 0
    both = run("apply", "p.plan", *chosen, "--auto-approve")
    other = run("apply", "p.plan", "--env", "staging")
    made = run("apply", "p.plan", *chosen)

    for refused in (flag, variable, rotated, unchosen, both):
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
    assert "<dt>Environment</dt><dd><code>live</code></dd>" in page
    assert run("outputs", "--format", "json", **known).json["environment"] == "live"
    assert run("history", "Project/acme/shop", **known).code == 0
    assert "kind: Project" in run("export", **known).out


def test_a_saved_plan_repeats_what_was_chosen(run: Run, configured: Path) -> None:
    """The command that it prints applies it: environment and values included."""
    a_configuration(configured, variables={"host": {"type": "string", "default": "a.example"}})
    write(configured / "manifests" / "web.yaml", an_application(redirectUris=["https://${host}"]))
    given = ("--env", "staging", "--var", "host=b.example")

    saved = run("plan", *given, "--out", "s.plan")
    shown = run("show", "s.plan", "--format", "markdown")
    without = run("apply", "s.plan", "--env", "staging")

    assert "reconciler apply s.plan --env staging --var host=b.example\n" in saved.err
    assert "https://b.example" in saved.out
    assert "reconciler apply --env staging --digest sha256:" in shown.out
    assert without.code == 4
    assert run("apply", "s.plan", *given).code == 0


def test_a_value_comes_from_the_flag_then_the_variable_then_the_file(
    run: Run, configured: Path
) -> None:
    """Precedence, also for the tree and for the paths."""
    a_configuration(
        configured,
        manifests="iam",
        tree="acme",
        variables={"uris": {"type": "list"}},
        environments={"staging": {"variables": {"uris": ["https://file.example"]}}},
    )
    (configured / "manifests").rename(configured / "iam")
    write(configured / "iam" / "web.yaml", an_application(redirectUris="${uris}"))
    chosen = ("plan", "--env", "staging")
    process = {"RECONCILER_VAR_uris": '["https://process.example"]', "RECONCILER_TREE": "other"}

    file = run(*chosen)
    variable = run(*chosen, **process)
    flag = run(*chosen, "--var", 'uris=["https://flag.example"]', "--tree", "third", **process)

    for ran, host, tree in (
        (file, "file", "acme"), (variable, "process", "other"), (flag, "flag", "third"),
    ):  # fmt: skip
        assert f'"https://{host}.example"' in ran.out, ran.all
        assert ran.out.splitlines()[0].endswith(f", tree {tree}")


def test_the_file_is_found_from_a_folder_of_the_repository(run: Run, configured: Path) -> None:
    """Paths in it start from its own folder; without Git nothing above is looked at."""
    inner = configured / "scripts"
    inner.mkdir()
    here = program(inner)
    assert "path does not exist" in here("validate").out
    write(configured / ".git" / "HEAD", "")

    plan = here("plan", "--env", "staging")
    named = run("plan", "--env", "staging", "--config", "other.yaml")

    assert plan.out.startswith("Environment staging: service sqlite:../.reconciler/staging/ident")
    assert "Plan: 6 to create" in plan.out
    assert named.code == 1
    assert named.err.startswith("other.yaml: error FILE-MISSING: the path does not exist\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "start"),
    [
        (["plan", "--env", "stagin"], {}, "there is no environment stagin in reconciler.yaml\n"),
        (["plan", "--env", ""], {}, "--env is empty\n"),
        (["plan"], {"RECONCILER_ENV": ""}, "RECONCILER_ENV is set and empty\n"),
        (["plan", "--env", "staging", "--var", "x"], {}, "--var x gives no value\n"),
        (["plan", "--env", "staging"], {"CI": "1"}, "no service is named, and CI is set\n"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_told_with_what_to_write(
    run: Run, configured: Path, arguments: list[str], environment: dict[str, str], start: str
) -> None:
    """Before anything is read or asked."""
    told = run(*arguments, **environment)

    assert (told.code, told.out) == (1, "")
    assert told.err.startswith(f"Error: {start}")


def test_without_a_file_an_environment_cannot_be_chosen(run: Run, small: Path) -> None:
    """And nothing else is different from a time before there were environments."""
    told = run("plan", "--env", "staging")

    assert told.code == 1
    assert told.err.startswith("Error: there is no reconciler.yaml for --env\n")
    assert "environment" not in run("plan", "--format", "json").json


def test_findings_of_the_configuration_come_in_the_form_that_was_asked_for(
    run: Run, configured: Path
) -> None:
    """A job uploads what validate writes."""
    a_configuration(configured, environments={"a": {"service": "postgresql://db/x"}})

    told = run("validate", "--format", "json")
    (finding,) = told.json["diagnostics"]

    assert told.code == 1
    assert (finding["code"], finding["file"]) == ("CONFIG-SERVICE", "reconciler.yaml")
    assert run("plan", "--env", "a").err.endswith(
        "Error: 1 error in the configuration\n"
        "  Fix the configuration, then run the command again. Nothing was written.\n"
    )


def test_a_variable_of_the_process_that_nothing_takes_is_a_warning(
    run: Run, configured: Path
) -> None:
    """Capital and small letters differ."""
    a_configuration(configured, variables={"host": {"type": "string", "default": "a"}})

    told = run("validate", RECONCILER_VAR_HOST="b").out

    assert "warning ENV-UNKNOWN: no variable takes RECONCILER_VAR_HOST\n" in told
    assert "Did you mean RECONCILER_VAR_host? " in told


def test_the_configuration_is_explained_and_has_a_schema(run: Run) -> None:
    """As kinds of manifests are."""
    whole = run("explain", "Configuration").out
    field = run("explain", "configuration.environments.service").out
    wrong = run("explain", "Configuration.variables.patern")

    assert "environments <mapping>\n" in whole
    assert 'example: "https://id.staging.example.com"\n' in field
    assert "Did you mean pattern?" in wrong.err
    assert run("schema", "configuration").json["title"] == "Configuration"


def test_a_prune_of_one_environment_heeds_no_overlay_as_a_declaration(
    run: Run, configured: Path
) -> None:
    """The overlay of another environment declares for another service; an absent one is gone."""
    overlays = {name: {"overlay": f"overlays/{name}"} for name in ("staging", "production")}
    a_configuration(configured, environments=overlays)
    for name in overlays:
        write(configured / "overlays" / name / "new.yaml", an_action("extra"))
    assert run("apply", "--env", "staging", "--auto-approve").code == 0
    absent = json.loads(an_action("greet"))
    gone = {**absent, "metadata": {**absent["metadata"], "absent": True}, "spec": {}}
    write(configured / "overlays" / "staging" / "new.yaml", json.dumps(gone))

    plan = run("plan", "--env", "staging", "--prune")

    assert "- Action acme/extra" in plan.out, plan.all
    assert "- Action acme/greet" in plan.out
    assert "Plan: 0 to create, 0 to update, 2 to delete." in plan.out
    assert "GUARD-PARTIAL-TREE" not in plan.err
