"""Kills at every step, with every kind of sink: later machines have an address and a token.

Each case has an organization of its own in a store that all share, so that a server serves many.
In it, another tree is owed a secret that no case may touch. The tree of the case creates one
application with a secret and moves another one to a secret.
"""

from __future__ import annotations

import hashlib
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
)

FILE, AGE, EXEC, BATCH = a_file_sink, an_age_sink, an_exec_sink, an_exec_batch_sink
OUTSIDE = (EXEC, BATCH)  # one place for all machines
TAKER = "taker"  # the command of the sink ends the run that called it
WEB, SPA = {"web"}, {"spa"}
BOTH = WEB | SPA
NONE: set[str] = set()
THEIRS = ("other", "theirs")
MakeSink = Callable[[Path], Sink]


class Case(NamedTuple):
    """Where runs are killed, one after the other, and which secrets are owed after that."""

    sink: MakeSink
    kills: tuple[str, ...]
    owed: set[str]

    def __str__(self) -> str:
        return "-".join((self.sink.__name__.split("_", 1)[1].removesuffix("_sink"), *self.kills))


CASES = (
    Case(FILE, ("C1",), NONE),
    Case(EXEC, ("C2",), NONE),
    Case(AGE, ("C4",), WEB),  # spa has moved to a secret, and none was made yet
    Case(BATCH, ("C4",), WEB),
    Case(FILE, ("C6",), BOTH),
    Case(EXEC, ("C6",), BOTH),
    Case(FILE, ("C7",), NONE),  # the probe
    Case(AGE, ("C7:3",), BOTH),
    Case(FILE, ("C8:2",), BOTH),
    Case(AGE, ("C8:2",), BOTH),
    Case(FILE, ("C9:2",), BOTH),
    Case(AGE, ("C9:2",), BOTH),
    Case(EXEC, (f"{TAKER}:1",), BOTH),
    Case(BATCH, (f"{TAKER}:1",), BOTH),
    Case(FILE, ("C10",), BOTH),
    Case(BATCH, ("C10",), BOTH),
    Case(AGE, ("C18",), NONE),
    Case(EXEC, ("C11",), NONE),
    Case(BATCH, ("C12",), NONE),
    Case(FILE, ("C13",), NONE),
    Case(FILE, ("C6", "C15"), BOTH),
    Case(EXEC, ("C6", "C15"), BOTH),
    Case(AGE, ("C6", "C16"), BOTH),
    Case(BATCH, ("C6", "C16"), BOTH),
    Case(EXEC, ("C6", f"{TAKER}:1"), BOTH),
    Case(BATCH, ("C6", f"{TAKER}:1"), BOTH),
    Case(FILE, ("C4", "C17"), NONE),
    Case(AGE, ("C6", "C8:2", "C9:2"), BOTH),
    Case(BATCH, ("C4", "C2"), NONE),  # delivered before anything new is made
)
EMBEDDED = (
    Case(FILE, ("S1",), NONE),
    Case(AGE, ("S2:2",), NONE),
    Case(EXEC, ("S3:2",), NONE),
    Case(BATCH, ("S4:2",), NONE),
    Case(FILE, ("S5:2",), NONE),
    Case(AGE, ("S6",), NONE),
    Case(EXEC, ("S7:2",), NONE),
    Case(BATCH, ("S8:2",), WEB),
    Case(FILE, ("S8:3",), BOTH),
    Case(AGE, ("C6", "C16"), BOTH),
    Case(EXEC, ("C10",), BOTH),
    Case(BATCH, ("C8",), NONE),
)
STEPS = (
    Case(FILE, ("S1:2",), NONE),
    Case(AGE, ("S2:3",), WEB),
    Case(EXEC, ("S3:2",), NONE),
    Case(BATCH, ("S4:3",), WEB),
    Case(FILE, ("S5:2",), NONE),
    Case(AGE, ("S6",), NONE),
    Case(EXEC, ("S7:3",), WEB),
    Case(BATCH, ("S8:3",), BOTH),
)
DATABASE = (
    Case(FILE, ("C4",), WEB),
    Case(BATCH, ("C6", "C16"), BOTH),
    Case(EXEC, ("C10",), BOTH),
)


class Made(NamedTuple):
    """What a store says of an application: its name, the hash of its secret, how many it had."""

    name: str
    hash: str
    count: int


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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_run_that_is_killed_loses_no_secret(tmp_path: Path, served: Shared, case: Case) -> None:
    """Against a server; each later machine knows its address and a token."""
    _through(Machines(tmp_path, served, case))


@pytest.mark.parametrize("case", EMBEDDED, ids=str)
def test_a_store_without_its_journal_loses_no_secret(
    tmp_path: Path, embedded: Shared, case: Case
) -> None:
    """The program is the service, too: it is also killed inside a write of the store."""
    _through(Machines(tmp_path, embedded, case))


@pytest.mark.parametrize("case", DATABASE, ids=str)
def test_a_database_keeps_secrets_as_well(tmp_path: Path, database: Shared, case: Case) -> None:
    """The machines share a key beside the address."""
    _through(Machines(tmp_path, database, case))


@pytest.mark.parametrize("case", STEPS, ids=str)
def test_a_server_that_is_killed_loses_no_secret(
    tmp_path: Path, served: Shared, case: Case
) -> None:
    """One of two servers over a store dies in a write of the run; the run ends with an error."""
    machines = Machines(tmp_path, served, case)
    (point,) = case.kills
    folder = tmp_path / "dying"
    folder.mkdir()
    with dying_server(folder, served.address, point) as address:
        ended = machines.next().run("apply", "--auto-approve", RECONCILER_SERVICE=address)
    assert ended.code in {1, 5}, ended.all
    _heals(machines)


class Machines:
    """One machine after the other, each an empty folder with the manifests of a case."""

    def __init__(self, folder: Path, shared: Shared, case: Case) -> None:
        self.shared = shared
        self.case = case
        self.organization = organization_of(case)
        self.sinks: list[Sink] = []
        self._folder = folder
        self._manifests = {
            "web.yaml": _in(self.organization, an_application("web")),
            "spa.yaml": _in(self.organization, an_application("spa")),
        }

    def next(self) -> Machine:
        """Return a machine with a home of its own, and a sink of its own unless that is outside."""
        home = self._folder / f"machine{len(self.sinks)}"
        machine = a_machine(home, self._manifests, **self.shared.here, HOME=str(home))
        folder = self._folder if self.case.sink in OUTSIDE else home
        self.sinks.append(self.case.sink(folder))
        machine.more["RECONCILER_SECRETS_TO"] = self.sinks[-1].address
        return machine

    def delivered(self) -> list[tuple[str, str]]:
        """Return client id and hash of every secret in any sink."""
        return [
            (client_id, hashlib.sha256(secret.encode()).hexdigest())
            for sink in self.sinks
            for client_id, secret in sink.read().items()
        ]


def _through(machines: Machines) -> None:
    """Kill run after run, each on a machine of its own, then go on undisturbed."""
    for kill in machines.case.kills:
        point, _, visit = kill.partition(":")
        how = {KILLS_AFTER: visit} if point == TAKER else {"RECONCILER_CRASHPOINT": kill}
        killed = machines.next().run("apply", "--auto-approve", **how)
        assert killed.code == -signal.SIGKILL, killed.all
    _heals(machines)


def _heals(machines: Machines) -> None:
    """Plan, apply and apply again, each in an empty folder; check what must hold then."""
    organization, owed = machines.organization, machines.case.owed
    assert machines.shared.owed(organization) == {*(("default", name) for name in owed), THEIRS}
    second, third = machines.next(), machines.next()

    planned = second.run("plan", "--detailed-exitcode", "--format", "json")
    applied, again = (each.run("apply", "--auto-approve") for each in (second, third))
    after = third.run("plan", "--detailed-exitcode", "--format", "json")

    changes = len(planned.json["changes"])
    assert {secret["ref"]["name"] for secret in planned.json["owed"]} == owed
    assert planned.json["summary"]["owed_elsewhere"] == 1
    assert planned.code == (2 if owed or changes else 0)
    assert (applied.code, again.code, after.code) == (0, 0, 0), applied.all + again.all + after.all
    assert again.out.count("delivered") == 0, again.all
    assert (after.json["changes"], after.json["owed"]) == ([], [])
    _is_complete(machines)


def _is_complete(machines: Machines) -> None:
    """Check that each secret was made once and delivered, and that the other tree's is owed."""
    made = machines.shared.made(machines.organization)
    mine = {client: each for client, each in made.items() if each.name != "theirs"}
    delivered = machines.delivered()
    assert {each.name: each.count for each in made.values()} == {"web": 1, "spa": 1, "theirs": 1}
    assert set(delivered) == {(client, each.hash) for client, each in mine.items()}
    assert machines.shared.owed(machines.organization) == {THEIRS}
