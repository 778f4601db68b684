"""Measures a run against a server that has nothing to do: what it asks, and how long it takes."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from bench import generate
from bench.aims import Aim
from bench.measure import Job, apply_in, interleaved, ours, run_once, section
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.eventstore.sql import PAGE
from reconciler.service.operations.callers import make_token
from tests.served import FRESH, a_free_port, serving

STORE = Path(".reconciler") / "identity.db"
SERVED = "served"
LEAST_SIZE = 5_000  # a smaller plan is mostly the start of the program
_COUNT = re.compile(r'reconciler_requests_total{operation="(\w+)",.*} (\d+)')


def remote_section(scratch: Path, sizes: Sequence[int], rounds: int, aims: list[Aim]) -> list[str]:
    """Return a section of results about plans of so many unchanged manifests; add to the aims."""
    columns = "| manifests | plan over HTTP / embedded plan | requests | writes |"
    lines = section("A run against a server that has nothing to do", columns)
    return [*lines, *(_row(scratch / f"remote-{size}", size, rounds, aims) for size in sizes)]


def _row(folder: Path, size: int, rounds: int, aims: list[Aim]) -> str:
    generate.write(size, folder / "manifests")
    apply_in(folder)
    with served_copy(folder) as (remote, metrics):
        jobs = [ours("embedded", folder, "plan", "--detailed-exitcode"), remote]
        series = interleaved(jobs, rounds)
        before = requests_so_far(metrics)
        run_once(remote)
        asked = requests_so_far(metrics) - before
    writes = _events(folder / SERVED / STORE.name) - _events(folder / STORE)
    aims += [
        Aim(f"plan of {size:,} over HTTP, unchanged: writes", 0, writes),
        Aim(
            f"plan of {size:,} over HTTP, unchanged: lists of objects / pages",
            1,
            asked["ListObjects"] / _pages(folder / STORE),
        ),
    ]
    ratio = series["remote"].median / series["embedded"].median
    if size >= LEAST_SIZE:
        aims.append(Aim(f"plan of {size:,} over HTTP, unchanged / embedded plan", 1.3, ratio))
    figures = ", ".join(f"{count} {name}" for name, count in sorted(asked.items()))
    seconds = f"{series['remote'].median:.2f} s / {series['embedded'].median:.2f} s"
    return f"| {size:,} | **{ratio:.2f}** ({seconds}) | {figures} | {writes} |"


@contextmanager
def served_copy(folder: Path) -> Iterator[tuple[Job, str]]:
    """Serve a copy of a folder's store; yield a plan against it, and where its figures are."""
    place = folder / SERVED
    place.mkdir()
    shutil.copy(folder / STORE, place / STORE.name)
    with closing(open_sqlite(place / STORE.name)) as service:
        write_token(service, folder / "token", "viewer")
    metrics = f"127.0.0.1:{a_free_port()}"
    with serving(
        place, f"sqlite:{STORE.name}", "--metrics-listen", metrics, before=FRESH
    ) as server:
        options = ["--service", server.address, "--token-file", "token", "--detailed-exitcode"]
        yield ours("remote", folder, "plan", *options), metrics


def write_token(service: IdentityService, path: Path, role: str) -> None:
    """Make a token of a role over all organizations, and keep it in a file."""
    row = TokenRow("bench", role, "", b"", service.now(), 0, 0)
    token = make_token(service.store, row, os.urandom)
    if token is None:
        raise AssertionError("the token exists already")
    path.touch(0o600)
    path.write_text(token.reveal(), encoding="ascii")


def requests_so_far(metrics: str) -> Counter[str]:
    """Return how often each operation was called so far."""
    text = httpx.get(f"http://{metrics}/metrics").text
    return Counter({name: int(count) for name, count in _COUNT.findall(text)})


def _events(store: Path) -> int:
    with closing(open_sqlite(store, read_only=True)) as service, service.store.snapshot() as view:
        return sum(head.events for head in view.heads())


def _pages(store: Path) -> int:
    """Return how many pages list all that the organizations of a store hold."""
    with closing(open_sqlite(store, read_only=True)) as service, service.store.snapshot() as view:
        held = Counter(row.organization for row in view.all_objects() if row.parent)
        owners = {head.organization for head in view.heads()}
        return sum(max(1, -(-held[owner] // PAGE)) for owner in owners)
