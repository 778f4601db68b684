"""Output that cannot be written is told once, and the truth about what was done with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Ran, Run
from tests.program import environment
from tests.warm import Copy

CLOSED = ">&-"
FULL = ">/dev/full"
PLACES = {CLOSED: "stdout is closed", FULL: "No space left on device"}


def redirected(folder: Path, redirection: str, *arguments: str) -> Ran:
    """Run the program with its streams redirected by a shell."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "reconciler",
         *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    ran = Ran(done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in ran.all, ran.all
    assert "Exception ignored" not in ran.all, ran.all
    return ran


def on_a_full_disk(folder: Path, *arguments: str) -> Ran:
    """Run a copy of the program with a full device for its stdout."""
    with Path("/dev/full").open("wb") as full:
        copy = Copy(arguments, folder, environment(), stdout=full.fileno())
        _, err = copy.communicate(60)
    assert "Traceback" not in err, err
    assert "Exception ignored" not in err, err
    return Ran(copy.wait(), "", err)


@pytest.mark.parametrize("redirection", PLACES)
def test_a_result_that_cannot_be_printed_is_an_error_in_one_line(
    run: Run, small: Path, redirection: str
) -> None:
    """Whoever reads only the exit code is not told that all went well."""
    assert run("apply", "--auto-approve").code == 0

    for command in ("plan", "export"):
        ran = redirected(small.parent, redirection, *command.split())

        assert ran.code == 1, command
        assert ran.err.startswith(not_printed(redirection))


def test_no_result_is_lost_without_a_word(run: Run, small: Path) -> None:
    assert run("apply", "--auto-approve").code == 0

    for command in ("validate", "plan", "plan --format json", "export", "drift", "outputs"):
        ran = on_a_full_disk(small.parent, *command.split())

        assert ran.code == 1, command
        assert ran.err.startswith(not_printed(FULL))


def not_printed(redirection: str) -> str:
    """Return how the error begins where stdout is redirected so."""
    return f"Error: the result could not be printed: {PLACES[redirection]}\n  Run the command "


def test_a_pipe_that_nothing_reads_is_told_too(run: Run, small: Path) -> None:
    """By a line on stderr, and not by a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", "plan"],
        cwd=small.parent,
        env=environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(writer)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert err.startswith("Error: the result could not be printed: its reader has gone\n")


def test_an_apply_whose_plan_cannot_be_shown_writes_nothing(run: Run, small: Path) -> None:
    """Approved or not, it would be done unseen."""
    ran = on_a_full_disk(small.parent, "apply", "--auto-approve")

    assert ran.code == 1
    assert "Error: the plan could not be printed: No space left on device\n" in ran.err
    assert "Nothing was written to the service." in ran.err
    assert not (small.parent / ".reconciler" / "identity.db").exists()


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_an_apply_whose_report_is_lost_says_on_stderr_what_it_did(
    run: Run, small: Path, form: str
) -> None:
    """The result is on the other stream, for who has to go on from there."""
    ran = on_a_full_disk(small.parent, "apply", "--auto-approve", "--format", form)

    if form == "json":
        assert ran.code == 1
        assert "created  OidcApplication acme/shop/web  client id" in ran.err
        assert "Apply complete! 6 created" in ran.err
        assert run("plan", "--detailed-exitcode").code == 0
    else:  # the plan is part of the stream
        assert "Nothing was written to the service." in ran.err
        assert run("plan", "--detailed-exitcode").code == 2


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- >&- 2>&-", "<&- 2>&-"])
def test_streams_that_are_closed_do_not_become_files_of_ours(
    run: Run, small: Path, redirection: str
) -> None:
    """The next file that is opened gets the number of a closed stream."""
    ran = redirected(small.parent, redirection, "apply", "--auto-approve", "--format", "json")

    assert ran.code == (1 if ">&- 2>&-" in redirection else 0)
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("store", "verify").out.startswith("Sound:")
    journals = (small.parent / ".reconciler").glob("apply-*.jsonl")
    assert [journal.read_bytes() for journal in journals] == [b""]


def test_a_token_that_could_not_be_printed_is_to_be_revoked(run: Run, small: Path) -> None:
    """It was made, and it is nowhere."""
    arguments = ("token", "create", "--name", "ci", "--role", "viewer")

    ran = on_a_full_disk(small.parent, *arguments)

    assert ran.code == 1
    assert "Run `reconciler token revoke ci`" in ran.err


def test_a_rotation_whose_result_is_lost_is_not_to_be_run_again(run: Run, small: Path) -> None:
    """The secret was replaced and delivered; a second rotation would replace it once more."""
    run("apply", "--auto-approve")

    ran = on_a_full_disk(small.parent, "secret", "rotate", "acme/shop/web", "--auto-approve")

    assert ran.code == 1
    assert "acme/shop/web was replaced and is in .reconciler/secrets/acme.shop.web.json" in ran.err
    assert "Do not run the command again" in ran.err
    assert "Run the command again" not in ran.err


def test_deliveries_are_told_where_stdout_is_full(run: Run, small: Path) -> None:
    """An apply was killed after its create; the delivery stands on stderr."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:3")

    ran = on_a_full_disk(small.parent, "secret", "deliver")

    assert ran.code == 1
    assert "delivered  OidcApplication acme/shop/web" in ran.err
    assert "Error: the result could not be printed: No space left on device\n" in ran.err


@pytest.mark.parametrize("redirection", PLACES)
def test_a_restore_tells_where_the_store_before_is_kept(
    run: Run, small: Path, redirection: str
) -> None:
    """That file is the only way back."""
    run("apply", "--auto-approve")
    run("store", "backup", "saved.db")

    ran = redirected(small.parent, redirection, "store", "restore", "saved.db", "--auto-approve")

    assert ran.code == 1
    assert "The store before is kept in .reconciler/identity.db." in ran.err
    assert "The command is done" in ran.err
    assert "Run the command again" not in ran.err
