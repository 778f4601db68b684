"""Measures what costs are made of, and how they grow with organizations, history and shards.

``python -m bench.scaling organizations|history|shards|apply [COUNT]`` prints a table;
``docs/scaling.md`` holds the last ones. Seconds are of processor, of whole processes: what else the
machine does is hardly in them. They are the median of three or five; of shards, each ran once.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from bench import generate
from bench.measure import PROGRAM, Job, Series, apply_in, interleaved, ours, run_once
from bench.remote import STORE, requests_so_far, served_copy
from bench.stages import stages
from reconciler.resources.ref import shard_of

ROUNDS = 3
ORGANIZATIONS = (1, 10, 100, 1_000)
UPDATES = (1, 10, 100)
SHARDS = (1, 2, 4, 8)
PER_FOLDER = 1_000
_OWNER = re.compile(r"(?<=organization: )org-\d+")
_PROJECT = re.compile(r"(?<=project-)\d+")
_NAME = re.compile(r"(?<=name: )org-\d+")

Row = Sequence[object]


def organizations(scratch: Path, count: int) -> Iterator[Row]:
    """Yield what the same number of manifests costs in more and more organizations."""
    yield ("organizations", "validate", "plan, unchanged", "memory", "plan over HTTP", "requests")
    for number in ORGANIZATIONS:
        folder = scratch / f"{number}-organizations"
        write(folder, _dealt(count, number))
        apply_in(folder)
        series = interleaved(_reading(folder), ROUNDS)
        remote, requests = _remote(folder)
        yield (
            f"{number:,}",
            _seconds(series["validate"]),
            _seconds(series["plan"]),
            f"{series['plan'].megabytes:.0f} MB",
            _seconds(remote),
            ", ".join(f"{calls:,} {name}" for name, calls in sorted(requests.items())),
        )


def _dealt(count: int, organizations: int) -> Iterator[str]:
    """Yield so many manifests, as they are generated but for who owns them."""
    yield from (
        f"apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: org-{number:05d}\n"
        for number in range(organizations)
    )
    owned = (text for text in generate.manifests(2 * count) if "kind: Organization" not in text)
    for number, text in enumerate(islice(owned, count - organizations)):
        found = _PROJECT.search(text)
        owner = (int(found[0]) if found else number) % organizations
        yield _OWNER.sub(f"org-{owner:05d}", text, count=1)


def write(folder: Path, documents: Iterator[str]) -> None:
    """Write manifests into files of their own."""
    for number, text in enumerate(documents):
        path = folder / "manifests" / f"{number // PER_FOLDER:03d}" / f"{number:06d}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _reading(folder: Path, *more: str) -> list[Job]:
    return [ours(name, folder, name, *more) for name in ("validate", "plan")]


def _remote(folder: Path) -> tuple[Series, Mapping[str, int]]:
    """Return what a plan over HTTP takes, and what one asks of the server."""
    with served_copy(folder) as (job, metrics):
        series = interleaved([job], ROUNDS)[job.name]
        before = requests_so_far(metrics)
        run_once(job)
        return series, requests_so_far(metrics) - before


def history(scratch: Path, count: int) -> Iterator[Row]:
    """Yield what a store costs whose every object was updated more and more often."""
    yield (
        "updates of each object", "events", "plan, unchanged", "memory of it", "store",
        "bytes an event", "`store verify`", "`store rebuild`",
    )  # fmt: skip
    folder, done = scratch / "history", 0
    for updates in UPDATES:
        for version in range(done, updates + 1):
            write(folder, _actions(count, version))
            apply_in(folder, "--allow-updates", str(count))
        done = updates + 1
        jobs = [
            ours("plan", folder, "plan", "--detailed-exitcode"),
            ours("verify", folder, "store", "verify"),
            ours("rebuild", folder, "store", "rebuild"),
        ]
        series = interleaved(jobs, ROUNDS)
        size, events = (folder / STORE).stat().st_size, _events(folder)
        yield (
            updates,
            f"{events:,}",
            _seconds(series["plan"]),
            f"{series['plan'].megabytes:.0f} MB",
            f"{size / 1e6:.1f} MB",
            f"{size / events:.0f}",
            _seconds(series["verify"]),
            _seconds(series["rebuild"]),
        )


def _actions(count: int, version: int) -> Iterator[str]:
    """Yield an organization and so many actions; every version declares each differently."""
    head = "apiVersion: reconciler/v1\nkind: {}\nmetadata:\n"
    yield head.format("Organization") + "  name: acme\n"
    for number in range(count):
        name = f"action{number:06d}"
        yield (
            f"{head.format('Action')}  organization: acme\n  name: {name}\nspec:\n  script: |\n"
            f"    function {name}(ctx, api) {{\n"
            f"      api.v1.claims.setClaim('version', '{version}');\n    }}\n"
        )


def _events(folder: Path) -> int:
    told = subprocess.run(
        [PROGRAM, "store", "verify", "--format", "json"], cwd=folder, capture_output=True,
        check=True,
    )  # fmt: skip
    return int(json.loads(told.stdout)["events"])


def shards(scratch: Path, count: int) -> Iterator[Row]:
    """Yield what each of so many jobs costs that share one tree."""
    yield (
        "shards", "largest shard", "validate: slowest, median", "its memory",
        "plan: slowest, median", "its memory",
    )  # fmt: skip
    folder = scratch / "shards"
    write(folder, generate.manifests(count))
    apply_in(folder)
    for number in SHARDS:
        cells = [str(number), f"{_largest(count, number):,} manifests"]
        jobs = [
            Job(f"{job.name} {index}", job.command, folder)
            for index in range(1, number + 1)
            for job in _reading(folder, "--shard", f"{index}/{number}")
        ]
        took = {job.name: run_once(job) for job in jobs}
        for name in ("validate", "plan"):
            found = [each for job, each in took.items() if job.startswith(name)]
            seconds = sorted(each.processor for each in found)
            cells += [
                f"{seconds[-1]:.2f} s, {statistics.median(seconds):.2f} s",
                f"{max(each.megabytes for each in found):.0f} MB",
            ]
        yield cells


def _largest(count: int, shards: int) -> int:
    found = (_OWNER.search(text) or _NAME.search(text) for text in generate.manifests(count))
    sizes = Counter(shard_of(owner[0], shards) for owner in found if owner)
    return max(sizes.values())


def _seconds(series: Series) -> str:
    return f"{series.processor:.2f} s"


PARTS: Mapping[str, tuple[Callable[[Path, int], Iterator[Row]], int]] = {
    "organizations": (organizations, 10_000),
    "history": (history, 1_000),
    "shards": (shards, 50_000),
    "apply": (stages, 10_000),
}


def main(name: str, count: str = "") -> None:
    """Print one table."""
    part, usual = PARTS[name]
    with tempfile.TemporaryDirectory(prefix="reconciler-scaling-") as scratch:
        for at, row in enumerate(part(Path(scratch), int(count or usual))):
            sys.stdout.write(f"| {' | '.join(map(str, row))} |\n")
            if at == 0:
                sys.stdout.write("|---" * len(row) + "|\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
