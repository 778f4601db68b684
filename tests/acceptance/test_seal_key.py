"""The sealing key of a file store is tried when a server starts, and before an apply writes."""

from __future__ import annotations

import os
import subprocess
import sys
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


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, mode=0o600)


def a_link_to_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "missing" / "key")


UNUSABLE = [
    (no_key, "holds no key"),
    (open_to_others, "may be read by others"),
    (a_folder, "is not a regular file"),
    (a_pipe, "is not a regular file"),
]


@pytest.mark.parametrize(
    ("spoil", "problem"), [*UNUSABLE, (another_key, "is not the one of this store")]
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


def a_made_key(folder: Path) -> Path:
    """Return a usable key where the store of a folder will have it."""
    path = folder / ".reconciler" / "identity.db.seal-key"
    path.parent.mkdir(exist_ok=True)
    KeyFile(path).make()
    return path


CANNOT_SEAL = [*UNUSABLE, (a_link_to_nowhere, "is a link that leads nowhere")]


@pytest.mark.parametrize(("spoil", "problem"), CANNOT_SEAL)
def test_an_apply_that_makes_a_secret_writes_nothing_with_a_key_that_it_cannot_use(
    run: Run, small: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    """It is proven before the first write, like the sink."""
    key = a_made_key(small.parent)
    spoil(key)

    refused = run("apply", "--auto-approve")
    held = run("plan", "--format", "json").json["summary"]["create"]
    (key.rmdir if key.is_dir() else key.unlink)()
    applied = run("apply", "--auto-approve")

    assert refused.code == 1
    assert f"Error: the sealing key {key.relative_to(small.parent)} {problem}" in refused.err
    assert "Apply incomplete" not in refused.all
    assert held == 6
    assert applied.code == 0, applied.all


def test_a_key_may_come_from_a_pipe_that_the_shell_opened(small: Path) -> None:
    """As from ``--seal-key-file <(...)``: such a pipe is read once, and tried before it is used."""
    made = a_made_key(small.parent)
    key = made.rename(small.parent / "key")
    words = f"{sys.executable} -m reconciler apply --auto-approve --secrets-to file:secrets"

    applied = subprocess.run(
        ["bash", "-c", f"{words} --seal-key-file <(cat {key})"],
        cwd=small.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert applied.returncode == 0, applied.stderr
    assert not made.exists()


def test_an_apply_without_a_secret_needs_no_key(run: Run, small: Path) -> None:
    (small / "web.yaml").unlink()
    open_to_others(a_made_key(small.parent))

    assert run("apply", "--auto-approve").code == 0


def test_a_secret_is_not_replaced_with_a_key_that_cannot_be_used(run: Run, small: Path) -> None:
    """The old one counts until the new one can be kept."""
    assert run("apply", "--auto-approve").code == 0
    no_key(small.parent / ".reconciler" / "identity.db.seal-key")
    (before,) = (small.parent / ".reconciler" / "secrets").rglob("*.json")
    secret = before.read_bytes()

    refused = run("secret", "rotate", "acme/shop/web", "--auto-approve")

    assert refused.code == 1
    assert "holds no key" in refused.err
    assert before.read_bytes() == secret
    assert "secret.changed" not in run("history", "OidcApplication/acme/shop/web").out
