"""Kills at every step, with every kind of sink: later machines have an address and a token.

The cases with one kind of sink are healed together, which keeps this file quick. Each case has an
organization of its own in a store that all share. In it, another tree is owed a secret that no case
may touch. The tree of the case creates one application with a secret and moves another one to a
secret.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler.service.build import IdentityService, open_postgres, open_sqlite
from reconciler.service.eventstore.rows import ObjectRow
from tests.acceptance.conftest import ORGANIZATION, an_application
from tests.custody import Machine, a_machine
from tests.postgres_server import PostgresServer
from tests.running import dying_server, running_server
from tests.sinks import (
    KILLS_AFTER,
    Sink,
    a_file_sink,
    an_age_sink,
    an_exec_batch_sink,
    an_exec_sink,
    hashes,
)

FILE, AGE, EXEC, BATCH = a_file_sink, an_age_sink, an_exec_sink, an_exec_batch_sink
SINKS = (FILE, AGE, EXEC, BATCH)
OUTSIDE = (EXEC, BATCH)  # one place for all machines
DIES_WITHIN = 60
MANY = ("--allow-updates", "1000")  # spa moves in each organization of a run
APPLY = ("apply", "--auto-approve", *MANY)
PLAN = ("plan", "--detailed-exitcode", "--format", "json", *MANY)
TAKER = "taker"  # the command of the sink ends the run that called it
WEB, BOTH = frozenset({"web"}), frozenset({"web", "spa"})
NONE: frozenset[str] = frozenset()
THEIRS = ("other", "theirs")
MakeSink = Callable[[Path], Sink]


class Case(NamedTuple):
    """Where runs are killed, one after the other, and which secrets are owed then, if known."""

    sink: MakeSink
    kills: tuple[str, ...]
    owed: frozenset[str] | None = None

    def __str__(self) -> str:
        return "-".join((self.sink.__name__.split("_", 1)[1].removesuffix("_sink"), *self.kills))


# Some are with another kind of service only: with a batch C4 and C16 in DATABASE.
CASES = (
    Case(FILE, ("C1",), NONE),
    Case(EXEC, ("C2",), NONE),
    Case(AGE, ("C4",), WEB),  # spa has moved to a secret, and none was made yet
    Case(FILE, ("C6",), BOTH),
    Case(FILE, ("C7",), NONE),  # the probe
    Case(AGE, ("C7:3",), BOTH),
    Case(FILE, ("C8:2",), BOTH),
    Case(FILE, ("C9:2",), BOTH),
    Case(EXEC, (TAKER,), BOTH),
    Case(BATCH, (TAKER,), BOTH),
    Case(FILE, ("C10",), BOTH),
    Case(AGE, ("C18",), NONE),
    Case(EXEC, ("C11",), NONE),
    Case(BATCH, ("C12",), NONE),
    Case(FILE, ("C13",), NONE),
    Case(FILE, ("C6", "C15"), BOTH),
    Case(AGE, ("C6", "C16"), BOTH),
    Case(EXEC, ("C6", TAKER), BOTH),
    Case(BATCH, ("C6", TAKER), BOTH),
    Case(FILE, ("C4", "C17"), NONE),
    Case(AGE, ("C6", "C8:2", "C9:2"), BOTH),
    Case(BATCH, ("C4", "C2"), NONE),  # delivered before anything new is made
)
EMBEDDED = (
    Case(FILE, ("S1:2",), NONE),
    Case(FILE, ("S3:2",), NONE),
    Case(FILE, ("S5:2",), NONE),
    Case(FILE, ("S7:2",), NONE),
    Case(FILE, ("S8:3",), BOTH),
    Case(BATCH, ("S2:2",), NONE),
    Case(BATCH, ("S4:2",), NONE),
    Case(BATCH, ("S6",), NONE),
    Case(BATCH, ("S8:2",), WEB),
    Case(BATCH, ("C6", "C16"), BOTH),
)
# Requests that come at the same time share a commit or do not, so what is owed then varies.
STEPS = (
    Case(FILE, ("S1:2",)),
    Case(AGE, ("S2:3",)),
    Case(EXEC, ("S3:2",)),
    Case(BATCH, ("S4:3",)),
    Case(FILE, ("S5:3",)),
    Case(AGE, ("S6",)),
    Case(EXEC, ("S7:3",)),
    Case(BATCH, ("S8:3",)),
)
DATABASE = (
    Case(BATCH, ("C4",), WEB),
    Case(BATCH, ("C6", "C16"), BOTH),
    Case(BATCH, ("C10",), BOTH),
    Case(BATCH, ("S8:2",), WEB),
)


class Made(NamedTuple):
    """What a store says of an application: its name, the hash of its secret, how many it had."""

    name: str
    hash: str
    secrets: int


@dataclass(frozen=True)
class Shared:
    """A store that all cases of a place share, and how the program finds it.

    Attributes:
        address: Of the store itself.
        here: What a machine is told beside its sink.
        opened: Opens the store beside the program.
    """

    address: str
    here: Mapping[str, str]
    opened: Callable[[], IdentityService]

    def furnish(self, folder: Path, cases: Sequence[Case]) -> None:
        """Make an organization for each case, owe the other tree a secret in it, declare spa."""
        names = [organization_of(case) for case in cases]
        others, mine = {}, {}
        for name in names:
            others[f"{name}.yaml"] = _in(name, ORGANIZATION)
            others[f"{name}-theirs.yaml"] = _in(name, an_application("theirs"))
            mine[f"{name}.yaml"] = _in(name, public("spa"))
        sink = {"RECONCILER_SECRETS_TO": "file:kept"}
        other = a_machine(folder / "other", others, **self.here, **sink)
        killed = other.run(
            "apply", "--auto-approve", "--tree", "other", RECONCILER_CRASHPOINT="C4:3"
        )
        assert killed.code == -signal.SIGKILL, killed.all
        made = a_machine(folder / "mine", mine, **self.here, **sink).run("apply", "--auto-approve")
        assert made.code == 0, made.all
        for name in names:
            assert self.owed(name) == {("other", "theirs")}

    def owed(self, organization: str) -> set[tuple[str, str]]:
        """Return tree and name of each secret that is owed in an organization."""
        with closing(self.opened()) as service, service.store.snapshot() as view:
            held = {row.id: row for row in view.all_objects()}
            (owner,) = (row.id for row in held.values() if row.name == organization)
            return {(row.tree, held[row.id].name) for row in view.owed_page(owner)}

    def made(self, organization: str) -> dict[str, Made]:
        """Return what the store says of the applications with a secret, by client id."""
        with closing(self.opened()) as service, service.store.snapshot() as view:
            held: list[ObjectRow] = list(view.all_objects())
            (owner,) = (row.id for row in held if row.name == organization)
            payloads = [
                (event.stream, json.loads(event.payload))
                for event in view.read_all(after=0, limit=100_000)
                if event.organization == owner
            ]
        count = Counter(stream for stream, payload in payloads if payload.get("secret_hash"))
        mine = [row for row in held if row.organization == owner and row.client_id]
        return {row.client_id: Made(row.name, row.secret_hash, count[row.id]) for row in mine}


def of_sink(cases: Sequence[Case], make_sink: MakeSink) -> Sequence[Case]:
    """Return the cases with a kind of sink."""
    return [case for case in cases if case.sink is make_sink]


def organization_of(case: Case) -> str:
    """Return the name of the organization that a case has to itself."""
    return str(case).replace(":", "-").lower()


def _in(organization: str, manifest: str) -> str:
    return manifest.replace('"acme"', f'"{organization}"').replace(" acme\n", f" {organization}\n")


def public(name: str) -> str:
    """Return the manifest of an application without a secret."""
    method = "OIDC_AUTH_METHOD_TYPE_NONE"
    return an_application(name, appType="OIDC_APP_TYPE_USER_AGENT", authMethodType=method)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Run a server for all cases of this module."""
    folder = tmp_path_factory.mktemp("served")
    with running_server(folder) as server:
        here = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("admin")}
        shared = Shared(f"sqlite:{server.store}", here, lambda: _sqlite(server.store))
        shared.furnish(folder, (*CASES, *STEPS))
        yield shared


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Return a store that is opened by the program itself: kept are it and its key, no journal."""
    folder = tmp_path_factory.mktemp("embedded")
    store = folder / "identity.db"
    address = f"sqlite:{store}"
    shared = Shared(address, {"RECONCILER_SERVICE": address}, lambda: _sqlite(store))
    shared.furnish(folder, EMBEDDED)
    return shared


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Shared:
    """Return a store in a database; the machines share its key."""
    folder = tmp_path_factory.mktemp("database")
    address, key = postgres.new_address(), folder / "seal-key"
    here = {"RECONCILER_SERVICE": address, "RECONCILER_SEAL_KEY_FILE": str(key)}
    shared = Shared(address, here, lambda: open_postgres(address, read_only=True))
    shared.furnish(folder, DATABASE)
    return shared


def _sqlite(store: Path) -> IdentityService:
    return open_sqlite(store, read_only=True)


@pytest.mark.parametrize("make_sink", SINKS)
def test_a_run_that_is_killed_loses_no_secret(
    tmp_path: Path, served: Shared, make_sink: MakeSink
) -> None:
    """Against a server, which dies itself in some of the cases."""
    machines = Machines(tmp_path, served, make_sink)
    cases, steps = of_sink(CASES, make_sink), of_sink(STEPS, make_sink)
    for case in cases:
        _kill(machines, case)
    for step in steps:
        _kill_the_server(machines, step)
    _heals(machines, [*cases, *steps])


@pytest.mark.parametrize("make_sink", [FILE, BATCH])
def test_a_store_without_its_journal_loses_no_secret(
    tmp_path: Path, embedded: Shared, make_sink: MakeSink
) -> None:
    """The program is the service, too: it is also killed inside a write of the store."""
    machines = Machines(tmp_path, embedded, make_sink)
    cases = of_sink(EMBEDDED, make_sink)
    for case in cases:
        _kill(machines, case)
    _heals(machines, cases)


def test_a_database_keeps_secrets_as_well(tmp_path: Path, database: Shared) -> None:
    """The machines share a key beside the address."""
    machines = Machines(tmp_path, database, BATCH)
    for case in DATABASE:
        _kill(machines, case)
    _heals(machines, DATABASE)


class Machines:
    """One machine after the other: an empty folder with manifests, an address and a token."""

    def __init__(self, folder: Path, shared: Shared, make_sink: MakeSink) -> None:
        self.shared = shared
        self.sinks: list[Sink] = []
        self._folder = folder
        self._make_sink = make_sink

    def next(self, *cases: Case) -> Machine:
        """Return a machine with a home of its own, and a sink of its own unless that is outside."""
        home = self._folder / f"machine{len(self.sinks)}"
        manifests = {}
        for name in map(organization_of, cases):
            manifests[f"{name}-web.yaml"] = _in(name, an_application("web"))
            manifests[f"{name}-spa.yaml"] = _in(name, an_application("spa"))
        machine = a_machine(home, manifests, **self.shared.here, HOME=str(home))
        folder = self._folder if self._make_sink in OUTSIDE else home
        self.sinks.append(self._make_sink(folder))
        machine.more["RECONCILER_SECRETS_TO"] = self.sinks[-1].address
        return machine

    def delivered(self) -> set[tuple[str, str]]:
        """Return client id and hash of every secret in any sink."""
        return {each for sink in self.sinks for each in hashes(sink.read()).items()}


def _kill(machines: Machines, case: Case) -> None:
    """Kill run after run, each on a machine of its own."""
    for kill in case.kills:
        machine = machines.next(case)
        taken = str(len(machines.sinks[-1].read()) + 1)
        how = {KILLS_AFTER: taken} if kill == TAKER else {"RECONCILER_CRASHPOINT": kill}
        killed = machine.run(*APPLY, **how)
        assert killed.code == -signal.SIGKILL, f"{case} {kill} {killed.all}"


def _kill_the_server(machines: Machines, case: Case) -> None:
    """Let one of two servers over a store die in a write of the run, and the run with it."""
    machine = machines.next(case)
    (point,) = case.kills
    with (
        dying_server(machine.folder, machines.shared.address, point) as (address, server),
        machine.started(*APPLY, RECONCILER_SERVICE=address),
    ):
        server.wait(DIES_WITHIN)


def _owed(machines: Machines, case: Case) -> set[tuple[str, str]]:
    """Return organization and name of each secret owed to the tree of a case.

    That of the other tree must be owed, too, and nothing else.
    """
    owed = machines.shared.owed(organization_of(case))
    names = frozenset(name for tree, name in owed if tree == "default")
    assert owed == {*(("default", name) for name in names), THEIRS}
    assert case.owed in {None, names}, str(case)
    return {(organization_of(case), name) for name in names}


def _heals(machines: Machines, cases: Sequence[Case]) -> None:
    """Plan, apply and apply again, each in an empty folder; check what must hold then."""
    second, third = machines.next(*cases), machines.next(*cases)
    owed = {each for case in cases for each in _owed(machines, case)}

    planned = second.run(*PLAN)
    applied, again = (each.run(*APPLY) for each in (second, third))
    after = third.run(*PLAN)

    said = {(each["ref"]["organization"], each["ref"]["name"]) for each in planned.json["owed"]}
    assert said == owed
    assert planned.json["summary"]["owed_elsewhere"] == len(cases)
    codes = [ran.code for ran in (planned, applied, again, after)]
    assert codes == [2, 0, 0, 0], applied.all + again.all + after.all
    assert "delivered" not in again.out
    assert (after.json["changes"], after.json["owed"]) == ([], [])
    for case in cases:
        _is_complete(machines, case)


def _is_complete(machines: Machines, case: Case) -> None:
    """Check that each secret was made once and delivered, and that the other tree's is owed."""
    made = machines.shared.made(organization_of(case))
    assert {each.name: each.secrets for each in made.values()} == {"web": 1, "spa": 1, "theirs": 1}
    delivered = {(client, hashed) for client, hashed in machines.delivered() if client in made}
    assert delivered == {
        (client, each.hash) for client, each in made.items() if each.name != "theirs"
    }, str(case)
    assert machines.shared.owed(organization_of(case)) == {THEIRS}
