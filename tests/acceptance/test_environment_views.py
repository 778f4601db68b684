"""Environments seen without a service: their manifests resolved, compared and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.acceptance.test_environments import a_configuration


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


def test_a_word_in_two_spellings_is_told(run: Run, small: Path) -> None:
    grants = ["AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"]
    write(small / "web.yaml", an_application("web", grantTypes=grants))

    told = run("validate")

    assert told.code == 0
    assert "web.yaml:1:" in told.out
    assert "warning VALUE-DUPLICATE: OIDC_GRANT_TYPE_AUTHORIZATION_CODE is in this" in told.out


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
        told = run("plan", str(elsewhere / path), "--format", "json").json
        assert told["digest"] == planned["digest"]
