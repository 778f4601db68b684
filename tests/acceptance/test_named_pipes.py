"""A named pipe in the place of a file: refused at once, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, write

STORE = ".reconciler/identity.db"
TLS = ("--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
NOT_REGULAR = "it is not a regular file"


@pytest.mark.parametrize(
    ("place", "command"),
    [
        (STORE, ["plan"]),
        (STORE, ["apply", "--auto-approve"]),
        (STORE, ["drift"]),
        (STORE, ["export"]),
        (STORE, ["outputs"]),
        (STORE, ["serve", "--listen", "127.0.0.1:0"]),
        (STORE, ["store", "verify"]),
        (STORE, ["store", "rebuild"]),
        (STORE, ["store", "backup", "copy.db"]),
        (STORE, ["token", "list"]),
        (STORE, ["token", "create", "--name", "ci", "--role", "viewer"]),
        ("backup.db", ["store", "restore", "backup.db", "--auto-approve"]),
        ("cert.pem", ["serve", *TLS]),
        ("key.pem", ["serve", *TLS]),
    ],
)  # fmt: skip
def test_a_pipe_that_is_named_as_a_file_is_refused(
    run: Run, small: Path, place: str, command: list[str]
) -> None:
    """A job that waits for a writer of a pipe waits until it is cancelled, and says nothing."""
    pipe = small.parent / place
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    if place == "key.pem":
        (small.parent / "cert.pem").touch()

    refused = run(*command)

    assert refused.code == 1, refused.all
    assert NOT_REGULAR in refused.err
    assert place in refused.err
    assert pipe.is_fifo()


def test_a_store_is_not_restored_over_a_pipe(run: Run, small: Path) -> None:
    """What is no store of ours is never replaced, and not read either."""
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "copy.db").code == 0
    os.mkfifo(small.parent / "pipe")

    refused = run("store", "restore", "copy.db", "--service", "sqlite:pipe", "--auto-approve")

    assert refused.code == 1, refused.all
    assert "pipe is not a store of the identity service" in refused.err
    assert (small.parent / "pipe").is_fifo()


def test_an_export_does_not_write_into_a_pipe(run: Run, small: Path) -> None:
    """The target of an export is opened as what is read: a regular file, or not at all."""
    assert run("apply", "--auto-approve").code == 0
    assert run("export", "--out", "out").code == 0
    target = small.parent / "out/acme/organization.yaml"
    target.unlink()
    os.mkfifo(target)

    refused = run("export", "--out", "out", "--overwrite")

    assert refused.code == 1, refused.all
    assert f"cannot write out/acme/organization.yaml: {NOT_REGULAR}" in refused.err


@pytest.mark.parametrize("name", ["index", "config"])
def test_git_is_not_asked_where_it_would_wait_for_a_pipe(
    run: Run, small: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """It would wait for its time limit, to tell whether a file was edited."""
    git = small.parent / ".git"
    write(git / "HEAD", f"{'a' * 40}\n")
    program = write(tmp_path_factory.mktemp("bin") / "git", "#!/bin/sh\necho asked >> asked\n")
    program.chmod(0o755)
    here = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}

    asked = run("plan", **here)
    was_asked = (git / "asked").is_file()
    (git / "asked").unlink(missing_ok=True)
    os.mkfifo(git / name)
    planned = run("plan", **here)

    assert (asked.code, planned.code) == (0, 0), asked.all + planned.all
    assert was_asked
    assert not (git / "asked").exists()


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs", "commondir"])
def test_a_pipe_in_a_folder_of_git_gives_no_revision(run: Run, small: Path, name: str) -> None:
    """The commit is a remark about a write; where it cannot be read it is left out."""
    git = small.parent / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / name).unlink(missing_ok=True)
    os.mkfifo(git / name)

    planned = run("plan", "--out", "plan.bin")

    assert planned.code == 0, planned.all
    assert run("apply", "plan.bin").code == 0
