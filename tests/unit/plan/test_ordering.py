"""What comes before what: owners, names that must be free, and deletes at the end."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation, error
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import Adopt, Change, Create, Delete, Update, held_of, ref_of
from reconciler.plan.ordering import batches, in_order
from reconciler.resources.ref import Kind, ResourceRef
from tests.builders import ACME, GREET, PARTNER, SHOP, TOKEN, FakeSource, a_ref, declared, held
from tests.effort import cases
from tests.rows import each_row

LETTERS = "abcdefgh"


def app(name: str) -> ResourceRef:
    return a_ref(name=name)


def renamed(before: str, after: str) -> Update:
    """Return the update that gives an application another name."""
    return Update(declared(app(after), pinned_id=before), held(app(before), object_id=before))


def made(name: str) -> Create:
    return Create(declared(app(name)))


def removed(name: str) -> Delete:
    return Delete(held(app(name)))


@each_row(
    ("changes", "expected"),
    [
        pytest.param(
            [made("a"), Create(declared(SHOP)), Create(declared(ACME))],
            [Create(declared(ACME)), Create(declared(SHOP)), made("a")],
            id="an organization before its project before its application",
        ),
        pytest.param(
            [removed("a"), made("b"), Create(declared(GREET))],
            [Create(declared(GREET)), made("b"), removed("a")],
            id="deletes come last",
        ),
        pytest.param(
            [made("b"), Adopt(declared(PARTNER), held(PARTNER)), made("a")],
            [Adopt(declared(PARTNER), held(PARTNER)), made("a"), made("b")],
            id="within a rank by kind and name",
        ),
        pytest.param(
            [made("a"), renamed("a", "z")],
            [renamed("a", "z"), made("a")],
            id="a name is freed by a rename before it is given to a new object",
        ),
        pytest.param(
            [renamed("b", "a"), removed("a"), removed("y"), made("c")],
            [made("c"), removed("a"), renamed("b", "a"), removed("y")],
            id="only the delete that frees a name comes early",
        ),
        pytest.param(
            [made("a"), renamed("a", "b"), renamed("b", "c"), renamed("c", "d"), removed("d")],
            [removed("d"), renamed("c", "d"), renamed("b", "c"), renamed("a", "b"), made("a")],
            id="a chain of renames starts at its free end",
        ),
        pytest.param(
            [made("d"), renamed("d", "a"), renamed("a", "b"), renamed("b", "c")],
            [renamed("b", "c"), renamed("a", "b"), renamed("d", "a"), made("d")],
            id="a chain of renames in which the last one has the first name",
        ),
        pytest.param(
            [
                made("c"),
                renamed("c", "b"),
                renamed("b", "a"),
                made("p"),
                renamed("p", "q"),
                renamed("q", "r"),
            ],
            [
                renamed("b", "a"),
                renamed("q", "r"),
                renamed("c", "b"),
                renamed("p", "q"),
                made("c"),
                made("p"),
            ],
            id="two chains take turns, by name",
        ),
        pytest.param(
            [Update(declared(app("Shop")), held(app("shop"))), made("a")],
            [made("a"), Update(declared(app("Shop")), held(app("shop")))],
            id="another case is not another name",
        ),
        pytest.param(
            [renamed("b", "a"), removed("a"), Create(declared(TOKEN))],
            [Create(declared(TOKEN)), removed("a"), renamed("b", "a")],
            id="a flow whose actions are there does not wait for the names of others",
        ),
        pytest.param(
            [renamed("b", "a"), removed("a"), Create(declared(ACME))],
            [Create(declared(ACME)), removed("a"), renamed("b", "a")],
            id="what needs nothing comes first",
        ),
    ],
)
def test_changes_are_put_in_the_order_they_can_be_made_in(
    changes: Sequence[Change], expected: Sequence[Change]
) -> None:
    """A service refuses what has no owner yet and a name that is still in use."""
    assert in_order(changes) == (tuple(expected), ())


@pytest.mark.parametrize(
    ("changes", "loop", "line"),
    [
        pytest.param(
            [renamed("a", "b"), renamed("b", "a")], "acme/shop/a, acme/shop/b", 4, id="two"
        ),
        pytest.param(
            [renamed("c", "a"), renamed("a", "b"), renamed("b", "c"), made("x")],
            "acme/shop/a, acme/shop/b, acme/shop/c",
            4,
            id="three in a ring",
        ),
    ],
)
def test_swapped_names_are_an_error_that_says_the_way_out(
    changes: Sequence[Update | Create], loop: str, line: int
) -> None:
    """No order of the writes works, and the reader must not find that out half way through."""
    source = FakeSource(lines={("metadata", "name"): line})
    placed = [
        Update(declared(ref_of(change), pinned_id=change.held.id, source=source), change.held)
        if isinstance(change, Update)
        else change
        for change in changes
    ]

    _, findings = in_order(placed)

    assert findings == (
        error(
            "PLAN-NAMES-SWAPPED",
            "resources take each other's names",
            f"A name can be given only when it is free. Rename one of {loop} to a third name "
            f"first, "
            "apply, then give it the name it should have.",
            SourceLocation("shop.yaml", line, 3),
            app("a"),
        ),
    )


def test_every_ring_of_swapped_names_is_told() -> None:
    """All findings come in one run."""
    rings = [renamed("a", "b"), renamed("b", "a"), renamed("x", "y"), renamed("y", "x")]

    assert [finding.ref for finding in in_order(rings)[1]] == [app("a"), app("x")]


@st.composite
def renames(draw: st.DrawFn) -> list[Change]:
    """Draw changes of applications that take each other's names, without a ring."""
    order = draw(st.permutations(LETTERS))
    changes: list[Change] = []
    for position, name in enumerate(order):
        what = draw(st.sampled_from(["keep", "rename", "delete", "create"]))
        if what == "rename":
            changes.append(renamed(name, order[position + 1] if position < 7 else "free"))
        elif what == "delete":
            changes.append(removed(name))
    taken = {ref_of(change).key for change in changes if not isinstance(change, Delete)}
    freed = {change.held.ref.key for change in changes if isinstance(change, (Update, Delete))}
    for name in [*LETTERS, "new"]:
        key = app(name).key
        is_free = key not in taken and (key in freed or name == "new")
        if is_free and draw(st.booleans()):
            changes.append(made(name))
    changes += [Create(declared(GREET)), Create(declared(a_ref(project="new")))]
    changes.append(Create(declared(ResourceRef(Kind.PROJECT, "acme", "", "new"))))
    return changes


def _frees(change: Change) -> ResourceRef | None:
    before = held_of(change)
    gone = before is not None and (
        isinstance(change, Delete) or ref_of(change).key != before.ref.key
    )
    return before.ref.key if before is not None and gone else None


@settings(max_examples=cases(25), deadline=None)
@given(changes=renames(), seed=st.integers(), size=st.integers(1, 5))
def test_whatever_the_input_order_every_name_is_free_when_it_is_taken(
    changes: list[Change], seed: int, size: int
) -> None:
    """The order is a property of the plan, not of the files; and no write in it can collide."""
    shuffled = random.Random(seed).sample(changes, k=len(changes))

    ordered, findings = in_order(shuffled)

    assert findings == ()
    assert in_order(changes) == (ordered, ())
    assert sorted(map(repr, ordered)) == sorted(map(repr, changes))
    where = {freed: at for at, change in enumerate(ordered) if (freed := _frees(change))}
    takers = [
        (at, ref_of(change).key)
        for at, change in enumerate(ordered)
        if not isinstance(change, Delete)
    ]
    assert all(where.get(key, -1) <= at for at, key in takers)
    cut = batches(ordered, size)
    assert [change for batch in cut for change in batch] == list(ordered)
    for batch in cut:
        assert 0 < len(batch) <= size
        assert len({KINDS[ref_of(change).kind].rank for change in batch}) == 1
        given_up = {key for change in batch if (key := _frees(change)) is not None}
        assert not given_up & {
            ref_of(c).key for c in batch if not isinstance(c, Delete) and _frees(c) != ref_of(c).key
        }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([made("a"), made("b"), made("c")], [2, 1], id="no more than the size"),
        pytest.param(
            [Create(declared(ACME)), Create(declared(SHOP)), made("a"), made("b")],
            [1, 1, 2],
            id="an owner is there before its own are sent",
        ),
        pytest.param([renamed("a", "z"), made("a")], [1, 1], id="a name is free before it is used"),
        pytest.param(
            [renamed("a", "y"), made("b")], [2], id="a name that was not in use is used at once"
        ),
        pytest.param([made("a"), removed("b")], [1, 1], id="deletes are sent on their own"),
    ],
)
def test_a_batch_holds_nothing_that_waits_for_another_in_it(
    changes: Sequence[Change], expected: Sequence[int]
) -> None:
    """The members of a batch are sent at once and carried out in any order."""
    assert [len(batch) for batch in batches(changes, 2)] == expected


def test_many_renames_in_a_row_are_put_in_order() -> None:
    """A long chain is no reason to run out of stack or of patience."""
    chain: list[Change] = [renamed(f"n{at:04}", f"n{at + 1:04}") for at in range(1200)]

    ordered, findings = in_order(chain)

    assert (list(ordered), findings) == (chain[::-1], ())
