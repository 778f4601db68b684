"""Pauses, leadership and records of trees, over every store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.session import MAX_TREES
from reconciler.service.projections.maintenance import rebuild, verify
from tests.contract.test_feed import changes, heads
from tests.examples import Clock
from tests.memory_store import open_memory
from tests.rows import each_row
from tests.unit.service.asking import Asking

COMMIT, OTHER = "c0ffee" + 34 * "0", "beef" + 60 * "0"


def lead(ask: Asking, tree: str = "shop", **fields: Any) -> str:
    """Return the token of the leadership of a tree."""
    asked = {"named": "acme", "tree": tree, "holder": "me", "seconds": 60, **fields}
    return str(ask("AcquireLease", **asked)["lease"])


def pause(ask: Asking, **fields: Any) -> dict[str, Any]:
    asked = {"named": "ACME", "tree": "shop", "reason": "incident 7", "seconds": 3600, **fields}
    return ask("PauseTree", **asked)


def record(ask: Asking, lease: str, **fields: Any) -> dict[str, Any]:
    asked = {"named": "acme", "tree": "shop", "commit": COMMIT, "lease": lease, **fields}
    return ask("RecordCommit", **asked)


def test_a_pause_is_carried_by_the_heads_until_its_time_is_over(ask: Asking) -> None:
    """Of each tree alone, with its reason and its author."""
    ana = Caller("ana", Role.EDITOR, frozenset({ask.organization}))
    details = pause(ask, by=ana)["details"]
    pause(ask, tree="other", reason="a freeze", seconds=60)

    other, shop = heads(ask)["acme"]["pauses"]

    assert (shop["tree"], shop["reason"], shop["writer"]) == ("shop", "incident 7", "ana")
    assert shop["since"] == details["changeDate"]
    assert shop["until"][:14] > shop["since"][:14]
    assert other["tree"] == "other"
    assert ask("ListTrees")["organizations"][0]["pauses"] == [other, shop]
    ask.clock.time += 61_000_000
    assert heads(ask)["acme"]["pauses"] == [shop]
    ask.clock.time += 3_600_000_000
    assert heads(ask)["acme"]["pauses"] == []


def test_a_pause_is_replaced_and_ended(ask: Asking) -> None:
    pause(ask)
    pause(ask, reason="longer", seconds=7200)
    (held,) = heads(ask)["acme"]["pauses"]
    assert held["reason"] == "longer"

    ask("ResumeTree", named="acme", tree="shop")
    before = ask.event_count()
    ask("ResumeTree", named="acme", tree="shop")

    assert heads(ask)["acme"]["pauses"] == []
    assert ask.event_count() == before, "there was nothing left to end"
    types = [each["type"] for each in changes(ask)][-3:]
    assert types == ["organization.tree.paused"] * 2 + ["organization.tree.resumed"]


def test_a_record_is_written_by_the_leader_alone(ask: Asking) -> None:
    """A context can be claimed by any writer. This cannot."""
    mine = lead(ask)
    of_other_tree = lead(ask, "other")
    of_organization = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    before = ask.event_count()
    for lease in (of_other_tree, of_organization, "1.guessed"):
        refusal = ask.refused("RecordCommit", named="acme", tree="shop", commit=COMMIT, lease=lease)
        assert (refusal.code, refusal.reason) == (10, "leadership.lost")
    ask.an_action(context=f'{{"tree":"shop","revision":"{OTHER}"}}')
    assert heads(ask)["acme"]["applied"] == []
    assert ask.event_count() == before + 1

    record(ask, mine, by=Caller("ci", Role.EDITOR))

    (held,) = heads(ask)["acme"]["applied"]
    assert {name: held[name] for name in ("tree", "commit", "outcome", "writer")} == {
        "tree": "shop", "commit": COMMIT, "outcome": "changed", "writer": "ci",
    }  # fmt: skip


def test_a_leader_who_is_late_records_nothing(ask: Asking) -> None:
    """Its lease ran out, or another has it: the fence is the service's, and so is the clock."""
    late = lead(ask)
    ask.clock.time += 61_000_000
    asked = {"named": "acme", "tree": "shop", "commit": COMMIT, "lease": late}
    assert ask.refused("RecordCommit", **asked).reason == "leadership.lost"
    new = lead(ask)
    assert ask.refused("RecordCommit", **asked).reason == "leadership.lost"
    record(ask, new)
    ask("ReleaseLease", named="acme", tree="shop", lease=new)
    assert ask.refused("RecordCommit", **{**asked, "lease": new}).code == 10


def test_the_same_commit_is_recorded_once(ask: Asking) -> None:
    """A round, and a job of CI, may each find that it is applied."""
    mine = lead(ask)
    record(ask, mine)
    before = ask.event_count()
    record(ask, mine, outcome="unchanged")
    assert ask.event_count() == before
    record(ask, mine, commit=OTHER, outcome="unchanged")
    record(ask, mine)

    (held,) = heads(ask)["acme"]["applied"]
    assert (held["commit"], held["outcome"]) == (COMMIT, "changed")
    assert ask.event_count() == before + 2


def test_leadership_holds_up_neither_writers_nor_other_trees(ask: Asking) -> None:
    lead(ask)

    assert lead(ask, "other")
    assert ask("AcquireLease", named="acme", holder="you", seconds=60)["lease"]
    assert ask.an_action()["id"]
    refusal = ask.refused("AcquireLease", named="acme", tree="shop", holder="you", seconds=60)
    assert (refusal.code, refusal.message) == (10, "another run leads this tree")
    assert refusal.details["holder"] == "me"


def test_no_name_of_an_organization_is_that_of_a_leadership(ask: Asking) -> None:
    """They are kept in one table."""
    lead(ask)

    assert ask("AcquireLease", named="TacmeTshop", holder="you", seconds=60)["fence"] == "1"
    assert ask("AcquireLease", named="acmetshop", holder="you", seconds=60)["fence"] == "1"
    assert lead(ask, "Tshop", named="acme")
    assert lead(ask, "shop", named="acmeT")


def test_what_trees_left_is_made_anew_from_the_log(ask: Asking) -> None:
    """So it is in every backup and restore, and a row that was forged is found."""
    pause(ask)
    record(ask, lead(ask))
    before = heads(ask)
    assert verify(ask.service.store) == []
    with ask.service.store.transaction() as tx:
        row = tx.get_object(ask.organization)
        assert row is not None
        tx.put(row._replace(marks=row.marks.replace(COMMIT, OTHER[:40])))
    assert verify(ask.service.store) == [f"object {ask.organization}: is not what the log says"]

    rebuild(ask.service.store)

    assert heads(ask) == before
    assert verify(ask.service.store) == []


def test_a_pause_and_a_record_leave_the_organization_as_it_is(ask: Asking) -> None:
    """Pruning asks whose it is, and a plan file for which plan it was written last."""
    context = '{"tree":"thief","plan":"sha256:1","preventDelete":true}'
    before = ask("ListObjects", organizationId=ask.organization)["objects"][0]
    pause(ask, context=context)
    record(ask, lead(ask), context=context)

    organization = ask("ListObjects", organizationId=ask.organization)["objects"][0]

    assert organization == before


def test_an_organization_keeps_only_so_many_trees(ask: Asking) -> None:
    """Every list of heads has all of them. Pauses that are over make room."""
    for number in range(MAX_TREES):
        pause(ask, tree=f"t{number}", seconds=60)
        record(ask, lead(ask, f"t{number}"), tree=f"t{number}")
    full = {"named": "acme", "tree": "shop", "reason": "x", "seconds": 60}
    assert ask.refused("PauseTree", **full).reason == "object.too_many_trees"
    mine = {"named": "acme", "tree": "shop", "commit": COMMIT, "lease": lead(ask)}
    assert ask.refused("RecordCommit", **mine).reason == "object.too_many_trees"

    ask.clock.time += 61_000_000
    ask("PauseTree", **full)

    assert [each["tree"] for each in heads(ask)["acme"]["pauses"]] == ["shop"]
    record(ask, lead(ask, "t0"), tree="t0", commit=OTHER)


def test_pauses_that_are_made_at_once_are_all_kept(ask: Asking) -> None:
    """Each changes the same row of the organization."""
    with ThreadPoolExecutor(8) as threads:
        made = [threads.submit(pause, ask, tree=f"t{number}") for number in range(16)]
    assert all(each.result()["details"] for each in made)

    assert len(heads(ask)["acme"]["pauses"]) == 16
    assert verify(ask.service.store) == []


def _pausing(ask: Asking, **who: Any) -> int:
    return int(ask.refused("PauseTree", tree="shop", reason="x", seconds=60, **who).code)


def _resuming(ask: Asking, **who: Any) -> int:
    return int(ask.refused("ResumeTree", tree="shop", **who).code)


def _leading(ask: Asking, **who: Any) -> int:
    return int(ask.refused("AcquireLease", tree="shop", holder="x", seconds=60, **who).code)


def _recording(ask: Asking, **who: Any) -> int:
    asked = {"tree": "shop", "commit": COMMIT, "lease": "1.guessed"}
    return int(ask.refused("RecordCommit", **asked, **who).code)


@each_row("refused", [_pausing, _resuming, _leading, _recording])
def test_who_does_not_see_an_organization_has_no_say_there(refused: Callable[..., int]) -> None:
    """Refused as a missing one is; and a viewer is refused as one who may not."""
    clock = Clock()
    with closing(open_memory(now=clock)) as service:
        ask = Asking(service, clock)
        ask.prepare()
        other = ask("AddOrg", name="globex")["id"]
        hostile = Caller("hostile", Role.EDITOR, frozenset({other}))
        viewer = Caller("viewer", Role.VIEWER)
        before = ask("ListHeads")

        assert refused(ask, named="acme", by=hostile) == 5
        assert refused(ask, named="nowhere", by=hostile) == 5
        assert refused(ask, named="acme", by=viewer) == 7
        assert ask("ListHeads") == before


@pytest.mark.parametrize(
    ("operation", "field", "value"),
    [
        ("PauseTree", "seconds", 0),
        ("PauseTree", "seconds", 31 * 24 * 3600 + 1),
        ("PauseTree", "reason", ""),
        ("PauseTree", "reason", 501 * "x"),
        ("PauseTree", "tree", ""),
        ("PauseTree", "tree", 201 * "x"),
        ("PauseTree", "more", "x"),
        ("ResumeTree", "tree", "a\0b"),
        ("RecordCommit", "commit", "main"),
        ("RecordCommit", "commit", COMMIT.upper()),
        ("RecordCommit", "outcome", "failed"),
        ("RecordCommit", "lease", ""),
    ],
)
def test_a_field_that_is_wrong_is_named(
    ask: Asking, operation: str, field: str, value: object
) -> None:
    good: dict[str, dict[str, object]] = {
        "PauseTree": {"tree": "shop", "reason": "x", "seconds": 60},
        "ResumeTree": {"tree": "shop"},
        "RecordCommit": {"tree": "shop", "commit": COMMIT, "lease": "1.x"},
    }
    refusal = ask.refused(operation, named="acme", **{**good[operation], field: value})

    assert (refusal.code, refusal.details["field"]) == (3, field)
