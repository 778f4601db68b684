"""What a shell is offered after Tab, from the program as a shell asks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_application, write
from tests.acceptance.test_environments import a_configuration


def offered(run: Run, line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    words = line.split(" ")
    ran = run(
        _RECONCILER_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(words),
        COMP_CWORD=str(len(words) - 1),
    )
    assert (ran.code, ran.err) == (0, "")
    return [text.partition(",")[2] for text in ran.out.splitlines() if text]


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("reconciler history Action/", ["Action/acme/greet"]),
        (
            "reconciler export OidcA",
            ["OidcApplication/acme/shop/spa", "OidcApplication/acme/shop/web"],
        ),
        ("reconciler plan --take-over Idp", ["IdpJwtConfig/acme/partner"]),
        ("reconciler plan --rotate-missing acme/shop/w", ["acme/shop/web"]),
        (
            "reconciler plan --break-glass OidcApplication/acme/shop/w",
            ["OidcApplication/acme/shop/web="],
        ),
        ("reconciler explain idpj", ["IdpJwtConfig"]),
        ("reconciler explain Action.time", ["Action.timeout"]),
        ("reconciler explain FILE-SK", ["FILE-SKIPPED"]),
        ("reconciler explain plain", ["plain-http"]),
        ("reconciler schema O", ["Organization", "OidcApplication"]),
        ("reconciler plan --color a", ["auto", "always"]),
    ],
)
def test_kinds_fields_codes_and_refs_are_completed(
    run: Run, small: Path, line: str, texts: list[str]
) -> None:
    """Names that a shell would tear apart are not offered."""
    write(small / "odd.yaml", an_application("web app"))
    write(small / "broken.yaml", "a: [")

    assert offered(run, line) == texts


def test_without_manifests_nothing_is_offered_and_nothing_fails(run: Run) -> None:
    """A shell shows whatever is printed in the middle of a line."""
    assert offered(run, "reconciler history Action/") == []


def test_a_configuration_says_what_is_offered(run: Run, small: Path) -> None:
    """Its environments, and the refs of the folder that it names."""
    small.rename(small.parent / "iam")
    assert offered(run, "reconciler history Action/") == []

    a_configuration(small.parent, manifests="iam")

    assert offered(run, "reconciler history Action/") == ["Action/acme/greet"]
    assert offered(run, "reconciler plan --env p") == ["production"]
    assert offered(run, "reconciler compare s") == ["staging"]
    assert offered(run, "reconciler compare staging p") == ["production"]
