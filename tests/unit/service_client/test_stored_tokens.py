"""Tokens stored by origin: where they lie, which one is returned, and places that are refused."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.errors import AccessDeniedError, LocalFileError, UsageError
from reconciler.resources.secret import Secret
from reconciler.service_client.stored_tokens import forget_token, store_token, stored_token

HERE = "https://id.example.com"
TOKEN = Secret("rct_geheim")


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "settings")}


def folder(environ: Mapping[str, str]) -> Path:
    return Path(environ["XDG_CONFIG_HOME"], "reconciler", "tokens")


def test_a_token_is_stored_for_its_owner_alone(environ: Mapping[str, str]) -> None:
    path = store_token(HERE, TOKEN, environ)

    assert path.parent == folder(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]
    assert stored_token(HERE, environ) == TOKEN


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("https://id.example.com:443", TOKEN),
        ("https://ID.example.com/", TOKEN),
        ("https://id.example.com/below", TOKEN),
        ("https://id.example.com:8443", None),
        ("https://id.example.com.evil.test", None),
        ("https://example.com", None),
        ("http://localhost", None),
    ],
)
def test_a_token_is_returned_for_its_origin_only(
    environ: Mapping[str, str], asked: str, expected: Secret | None
) -> None:
    """Scheme, host and port, in whatever way they are written."""
    store_token(HERE, TOKEN, environ)

    assert stored_token(asked, environ) == expected


def test_a_later_token_takes_the_place_of_an_earlier_one(environ: Mapping[str, str]) -> None:
    store_token(HERE, TOKEN, environ)
    store_token(HERE, Secret("second"), environ)

    assert stored_token(HERE, environ) == Secret("second")


def test_a_token_is_removed_once(environ: Mapping[str, str]) -> None:
    store_token(HERE, TOKEN, environ)

    assert forget_token("https://id.example.com:443", environ)
    assert not forget_token(HERE, environ)
    assert stored_token(HERE, environ) is None


def test_there_is_no_token_without_a_folder(tmp_path: Path) -> None:
    """A user of a container may have no home; a relative path would be one in the repository."""
    for nothing in ({}, {"XDG_CONFIG_HOME": "settings"}, {"HOME": str(tmp_path)}):
        assert stored_token(HERE, nothing) is None
        assert not forget_token(HERE, nothing)
    with pytest.raises(LocalFileError, match="no home folder"):
        store_token(HERE, TOKEN, {"XDG_CONFIG_HOME": "settings"})


def test_the_home_folder_is_used_without_the_variable(tmp_path: Path) -> None:
    path = store_token(HERE, TOKEN, {"HOME": str(tmp_path)})

    assert path.parent == tmp_path / ".config" / "reconciler" / "tokens"


def test_a_folder_or_file_that_others_may_read_is_refused(environ: Mapping[str, str]) -> None:
    path = store_token(HERE, TOKEN, environ)
    path.chmod(0o640)
    with pytest.raises(LocalFileError, match="read by others"):
        stored_token(HERE, environ)

    path.parent.chmod(0o750)
    for use in (lambda: stored_token(HERE, environ), lambda: store_token(HERE, TOKEN, environ)):
        with pytest.raises(LocalFileError, match="open to others") as refused:
            use()
        assert "chmod 700" in refused.value.remedy


def test_links_are_not_followed(environ: Mapping[str, str], tmp_path: Path) -> None:
    """A link could name any file of this user, whose text would be sent as a token."""
    path = store_token(HERE, TOKEN, environ)
    secret = path.rename(tmp_path / "other")
    path.symlink_to(secret)
    with pytest.raises(LocalFileError, match="cannot read"):
        stored_token(HERE, environ)

    assert store_token(HERE, Secret("new"), environ) == path
    assert secret.read_text(encoding="ascii") == "rct_geheim\n"
    path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(tmp_path / "moved")
    with pytest.raises(LocalFileError, match="own"):
        stored_token(HERE, environ)


def test_the_file_of_another_user_is_refused(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store_token(HERE, TOKEN, environ)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)

    with pytest.raises(LocalFileError, match="own"):
        stored_token(HERE, environ)


def test_a_file_without_a_token_is_told_as_that(environ: Mapping[str, str]) -> None:
    store_token(HERE, TOKEN, environ).write_text("two words\n", encoding="ascii")

    with pytest.raises(AccessDeniedError, match="cannot be a token"):
        stored_token(HERE, environ)


def test_what_cannot_be_written_leaves_nothing_behind(environ: Mapping[str, str]) -> None:
    path = store_token(HERE, TOKEN, environ)
    path.unlink()
    path.mkdir()

    with pytest.raises(LocalFileError, match="cannot write"):
        store_token(HERE, TOKEN, environ)
    with pytest.raises(LocalFileError, match="cannot remove"):
        forget_token(HERE, environ)
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_vanishes_between_two_looks_is_told(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs share the folder of settings; one may clear it while the other starts."""
    path = store_token(HERE, TOKEN, environ)
    there = os.path.lexists

    def look(asked: Path) -> bool:
        found = there(asked)
        shutil.rmtree(path.parent)
        return found

    monkeypatch.setattr(os.path, "lexists", look)
    with pytest.raises(LocalFileError, match=r"cannot read .*/tokens: No such file"):
        stored_token(HERE, environ)


@pytest.mark.parametrize("origin", ["http://id.example.com", "sqlite:x.db", "https://u:p@h.test"])
def test_a_token_is_stored_only_for_what_it_may_be_sent_to(
    environ: Mapping[str, str], origin: str
) -> None:
    with pytest.raises(UsageError):
        store_token(origin, TOKEN, environ)
