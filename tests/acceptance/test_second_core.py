"""A large tree is read on two cores: that changes how long it takes, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from reconciler.manifests.read_ahead import MIN_CHARACTERS
from tests.program import Ran, environment, run_fresh
from tests.unit.manifests.trees import a_project, write_tree

FILES = 60
STARTS_A_CHILD = "multiprocessing.popen_fork"  # imported when a child is started, not before
LONG = "".join(f"# {'reasons ' * 12}\n" for _ in range(2 * MIN_CHARACTERS // FILES // 99))
FAULTS: dict[str, str | bytes] = {
    "p-05.yaml": "a: 1\na: 2\n",
    "p-55.yaml": "a: &x 1\nb: *x\n",
    "p-56.yaml": a_project("later") + "nonsense: true\n",
    "p-57.yaml": b"name: caf\xe9\n",
    "p-58.yaml": a_project("twice") + "---\n" + a_project("twice"),
}


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Have what starts in the block run on some cores of this process."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def validated(folder: Path, cores: set[int]) -> tuple[Ran, bool]:
    """Return what the program gave, and whether it started a child."""
    with on_cores(cores):
        ran = run_fresh(
            ["validate", "--format", "json", "."], folder, environment(), "", ["-X", "importtime"]
        )
    lines = ran.err.splitlines(keepends=True)
    imports = [line for line in lines if line.startswith("import time:")]
    has_child = any(line.split()[-1] == STARTS_A_CHILD for line in imports)
    told = "".join(line for line in lines if line not in imports)
    return replace(ran, err=told), has_child


def test_the_findings_are_the_same(tmp_path: Path) -> None:
    projects = {f"p-{n:02}.yaml": LONG + a_project(f"project-{n}") for n in range(FILES)}
    write_tree(tmp_path, {**projects, **FAULTS})
    cores = os.sched_getaffinity(0)

    alone, alone_has_child = validated(tmp_path, {min(cores)})
    together, together_has_child = validated(tmp_path, cores)

    assert (alone_has_child, together_has_child) == (False, len(cores) > 1)
    assert together == alone
    assert {finding["file"] for finding in alone.json["diagnostics"]} >= FAULTS.keys()
