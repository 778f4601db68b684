"""Running whole processes and telling what they took."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = str(Path(sys.executable).parent / "reconciler")
UNWANTED = {
    "PYTHONDONTWRITEBYTECODE",  # would have every run compile what it imports
    "CI",  # would have every run name its service
}


@dataclass(frozen=True)
class Took:
    """Wall-clock seconds, peak memory in MB and seconds of processor of one run."""

    seconds: float
    megabytes: float
    processor: float


@dataclass
class Series:
    """Runs of one job."""

    name: str
    runs: list[Took] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median of the seconds."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def processor(self) -> float:
        """Return the median of the seconds of processor, which other work hardly moves."""
        return statistics.median(run.processor for run in self.runs)

    @property
    def spread(self) -> str:
        """Return the fastest and the slowest run."""
        seconds = sorted(run.seconds for run in self.runs)
        return f"{seconds[0]:.2f}..{seconds[-1]:.2f}"

    @property
    def megabytes(self) -> float:
        """Return the largest peak of memory."""
        return max(run.megabytes for run in self.runs)


@dataclass(frozen=True)
class Job:
    """A whole process to run: how, where, and what must be done before each run."""

    name: str
    command: Sequence[str]
    folder: Path
    before: Callable[[], None] = lambda: None


def ours(name: str, folder: Path, *arguments: str) -> Job:
    """Return a run of the program in a folder."""
    return Job(name, [PROGRAM, *arguments], folder)


def apply_in(folder: Path, *options: str) -> None:
    """Apply the manifests of a folder."""
    run_once(ours("apply", folder, "apply", "--auto-approve", *options))


def section(title: str, columns: str, *about: str) -> list[str]:
    """Return the start of a section of results: its heading, what it is about, and its table."""
    lines = ["", f"## {title}", "", *about, *([""] if about else [])]
    return [*lines, columns, "|---" * (columns.count("|") - 1) + "|"]


def run_once(job: Job) -> Took:
    """Run a job; its output goes nowhere. A failure ends the benchmark."""
    job.before()
    inherited = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    began = time.perf_counter()
    process = subprocess.Popen(
        job.command,
        cwd=job.folder,
        env=inherited,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{job.name} ended with {process.returncode}: {' '.join(job.command)}")
    return Took(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def interleaved(jobs: Sequence[Job], rounds: int) -> dict[str, Series]:
    """Run jobs in turns, so that what else the machine does falls on all of them alike."""
    series = {job.name: Series(job.name) for job in jobs}
    for job in jobs:
        run_once(job)  # pages and bytecode are warm for everybody
    for _ in range(rounds):
        for job in jobs:
            series[job.name].runs.append(run_once(job))
    return series
