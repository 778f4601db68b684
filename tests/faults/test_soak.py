"""The soak counts what it sees, and goes on where it was ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.catalogue import Row
from tests.faults.soak import Company, Done, report
from tests.program import ROOT

ROWS = [Row("F1", "a kill", lambda _dice, _folder: 1, 1), Row("F2", "a cut", lambda *_: 1, 1)]


def soak(folder: Path, hours: float) -> subprocess.Popen[str]:
    """Start a soak of one row with one worker."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.soak", "--rows", "F6b", "--workers", "1",
         "--hours", str(hours), "--seed", "5", "--state", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def numbers(journal: Path) -> list[int]:
    return [json.loads(line)["number"] for line in journal.read_text().splitlines()]


def test_every_loss_is_a_violation_but_not_every_violation_a_loss() -> None:
    """I1 and I3 are what people lose."""
    done = [
        Done("F1", 0, 3, 1.0, 1.0),
        Done("F1", 1, 0, 1.0, 2.0, "I1: one is gone"),
        Done("F2", 0, 0, 1.0, 3.0, "I7: the plan is not empty"),
    ]

    told = report(ROWS, done, 3.0, 7)

    assert "| F1 | a kill | 2 | 3 | 1 | 1 |" in told
    assert "| F2 | a cut | 1 | 0 | 0 | 1 |" in told
    assert "seed 7: 3 cases, 3 faults, 1 losses, 2 violations." in told


def test_a_case_that_measures_times_runs_alone() -> None:
    """It waits for the others to end, and those that come later wait for it."""
    company = Company()
    seen: list[str] = []
    first_may_end = threading.Event()

    def run(name: str, *, alone: bool, until: threading.Event | None = None) -> threading.Thread:
        def case() -> None:
            with company.case(alone=alone):
                seen.append(f"{name} begins")
                if until is not None:
                    until.wait()
                seen.append(f"{name} ends")

        thread = threading.Thread(target=case)
        thread.start()
        return thread

    threads = [run("one", alone=False, until=first_may_end)]
    wait_for(lambda: seen == ["one begins"])
    threads.append(run("two", alone=False))
    threads[1].join()
    threads.append(run("alone", alone=True))
    wait_for(lambda: company.is_closed)
    threads.append(run("three", alone=False))
    first_may_end.set()
    for thread in threads:
        thread.join()

    assert seen == [
        *("one begins", "two begins", "two ends", "one ends"),
        *("alone begins", "alone ends", "three begins", "three ends"),
    ]


def wait_for(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.001)


def test_a_soak_that_was_killed_goes_on_with_the_next_case(tmp_path: Path) -> None:
    """Every finished case is kept, half a line of the one that was being written is not."""
    journal = tmp_path / "5.jsonl"
    first = soak(tmp_path, hours=1)
    while not journal.exists() or len(numbers(journal)) < 1:
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    finished = len(numbers(journal))
    with journal.open("a") as file:
        file.write('{"row": "F6b", "number"')

    elapsed = json.loads(journal.read_text().splitlines()[finished - 1])["at"]
    second = soak(tmp_path, hours=(elapsed + 1) / 3600)
    out, _ = second.communicate()

    assert second.returncode == os.EX_OK
    assert numbers(journal) == list(range(len(numbers(journal))))
    assert len(numbers(journal)) > finished
    assert f": {len(numbers(journal))} cases" in out
