"""The laws of the whole tool, for random manifests: files in, the embedded service out."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.apply.changes import ApplyReport, Progress, Status
from reconciler.apply.executor import Executor
from reconciler.apply.folder_sinks import FileSink
from reconciler.apply.journal import Journal
from reconciler.cli.embedded import InProcessWire
from reconciler.loop import carry_out, preview
from reconciler.manifests.loader import load
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Plan, Scope
from reconciler.resources.ref import Kind, Shard
from reconciler.service.build import IdentityService
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import this_process
from reconciler.state import DesiredState
from reconciler.validation.desired import judge
from tests.effort import cases
from tests.generators import as_yaml, manifest_sets
from tests.memory_store import open_memory

MANY = settings(max_examples=cases(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERYTHING = Allowances(updates=1000, deletes=1000)
SCOPE = Scope(prune=True)


class Silent:
    """Watches without a word."""

    def begins(self, changes: Sequence[Change]) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def stop_signal(self) -> int:
        return 0


class Bench:
    """A folder for manifests, an embedded service in memory, and the tool between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service: IdentityService = open_memory()
        self.client = OperationsClient(InProcessWire(self.service), this_process())

    def declare(self, documents: list[dict[str, Any]], files: int = 1) -> DesiredState:
        manifests = self.folder / "manifests"
        for old in manifests.glob("*.yaml"):
            old.unlink()
        manifests.mkdir(exist_ok=True)
        for number in range(files):
            part = documents[number::files]
            if part:
                (manifests / f"{number}.yaml").write_text(as_yaml(part), encoding="utf-8")
        return self.read()

    def read(self, shard: Shard | None = None) -> DesiredState:
        judgement = judge(load([self.folder / "manifests"], shard))
        errors = [finding for finding in judgement.diagnostics if finding.is_error]
        assert errors == []
        return judgement.desired

    def plan(self, desired: DesiredState, shard: Shard | None = None, **more: Any) -> Plan:
        scope = replace(SCOPE, shard=shard, **more)
        return preview(desired, self.client, scope, EVERYTHING)[0]

    def apply(self, desired: DesiredState, shard: Shard | None = None, **more: Any) -> ApplyReport:
        scope = replace(SCOPE, shard=shard, **more)
        plan, observed = preview(desired, self.client, scope, EVERYTHING)
        with Journal(self.folder / "journal.jsonl") as journal:
            executor = Executor(
                self.client,
                journal,
                FileSink(self.folder / "secrets"),
                Silent(),
                {"tree": SCOPE.tree},
            )
            return carry_out(plan, observed, desired, self.client, executor)

    def events(self) -> int:
        with self.service.store.snapshot() as tx:
            return sum(1 for _ in tx.read_all())


@contextmanager
def a_bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(Path(folder))


@MANY
@given(manifest_sets(), manifest_sets())
def test_after_one_apply_nothing_is_left_to_do(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    """Whatever was held before, one run is enough; a second writes no event."""
    with a_bench() as bench:
        bench.apply(bench.declare(first))
        desired = bench.declare(second)

        report = bench.apply(desired)

        assert report.remaining == 0
        assert {outcome.status for outcome in report.outcomes} <= {Status.MADE}
        assert bench.plan(desired).changes == ()
        events = bench.events()
        bench.apply(desired)
        assert bench.events() == events


@MANY
@given(manifest_sets(), manifest_sets(), st.randoms(use_true_random=False))
def test_the_order_of_files_documents_and_keys_does_not_show(
    held: list[dict[str, Any]], documents: list[dict[str, Any]], dice: random.Random
) -> None:
    """Two people with the same manifests in other files get the same plan."""
    with a_bench() as bench:
        bench.apply(bench.declare(held))
        plan = bench.plan(bench.declare(documents))
        shuffled = [_shuffled(document, dice) for document in documents]
        dice.shuffle(shuffled)

        again = bench.plan(bench.declare(shuffled, files=dice.randint(1, 4)))

        assert plan_digest(again) == plan_digest(plan)
        assert again.in_step == plan.in_step
        assert again.unmanaged == plan.unmanaged


def _shuffled(value: Any, dice: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    keys = list(value)
    dice.shuffle(keys)
    return {key: _shuffled(value[key], dice) for key in keys}


def test_the_generator_makes_every_kind() -> None:
    """A law that is never tried on anything holds of everything."""
    seen: set[str] = set()

    @settings(max_examples=50, deadline=None, database=None)
    @given(manifest_sets())
    def look(documents: list[dict[str, Any]]) -> None:
        seen.update(document["kind"] for document in documents)
        json.dumps(documents)

    look()

    assert seen == {kind.value for kind in Kind}
