"""Sealing: what only the caller may read again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reconciler.resources.secret import Secret
from reconciler.service.build import SEAL_KEY, open_sqlite
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.seal import KeyFile
from tests.memory_store import new_key

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


def test_a_store_that_is_served_knows_its_key_by_its_fingerprint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another key is refused; a lost one is made anew, and the log says what that costs."""
    path, key = tmp_path / "identity.db", tmp_path / "identity.db.seal-key"

    def serve() -> str:
        with closing(open_sqlite(path, create=True)) as service:
            service.hold_seal_key()
            with service.store.snapshot() as view:
                return view.meta(SEAL_KEY)

    first = serve()
    assert serve() == first
    written = key.read_bytes()
    key.unlink()
    KeyFile(key).make()
    with pytest.raises(StoreError, match="is not the one of this store") as caught:
        serve()
    assert "remove this one" in caught.value.remedy
    assert not caplog.text

    key.unlink()
    second = serve()

    assert second not in {"", first}
    assert "was missing and a new one was made" in caplog.text
    assert serve() == second
    key.write_bytes(written)
    with pytest.raises(StoreError, match="is not the one of this store"):
        serve()


def test_a_key_that_cannot_be_made_at_start_is_made_when_it_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk a server still answers reads, and its log says what is missing."""
    key = tmp_path / "nowhere" / "key"
    with closing(open_sqlite(tmp_path / "identity.db", seal_key_file=key, create=True)) as service:
        service.hold_seal_key()
        assert "cannot be made" in caplog.text
        assert "Make its folder writable" in caplog.text
        with service.store.snapshot() as view:
            assert view.meta(SEAL_KEY) == ""
        key.parent.mkdir()

        service.hold_seal_key()

        with service.store.snapshot() as view:
            assert view.meta(SEAL_KEY) != ""
