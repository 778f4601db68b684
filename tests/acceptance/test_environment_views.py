"""Environments seen without a service: their manifests resolved, compared and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, Run, an_action, an_application, write
from tests.acceptance.test_environments import a_configuration

STORE = ("--service", "sqlite:.reconciler/staging/identity.db")  # that of the environment


@pytest.fixture
def configured(small: Path) -> Path:
    """Return the folder of a small tree with two environments."""
    a_configuration(small.parent)
    return small.parent


def test_short_words_plan_the_same_as_long_ones(run: Run, small: Path) -> None:
    """JSON and digests have the long spelling only."""
    long = run("plan", "--format", "json").json
    short = an_application("spa", appType="USER_AGENT", authMethodType="NONE")
    write(small / "spa.yaml", short)

    assert run("plan", "--format", "json").json == long
    assert "OIDC_APP_TYPE_USER_AGENT" in str(long)


def test_a_service_holds_long_words_and_gives_what_looks_like_a_variable_back(place: Place) -> None:
    """Short words are of manifests alone: embedded and over the network."""
    script = "function odd(ctx, api) { return `${a}`; }"
    write(place.manifests / "odd.yaml", an_action("$${odd}", script=script))
    applied = place.run("apply", "--auto-approve")
    short = an_application("spa", appType="USER_AGENT", authMethodType="NONE")
    write(place.manifests / "spa.yaml", short)

    planned = place.run("plan", "--detailed-exitcode")
    exported = place.run("export", "--out", "exported")
    again = place.run("plan", "exported", "--detailed-exitcode")

    assert (applied.code, planned.code, exported.code, again.code) == (0, 0, 0, 0), again.all
    folder = place.folder / "exported" / "acme"
    assert (
        "OIDC_APP_TYPE_USER_AGENT" in (folder / "projects/shop/applications/spa.yaml").read_text()
    )
    (odd,) = [path.read_text() for path in (folder / "actions").glob("odd-*.yaml")]
    assert '  name: "$${odd}"\n' in odd
    assert "return `${a}`" in odd


def test_a_word_in_two_spellings_is_told(run: Run, small: Path) -> None:
    grants = ["AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"]
    write(small / "web.yaml", an_application("web", grantTypes=grants))

    told = run("validate")

    assert told.code == 0
    assert "web.yaml:1:" in told.out
    assert "warning VALUE-DUPLICATE: OIDC_GRANT_TYPE_AUTHORIZATION_CODE is in this" in told.out


def test_the_arguments_of_a_comparison_name_its_environments(run: Run, two: Path) -> None:
    """The option and the variable of other commands are for a service: they change nothing."""
    refused = run("compare", "staging", "production", "--env", "staging")

    assert refused.code == 1
    assert "--env does not go with two environments" in refused.err
    assert run("compare", "staging", "production", RECONCILER_ENV="nowhere").code == 0


def test_rendered_manifests_plan_the_same(run: Run, configured: Path, tmp_path: Path) -> None:
    """From the files and from the stream alike."""
    script = "function greet(ctx, api) {\n" + "  api.v1;\n" * 9 + "}\n"
    write(configured / "manifests" / "greet.yaml", an_action(script=script, timeout="1.50s"))
    planned = run("plan", "--env", "staging", "--format", "json").json
    elsewhere = tmp_path / "elsewhere"

    files = run("render", "--env", "staging", "--out", str(elsewhere / "files"))
    stream = run("render", "--env", "staging")
    write(elsewhere / "stream.yaml", stream.out)
    again = run("render", "--env", "staging", "--out", str(elsewhere / "files"))

    assert (files.code, stream.code) == (0, 0)
    assert files.err == f"Wrote 6 manifests into {elsewhere / 'files'}.\n"
    assert (elsewhere / "files" / "acme" / "actions" / "scripts" / "greet.js").read_text() == script
    assert again.code == 1
    assert "is not an empty folder" in again.err
    (configured / "reconciler.yaml").unlink()
    for path in ("files", "stream.yaml"):
        told = run("plan", str(elsewhere / path), *STORE, "--format", "json").json
        assert told["digest"] == planned["digest"]


@pytest.fixture
def two(configured: Path) -> Path:
    """Return the folder of a tree whose environments differ in a variable and in overlays."""
    a_configuration(
        configured,
        variables={"host": {"type": "string"}},
        environments={
            "staging": {"variables": {"host": "staging.example.com"}, "overlay": "staging"},
            "production": {"variables": {"host": "example.com"}, "overlay": "production"},
        },
    )
    web = an_application("web", redirectUris=["https://${host}/callback"])
    write(configured / "manifests" / "web.yaml", web)
    write(configured / "staging" / "debug.yaml", an_action("debug"))
    write(configured / "production" / "admin.yaml", an_application("admin", grantTypes=[]))
    return configured


def test_a_comparison_has_the_forms_of_a_plan(run: Run, two: Path) -> None:
    text = run("compare", "staging", "production", "--detailed-exitcode")
    json = run("compare", "staging", "production", "--format", "json").json
    markdown = run("compare", "staging", "production", "--format", "markdown")
    html = run("compare", "staging", "production", "--format", "html")

    assert text.code == 2
    assert (
        text.out
        == """\
Environment production compared with staging

+ OidcApplication acme/shop/admin
    redirectUris:
      + "https://admin.example.com/cb"
    grantTypes:
      + "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"

~ OidcApplication acme/shop/web
    redirectUris:
      - "https://staging.example.com/callback"
      + "https://example.com/callback"

- Action acme/debug

Compared: 1 only in production, 1 different, 1 only in staging, 5 the same.
"""
    )
    assert [change["change"] for change in json["changes"]] == ["create", "update", "delete"]
    assert (json["environment"], json["compared_with"]) == ("production", "staging")
    assert (json["service"], json["tree"], json["digest"]) == (None, None, None)
    assert "1 only in staging" in markdown.out
    assert "apply" not in markdown.out
    assert "Compared with" in html.out
    assert not (two / ".reconciler").exists()


def test_environments_that_declare_the_same_do_not_differ(run: Run, configured: Path) -> None:
    told = run("compare", "staging", "production", "--detailed-exitcode")

    head, end = (
        "Environment production compared with staging",
        "Both environments declare the same.",
    )
    assert (told.code, told.out) == (0, f"{head}\n\nNo differences. {end}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "stagin", "production"), "Did you mean staging?"),
        (("compare", "staging"), "Missing argument 'OTHER'"),
    ],
)
def test_a_comparison_takes_two_environments(
    run: Run, configured: Path, arguments: tuple[str, ...], message: str
) -> None:
    told = run(*arguments)

    assert told.code == 1
    assert message in told.err


def test_a_rendered_environment_plans_the_same(run: Run, two: Path, tmp_path: Path) -> None:
    """Variables and overlay are in it, and what only looks like a variable stays."""
    write(two / "manifests" / "odd.yaml", an_action("odd", script="function odd() {} // `${a}`"))
    planned = run("plan", "--env", "staging", "--format", "json").json

    rendered = run("render", "--env", "staging").out

    assert "https://staging.example.com/callback" in rendered
    (two / "reconciler.yaml").unlink()
    manifests = str(write(tmp_path / "all.yaml", rendered))
    told = run("plan", manifests, *STORE, "--format", "json").json
    assert told["digest"] == planned["digest"]


def test_manifests_that_are_not_of_the_tree_say_nothing_of_its_variables(
    run: Run, two: Path
) -> None:
    """They use none, and the tree does: a variable that was removed for them would be missing."""
    run("render", "--env", "staging", "--out", str(two / "rendered"))

    told = run("validate", "rendered")

    assert (told.code, told.err) == (0, ""), told.all
    assert told.out == "Valid: 7 manifests are right in environments staging, production.\n"


def test_the_variables_of_environments_are_explained_with_their_origins(
    run: Run, two: Path
) -> None:
    a_configuration(
        two,
        variables={
            "host": {"type": "string", "description": "Host of the shop"},
            "previews": {"type": "list", "default": ["a"]},
            "skew": {"type": "string"},
        },
        environments={
            "staging": {"overlay": "staging", "variables": {"host": "staging.example.com"}},
            "production": {"service": "https://id.example.com", "tree": "live", "protected": True},
        },
    )
    column = (two / "reconciler.yaml").read_text().index
    default, host = column('["a"]') + 1, column('"staging.example') + 1

    one = run("explain", "--env", "staging")
    both = run("explain", "--var", "host=example.com", RECONCILER_VAR_skew="2s")

    assert (one.code, one.err) == (0, "")
    assert one.out == (
        "Environment staging: service sqlite:.reconciler/staging/identity.db, overlay staging\n"
        f'  host <string>  "staging.example.com"  (reconciler.yaml:1:{host})\n'
        "      Host of the shop\n"
        f'  previews <list>  ["a"]  (default, reconciler.yaml:1:{default})\n'
        "  skew <string>  no value\n"
    )
    assert (
        "Environment production: service https://id.example.com, tree live, protected\n"
        '  host <string>  "example.com"  (--var host)\n'
    ) in both.out
    assert both.out.count('  skew <string>  "2s"  (RECONCILER_VAR_skew)\n') == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Defaults.spec.OidcApplication.appType", "\n  WEB\n"),
        ("defaults", "metadata <mapping>"),
        ("OidcApplication.grantTypes", "each also with OIDC_GRANT_TYPE_ before it:\n  AUTHORIZ"),
        ("Action.metadata.templated", "Replace variables in the script"),
        ("Project.metadata.absent", "In an overlay: "),
        ("YAML-SYNTAX", "YAML-SYNTAX"),
    ],
)
def test_what_is_asked_for_by_name_is_explained_also_without_a_sound_configuration(
    run: Run, configured: Path, asked: str, told: str
) -> None:
    write(configured / "reconciler.yaml", "kind: [")

    explained, variables = run("explain", asked), run("explain")

    assert told in explained.out
    assert (variables.code, variables.out) == (1, "")
    assert "reconciler.yaml:2:1: error YAML-SYNTAX" in variables.err
