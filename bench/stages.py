"""Measures which part of the program works how long, in a ``plan`` and in an ``apply``.

A run is interrupted again and again, and counted for the part that was at work or had called what
was; the seconds of processor of the whole run are shared out as was counted.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from bench import generate

ROUNDS = 5
EVERY = 0.001
SPENT = "BENCH_SPENT"  # names the file that a run writes the seconds of each part into
REST = "starting, ending and what belongs to none"
# The first that fits, from the innermost call outward; what is not here counts for its caller.
PARTS = {
    "reconciler/service/eventstore/": "store: statements of SQLite, syncs, chain",
    "reconciler/service/": "service: requests, decisions, answers",
    "reconciler/service_client/": "client: calls, replies, observation",
    "reconciler/apply/journal.py": "journal",
    "reconciler/apply/sink.py": "secrets: a file for each",
    "reconciler/apply/secret_folder.py": "secrets: a file for each",
    "reconciler/apply/": "executor: orders, outcomes",
    "reconciler/plan/": "plans: comparing, digest",
    "reconciler/report/": "output",
    "reconciler/manifests/": "manifests: reading, judging",
    "reconciler/validation/": "manifests: reading, judging",
    "reconciler/loop.py": "plans: comparing, digest",
}
ROOT = Path(__file__).parents[1]


def part_of(frame: FrameType | None) -> str:
    """Return the part of the program that a call belongs to."""
    while frame is not None:
        _, found, inside = frame.f_code.co_filename.rpartition("reconciler/")
        for prefix, part in PARTS.items():
            if f"{found}{inside}".startswith(prefix):
                return part
        frame = frame.f_back
    return REST


def sampled() -> None:
    """Run the program as the command line says, and count for which part it works."""
    counted: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, lambda _, frame: counted.update((part_of(frame),)))
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    atexit.register(_write_down, counted)
    from reconciler.cli.main import main

    main()


def _write_down(counted: Counter[str]) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)  # nobody is there to take it from now on
    each = time.process_time() / counted.total()
    spent = {part: number * each for part, number in counted.items()}
    Path(os.environ[SPENT]).write_text(json.dumps(spent), encoding="utf-8")


def stages(scratch: Path, count: int) -> Iterator[Sequence[object]]:
    """Yield the seconds of each part in a plan and in an apply of so many creates."""
    generate.write(count, scratch / "manifests")
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(ROUNDS):
        for name, more in (("plan", ()), ("apply", ("--auto-approve",))):
            folder = scratch / f"{name}-{number}"  # a new one: files reuse nothing of others
            folder.mkdir()
            for part, spent in _run(folder, name, *more, "../manifests").items():
                seconds[part][name].append(spent)
    yield ("Part of the program", "`plan`", "`apply`", "difference")
    rows = [(part, *map(_middle, (of["plan"], of["apply"]))) for part, of in seconds.items()]
    for part, plan, apply in sorted(rows, key=lambda row: row[1] - row[2]):
        yield (part, f"{plan:.2f} s", f"{apply:.2f} s", f"{apply - plan:.2f} s")
    plan, apply = (sum(row[at] for row in rows) for at in (1, 2))
    yield ("all", f"{plan:.2f} s", f"{apply:.2f} s", f"{apply - plan:.2f} s")


def _middle(values: list[float]) -> float:
    return statistics.median([*values, *[0.0] * (ROUNDS - len(values))])


def _run(folder: Path, *arguments: str) -> dict[str, float]:
    spent = folder / "spent.json"
    subprocess.run(
        [sys.executable, "-m", "bench.stages", *arguments],
        cwd=folder,
        env={**os.environ, "CI": "", "PYTHONPATH": str(ROOT), SPENT: str(spent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    seconds: dict[str, float] = json.loads(spent.read_bytes())
    return seconds


if __name__ == "__main__":
    sampled()
