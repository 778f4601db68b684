"""The recipes of docs/secrets, with a stand-in for each program that they give secrets to."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests import secret_programs
from tests.acceptance.conftest import ROOT, Run, write
from tests.sinks import counted, hashes

RECIPES = ROOT / "docs" / "secrets"
SETTINGS = {"DEPLOY_REPO": "acme/shop", "DEPLOY_ENVIRONMENT": "production", "NAMESPACE": "apps"}


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"exec:{RECIPES}/to-github", "acme/shop:production:ACME_SHOP_WEB_CLIENT_SECRET"),
        (f"exec-batch:{RECIPES}/to-vault", "secret/reconciler/acme/shop/web"),
        (f"exec?parallel=4:{RECIPES}/to-aws", "reconciler/acme/shop/web"),
        (f"exec:{RECIPES}/to-kubernetes", "apps/acme.shop.web"),
    ],
    ids=["github", "vault", "aws", "kubernetes"],
)
def test_a_recipe_hands_secrets_over_and_shows_them_to_no_other_process(
    run: Run, small: Path, tmp_path: Path, address: str, name: str
) -> None:
    """At the first delivery and after a rotation, which replaces what is kept."""
    programs = tmp_path / "bin"
    for program in secret_programs.PROGRAMS:
        stand_in = write(
            programs / program,
            f"#!{sys.executable} -I\n" + Path(secret_programs.__file__).read_text(encoding="utf-8"),
        )
        stand_in.chmod(0o755)
    holds, seen = tmp_path / "holds", tmp_path / "seen"
    known = {
        **SETTINGS, "PATH": f"{programs}:{os.environ['PATH']}", "RECONCILER_SECRETS_TO": address,
        "STAND_IN_HOLDS": str(holds), "STAND_IN_SEEN": str(seen),
    }  # fmt: skip
    store = small.parent / ".reconciler" / "identity.db"
    given = set()

    for command in (
        ["apply", "--auto-approve"], ["secret", "rotate", "acme/shop/web", "--auto-approve"],
    ):  # fmt: skip
        ran = run(*command, **known)

        assert ran.code == 0, ran.all
        ((client, hashed),) = counted(store).items()
        fields = json.loads(holds.read_text())[name]
        assert fields.get("client_id", client) == client
        assert hashes({client: fields["client_secret"]}) == {client: hashed}
        given.add(fields["client_secret"])

    assert len(given) == 2
    told = ran.all + seen.read_text(encoding="utf-8")
    assert not any(secret in told for secret in given)
    if address.startswith("exec-batch"):
        holds.unlink()
        missing = run("apply", "--auto-approve", "--require-secrets", **known)
        assert (missing.code, "SECRET-NOT-IN-SINK" in missing.all) == (5, True)
