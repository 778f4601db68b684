"""The sealing key of a file store is tried when a server starts, not at the first secret."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.seal import KeyFile
from tests.acceptance.conftest import Run


def no_key(path: Path) -> None:
    path.write_text("these are my notes")
    path.chmod(0o600)


def open_to_others(path: Path) -> None:
    path.chmod(0o644)


def another_key(path: Path) -> None:
    path.unlink()
    KeyFile(path).make()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (no_key, "holds no key"),
        (open_to_others, "may be read by others"),
        (another_key, "is not the one of this store"),
        (a_folder, "cannot be read: Is a directory"),
    ],
)
def test_a_server_does_not_start_with_a_key_that_it_cannot_use(
    run: Run, tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    """Otherwise each call that makes a secret would fail, at any time later."""
    store, key = tmp_path / "identity.db", tmp_path / "identity.db.seal-key"
    with closing(open_sqlite(store, create=True)) as service:
        service.hold_seal_key()  # as the first start does
    assert key.stat().st_mode & 0o777 == 0o600
    spoil(key)

    refused = run("serve", "--listen", "127.0.0.1:0", "--service", f"sqlite:{store}")

    assert refused.code == 1
    assert f"the sealing key {key} {problem}" in refused.err
    assert "listening" not in refused.err
