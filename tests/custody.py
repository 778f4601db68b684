"""Machines that run the program: a folder of their own each, and whatever a job is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.program import Ran, program, started
from tests.warm import Copy


@dataclass
class Machine:
    """A folder with manifests, and the environment of a job that runs there."""

    folder: Path
    more: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **more: str) -> Ran:
        """Run the program there; extra environment by keyword."""
        return program(self.folder)(*arguments, **{**self.more, **more})

    @contextmanager
    def started(self, *arguments: str, **more: str) -> Iterator[Copy]:
        """Start the program there; it is killed with the block."""
        with started(self.folder, *arguments, **{**self.more, **more}) as process:
            try:
                yield process
            finally:
                process.kill()


def a_machine(folder: Path, manifests: Mapping[str, str], **more: str) -> Machine:
    """Return a machine whose folder holds these manifests and nothing else."""
    (folder / "manifests").mkdir(parents=True)
    for name, text in manifests.items():
        (folder / "manifests" / name).write_text(text, encoding="utf-8")
    return Machine(folder, dict(more))


def secrets_in(machine: Machine, folder: str = "kept") -> dict[str, str]:
    """Return the secrets in a folder of a machine, by client id."""
    files = (machine.folder / folder).glob("*.json")
    read = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    return {one["client_id"]: one["client_secret"] for one in read}
