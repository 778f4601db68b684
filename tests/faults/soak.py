"""The long tier: ``make soak HOURS=1 SEED=7``.

Runs cases of every row in turns, each as a process of its own, until the hours are over; told to
go on with the same seed after an end of any kind, it goes on where it was. Every finished case is
a line in ``.soak/SEED.jsonl``. Ends with 1 if anything was violated.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.faults.catalogue import LOSSES, Row, ViolationError, catalogue, dice

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".soak"
CASE_WITHIN = 600.0


@dataclass(frozen=True)
class Done:
    """A finished case: how many faults it brought about, and what it violated, if anything."""

    row: str
    number: int
    faults: int
    seconds: float
    at: float
    violation: str = ""


class Company:
    """Lets cases run beside each other, but for those that must be alone.

    Attributes:
        is_closed: Whether a case is alone, or waits until the others have ended.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self.is_closed = False

    @contextmanager
    def case(self, *, alone: bool) -> Iterator[None]:
        """Wait until a case may run, and let others in after it."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_closed)
            self.is_closed = alone
            self._changed.wait_for(lambda: not (alone and self._running))
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self.is_closed = self.is_closed and not alone
                self._changed.notify_all()


class Soak:
    """Cases still to run, and those that were run."""

    def __init__(self, seed: int, hours: float, rows: Sequence[Row], state: Path) -> None:
        self._seed = seed
        self._rows = rows
        self._journal = state / f"{seed}.jsonl"
        self.done = self._earlier()
        self._before = max((done.at for done in self.done), default=0.0)
        self._began = time.monotonic()
        self._until = hours * 3600
        self._taken = {row.name: 0 for row in rows}
        self._spent = {row.name: 0.0 for row in rows}
        for done in self.done:
            self._taken[done.row] = max(self._taken.get(done.row, 0), done.number + 1)
            self._spent[done.row] = self._spent.get(done.row, 0.0) + done.seconds
        self._turn = threading.Lock()
        self._company = Company()

    def run(self, workers: int) -> None:
        """Run cases until the time is over."""
        with ThreadPoolExecutor(workers) as pool:
            try:
                for worker in [pool.submit(self._work) for _ in range(workers)]:
                    worker.result()
            except KeyboardInterrupt:
                self._until = 0.0  # the cases that are running come to their end
                raise

    def _earlier(self) -> list[Done]:
        if not self._journal.exists():
            return []
        whole, _, _ = self._journal.read_text(encoding="utf-8").rpartition("\n")
        self._journal.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
        return [Done(**json.loads(line)) for line in whole.splitlines()]

    @property
    def elapsed(self) -> float:
        """Return the seconds that all sittings have taken together."""
        return self._before + time.monotonic() - self._began

    def _work(self) -> None:
        while self.elapsed < self._until:
            row, number = self._next()
            with self._company.case(alone=row.alone):
                began = time.monotonic()
                faults, violation = self._case(row, number)
                seconds = time.monotonic() - began
            self._write(Done(row.name, number, faults, seconds, self.elapsed, violation))

    def _next(self) -> tuple[Row, int]:
        """Return the row on which least time was spent, and the number of its next case."""
        with self._turn:
            row = min(self._rows, key=lambda row: (self._spent[row.name], row.name))
            number = self._taken[row.name]
            self._taken[row.name] += 1
            self._spent[row.name] += 0.01  # so that another worker takes another row
            return row, number

    def _case(self, row: Row, number: int) -> tuple[int, str]:
        folder = tempfile.mkdtemp(prefix=f"soak-{row.name}-")
        command = [sys.executable, "-m", "tests.faults.soak", "--case", row.name, str(number)]
        process = subprocess.Popen(
            [*command, "--seed", str(self._seed), "--folder", folder],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=CASE_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return 0, f"did not end within {CASE_WITHIN:.0f} seconds"
        if process.returncode:
            return 0, (err.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
        shutil.rmtree(
            folder, ignore_errors=True
        )  # of a violation, everything stays to be looked at
        return int(out.split()[-1]), ""

    def _write(self, done: Done) -> None:
        with self._turn:
            self._spent[done.row] += done.seconds
            self.done.append(done)
            with self._journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(done)) + "\n")
            if done.violation:
                sys.stderr.write(f"{done.row} case {done.number}: {done.violation}\n")


def report(rows: Sequence[Row], done: Iterable[Done], seconds: float, seed: int) -> str:
    """Return the table of rows with their counts, and the line that sums them up."""
    by_row: dict[str, list[Done]] = {row.name: [] for row in rows}
    for case in done:
        by_row.setdefault(case.row, []).append(case)
    lines = ["| row | fault | cases | faults | losses | violations |", "|---|---|---|---|---|---|"]
    for row in rows:
        cases = by_row[row.name]
        lines.append(
            f"| {row.name} | {row.fault} | {len(cases):,} | {sum(c.faults for c in cases):,} "
            f"| {_losses(cases)} | {_violations(cases)} |"
        )
    every = [case for cases in by_row.values() for case in cases]
    lines += [
        "",
        (
            f"{seconds / 3600:.2f} hours, seed {seed}: {len(every):,} cases, "
            f"{sum(case.faults for case in every):,} faults, {_losses(every)} losses, "
            f"{_violations(every)} violations."
        ),
    ]
    return "\n".join(lines)


def _losses(cases: Iterable[Done]) -> int:
    return sum(1 for case in cases if case.violation.split(":")[0] in LOSSES)


def _violations(cases: Iterable[Done]) -> int:
    return sum(1 for case in cases if case.violation)


def _one_case(row: Row, number: int, seed: int, folder: Path) -> int:
    """Run one case in this process; the last line of what it says is the violation."""
    try:
        faults = row.case(dice(seed, row.name, number), folder)
    except ViolationError as violation:
        sys.stderr.write(str(violation).replace("\n", " ") + "\n")
        return 1
    sys.stdout.write(f"{faults}\n")
    return 0


def main() -> int:
    """Run one case, or all of them until the time is over."""
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", default="", help="names of rows, by commas; all without it")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", nargs=2, metavar=("ROW", "NUMBER"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--state", type=Path, default=STATE)
    chosen = parser.parse_args()
    if chosen.case:
        name, number = chosen.case
        folder = chosen.folder or Path(tempfile.mkdtemp(prefix="soak-"))
        return _one_case(catalogue(name)[name], int(number), chosen.seed, folder)
    names = chosen.rows.split(",") if chosen.rows else []
    known = catalogue(*names)
    rows = [known[name] for name in names or known]
    chosen.state.mkdir(exist_ok=True)
    soak = Soak(chosen.seed, chosen.hours, rows, chosen.state)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell hides the first from what it detaches
        signal.signal(number, signal.default_int_handler)
    try:
        soak.run(chosen.workers)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the same command goes on from here\n")
    told = report(rows, soak.done, soak.elapsed, chosen.seed)
    (chosen.state / f"{chosen.seed}.md").write_text(told + "\n", encoding="utf-8")
    sys.stdout.write(told + "\n")
    return 1 if _violations(soak.done) else 0


if __name__ == "__main__":
    sys.exit(main())
