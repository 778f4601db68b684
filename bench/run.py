"""Measures the aims of the design and writes ``bench/RESULTS.md``: ``make bench``.

``python -m bench.run PART...`` measures some parts alone and prints what it finds.

Every ratio is of jobs that ran in turns in one run, the median of five or more. ``QUICK=1``
leaves out the largest sizes and takes the median of three.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import aims, generate
from bench.aims import Aim
from bench.applies import applies_section
from bench.attacks import attacks_section
from bench.large_store import large_store_section
from bench.layers import layers_section
from bench.measure import Job, Series, interleaved
from bench.past import past_section
from bench.peers import octodns, terraform
from bench.policies import policies_section
from bench.remote import remote_section
from bench.service import Effort, service_sections

HERE = Path(__file__).parent
PROGRAM = str(Path(sys.executable).parent / "reconciler")
YARDSTICK = [sys.executable, str(HERE / "yardsticks.py")]
IS_QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 3 if IS_QUICK else 5
MAIN = 5_000 if IS_QUICK else 10_000
SIZES = (1_000, MAIN) if IS_QUICK else (1_000, MAIN, 50_000)
# Documents in a file and how they are written, besides one document of the usual style in each.
LAYOUTS = (
    (10, "plain"),
    (100, "plain"),
    (1, "quoted"),
    (100, "quoted"),
    (1, "tenth"),
    (100, "tenth"),
    (1, "second"),
    (100, "second"),
)
EFFORT = Effort(3, 0.3, (1, 64)) if IS_QUICK else Effort(ROUNDS, 0.4, (1, 8, 64))
EVENTS = 100_000
LARGE = 100_000 if IS_QUICK else 1_000_000


class Bench:
    """One run of everything, in a scratch folder."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._read: dict[int, dict[str, Series]] = {}
        self.lines: list[str] = []
        self.aims: list[Aim] = []

    def folder(self, count: int, per_file: int = 1, style: str = "plain") -> Path:
        """Return a folder with so many manifests and a service that holds them."""
        folder = self._scratch / f"{count}-by-{per_file}-{style}"
        if not folder.exists():
            generate.write(count, folder / "manifests", per_file, style)
            self._once([PROGRAM, "apply", "--auto-approve"], folder)
        return folder

    def _once(self, command: Sequence[str], folder: Path) -> None:
        interleaved([Job(command[1], command, folder)], 0)

    def reading(self) -> None:
        """Measure validate and plan against loading the same files."""
        self._head("Reading, judging and planning", "| manifests | validate | plan, unchanged |")
        for size in SIZES:
            self._read[size] = self._layout(size, 1, "plain")
        worst = {"validate": 0.0, "plan": 0.0}
        for per_file, style in LAYOUTS:
            series = self._layout(MAIN, per_file, style)
            for name, ratio in worst.items():
                measured = series[name].median / series["safe-load"].median
                worst[name] = max(ratio, measured)
        self.lines += [
            "",
            "Each cell: ratio to `yaml.CSafeLoader` alone (seconds; peak memory). In `quoted`",
            "files every text is in double quotes; in `tenth`, every tenth document has a warning;",
            "in `second`, a quarter of the applications has one; scripts are in double quotes.",
        ]
        safe, validate, plan = (
            self._read[MAIN][name] for name in ("safe-load", "validate", "plan")
        )
        self.aims += [
            Aim(f"validate {MAIN:,} / CSafeLoader alone", 1, validate.median / safe.median),
            Aim(f"plan {MAIN:,}, unchanged / CSafeLoader alone", 1.3, plan.median / safe.median),
            Aim(f"plan {MAIN:,}, unchanged: memory in MB", 200, plan.megabytes),
            Aim(f"validate {MAIN:,}, worst layout / CSafeLoader alone", 1, worst["validate"]),
            Aim(f"plan {MAIN:,}, worst layout / CSafeLoader alone", 1.3, worst["plan"]),
        ]

    def _layout(self, count: int, per_file: int, style: str) -> dict[str, Series]:
        folder = self.folder(count, per_file, style)
        series = interleaved(self._reading_jobs(folder), ROUNDS)
        safe = series["safe-load"]
        cells = [_against(series[name], safe) for name in ("validate", "plan")]
        self.lines.append(f"| {count:,} in files of {per_file}, {style} | {' | '.join(cells)} |")
        return series

    def _reading_jobs(self, folder: Path) -> list[Job]:
        return [
            Job("safe-load", [*YARDSTICK, "safe-load", "manifests"], folder),
            Job("validate", [PROGRAM, "validate"], folder),
            Job("plan", [PROGRAM, "plan"], folder),
        ]

    def growth(self) -> None:
        """Tell how time and memory grow with the number of manifests, after ``reading``."""
        self._head("Growth", "| job | time exponent | memory exponent |")
        for name in ("validate", "plan"):
            times = [(size, self._read[size][name].median) for size in SIZES]
            memory = [(size, self._read[size][name].megabytes) for size in SIZES]
            self.lines.append(f"| {name} | {_slope(times):.2f} | {_slope(memory):.2f} |")
            self.aims += [
                Aim(f"growth of {name}: exponent of time", 1.1, _slope(times)),
                Aim(f"growth of {name}: exponent of memory", 1.1, _slope(memory)),
            ]

    def layers(self) -> None:
        """Measure manifests with variables, Defaults and an overlay against the same in full."""
        self.lines += layers_section(self._scratch, MAIN, ROUNDS, self.aims)

    def applying(self) -> None:
        """Measure creates, less the plan of the same, against single synced commits."""
        folder = self._scratch / "apply"
        generate.write(MAIN, folder / "manifests")
        state = folder / ".reconciler"
        runs = itertools.count()

        def begin_anew() -> None:
            # Not deleted: a file system may take long to reuse what has just become free.
            if state.exists():
                state.rename(self._scratch / f"applied-{next(runs)}")

        jobs = [
            Job("plan", [PROGRAM, "plan"], folder, begin_anew),
            Job("apply", [PROGRAM, "apply", "--auto-approve"], folder, begin_anew),
            Job("commits", [*YARDSTICK, "single-commits", "commits.db", str(MAIN)], folder),
        ]
        series = interleaved(jobs, ROUNDS)
        ratio = (series["apply"].median - series["plan"].median) / series["commits"].median
        commit = series["commits"].median / MAIN * 1_000
        self._head("Applying", "| job | seconds | spread | of processor | memory |")
        self.lines += [
            f"{_row(series[job.name])} {series[job.name].processor:.2f} s "
            f"| {series[job.name].megabytes:.0f} MB |"
            for job in jobs
        ]
        self.lines += [
            "",
            f"(apply - plan) / {MAIN:,} single synced commits: **{ratio:.2f}**",
            f"One commit took {commit:.2f} ms.",
        ]
        self.aims.append(Aim(f"(apply - plan) of {MAIN:,} creates / single commits", 1, ratio))

    def peers(self) -> None:
        """Measure plan against programs that do a comparable job."""
        folder = self.folder(MAIN)
        jobs = [Job("plan", [PROGRAM, "plan"], folder), octodns(MAIN, self._scratch)]
        known = terraform(MAIN, self._scratch)
        series = interleaved([*jobs, *([known] if known else [])], ROUNDS)
        self._head("Peers", "| program | ratio of our plan to it | its seconds |")
        rows = {"octodns-sync": (f"octodns-sync, {MAIN:,} records", 1 / 3)}
        if known:
            rows[known.name] = (f"{known.name}, {MAIN:,} objects", 1 / 10)
        for name, (shown, most) in rows.items():
            ratio = series["plan"].median / series[name].median
            self.aims.append(Aim(f"plan / {shown}", most, ratio))
            self.lines.append(f"| {shown} | {ratio:.2f} | {series[name].median:.2f} |")
        if known is None:
            self.lines.append("| terraform plan | not measured: no binary on this machine | |")

    def policies(self) -> None:
        """Measure a plan under policies against the same plan without."""
        self.lines += policies_section(self._scratch, MAIN, ROUNDS, self.aims)

    def past(self) -> None:
        """Measure what was held before one object changed against a plan."""
        self.lines += past_section(self._scratch, MAIN, EVENTS, ROUNDS, self.aims)

    def start(self) -> None:
        """Measure the start of the program."""
        jobs = [
            Job("version", [PROGRAM, "--version"], self._scratch),
            Job("import click", [*YARDSTICK, "import-click"], self._scratch),
        ]
        series = interleaved(jobs, 21)
        ratio = series["version"].median / series["import click"].median
        self._head("Start", "| job | seconds | spread |")
        self.lines += [_row(series[job.name]) for job in jobs]
        self.lines += ["", f"`--version` / an interpreter that imports click: **{ratio:.2f}**"]
        self.aims.append(Aim("`--version` / an interpreter that imports click", 2, ratio))

    def service(self) -> None:
        """Measure the service against an empty route of the same server."""
        self.lines += service_sections(self._scratch, EFFORT, self.aims)

    def attacks(self) -> None:
        """Measure honest callers and memory while a server is attacked."""
        self.lines += attacks_section(self._scratch, self.aims, is_quick=IS_QUICK)

    def large_store(self) -> None:
        """Measure a store of very many objects."""
        self.lines += large_store_section(self._scratch, LARGE)

    def remote(self) -> None:
        """Measure a run against a server that has nothing to do."""
        self.lines += remote_section(self._scratch, (1_000, MAIN), ROUNDS, self.aims)

    def served_applies(self) -> None:
        """Measure creates through a server against the same creates without one."""
        self.lines += applies_section(self._scratch, MAIN, ROUNDS, self.aims)

    def _head(self, title: str, columns: str) -> None:
        self.lines += ["", f"## {title}", "", columns, "|---" * (columns.count("|") - 1) + "|"]


def _row(series: Series) -> str:
    return f"| {series.name} | {series.median:.2f} | {series.spread} |"


def _against(series: Series, yardstick: Series) -> str:
    ratio = series.median / yardstick.median
    work = series.processor / yardstick.processor
    return (
        f"**{ratio:.2f}**, of processor {work:.2f} "
        f"({series.median:.2f} s; {series.megabytes:.0f} MB)"
    )


def _slope(points: Sequence[tuple[int, float]]) -> float:
    """Return the slope of a line through points on logarithmic scales."""
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


PARTS = (
    Bench.start, Bench.reading, Bench.growth, Bench.layers, Bench.applying, Bench.policies,
    Bench.past, Bench.peers, Bench.remote, Bench.served_applies, Bench.service, Bench.attacks,
    Bench.large_store,
)  # fmt: skip


def main() -> None:
    """Run everything and write the results, or run the parts that are named and print them."""
    named = sys.argv[1:]
    unknown = set(named) - {part.__name__ for part in PARTS}
    if unknown:
        known = ", ".join(part.__name__ for part in PARTS)
        raise SystemExit(f"no such part: {min(unknown)}. There are {known}.")
    with tempfile.TemporaryDirectory(prefix="reconciler-bench-") as scratch:
        bench = Bench(Path(scratch))
        for part in PARTS:
            if named and part.__name__ not in named:
                continue
            began = time.perf_counter()
            part(bench)
            sys.stderr.write(f"{time.perf_counter() - began:5.0f} s  {part.__doc__}\n")
    if named:
        sys.stdout.write("\n".join([*aims.table(bench.aims), *bench.lines]) + "\n")
        return
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
    head = [
        "# Results",
        "",
        "Written by `make bench`; every ratio is of jobs that ran in turns in one run,",
        f"the median of {ROUNDS} or more. Below 1 is faster than the yardstick.",
        "",
        f"Machine: {machine}Python {platform.python_version()}.",
    ]
    (HERE / "RESULTS.md").write_text(
        "\n".join([*head, *aims.table(bench.aims), *bench.lines]) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
