"""Fuzzing what a service answers: the clients observe it, and a plan is made of it and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconciler.cli.embedded import InProcessWire
from reconciler.errors import ReconcilerError
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.plan.planfile import PlanFile, plan_file_content, read_plan_file
from reconciler.plan.planner import build_plan
from reconciler.plan.snapshot import SnapshotFile, read_snapshot, snapshot_content
from reconciler.resources.call import Call
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.http_messages import reply_of
from reconciler.service_client.locks import LocalLock, this_process
from reconciler.service_client.port import ServiceClient
from reconciler.service_client.wire import Answer, Wire, WireRefusal
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from tests.builders import GREET, PARTNER, WEB, declared, desired
from tests.drawings import plan_as_markdown, plan_as_text
from tests.examples import Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import Asking

DECLARED = desired(declared(WEB), declared(GREET), declared(PARTNER))
_ANYTHING = Allowances(updates=10_000, deletes=10_000)
_AT_ONCE = ListDelays(settling=0, step=0, longest=0)


class _Scripted:
    """A wire that answers one line after the other, whatever is asked."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = list(reversed(lines))

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        return [self._next() for _ in calls]

    def _next(self) -> Answer | WireRefusal:
        line = self._lines.pop() if self._lines else b"-"
        status = 404 if line[:1] == b"-" else 200
        return reply_of(status, "application/json", line.removeprefix(b"-"))


def _client(kind: bytes, wire: Wire) -> ServiceClient:
    if kind == b"z":
        lock = LocalLock(Path(), this_process())
        return ZitadelClient(wire, "https://id.example.com", lock, _AT_ONCE)
    return OperationsClient(wire, this_process())


def observed(data: bytes) -> bool:
    """Observe a service that answers so; ``z`` in front makes it a ZITADEL."""
    client = _client(data[:1], _Scripted(data[1:].split(b"\n")[:40]))
    try:
        state = client.observe(["acme"])
        plan = build_plan(DECLARED, state, Scope(prune=True), _ANYTHING)
    except ReconcilerError as refusal:
        f"{refusal.problem}{refusal.remedy}".encode()
        return False
    plan_as_text(plan, "sqlite:x.db").encode()
    plan_as_markdown(plan, "sqlite:x.db").encode()
    file = PlanFile(plan, "1", "service", (), "digest", 1, 2)
    assert plan_file_content(read_plan_file(plan_file_content(file))) == plan_file_content(file)
    content = snapshot_content(SnapshotFile(state, "1", "service", 1, ("acme",)))
    assert snapshot_content(read_snapshot(content)) == content
    return bool(state.objects)


class _Recording:
    """A wire that notes what another one answers."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.lines: list[str] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        replies = self._wire.send(calls)
        self.lines += [
            json.dumps(reply.fields) if isinstance(reply, Answer) else "-" for reply in replies
        ]
        return replies


def true_answers() -> Iterator[bytes]:
    """Yield what a service with an object of each kind answers to each client."""
    clock = Clock()
    asking = Asking(open_memory(now=clock), clock)
    asking.prepare()
    asking.an_action(context='{"tree":"default"}')
    asking.an_app("storefront")
    asking.an_idp()
    for kind in (b"o", b"z"):
        wire = _Recording(InProcessWire(asking.service))
        _client(kind, wire).observe(["acme"])
        yield kind + "\n".join(wire.lines).encode()
