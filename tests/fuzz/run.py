"""Fuzz targets with atheris, one after the other, guided by coverage of the package.

    make fuzz SECONDS=60 [TARGET=yaml]

Each begins with its seeds, its corpus and the crashes of the past. The first input that breaks a
target is kept among the crashes, where the tests replay it, and ends that target's turn.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "reconciler"
MAX_INPUT = 4096
HANGS = 20  # seconds of the wall; what is merely slow is found by the processor's clock
MEMORY = 768  # MiB, those of an interpreter and of a corpus of many thousand files included
KEPT = 40

# Of manifests alone is much to read; long names of the others only slow the mutations down.
LONGER = {"manifest": 8192, "observed": 8192, "plan": 16384, "saved": 16384}


Step = tuple[str, int, int]


class Outcome(NamedTuple):
    """What came of fuzzing a target."""

    target: str
    executions: int
    coverage: int
    gained: int
    seconds: int
    crashes: int


def main() -> int:
    """Fuzz what is asked for; return 1 if anything broke."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of bad input.")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--target", default="", help="only this one")
    parser.add_argument("--keep", action="store_true", help="keep what reaches further")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked, rest = parser.parse_known_args()
    if asked.inside:
        _inside(asked.inside, rest)
        return 0
    from tests.fuzz.targets import TARGETS

    if asked.target and asked.target not in TARGETS:
        parser.error(f"there is no target {asked.target}: {', '.join(TARGETS)}")
    say(f"{'target':<10}{'executions':>12}{'coverage':>10}{'new':>7}{'seconds':>9}{'crashes':>9}")
    broken = 0
    for target in [asked.target] if asked.target else TARGETS:
        outcome = fuzz(target, asked.seconds, keep=asked.keep)
        say(
            f"{target:<10}{outcome.executions:>12,}{outcome.coverage:>10,}{outcome.gained:>7,}"
            f"{outcome.seconds:>9}{outcome.crashes:>9}"
        )
        broken += outcome.crashes
    return 1 if broken else 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fuzz(target: str, seconds: int, *, keep: bool) -> Outcome:
    """Fuzz one target in a process of its own."""
    from tests.fuzz.seeds import seeds_of

    crashes, corpus = HERE / "crashes" / target, HERE / "corpus" / target
    crashes.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    with tempfile.TemporaryDirectory() as folder:
        found, seeds = Path(folder, "found"), Path(folder, "seeds")
        for made in (found, seeds):
            made.mkdir()
        for number, seed in enumerate(seeds_of(target)):
            (seeds / f"{number:03}").write_bytes(seed)
        known = [path for path in (seeds, corpus, crashes) if path.exists()]
        log = _atheris(
            target,
            f"-max_total_time={seconds}",
            f"-max_len={LONGER.get(target, MAX_INPUT)}",
            f"-timeout={HANGS}",
            f"-rss_limit_mb={MEMORY}",
            f"-artifact_prefix={crashes}/",
            "-print_final_stats=1",
            *map(str, (found, *known)),
        )
        new = set(crashes.iterdir()) - before
        if new or "stat::number_of_executed_units" not in log:
            sys.stderr.write(log[-6000:])
        if keep and not new:
            _keep(target, corpus, found)
    if not any(crashes.iterdir()):
        crashes.rmdir()
    return _outcome(target, log, len(new))


def _atheris(target: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz.run", "--inside", target, *arguments]
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return run.stdout.decode("utf-8", "replace")


def _outcome(target: str, log: str, new: int) -> Outcome:
    covered = [int(number) for number in re.findall(r"\bcov: (\d+)", log)] or [0]
    started = re.search(r"INITED cov: (\d+)", log)
    first = int(started[1]) if started else covered[0]
    stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", log))
    seconds = re.search(r"Done \d+ runs in (\d+) second", log)
    executions = int(stats.get("number_of_executed_units", 0))
    # A process that ended without its figures and without an input to blame broke, too.
    crashes = new or int(not executions)
    return Outcome(
        target,
        executions,
        covered[-1],
        covered[-1] - first,
        int(seconds[1]) if seconds else 0,
        crashes,
    )


def _keep(target: str, corpus: Path, found: Path) -> None:
    """Keep, of what was kept and found, the smallest that reach further than the seeds do."""
    from tests.fuzz.seeds import seeds_of
    from tests.fuzz.targets import TARGETS

    corpus.mkdir(parents=True, exist_ok=True)
    candidates = [path.read_bytes() for folder in (corpus, found) for path in folder.iterdir()]
    reached = set[Step]().union(*(_reach(TARGETS[target], seed) for seed in seeds_of(target)))
    kept: list[bytes] = []
    for data in sorted(set(candidates), key=lambda data: (len(data), data)):
        reach = _reach(TARGETS[target], data)
        if len(kept) < KEPT and not reach <= reached:
            kept.append(data)
            reached |= reach
    for path in corpus.iterdir():
        path.unlink()
    for data in kept:
        (corpus / sha256(data).hexdigest()[:12]).write_bytes(data)
    if not kept:
        corpus.rmdir()


def _reach(target: Callable[[bytes], bool], data: bytes) -> set[Step]:
    """Return every step from line to line of the package that an input makes."""
    steps: set[Step] = set()

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        name, last = frame.f_code.co_filename, 0
        if not name.startswith(str(PACKAGE)):
            return None

        def line(inner: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            steps.add((name, last, inner.f_lineno))
            last = inner.f_lineno
            return line

        return line

    sys.settrace(call)
    try:
        target(data)
    finally:
        sys.settrace(None)
    return steps


def _inside(target: str, arguments: Sequence[str]) -> None:
    """Fuzz in this process. atheris comes first: it must see the package being imported."""
    import atheris

    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=["reconciler", "tests.fuzz"]):
        from tests.fuzz.targets import TARGETS, timed
    run: Callable[[bytes], Any] = timed(TARGETS[target])

    def one_input(data: bytes) -> None:
        run(data)

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
