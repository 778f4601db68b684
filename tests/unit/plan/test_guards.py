"""What blocks a plan, at the limit and one beyond, and what allows just that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.model import Adopt, Change, Create, Delete, Update
from reconciler.resources.ref import Kind
from tests.builders import (
    GREET,
    HOUSE,
    SHOP,
    WEB,
    a_ref,
    declared,
    desired,
    held,
    observed,
)

APP, ACTION = Kind.OIDC_APPLICATION, Kind.ACTION


def named(count: int, kind: Kind = APP) -> list[Update]:
    """Return an update of each of so many objects."""
    refs = [a_ref(kind, f"n{at:02}") for at in range(count)]
    return [Update(declared(ref), held(ref)) for ref in refs]


def found(
    total: int, touched: Sequence[Change], allowed: Allowances | None = None, kind: Kind = APP
) -> list[str]:
    """Return the codes of what blocks changes where so many objects of a kind are held."""
    objects = [update.held for update in named(total, kind)]
    return [
        finding.code
        for finding in blocks(
            touched, desired(), observed(*HOUSE, *objects), allowed or Allowances()
        )
    ]


@pytest.mark.parametrize(
    ("total", "updates", "allowed", "expected"),
    [
        pytest.param(10, 3, None, [], id="30 % of 10"),
        pytest.param(10, 4, None, ["GUARD-MANY-UPDATES"], id="more than 30 % of 10"),
        pytest.param(9, 9, None, [], id="all of 9: too few objects for a share to mean much"),
        pytest.param(11, 3, None, [], id="less than 30 % of 11"),
        pytest.param(11, 4, None, ["GUARD-MANY-UPDATES"], id="more than 30 % of 11"),
        pytest.param(100, 30, None, [], id="30 % of 100"),
        pytest.param(100, 31, None, ["GUARD-MANY-UPDATES"], id="31 % of 100"),
        pytest.param(10, 4, 4, [], id="allowed to the number"),
        pytest.param(10, 5, 4, ["GUARD-MANY-UPDATES"], id="one more than is allowed"),
        pytest.param(10, 4, 0, ["GUARD-MANY-UPDATES"], id="none allowed"),
        pytest.param(10, 3, 0, [], id="an allowance never lowers the guard's own limit"),
    ],
)
def test_many_updates_of_a_kind_block(
    total: int, updates: int, allowed: int | None, expected: list[str]
) -> None:
    """A wrong merge changes everything at once; a right one says so."""
    changes = named(updates)

    assert found(total, changes, Allowances(updates=allowed, deletes=99)) == expected
    adopted = [Adopt(change.resource, change.held) for change in changes]
    assert found(total, adopted, Allowances(updates=allowed)) == expected


@pytest.mark.parametrize(
    ("total", "deletes", "allowed", "expected"),
    [
        pytest.param(10, 3, None, [], id="30 % of 10"),
        pytest.param(10, 4, None, ["GUARD-MANY-DELETES"], id="more than 30 % of 10"),
        pytest.param(9, 8, None, [], id="most of 9"),
        pytest.param(9, 9, None, ["GUARD-MANY-DELETES"], id="all of 9"),
        pytest.param(1, 1, None, ["GUARD-MANY-DELETES"], id="the only one"),
        pytest.param(1, 1, 1, [], id="the only one, allowed"),
        pytest.param(10, 10, 10, [], id="all of 10, allowed to the number"),
        pytest.param(10, 10, 9, ["GUARD-MANY-DELETES"], id="one more than is allowed"),
    ],
)
def test_many_deletes_of_a_kind_block_and_so_does_the_last_one(
    total: int, deletes: int, allowed: int | None, expected: list[str]
) -> None:
    """An empty folder, read by mistake, must not empty the service."""
    changes = [Delete(update.held) for update in named(deletes)]

    assert found(total, changes, Allowances(updates=99, deletes=allowed)) == expected


def test_each_kind_is_counted_for_itself() -> None:
    """Many actions must not hide that half of the applications change."""
    objects = [*(u.held for u in named(100, ACTION)), *(u.held for u in named(10))]
    changes = [*named(4), *named(4, ACTION)]

    assert blocks(changes, desired(), observed(*objects), Allowances()) == (
        error(
            "GUARD-MANY-UPDATES",
            "too many applications would be updated",
            "4 of 10 applications (40%) would be updated; the limit is 30% where there are 10 or "
            "more. If that is meant, allow just that: --allow-updates 4.",
        ),
    )


def test_the_delete_guard_says_what_to_allow() -> None:
    """The number is the one that would be deleted, so that the next plan is guarded again."""
    objects = [update.held for update in named(2)]

    assert blocks(
        [Delete(found) for found in objects], desired(), observed(*objects), Allowances()
    ) == (
        error(
            "GUARD-MANY-DELETES",
            "too many applications would be deleted",
            "2 of 2 applications (100%) would be deleted; the limit is 30% where there are 10 or "
            "more, and never all. If that is meant, allow just that: --allow-deletes 2.",
        ),
    )


def test_creates_are_never_too_many() -> None:
    """They harm nothing that is there."""
    assert found(10, [Create(update.resource) for update in named(50)]) == []


PARTIAL = error(
    "GUARD-PARTIAL-TREE",
    "deletes are planned from a part of the tree",
    "1 object(s) would be deleted because no manifest that was read declares them. Give the "
    "folder of the whole tree, or leave --prune out.",
)
PROTECTED = error(
    "GUARD-PREVENT-DELETE",
    "the object was declared with preventDelete",
    "OidcApplication acme/shop/storefront is protected. Declare it again; to delete it, first "
    "apply it with metadata.preventDelete: false.",
    ref=WEB,
)
UNKNOWN = error(
    "GUARD-UNKNOWN-FIELD",
    "the update would erase fields this version does not know",
    "OidcApplication acme/shop/storefront holds alpha, beta, which can be neither declared nor "
    "carried. Use a version of the reconciler that knows them.",
    ref=WEB,
)
INCOMPLETE = error(
    "GUARD-INCOMPLETE-READ",
    "the service's listing is not complete",
    "The total says 12, the pages hold 11. Nothing is written from an incomplete listing: run "
    "the command again.",
)
ODD = held(WEB, uncarried=("beta", "alpha"))


@pytest.mark.parametrize(
    ("changes", "whole", "incomplete", "expected"),
    [
        pytest.param([Delete(held(WEB))], "part", (), [PARTIAL], id="prune a part of the tree"),
        pytest.param([Delete(held(WEB))], "whole", (), [], id="prune the whole tree"),
        pytest.param([Update(declared(), held())], "part", (), [], id="update a part of the tree"),
        pytest.param(
            [Delete(held(WEB, prevent_delete=True))], "whole", (), [PROTECTED], id="protected"
        ),
        pytest.param(
            [Delete(held(WEB, prevent_delete=None))],
            "whole",
            (),
            [],
            id="protection not remembered",
        ),
        pytest.param(
            [Update(declared(), held(prevent_delete=True))], "whole", (), [], id="update protected"
        ),
        pytest.param([Update(declared(), ODD)], "whole", (), [UNKNOWN], id="update unknown fields"),
        pytest.param([Adopt(declared(), ODD)], "whole", (), [UNKNOWN], id="adopt unknown fields"),
        pytest.param([Delete(ODD)], "whole", (), [], id="delete unknown fields"),
        pytest.param(
            [],
            "whole",
            ("The total says 12, the pages hold 11.",),
            [INCOMPLETE],
            id="half a listing",
        ),
        pytest.param(
            [Delete(held(WEB, prevent_delete=True))],
            "part",
            ("The total says 12, the pages hold 11.",),
            [INCOMPLETE, PARTIAL, PROTECTED],
            id="every reason at once",
        ),
    ],
)
def test_an_unsafe_plan_is_blocked_with_its_reason(
    changes: Sequence[Change], whole: str, incomplete: tuple[str, ...], expected: list[Diagnostic]
) -> None:
    """A blocked plan is shown in full, and each reason says how to get on."""
    objects = [*(update.held for update in named(8)), held(GREET), held(SHOP), held(WEB)]
    state = observed(*objects, incomplete=incomplete)

    assert list(blocks(changes, desired(whole=whole == "whole"), state, Allowances())) == expected
