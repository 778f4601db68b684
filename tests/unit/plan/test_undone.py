"""What an undo took back stays undone until the manifests differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.plan.diff import NAME
from reconciler.plan.digest import hash_of
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan
from reconciler.plan.planner import build_plan
from reconciler.plan.undone import ITSELF, UNDONE, undone_values
from reconciler.resources.ref import Kind
from reconciler.resources.undone import Undone, undone_of_text, undone_text
from tests.builders import GREET, HOUSE, OWNERS, a_ref, an_action, declared, desired, held, observed

MARK = Undone("run-2", "run-1", "logins failed", {"timeout": hash_of("5s")})


def plan_of(timeout: str, mark: Undone | None, *redo: str) -> Plan:
    """Return the plan of an action that is held with 1s."""
    object_ = replace(held(GREET, an_action(timeout="1s")), undone=mark)
    resource = declared(GREET, an_action(timeout=timeout))
    allowed = Allowances(redo=frozenset(redo))
    return build_plan(desired(*OWNERS, resource), observed(*HOUSE, object_), allowed=allowed)


def codes(plan: Plan) -> list[str]:
    return [block.code for block in plan.blocks]


@pytest.mark.parametrize(
    ("timeout", "mark", "redo", "expected"),
    [
        pytest.param("5s", MARK, (), [UNDONE], id="the value that was taken back"),
        pytest.param("6s", MARK, (), [], id="another value"),
        pytest.param("1s", MARK, (), [], id="the value that is held"),
        pytest.param("5s", None, (), [], id="nothing was undone"),
        pytest.param("5s", MARK, (GREET.folded,), [], id="redone by name"),
        pytest.param("5s", MARK, ("action/acme/other",), [UNDONE], id="another one is redone"),
    ],
)
def test_an_update_to_an_undone_value_is_blocked(
    timeout: str, mark: Undone | None, redo: tuple[str, ...], expected: list[str]
) -> None:
    assert codes(plan_of(timeout, mark, *redo)) == expected


def test_the_block_names_undo_reason_and_flag() -> None:
    (block,) = plan_of("5s", MARK).blocks

    for part in ("run-2", "run-1", "logins failed", "timeout", f"--redo {GREET.address}"):
        assert part in block.remedy


@pytest.mark.parametrize(("timeout", "expected"), [("5s", [UNDONE]), ("6s", [])])
def test_an_undone_create_is_blocked_if_it_is_the_same(timeout: str, expected: list[str]) -> None:
    resource = declared(GREET, an_action(timeout=timeout))
    same = declared(GREET, an_action(timeout="5s")).spec
    mark = MARK._replace(values={ITSELF: hash_of(same)})
    state = replace(observed(*HOUSE), undone={GREET.folded: mark})

    assert codes(build_plan(desired(*OWNERS, resource), state)) == expected


@pytest.mark.parametrize(("pins", "expected"), [((), [UNDONE]), (("1",), [])])
def test_the_create_of_a_name_that_was_taken_back_is_blocked(
    pins: tuple[str, ...], expected: list[str]
) -> None:
    """Unless another manifest has the id: then it is no rename without one."""
    mark = MARK._replace(values={NAME: hash_of("welcome")})
    state = observed(*HOUSE, replace(held(GREET, object_id="1"), undone=mark))
    made = declared(a_ref(Kind.ACTION, "welcome"))
    others = [declared(a_ref(Kind.ACTION, "hello"), pinned_id=pin) for pin in pins]

    assert codes(build_plan(desired(*OWNERS, made, *others), state)) == expected


def test_an_undoing_update_takes_back_what_is_held() -> None:
    (change,) = plan_of("5s", None).changes

    assert undone_values(change) == {"timeout": hash_of("1s")}


def test_a_field_that_was_absent_leaves_a_mark() -> None:
    """Its value is none, and a plan that takes the field out again is blocked."""
    said = declared(GREET, an_action(timeout="1s"))
    bare = {name: value for name, value in said.spec.items() if name != "timeout"}
    absent = replace(held(GREET, an_action()), spec=bare)
    (change,) = build_plan(desired(*OWNERS, said), observed(*HOUSE, absent)).changes

    values = undone_values(change)

    assert values == {"timeout": hash_of(None)}
    back = replace(said, spec={**bare, "timeout": None})
    undone = replace(held(GREET, an_action(timeout="1s")), undone=MARK._replace(values=values))
    assert codes(build_plan(desired(*OWNERS, back), observed(*HOUSE, undone))) == [UNDONE]


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "null", "[]", "{}", "[" * 5000, "7", 7, None, True,
        '{"run":"a","of":"b","reason":"","values":{}}',
        '{"run":"a","of":"b","reason":"","values":{"x":1}}',
        '{"run":"a","of":"b","reason":"","values":{"x":"\\ud800"}}',
        '{"run":"a","of":"b","reason":"","values":{"x":"1"},"more":1}',
    ],
)  # fmt: skip
def test_a_text_that_is_no_mark_is_ignored(text: object) -> None:
    assert undone_of_text(text) is None


def test_a_mark_travels_as_text_and_a_long_reason_is_cut() -> None:
    assert undone_of_text(undone_text(MARK)) == MARK
    cut = undone_of_text(undone_text(MARK._replace(reason="x" * 501)))
    assert cut is not None
    assert cut.reason == "x" * 500
