"""Sealing: what only the caller may read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.resources.secret import Secret
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.seal import KeyFile, new_key

SECRETS = [Secret("one"), Secret("two")]


def test_secrets_are_sealed_together_and_come_back(tmp_path: Path) -> None:
    """Also in a later process, which reads the key from its file."""
    sealed = KeyFile(tmp_path / "key").seal(SECRETS)

    assert KeyFile(tmp_path / "key").open(sealed) == SECRETS
    assert b"one" not in sealed
    assert sealed.startswith(b"age-encryption.org/v1")


def test_the_key_file_is_its_owners_alone_and_made_once(tmp_path: Path) -> None:
    """A second server that comes at the same time uses the key of the first."""
    first, second = KeyFile(tmp_path / "key"), KeyFile(tmp_path / "key")
    sealed = first.seal(SECRETS)
    written = (tmp_path / "key").read_bytes()
    second.seal(SECRETS)

    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "key").read_bytes() == written
    assert second.open(sealed) == SECRETS
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    """The store alone gives no secret away."""
    sealed = KeyFile(tmp_path / "key").seal(SECRETS)

    assert new_key().open(sealed) is None
    assert KeyFile(tmp_path / "other").open(sealed) is None
    assert not (tmp_path / "other").exists(), "looking for a key makes none"


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        ("", 0o600, "holds no key"),
        ("AGE-SECRET-KEY-1NOPE", 0o600, "holds no key"),
        ("\xff", 0o600, "holds no key"),
        ("anything", 0o644, "may be read by others"),
    ],
)
def test_a_key_file_that_is_none_is_refused_and_left_alone(
    tmp_path: Path, content: str, mode: int, problem: str
) -> None:
    """Making a new key over it would lose every secret that the old one sealed."""
    path = tmp_path / "key"
    path.write_text(content, encoding="latin-1")
    path.chmod(mode)

    with pytest.raises(StoreError) as caught:
        KeyFile(path).seal(SECRETS)

    assert problem in caught.value.problem
    assert caught.value.remedy
    assert path.read_text(encoding="latin-1") == content


def test_a_key_that_cannot_be_kept_seals_nothing(tmp_path: Path) -> None:
    """A secret sealed with a key that is gone is a secret lost."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError):
        KeyFile(tmp_path / "file" / "key").seal(SECRETS)
    with pytest.raises(StoreError):
        KeyFile(tmp_path / "nowhere" / "key").seal(SECRETS)
