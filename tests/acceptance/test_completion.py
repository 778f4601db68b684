"""What a shell is offered after Tab, from the program as a shell asks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_application, write
from tests.acceptance.test_environments import a_configuration


def offered(run: Run, line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    return [text for _, text in answered(run, line)]


def answered(run: Run, line: str) -> list[tuple[str, str]]:
    """Return the answer to a shell: what each line is, and its text."""
    words = line.split(" ")
    ran = run(
        _RECONCILER_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(words),
        COMP_CWORD=str(len(words) - 1),
    )
    assert (ran.code, ran.err) == (0, "")
    lines = [text.partition(",") for text in ran.out.splitlines() if text]
    return [(what, text) for what, _, text in lines]


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


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("reconciler validate mani", "file"),
        ("reconciler plan --env staging mani", "file"),
        ("reconciler apply plan.j", "file"),
        ("reconciler show plan.j", "file"),
        ("reconciler drift mani", "file"),
        ("reconciler store restore back", "file"),
        ("reconciler plan --out plan.j", "file"),
        ("reconciler plan --token-file tok", "file"),
        ("reconciler plan --other-tree tea", "file"),
        ("reconciler export --out mani", "dir"),
        ("reconciler plan --policies poli", "dir"),
        ("reconciler policy test poli", "dir"),
        ("reconciler init mani", "dir"),
    ],
)
def test_files_and_folders_are_left_to_the_shell(run: Run, line: str, what: str) -> None:
    """A shell that has a completion of a program offers no files unless it is told to."""
    assert answered(run, line) == [(what, line.rpartition(" ")[2])]


def test_drift_is_offered_objects_as_well(run: Run, small: Path) -> None:
    """Beside PATHS, what is accepted is named by its ref."""
    assert offered(run, "reconciler drift --accept Action/") == ["Action/acme/greet"]


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
