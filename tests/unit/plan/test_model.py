"""A plan as a value: what its changes make, end and count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.plan.model import (
    PARTIAL_TREE,
    Adopt,
    Change,
    Create,
    Delete,
    Summary,
    Unmanaged,
    Update,
    held_of,
    is_secret_alone,
    makes_secret,
    only_takes_over,
    ref_of,
    word,
)
from tests.builders import (
    GREET,
    NONE,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    an_owed_secret,
    declared,
    held,
)
from tests.rows import each_row

PUBLIC = an_application(authMethodType=NONE)
SAME, OTHER = held(WEB), held(WEB, an_application(devMode=True))


@pytest.mark.parametrize(
    ("change", "name", "before"),
    [
        (Create(declared()), "create", None),
        (Update(declared(), OTHER), "update", OTHER),
        (Adopt(declared(), OTHER), "adopt", OTHER),
        (Delete(OTHER), "delete", OTHER),
    ],
)
def test_a_change_has_a_word_an_object_and_a_state_before(
    change: Change, name: str, before: object
) -> None:
    assert (word(change), ref_of(change), held_of(change)) == (name, WEB, before)


def test_a_rename_is_about_the_new_name() -> None:
    assert ref_of(Update(declared(a_ref(name="new")), SAME)) == a_ref(name="new")


@each_row(
    ("change", "makes"),
    [
        (Create(declared()), True),
        (Create(declared(WEB, PUBLIC)), False),
        (Create(declared(GREET)), False),
        (Update(declared(), OTHER), False),
        (Update(declared(), OTHER, new_secret=True), True),
        (Update(declared(WEB, PUBLIC), OTHER, new_secret=True), False),
        (Update(declared(), held(WEB, PUBLIC)), True),
        (Update(declared(), replace(OTHER, has_secret=False)), True),
        (Adopt(declared(), replace(OTHER, has_secret=None)), False),
        (Delete(OTHER), False),
    ],
)
def test_a_change_makes_a_secret_where_there_is_none_to_sign_in_with(
    change: Change, *, makes: bool
) -> None:
    assert makes_secret(change) is makes


@each_row(
    ("change", "secret_alone", "take_over"),
    [
        (Update(declared(), SAME, new_secret=True), True, False),
        (Update(declared(), OTHER, new_secret=True), False, False),
        (Update(declared(), SAME, new_secret=True, new_owner="t"), False, False),
        (Adopt(declared(), SAME, new_secret=True), False, False),
        (Update(declared(), SAME, new_owner="t"), False, True),
        (Adopt(declared(), SAME, new_owner="t"), False, True),
        (Update(declared(), OTHER, new_owner="t"), False, False),
        (Create(declared()), False, False),
        (Delete(SAME), False, False),
    ],
)
def test_a_change_of_nothing_but_a_secret_or_an_owner_is_known(
    change: Change, *, secret_alone: bool, take_over: bool
) -> None:
    assert is_secret_alone(change) is secret_alone
    assert only_takes_over(change) is take_over


@each_row(
    ("changes", "lost", "delivered"),
    [
        pytest.param([], False, True, id="it stays"),
        pytest.param([], True, False, id="its time is over"),
        pytest.param([Delete(SAME)], False, False, id="the application goes"),
        pytest.param([Update(declared(WEB, PUBLIC), SAME)], False, False, id="it needs none"),
        pytest.param(
            [Update(declared(), SAME, new_secret=True)], False, False, id="it is replaced"
        ),
        pytest.param([Update(declared(), OTHER)], False, True, id="another change"),
        pytest.param([Create(declared(GREET, an_action()))], False, True, id="another object"),
    ],
)
def test_an_owed_secret_is_delivered_unless_the_plan_ends_it(
    changes: list[Any], *, lost: bool, delivered: bool
) -> None:
    owed = an_owed_secret(lost=lost)

    plan = a_plan(*changes, owed=(owed,))

    assert plan.deliverable == ((owed,) if delivered else ())


def test_a_plan_counts_everything_in_it() -> None:
    plan = a_plan(
        Create(declared(GREET)),
        Delete(SAME),
        unmanaged=(Unmanaged(WEB),),
        blocks=(error("GUARD-X", "s", "r"),),
        owed_elsewhere=3,
        owed_left=4,
    )

    assert plan.summary == Summary(1, 0, 0, 1, 2, 1, 1, 0, 3, 4)


def test_manifests_of_what_would_be_deleted_are_known_by_their_blocks() -> None:
    place = SourceLocation("b.yaml", 3, 1)
    plan = a_plan(
        blocks=(
            error(PARTIAL_TREE, "s", "r", place, WEB),
            error(PARTIAL_TREE, "s", "r", ref=GREET),
            error("GUARD-X", "s", "r", place, GREET),
        )
    )

    assert plan.declared_elsewhere == {WEB: place}
