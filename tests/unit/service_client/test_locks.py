"""Who holds a lock: taken for dead only where that is certain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.service_client.locks import ProcessIdentity, holder_in_words, this_process

HERE = this_process()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that waits, and end it."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate()


def holder_of(process: int) -> ProcessIdentity:
    """Return a process of this machine as it would have described itself."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    return replace(HERE, process=process, started=stat.rpartition(")")[2].split()[19])


def test_a_process_that_runs_is_not_dead(child: subprocess.Popen[bytes]) -> None:
    """Taking its lock would make two writers."""
    assert not HERE.knows_dead(holder_of(child.pid).text)
    assert not HERE.knows_dead(HERE.text)


def test_a_process_that_was_killed_is_dead(child: subprocess.Popen[bytes]) -> None:
    """After a crash nobody waits for the lock to run out."""
    holder = holder_of(child.pid)
    child.kill()
    child.wait()

    assert HERE.knows_dead(holder.text)


def test_a_process_that_only_waits_to_be_collected_is_dead(child: subprocess.Popen[bytes]) -> None:
    """A zombie writes nothing any more."""
    holder = holder_of(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert HERE.knows_dead(holder.text)


@pytest.mark.parametrize(
    ("other", "dead"),
    [
        pytest.param(replace(HERE, started="1"), True, id="its process id was given out again"),
        pytest.param(replace(HERE, boot="another"), True, id="the machine was started again"),
        pytest.param(replace(HERE, host="elsewhere", started="1"), False, id="on another machine"),
        pytest.param(
            replace(HERE, namespace="pid:[1]", started="1"), False,
            id="in another container of this machine",
        ),
        pytest.param(replace(HERE, process=0, started="1"), False, id="no process id"),
        pytest.param(replace(HERE, process=-1, started="1"), False, id="a negative process id"),
        pytest.param(
            replace(HERE, process=2**22 + 1, started="1"), True, id="an id nobody can have"
        ),
    ],
)  # fmt: skip
def test_only_a_process_of_this_machine_is_known_to_be_dead(
    other: ProcessIdentity, dead: object
) -> None:
    """What this process cannot see may well be alive."""
    assert HERE.knows_dead(other.text) is dead


FIELDS = json.loads(HERE.text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("somebody", id="words"),
        pytest.param("[]", id="another shape"),
        pytest.param("[" * 100_000, id="deep nesting"),
        pytest.param("{}", id="no fields"),
        pytest.param(json.dumps({**FIELDS, "more": 1}), id="more fields"),
        pytest.param(json.dumps({**FIELDS, "process": "../1"}), id="a path for a process"),
        pytest.param(json.dumps({**FIELDS, "process": True}), id="a flag for a process"),
        pytest.param(json.dumps({**FIELDS, "started": 1}), id="a number for a text"),
        pytest.param(json.dumps({**FIELDS, "process": 10**30}), id="no number of the kernel's"),
    ],
)
def test_a_holder_that_cannot_be_read_is_not_dead(text: str) -> None:
    """A service of another make may say who holds the lock in its own words."""
    assert not HERE.knows_dead(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            ProcessIdentity("ana", "build-7", "b", 42, "s", "n").text,
            "ana on build-7 (process 42)",
            id="a process",
        ),
        pytest.param("pipeline 12", "pipeline 12", id="words of another tool"),
    ],
)  # fmt: skip
def test_a_holder_is_told_in_words(text: str, shown: str) -> None:
    """Whoever waits wants to know whom to ask."""
    assert holder_in_words(text) == shown


def test_this_process_says_all_it_must_be_recognised_by() -> None:
    """On Linux each of these is known; elsewhere the lock runs out by itself."""
    assert HERE.process == os.getpid()
    assert all([HERE.user, HERE.host, HERE.boot, HERE.started, HERE.namespace])
