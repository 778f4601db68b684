"""Clients over HTTP, ready to use, and plans carried out with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from reconciler.apply.changes import ApplyReport, Progress
from reconciler.apply.executor import Executor
from reconciler.apply.folder_sinks import FileSink
from reconciler.apply.journal import Journal
from reconciler.loop import carry_out, preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Plan, Scope
from reconciler.resources.secret import Secret
from reconciler.service_client.client import RemoteService, client_of
from reconciler.service_client.credentials import FixedToken
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.http_wire import HttpWire, Limits
from reconciler.service_client.locks import LocalLock, ProcessIdentity, this_process
from reconciler.service_client.port import ServiceClient
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from reconciler.state import DesiredState

QUICK = Limits(connect=1, silence=2, one_try=2, total=20)
PATIENT = Limits(silence=20, one_try=20)  # the stand-in reads and writes real messages
EVERYTHING = Allowances(updates=10_000, deletes=10_000)


@contextmanager
def http_wire(address: str, token: str, limits: Limits = QUICK) -> Iterator[HttpWire]:
    """Open a wire to an address."""
    with closing(HttpWire(parse_endpoint(address), FixedToken(Secret(token)), limits)) as wire:
        yield wire


@contextmanager
def http_client(
    address: str,
    token: str,
    *,
    holder: ProcessIdentity | None = None,
    kind: str = "reconciler",
    limits: Limits = QUICK,
) -> Iterator[ServiceClient]:
    """Open a client of a service at an address."""
    with http_wire(address, token, limits) as wire:
        yield client_of(RemoteService(wire, holder or this_process(), kind, address, Path()))


@contextmanager
def zitadel_client(
    address: str, token: str, folder: Path, patience: ListDelays | None = None
) -> Iterator[ZitadelClient]:
    """Open a client of a ZITADEL that is quick to settle."""
    quick = patience or ListDelays(settling=0.05, step=0.02, longest=2.0)
    with http_wire(address, token, PATIENT) as wire:
        yield ZitadelClient(wire, address, LocalLock(folder, this_process()), quick)


class Silent:
    """Watches without a word."""

    def begins(self, changes: Sequence[Change]) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def stop_signal(self) -> int:
        return 0


def plan_with(client: ServiceClient, desired: DesiredState, scope: Scope | None = None) -> Plan:
    """Return the plan for what is declared."""
    return preview(desired, client, scope or Scope(), EVERYTHING)[0]


def apply_with(
    client: ServiceClient, desired: DesiredState, folder: Path, scope: Scope | None = None
) -> ApplyReport:
    """Carry out the plan for what is declared; journal and secrets are in the folder."""
    scope = scope or Scope()
    plan, observed = preview(desired, client, scope, EVERYTHING)
    assert plan.blocks == (), plan.blocks
    with Journal(folder / "journal.jsonl") as journal:
        context = {"tree": scope.tree}
        executor = Executor(client, journal, FileSink(folder / "secrets"), Silent(), context)
        return carry_out(plan, observed, desired, client, executor)
