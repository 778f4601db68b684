"""Signals, locks and questions: what happens around an apply while it runs."""

from __future__ import annotations

import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from reconciler.apply.journal import Journal
from reconciler.cli.clients import open_client
from reconciler.cli.connection import Connection
from tests.acceptance.conftest import Run, an_action, write
from tests.program import environment, started
from tests.warm import Copy

MANY = 3_000  # to apply them takes longer than to send a signal, on a fast and busy machine, too


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_between_batches_and_the_next_apply_goes_on(
    run: Run, tree: Path, number: signal.Signals
) -> None:
    """CI cancels a job; what is in flight is finished and recorded, the rest is not begun."""
    write_many(tree)

    applying = started(tree.parent, "apply", "--auto-approve")
    wait_until_it_writes(applying, tree.parent)
    applying.send_signal(number)
    out, err = applying.communicate(timeout=60)

    assert applying.returncode == 128 + number, out[-500:] + err
    assert "Stopping" in err
    assert "Apply interrupted." in out
    assert "Traceback" not in err
    done = run("plan", "--format", "json").json["summary"]
    assert 0 < done["in_step"] < MANY
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("name", ["INT", "HUP"])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(
    run: Run, tree: Path, name: str
) -> None:
    """``nohup`` does so with SIGHUP, a shell with SIGINT for what runs in its background."""
    write_many(tree)
    ignoring = ["sh", "-c", f"trap '' {name}; exec \"$@\"", "sh"]
    applying = subprocess.Popen(
        [*ignoring, sys.executable, "-m", "reconciler", "apply", "--auto-approve"],
        cwd=tree.parent, env=environment(), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until_it_writes(applying, tree.parent)
    applying.send_signal(signal.Signals[f"SIG{name}"])
    _, err = applying.communicate(timeout=120)

    assert applying.returncode == 0, err
    assert "Stopping" not in err
    assert run("plan", "--detailed-exitcode").code == 0


def write_many(tree: Path) -> None:
    write(tree / "o.yaml", "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: acme}")
    documents = "\n---\n".join(an_action(f"a{index}") for index in range(MANY))
    write(tree / "actions.yaml", documents)


def wait_until_it_writes(applying: Copy | subprocess.Popen[str], folder: Path) -> None:
    store = folder / ".reconciler" / "identity.db"
    deadline = time.monotonic() + 60
    while not (store.exists() and _holds_anything(store)):
        assert time.monotonic() < deadline
        assert applying.poll() is None
        time.sleep(0.002)


def _holds_anything(store: Path) -> bool:
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(store)) as opened:
        return bool(opened.execute("SELECT EXISTS (SELECT 1 FROM objects)").fetchone()[0])
    return False  # its tables are still being made


def test_a_held_lock_is_told_with_who_and_since_when(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two applies never run over each other; the second says whom to ask."""
    run("apply", "--auto-approve")
    write(small / "extra.yaml", an_action("extra"))
    monkeypatch.chdir(small.parent)
    with open_client(Connection("sqlite:.reconciler/identity.db")) as holder:
        holder.acquire(["ACME"])

        kept_out = run("apply", "--auto-approve")
        waited = run("apply", "--auto-approve", "--lock-timeout", "0.6")

        assert kept_out.code == waited.code == 6
        assert f"process {os.getpid()}" in kept_out.err
        assert "since 20" in kept_out.err
        assert "Waiting" in waited.err
        assert run("plan", "--format", "json").json["summary"]["create"] == 1
        holder.release()
    assert run("apply", "--auto-approve").code == 0


def test_the_lock_timeout_waits_for_the_journal_too(run: Run, small: Path) -> None:
    """Another apply of the same tree, in other organizations, holds that alone."""
    run("apply", "--auto-approve")
    write(small / "extra.yaml", an_action("extra"))
    (path,) = (small.parent / ".reconciler").glob("apply-*.jsonl")
    with Journal(path):
        kept_out = run("apply", "--auto-approve")
        waiting = subprocess.Popen(
            [sys.executable, "-m", "reconciler", "apply", "--auto-approve", "--lock-timeout", "60"],
            cwd=small.parent, env=environment(), stderr=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert waiting.stderr is not None
        told = next(line for line in waiting.stderr if line.startswith("Waiting"))
    _, rest = waiting.communicate(timeout=60)

    assert kept_out.code == 6
    assert "another apply of this tree is using" in kept_out.err
    assert "another apply of this tree is using" in told
    assert waiting.returncode == 0, rest
    assert run("plan", "--detailed-exitcode").code == 0


ROTATE = ("secret", "rotate", "acme/shop/web", "--auto-approve")
DELIVER = ("secret", "deliver")


@pytest.mark.parametrize("command", [ROTATE, DELIVER])
def test_the_commands_of_secrets_wait_for_the_lock_as_well(
    run: Run, small: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that delivers what an apply left owed may begin while another apply still runs."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:3")
    monkeypatch.chdir(small.parent)
    with open_client(Connection("sqlite:.reconciler/identity.db")) as holder:
        holder.acquire(["acme"])
        kept_out = run(*command)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "reconciler", *command, "--lock-timeout", "60"],
            cwd=small.parent, env=environment(), stderr=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert waiting.stderr is not None
        told = next(line for line in waiting.stderr if line.startswith("Waiting"))
        holder.release()
    _, rest = waiting.communicate(timeout=60)

    assert kept_out.code == 6
    assert "at most 60 s" in told
    assert waiting.returncode == 0, rest


@pytest.mark.parametrize("command", [("apply", "--auto-approve"), ROTATE, DELIVER])
def test_a_lock_timeout_is_a_plain_number_of_seconds(
    run: Run, small: Path, command: tuple[str, ...]
) -> None:
    """``nan`` is never reached, so a run would wait for ever."""
    for text in ("nan", "86401", ""):
        refused = run(*command, f"--lock-timeout={text}")
        assert refused.code == 1, text
        assert "is not a number of seconds from 0 to 86400" in refused.err, text
        assert "--lock-timeout 300" in refused.err


def test_a_limit_of_requests_is_a_plain_number(run: Run, small: Path) -> None:
    """``nan`` compares with nothing, so it would be no limit at all."""
    refused = run("plan", "--service", "http://127.0.0.1:9", "--max-rps=nan")

    assert refused.code == 1
    assert "is not a number from 0 to 99999" in refused.err
    assert not (small.parent / ".reconciler").exists()


def in_terminal(folder: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command in a terminal of its own, answer its question, return code and screen."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "reconciler", *(arguments or ("apply",))],
            {**environment(), "TERM": "xterm", "COLUMNS": "200"},
        )
    shown = b""
    while b"yes will do" not in shown:
        shown += os.read(screen, 4096)
    os.write(screen, answer.encode() + b"\n")
    while True:
        try:
            piece = os.read(screen, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_apply_asks_and_the_word_yes_goes_on(run: Run, small: Path) -> None:
    """The plan stands on the screen above the question, in colour."""
    code, screen = in_terminal(small.parent, "yes")

    assert code == 0
    assert "\x1b[" in screen
    assert screen.index("6 to create") < screen.index("yes will do")
    assert "no store yet), tree default\r\nApply this plan?" in screen
    assert "Apply complete!" in screen
    assert run("plan", "--detailed-exitcode").code == 0


def test_every_question_names_the_service(run: Run, small: Path) -> None:
    """Whoever says yes to the wrong one could have seen it."""
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "copy.db").code == 0
    code, screen = in_terminal(small.parent, "yes", "secret", "rotate", "acme/shop/web")
    assert code == 0, screen
    assert re.search(
        r"\r\nService sqlite:\S+ \(instance [0-9a-f]+\), tree default\r\n"
        r"OidcApplication acme/shop/web  .*\r\n.*\r\nReplace this client secret\?",
        screen,
    )

    _, screen = in_terminal(small.parent, "no", "store", "restore", "copy.db")
    assert "\r\nService sqlite:.reconciler/identity.db\r\nRestore this backup?" in screen


@pytest.mark.parametrize("answer", ["no", "y", "YES", ""])
def test_any_other_answer_writes_nothing(run: Run, small: Path, answer: str) -> None:
    """Only the whole word counts; a habit of pressing y is no approval."""
    code, _ = in_terminal(small.parent, answer or "\x04")

    assert code == 1
    assert not (small.parent / ".reconciler").exists()
