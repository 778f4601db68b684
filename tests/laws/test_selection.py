"""The law of a part of a tree: what is selected converges, and nothing else is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import event, given, settings
from hypothesis import strategies as st

from reconciler.apply.changes import Status
from reconciler.plan.model import Plan, ref_of, word
from reconciler.resources.ref import Kind, ResourceRef, fold_name, owner_of, parse_pattern
from tests.effort import cases
from tests.generators import manifest_sets
from tests.laws.test_convergence import MANY, Bench, a_bench

SOME = settings(MANY, max_examples=cases(40))

Documents = list[dict[str, Any]]
Declared = Mapping[ResourceRef, Mapping[str, Any]]


def declared(documents: Sequence[dict[str, Any]]) -> Declared:
    """Return the fields of each document by the key of its ref."""
    return {ref_in(document).key: document.get("spec") or {} for document in documents}


def ref_in(document: dict[str, Any]) -> ResourceRef:
    said = document["metadata"]
    organization = said.get("organization", said["name"])
    return ResourceRef(Kind(document["kind"]), organization, said.get("project", ""), said["name"])


class Pattern(NamedTuple):
    """A ref, and whether a star stands in the place of its kind or of its name."""

    ref: ResourceRef
    any_kind: bool
    any_name: bool

    @property
    def text(self) -> str:
        kind, *names = self.ref.address.split("/")
        names[-1] = "*" if self.any_name else names[-1]
        return "/".join(["*" if self.any_kind else kind, *names])

    def fits(self, key: ResourceRef) -> bool:
        own = self.ref.key
        is_named = self.any_name or key.name == fold_name(key.kind, self.ref.name)
        if own.kind is Kind.ORGANIZATION or key.kind is Kind.ORGANIZATION:
            return own.kind is key.kind and is_named
        return (
            (key.kind is own.kind or self.any_kind)
            and (key.organization, key.project) == (own.organization, own.project)
            and is_named
        )


class Model:
    """What a selection must do, worked out from documents and from what is held."""

    def __init__(
        self, documents: Declared, held: Collection[ResourceRef], changed: Collection[ResourceRef]
    ) -> None:
        self.documents, self.held, self.changed = documents, held, changed

    def selected(
        self, targets: Sequence[Pattern], excluded: Sequence[Pattern]
    ) -> tuple[set[ResourceRef], bool]:
        """Return what is written, and whether the selection cannot be."""

        def is_in(key: ResourceRef, patterns: Sequence[Pattern]) -> bool:
            return any(pattern.fits(key) for pattern in patterns)

        found = {
            key
            for key in self.changed
            if (not targets or is_in(key, targets)) and not is_in(key, excluded)
        }
        left, is_blocked = [*found], False
        while left:
            for need in self.needs(left.pop()):
                if need in found or need in self.held or need not in self.changed:
                    continue
                if is_in(need, excluded):
                    is_blocked = True
                    continue
                found.add(need)
                left.append(need)
        return found, is_blocked

    def needs(self, key: ResourceRef) -> Iterator[ResourceRef]:
        owner = owner_of(key)
        if owner is not None:
            yield owner.key
        if key.kind is Kind.ACTION_FLOW:
            for names in self.documents[key].values():
                for name in names:
                    yield ResourceRef(Kind.ACTION, key.organization, "", name).key


def changes_of(plan: Plan) -> dict[ResourceRef, str]:
    return {ref_of(change).key: word(change) for change in plan.changes}


def everything(bench: Bench) -> dict[ResourceRef, Any]:
    """Return all that is held, with the sequence of its last event."""
    return dict(bench.client.observe(["acme", "Büro"]).objects)


@SOME
@given(manifest_sets(), manifest_sets(), st.data())
def test_a_part_converges_and_the_rest_stays(
    before: Documents, documents: Documents, data: st.DataObject
) -> None:
    """The next plan of the whole is that of before, without what was applied."""
    known = sorted(map(ref_in, documents))
    patterns = st.lists(
        st.builds(Pattern, st.sampled_from(known), st.booleans(), st.booleans()), max_size=3
    )
    targets = data.draw(patterns)
    excluded = data.draw(patterns if targets else patterns.filter(bool))
    scope: dict[str, Any] = {
        "prune": False,
        "target": tuple(sorted({parse_pattern(each.text) for each in targets})),
        "exclude": tuple(sorted({parse_pattern(each.text) for each in excluded})),
    }
    with a_bench() as bench:
        bench.apply(bench.declare(before))
        desired = bench.declare(documents)
        whole = changes_of(bench.plan(desired, prune=False))
        held = everything(bench)
        model = Model(declared(documents), held, whole)
        expected, is_blocked = model.selected(targets, excluded)

        part = bench.plan(desired, **scope)

        assert bool(part.blocks) == is_blocked
        if is_blocked:
            event("blocked")
            return
        assert changes_of(part) == {key: whole[key] for key in whole if key in expected}
        assert part.left_out.changes == len(whole) - len(expected)
        event(f"{'some' if part.needed else 'nothing'} needed")

        report = bench.apply(desired, **scope)

        assert (report.remaining, report.left_out) == (0, len(whole) - len(expected))
        assert {outcome.status for outcome in report.outcomes} <= {Status.MADE}
        now = everything(bench)
        assert {key: now[key] for key in now if key not in expected} == {
            key: held[key] for key in held if key not in expected
        }
        assert changes_of(bench.plan(desired, prune=False)) == {
            key: whole[key] for key in whole if key not in expected
        }
        assert bench.plan(desired, **scope).changes == ()


@SOME
@given(manifest_sets(), st.data())
def test_parts_one_after_the_other_are_the_whole(documents: Documents, data: st.DataObject) -> None:
    """In any order: what a part needs comes with it, and nothing is made twice."""
    refs = data.draw(st.permutations(sorted(map(ref_in, documents))))
    with a_bench() as bench, a_bench() as at_once:
        desired = bench.declare(documents)
        at_once.apply(at_once.declare(documents))

        made = [
            outcome.change
            for ref in refs
            for outcome in bench.apply(
                desired, prune=False, target=(parse_pattern(ref.address),)
            ).outcomes
        ]

        assert len({ref_of(change).key for change in made}) == len(made)
        assert bench.plan(desired).changes == ()
        assert everything(bench).keys() == everything(at_once).keys()
