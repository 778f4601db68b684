"""The memory of a run over a restart: commits that it saw or applied, and what was noticed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reconciler.continuous.decision import Condition
from reconciler.continuous.notices import Known
from reconciler.errors import LocalFileError, UsageError, writing
from reconciler.resources.files import read_start, write_private
from reconciler.state import COMMIT

_FILE = "run.json"
_NOTICED = "noticed.json"
_MOST = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Purpose:
    """The work of a run. The state of one work is of no use for another."""

    repository: str
    ref: str
    service: str
    environment: str
    tree: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The commits that a run knows; empty for none.

    Attributes:
        trusted: The last one whose ``reconciler.yaml`` counts.
        seen: The last one that was seen and did come after the ones before.
        applied: The last one that was applied, where the service keeps no record of it.
    """

    trusted: str = ""
    seen: str = ""
    applied: str = ""


def read_memory(state: Path, purpose: Purpose) -> Memory:
    """Return what a run remembers; nothing where the state is new.

    Raises:
        LocalFileError: it cannot be read.
        UsageError: it is the state of another run.
    """
    path = state / _FILE
    try:
        content, _ = read_start(path, _MOST)
        fields = json.loads(content)
        known, found = Purpose(**fields["purpose"]), Memory(**fields["memory"])
    except FileNotFoundError:
        return Memory()
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as failure:
        raise LocalFileError(
            f"cannot read {path}: {failure}",
            remedy="Remove it; run then begins as with a new --state.",
        ) from failure
    if known != purpose:
        raise UsageError(
            f"{state} is the state of another run: of {known.ref} of {known.repository}, "
            f"for {known.service}",
            remedy="Give each run a --state of its own.",
        )
    commits = (found.trusted, found.seen, found.applied)
    if not all(each == "" or COMMIT.fullmatch(str(each)) for each in commits):
        raise LocalFileError(
            f"{path} names what is no commit",
            remedy="Remove it; run then begins as with a new --state.",
        )
    return found


def write_memory(state: Path, purpose: Purpose, memory: Memory) -> None:
    """Keep what a run remembers, whole or not at all.

    Raises:
        LocalFileError: the disk does not take it.
    """
    fields = {"purpose": asdict(purpose), "memory": asdict(memory)}
    remedy = "Name a folder with --state that has room and that this user may write to."
    with writing(f"write {state / _FILE}", remedy):
        write_private(state / _FILE, json.dumps(fields, indent=1).encode())


def read_noticed(state: Path) -> Known | None:
    """Return the state that the last notices were about; None where it is not known.

    A file that cannot be read counts as none: the first state is then sent again.
    """
    try:
        content, _ = read_start(state / _NOTICED, _MOST)
        fields = json.loads(content)
        commits = (fields["seen"], fields["applied"])
        conditions = tuple(Condition(each) for each in fields["conditions"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if not all(each == "" or COMMIT.fullmatch(str(each)) for each in commits):
        return None
    return Known(*commits, conditions)


def write_noticed(state: Path, known: Known | None) -> None:
    """Keep the state that the last notices were about.

    Raises:
        OSError: the disk does not take it.
    """
    write_private(state / _NOTICED, json.dumps(asdict(known) if known else {}).encode())
