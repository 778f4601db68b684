"""Measures the aims of the design and writes ``bench/RESULTS.md``: ``make bench``.

``python -m bench.run PART...`` measures some parts alone and prints what it finds.

Every ratio is of jobs that ran in turns in one run, the median of five or more. ``QUICK=1``
leaves out the largest sizes and takes the median of three.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import aims, generate
from bench.aims import Aim
from bench.applies import Anew, applies_section
from bench.attacks import attacks_section
from bench.large_store import large_store_section
from bench.layers import layers_section
from bench.measure import PROGRAM, Job, Series, apply_in, interleaved, ours, section
from bench.past import past_section
from bench.peers import octodns, terraform
from bench.policies import policies_section
from bench.remote import remote_section
from bench.service import Effort, service_sections

HERE = Path(__file__).parent
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

    def add(self, part: Callable[..., list[str]], *sizes: object) -> None:
        """Measure a part that has a module of its own."""
        self.lines += part(self._scratch, *sizes, self.aims)

    def folder(self, count: int, per_file: int = 1, style: str = "plain") -> Path:
        """Return a folder with so many manifests and a service that holds them."""
        folder = self._scratch / f"{count}-by-{per_file}-{style}"
        if not folder.exists():
            generate.write(count, folder / "manifests", per_file, style)
            apply_in(folder)
        return folder

    def reading(self) -> None:
        """Measure validate and plan against loading the same files."""
        self.lines += section(
            "Reading, judging and planning", "| manifests | validate | plan, unchanged |"
        )
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
            ours("validate", folder, "validate"),
            ours("plan", folder, "plan"),
        ]

    def growth(self) -> None:
        """Tell how time and memory grow with the number of manifests, after ``reading``."""
        self.lines += section("Growth", "| job | time exponent | memory exponent |")
        for name in ("validate", "plan"):
            times = [(size, self._read[size][name].median) for size in SIZES]
            memory = [(size, self._read[size][name].megabytes) for size in SIZES]
            self.lines.append(f"| {name} | {_slope(times):.2f} | {_slope(memory):.2f} |")
            self.aims += [
                Aim(f"growth of {name}: exponent of time", 1.1, _slope(times)),
                Aim(f"growth of {name}: exponent of memory", 1.1, _slope(memory)),
            ]

    def applying(self) -> None:
        """Measure creates, less the plan of the same, against single synced commits."""
        folder = self._scratch / "apply"
        generate.write(MAIN, folder / "manifests")
        begin_anew = Anew(folder)
        jobs = [
            Job("plan", [PROGRAM, "plan"], folder, begin_anew),
            Job("apply", [PROGRAM, "apply", "--auto-approve"], folder, begin_anew),
            Job("commits", [*YARDSTICK, "single-commits", "commits.db", str(MAIN)], folder),
        ]
        series = interleaved(jobs, ROUNDS)
        ratio = (series["apply"].median - series["plan"].median) / series["commits"].median
        commit = series["commits"].median / MAIN * 1_000
        self.lines += section("Applying", "| job | seconds | spread | of processor | memory |")
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
        jobs = [ours("plan", folder, "plan"), octodns(MAIN, self._scratch)]
        known = terraform(MAIN, self._scratch)
        series = interleaved([*jobs, *([known] if known else [])], ROUNDS)
        self.lines += section("Peers", "| program | ratio of our plan to it | its seconds |")
        rows = {"octodns-sync": (f"octodns-sync, {MAIN:,} records", 1 / 3)}
        if known:
            rows[known.name] = (f"{known.name}, {MAIN:,} objects", 1 / 10)
        for name, (shown, most) in rows.items():
            ratio = series["plan"].median / series[name].median
            self.aims.append(Aim(f"plan / {shown}", most, ratio))
            self.lines.append(f"| {shown} | {ratio:.2f} | {series[name].median:.2f} |")
        if known is None:
            self.lines.append("| terraform plan | not measured: no binary on this machine | |")

    def start(self) -> None:
        """Measure the start of the program."""
        jobs = [
            ours("version", self._scratch, "--version"),
            Job("import click", [*YARDSTICK, "import-click"], self._scratch),
        ]
        series = interleaved(jobs, 21)
        ratio = series["version"].median / series["import click"].median
        self.lines += section("Start", "| job | seconds | spread |")
        self.lines += [_row(series[job.name]) for job in jobs]
        self.lines += ["", f"`--version` / an interpreter that imports click: **{ratio:.2f}**"]
        self.aims.append(Aim("`--version` / an interpreter that imports click", 2, ratio))

    def large_store(self) -> None:
        """Measure a store of very many objects."""
        self.lines += large_store_section(self._scratch, LARGE)


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
    sizes, figures = zip(*points, strict=True)
    return statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, figures)]).slope


# In the order of the results; each adds to the lines and to the aims.
PARTS: Mapping[str, Callable[[Bench], None]] = {
    "start": Bench.start,
    "reading": Bench.reading,
    "growth": Bench.growth,
    "layers": lambda run: run.add(layers_section, MAIN, ROUNDS),
    "applying": Bench.applying,
    "policies": lambda run: run.add(policies_section, MAIN, ROUNDS),
    "past": lambda run: run.add(past_section, MAIN, EVENTS, ROUNDS),
    "peers": Bench.peers,
    "remote": lambda run: run.add(remote_section, (1_000, MAIN), ROUNDS),
    "served_applies": lambda run: run.add(applies_section, MAIN, ROUNDS),
    "service": lambda run: run.add(service_sections, EFFORT),
    "attacks": lambda run: run.add(attacks_section, 1 if IS_QUICK else None),
    "large_store": Bench.large_store,
}


def main() -> None:
    """Run everything and write the results, or run the parts that are named and print them."""
    named = sys.argv[1:]
    unknown = set(named) - PARTS.keys()
    if unknown:
        raise SystemExit(f"no such part: {min(unknown)}. There are {', '.join(PARTS)}.")
    with tempfile.TemporaryDirectory(prefix="reconciler-bench-") as scratch:
        bench = Bench(Path(scratch))
        for name in (each for each in PARTS if each in named or not named):
            began = time.perf_counter()
            PARTS[name](bench)
            sys.stderr.write(f"{time.perf_counter() - began:5.0f} s  {name}\n")
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
