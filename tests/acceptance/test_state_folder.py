"""The folder of our own state: a link out of the repository is refused by every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, write

REF = "acme/shop/web"
COMMANDS = (
    ("plan",),
    ("apply", "--auto-approve"),
    ("drift",),
    ("outputs",),
    ("export",),
    ("history", "Action", "acme/greet"),
    ("secret", "rotate", REF, "--auto-approve"),
    ("secret", "deliver"),
    ("serve", "--listen", "127.0.0.1:0"),
    ("token", "create", "--name", "ci", "--role", "viewer"),
    ("token", "list"),
    ("token", "revoke", "ci"),
    ("store", "verify"),
    ("store", "backup", "copy.db"),
    ("store", "rebuild"),
    ("store", "restore", "copy.db", "--auto-approve"),
    ("plan", "--service", "https://127.0.0.1:1"),
    ("plan", "--service", "sqlite:other.db"),
)


@pytest.mark.parametrize("link", ["", "identity.db", "secrets"])
def test_a_link_out_of_the_repository_is_refused_by_every_command(
    run: Run, small: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    """Who can open a pull request can add it, and would direct where secrets are written."""
    outside = tmp_path_factory.mktemp("outside")
    write(small.parent / ".git" / "HEAD", "")
    path = small.parent / ".reconciler" / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside / link)

    for command in COMMANDS:
        refused = run(*command)

        assert refused.code == 1, command
        named = f".reconciler/{link}" if link else ".reconciler"
        assert f"Error: {named} leads out of the repository" in refused.err, command
    assert not list(outside.iterdir())


def test_a_link_where_there_is_no_repository_is_refused_in_words_for_that(
    run: Run, small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As in a container, where a volume may be meant: it can be mounted there."""
    (small.parent / ".reconciler").symlink_to(tmp_path_factory.mktemp("volume"))

    refused = run("apply", "--auto-approve")

    assert refused.code == 1
    assert "Error: .reconciler leads out of the current folder" in refused.err
    assert "A container can mount a volume there." in refused.err


def test_a_link_within_the_repository_is_followed(run: Run, small: Path) -> None:
    """It leads to what the same people can change."""
    write(small.parent / ".git" / "HEAD", "")
    (small.parent / "state").mkdir()
    (small.parent / ".reconciler").symlink_to("state")

    assert run("apply", "--auto-approve").code == 0
    assert (small.parent / "state" / "identity.db").is_file()
