"""A token that is stored for a service is used for that service, and shown by nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run
from tests.running import Server, running_server
from tests.terminal import on_terminal


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "settings")}


def test_a_stored_token_is_used_until_it_is_removed(
    run: Run, server: Server, settings: dict[str, str]
) -> None:
    before = run("export", "--service", server.address, **settings)
    stored = run("login", server.address, stdin=f"{server.token()}\n", **settings)
    during = run("export", "--service", f"{server.address}/", "--out", "held", **settings)
    removed = run("logout", server.address, **settings)
    after = run("export", "--service", server.address, **settings)
    again = run("logout", server.address, **settings)

    assert (before.code, stored.code, during.code, removed.code) == (7, 0, 0, 0), during.all
    assert (after.code, again.code) == (7, 1)
    assert "reconciler login" in before.err
    assert f"Stored the token for {server.address} in " in stored.err
    assert f"no token is stored for {server.address}" in again.err
    assert (stored.out, removed.out) == ("", "")
    assert server.token() not in stored.all + during.all + removed.all


def test_a_token_from_the_environment_wins(
    run: Run, server: Server, settings: dict[str, str]
) -> None:
    """What is given to one command is meant for it."""
    run("login", server.address, stdin="rct_other", **settings)
    given = {**settings, "RECONCILER_TOKEN": server.token()}

    assert run("export", "--service", server.address, **settings).code == 7
    assert run("export", "--service", server.address, "--out", "held", **given).code == 0


def test_a_token_goes_to_no_other_port(run: Run, server: Server, settings: dict[str, str]) -> None:
    run("login", "http://127.0.0.1:9", stdin=server.token(), **settings)

    assert run("export", "--service", server.address, **settings).code == 7


def test_a_terminal_is_asked(tmp_path: Path, run: Run, settings: dict[str, str]) -> None:
    """Without an echo, which ``getpass`` turns off."""
    asked = on_terminal(
        tmp_path,
        "login",
        "https://id.example.com",
        prompt="Token for https://id.example.com: ",
        typed="rct_geheim\n",
        **settings,
    )

    assert asked.code == 0
    assert "geheim" not in asked.out
    (stored,) = (tmp_path / "settings" / "reconciler" / "tokens").iterdir()
    assert stored.read_text(encoding="ascii") == "rct_geheim\n"


@pytest.mark.parametrize(
    ("origin", "stdin", "words"),
    [
        ("https://id.example.com", "", "cannot be a token"),
        ("https://id.example.com", "geheim zwei", "cannot be a token"),
        ("https://id.example.com", "gehe\u00efm", "cannot be a token"),
        ("https://id.example.com", "geheim" * 20_000, "cannot be a token"),
        ("https://id.example.com/below", "geheim", "write https://id.example.com."),
        ("http://id.example.com", "geheim", "unencrypted"),
        ("https://user:geheim@id.example.com", "geheim", "user or a password"),
        ("sqlite:x.db", "geheim", "Write an origin"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_not_repeated(
    run: Run, tmp_path: Path, settings: dict[str, str], origin: str, stdin: str, words: str
) -> None:
    refused = run("login", origin, stdin=stdin, **settings)

    assert refused.code in {1, 7}
    assert words in refused.err
    assert "geheim" not in refused.all
    assert not (tmp_path / "settings").exists()
