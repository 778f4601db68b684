"""The law of shards: so many shards together are the whole tree, in whatever order they come."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.apply.changes import Status
from reconciler.plan.digest import Essence, essence
from reconciler.plan.model import Plan
from reconciler.resources.ref import Shard, fold
from tests.effort import cases
from tests.generators import manifest_sets
from tests.laws.test_convergence import MANY, Bench, a_bench

SEVERAL = st.integers(2, 4)
SOME = settings(MANY, max_examples=cases(20))  # each tries a service several times over


def shards(count: int) -> list[Shard]:
    return [Shard(index, count) for index in range(1, count + 1)]


def parts(bench: Bench, count: int) -> list[Plan]:
    return [bench.plan(bench.read(shard), shard) for shard in shards(count)]


def essences(plans: Sequence[Plan]) -> list[Essence]:
    return sorted(essence(change) for plan in plans for change in plan.changes)


def held(bench: Bench, documents: Sequence[dict[str, Any]]) -> dict[Any, Any]:
    """Return what is held in the organizations of documents, but for ids and times."""
    names = {document["metadata"].get("organization", "") for document in documents}
    observed = bench.client.observe(sorted(names - {""}))
    return {key: (each.ref, each.spec, each.trees) for key, each in observed.objects.items()}


@SOME
@given(manifest_sets(), manifest_sets(), SEVERAL)
def test_the_plans_of_all_shards_are_the_plan_of_the_whole(
    before: list[dict[str, Any]], documents: list[dict[str, Any]], count: int
) -> None:
    """Every change, everything in step and everything unmanaged is in exactly one of them."""
    with a_bench() as bench:
        bench.apply(bench.declare(before))
        whole = bench.plan(bench.declare(documents, files=3))

        plans = parts(bench, count)

        assert essences(plans) == essences([whole])
        assert sorted(ref for plan in plans for ref in plan.in_step) == sorted(whole.in_step)
        assert sorted(found.id for plan in plans for found in plan.unmanaged) == sorted(
            found.id for found in whole.unmanaged
        )
        named = [name for plan in plans for name in plan.organizations]
        assert sorted(map(fold, named)) == sorted(map(fold, whole.organizations))


@SOME
@given(manifest_sets(), manifest_sets(), SEVERAL, st.randoms(use_true_random=False))
def test_applying_all_shards_in_any_order_is_applying_the_whole(
    before: list[dict[str, Any]],
    documents: list[dict[str, Any]],
    count: int,
    dice: random.Random,
) -> None:
    """Afterwards the service holds the same, and neither the whole nor a shard has work left."""
    order = shards(count)
    dice.shuffle(order)
    with a_bench() as at_once, a_bench() as bench:
        for each in (at_once, bench):
            each.apply(each.declare(before))
        at_once.apply(at_once.declare(documents))
        whole = bench.declare(documents)

        for shard in order:
            report = bench.apply(bench.read(shard), shard)
            assert report.remaining == 0
            assert {outcome.status for outcome in report.outcomes} <= {Status.MADE}

        assert held(bench, documents) == held(at_once, documents)
        assert bench.plan(whole).changes == ()
        assert essences(parts(bench, count)) == []
