"""What is made anew or a second time is found without comparing each object with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind
from reconciler.rules.alike import alike
from reconciler.state import ObservedObject
from tests.builders import (
    HOUSE,
    OWNERS,
    a_ref,
    an_application,
    declared,
    desired,
    held,
    observed,
)

PRUNE = Scope(prune=True)
UNMANAGED = Scope()


class CountedSpec(Mapping[str, Any]):
    """Fields that count how often anybody looks at one."""

    looks = 0

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        CountedSpec.looks += 1
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _old(at: int) -> ObservedObject:
    found = held(a_ref(name=f"old-{at}"), an_application(redirectUris=[f"https://old-{at}.com/"]))
    return replace(found, spec=CountedSpec(found.spec))


def _looks(count: int, scope: Scope) -> int:
    """Return how often fields are looked at where all that is declared is new."""
    made = [
        declared(a_ref(name=f"new-{at}"), an_application(redirectUris=[f"https://new-{at}.com/"]))
        for at in range(count)
    ]
    state = observed(*HOUSE, *map(_old, range(count)))
    before = CountedSpec.looks
    build_plan(desired(*OWNERS, *made), state, scope)
    return CountedSpec.looks - before


@pytest.mark.parametrize("scope", [UNMANAGED, PRUNE])
def test_twice_as_much_takes_twice_as_many_looks(scope: Scope) -> None:
    """With 2,000 creates beside as many objects, each compared with each took seven seconds."""
    few = _looks(20, scope)

    assert 0 < _looks(40, scope) <= 2 * few


NEW_LOGIN = {"loginV2": {"baseUri": "https://login.example.com"}}


@pytest.mark.parametrize(
    ("made", "there", "is_alike"),
    [
        pytest.param({}, {}, True, id="the same"),
        pytest.param({}, {"devMode": True}, False, id="another flag"),
        pytest.param({}, {"loginVersion": NEW_LOGIN}, True, id="a field that is not declared"),
        pytest.param(
            {"loginVersion": NEW_LOGIN}, {"loginVersion": {**NEW_LOGIN}}, True, id="one variant"
        ),
        pytest.param(
            {"loginVersion": NEW_LOGIN}, {"loginVersion": {"loginV2": {}}}, False, id="in its text"
        ),
        pytest.param(
            {"loginVersion": {"a": "1", "b": "2"}},
            {"loginVersion": {"b": "2", "a": "1"}},
            True,
            id="keys in another order",
        ),
        pytest.param(
            {"redirectUris": ["https://a.test/", "https://b.test/"]},
            {"redirectUris": ["https://b.test/", "https://a.test/"]},
            False,
            id="a list in another order",
        ),
    ],
)
def test_what_declares_the_same_is_alike(
    made: dict[str, Any], there: dict[str, Any], *, is_alike: bool
) -> None:
    """Values are compared, however deep they are."""
    resource, found = declared(), held()
    other = replace(found, spec={**found.spec, **there})

    [(_, twins)] = alike([replace(resource, spec={**resource.spec, **made})], [other])

    assert [*twins] == ([other] if is_alike else [])


def test_each_object_has_one_double() -> None:
    """Also where one manifest says more fields than the other: the first one declared is told."""
    wide = an_application(backChannelLogoutUri="https://shop.example.com/out")
    refs = [a_ref(name=name) for name in ("new-1", "new-2", "new-3")]
    made = [declared(refs[0], wide), declared(refs[1]), declared(refs[2], wide)]
    state = observed(*HOUSE, held(a_ref(name="b"), wide), held(a_ref(name="a"), wide))

    plan = build_plan(desired(*OWNERS, *made), state)

    told = [each for each in plan.warnings if each.code == "PLAN-SECOND-OBJECT"]
    assert [(each.ref, each.remedy.split(" with the same")[0]) for each in told] == [
        (refs[0], "The service holds OidcApplication acme/shop/a"),
        (refs[1], "The service holds OidcApplication acme/shop/b"),
    ]


def test_the_first_create_of_the_same_content_stands_for_what_is_deleted() -> None:
    """Whichever fields the creates say, and only in the same project."""
    bare = an_application(redirectUris=[])
    wide = {**bare, "backChannelLogoutUri": "https://shop.example.com/out"}
    made = [
        declared(a_ref(name="new-0", project="blog"), bare),
        declared(a_ref(name="new-1"), {**bare, "devMode": True}),
        declared(a_ref(name="new-2"), wide),
        declared(a_ref(name="new-3"), bare),
    ]
    state = observed(*HOUSE, held(a_ref(Kind.PROJECT, "blog")), held(a_ref(name="old"), wide))

    plan = build_plan(
        desired(*OWNERS, declared(a_ref(Kind.PROJECT, "blog")), *made),
        state,
        PRUNE,
        Allowances(deletes=9),
    )

    (block,) = (each for each in plan.blocks if each.code == "GUARD-MADE-ANEW")
    assert "and OidcApplication acme/shop/new-2 created in its place" in block.remedy
