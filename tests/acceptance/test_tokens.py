"""Tokens are made once, shown once, limited, and gone when they are revoked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run


@pytest.fixture
def store(run: Run, small: Path) -> Path:
    """Return the folder of a store with one organization."""
    assert run("apply", "--auto-approve").code == 0
    return small.parent / ".reconciler"


def test_the_token_alone_is_on_stdout_once(run: Run, store: Path) -> None:
    """A script can pipe it straight to where it is kept."""
    made = run("token", "create", "--name", "ci", "--role", "editor", "--organization", "ACME")

    assert made.code == 0
    assert re.fullmatch(r"rct_[A-Za-z0-9_-]{43}[0-9a-f]{8}\n", made.out)
    assert made.err == ""
    token = made.out.strip()
    for path in store.rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes()
    listed = run("token", "list", "--format", "json")
    assert token not in listed.all
    (row,) = listed.json["tokens"]
    assert (row["name"], row["role"], row["organizations"]) == ("ci", "editor", ["acme"])


def test_a_token_can_be_the_first_thing_in_a_store(run: Run, tmp_path: Path) -> None:
    """A server is given its first token before it holds anything."""
    made = run("token", "create", "--name", "root", "--role", "admin", "--service", "sqlite:x/i.db")

    assert made.code == 0
    assert (tmp_path / "x" / "i.db").exists()


def test_a_name_is_free_again_once_its_token_is_revoked(run: Run, store: Path) -> None:
    """Rotation keeps the name that stands in the history."""
    first = run("token", "create", "--name", "ci", "--role", "viewer").out
    assert run("token", "create", "--name", "ci", "--role", "viewer").code == 1
    assert run("token", "revoke", "ci").code == 0
    assert run("token", "revoke", "ci").code == 1

    again = run("token", "create", "--name", "ci", "--role", "viewer", "--expires", "90d")

    assert again.code == 0
    assert again.out != first
    assert run("token", "list", "--format", "json").json["tokens"][0]["expires"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--role", "viewer"], "--name", id="no name"),
        pytest.param(["--name", "x"], "--role", id="no role"),
        pytest.param(["--name", "x", "--role", "root"], "editor", id="no such role"),
        pytest.param(["--name", "a b", "--role", "viewer"], "letters", id="an odd name"),
        pytest.param(
            ["--name", "x", "--role", "viewer", "--organization", "nope"],
            "no organization nope",
            id="no such organization",
        ),
        pytest.param(
            ["--name", "x", "--role", "viewer", "--expires", "soon"], "90d", id="an odd time"
        ),
    ],
)
def test_a_token_that_cannot_be_made_says_why(
    run: Run, store: Path, arguments: list[str], words: str
) -> None:
    """Nothing is made by halves."""
    refused = run("token", "create", *arguments)

    assert refused.code == 1
    assert refused.out == ""
    assert words in refused.err
    assert run("token", "list", "--format", "json").json["tokens"] == []
