"""Measures an apply of creates against a server on loopback beside the embedded apply."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from bench import generate
from bench.aims import Aim
from bench.measure import PROGRAM, Job, Series, interleaved, section
from bench.remote import write_token
from bench.served import POSTGRESQL, SQLITE
from reconciler.service.build import IdentityService, open_postgres, open_sqlite
from tests.postgres_server import a_server
from tests.served import FRESH, Served, serving

SECRETS = ("--secrets-to", "file:.reconciler/secrets")
APPLY = (PROGRAM, "apply", "--auto-approve", "../manifests", *SECRETS)
EMBEDDED = "embedded"
MOST = {SQLITE: 1.5, POSTGRESQL: 2.5}


def applies_section(scratch: Path, count: int, rounds: int, aims: list[Aim]) -> list[str]:
    """Return a section of results about applies of so many creates; add to the aims."""
    folder = scratch / "applies"
    generate.write(count, folder / "manifests")
    with ExitStack() as servers:
        jobs = [_embedded(folder)]
        jobs += [servers.enter_context(_served(folder, kind)) for kind in MOST]
        series = interleaved(jobs, rounds)
    columns = "| apply | ratio to the embedded apply | seconds | spread | of processor | memory |"
    lines = section(f"Applying {count:,} creates through a server", columns)
    lines += [_row(series[job.name], series[EMBEDDED]) for job in jobs]
    for kind, most in MOST.items():
        ratio = series[kind].median / series[EMBEDDED].median
        aims.append(Aim(f"apply of {count:,} creates over HTTP, {kind} / embedded", most, ratio))
    return lines


def _row(series: Series, embedded: Series) -> str:
    return (
        f"| {series.name} | **{series.median / embedded.median:.2f}** | {series.median:.2f} "
        f"| {series.spread} | {series.processor:.2f} s | {series.megabytes:.0f} MB |"
    )


def _embedded(folder: Path) -> Job:
    """Return applies to an embedded store, each to a new one."""
    place = folder / EMBEDDED
    place.mkdir()
    return Job(EMBEDDED, APPLY, place, Anew(place))


class Anew:
    """Moves the state of the run before away: a file system may take long to reuse its blocks."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._runs = itertools.count()

    def __call__(self) -> None:
        state = self._place / ".reconciler"
        if state.exists():
            state.rename(self._place / f"applied-{next(self._runs)}")


@contextmanager
def _served(folder: Path, kind: str) -> Iterator[Job]:
    """Yield applies through a server, each to a new server over a new store."""
    place = folder / kind
    place.mkdir()
    with ExitStack() as database, ExitStack() as running:
        address = database.enter_context(a_server()).new_address if kind == POSTGRESQL else None
        move_state, runs = Anew(place), itertools.count()
        options = ["--service", "http://127.0.0.1:1", "--token-file", "token"]
        command = [*APPLY, *options]

        def begin_anew() -> None:
            running.close()
            move_state()
            service = address() if address else f"sqlite:{place / f'store-{next(runs)}.db'}"
            key = place / "seal-key"
            with closing(_made(service, key)) as opened:
                write_token(opened, place / "token", "admin")
            more = ("--seal-key-file", str(key)) if address else ()
            server: Served = running.enter_context(serving(place, service, *more, before=FRESH))
            command[command.index("--service") + 1] = server.address

        yield Job(kind, command, place, begin_anew)


def _made(service: str, key: Path) -> IdentityService:
    if service.startswith("sqlite:"):
        return open_sqlite(Path(service.removeprefix("sqlite:")), create=True)
    return open_postgres(service, seal_key_file=key, create=True)
