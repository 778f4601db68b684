"""Origins that a token is stored for, and the credentials of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli import login
from reconciler.cli.connection import Connection
from reconciler.cli.settings import TOKEN
from reconciler.errors import AccessDeniedError, UsageError
from reconciler.resources.secret import Secret
from reconciler.service_client.credentials import FixedToken, NoToken
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.stored_tokens import store_token

ORIGIN = "https://id.example.com"
ENDPOINT = parse_endpoint(ORIGIN)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store tokens in a home of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(TOKEN, raising=False)


@pytest.mark.parametrize(
    ("text", "origin"),
    [(ORIGIN, ORIGIN), (f"{ORIGIN}:443/", ORIGIN), (f"{ORIGIN}:8443", f"{ORIGIN}:8443")],
)
def test_a_token_is_stored_for_an_origin(text: str, origin: str) -> None:
    assert login._origin(text) == origin


@pytest.mark.parametrize("text", [f"{ORIGIN}/path", "http://id.example.com", "id.example.com"])
def test_nothing_else_is_an_origin(text: str) -> None:
    with pytest.raises(UsageError):
        login._origin(text)


def test_without_a_token_none_is_sent() -> None:
    credentials, way = login.credentials_of(Connection(ORIGIN), ENDPOINT)

    assert isinstance(credentials, NoToken)
    assert not way


def test_a_file_wins_over_the_environment_and_that_over_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    file = tmp_path / "token"
    file.write_text("from-file\n")
    file.chmod(0o600)
    store_token(ENDPOINT.origin, Secret("stored"), os.environ)
    plain, named = Connection(ORIGIN), Connection(ORIGIN, token_file=file)

    assert login.credentials_of(plain, ENDPOINT)[0] == FixedToken(Secret("stored"))
    monkeypatch.setenv(TOKEN, "from-environment")
    assert login.credentials_of(plain, ENDPOINT) == (FixedToken(Secret("from-environment")), TOKEN)
    assert login.credentials_of(named, ENDPOINT)[0] == FixedToken(Secret("from-file"))


def test_there_is_one_way_to_sign_in() -> None:
    both = Connection(ORIGIN, token_file=Path("a"), key_file=Path("b"))

    with pytest.raises(UsageError, match="two ways"):
        login.credentials_of(both, ENDPOINT)


def test_a_file_of_a_repository_directs_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "from-environment")
    found = Connection(ORIGIN, environment="staging", is_named_outside=False)

    with pytest.raises(AccessDeniedError, match=r"only reconciler\.yaml names the service"):
        login.credentials_of(found, ENDPOINT)
